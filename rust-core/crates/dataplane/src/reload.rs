//! What the control side tells the data-plane thread while it serves: another configuration, other tenants, other signing
//! keys, other access tokens and temporary credentials.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

use proofgate_auth::{KeySet, Shards};
use proofgate_base::Error;
use proofgate_exchange::gateway::{Change, Gateway};
use proofgate_upstream::access_token::Token;
use proofgate_upstream::signer::Keys;
use tokio::sync::mpsc::{Receiver, Sender};

/// Orders that may wait; whoever gives one waits for its answer, so there are never many.
pub(crate) const MAX_WAITING: usize = 16;

/// How long an order may wait until the data-plane thread begins with it.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the data-plane thread is to do, and who waits to hear that it is done.
pub(crate) enum Order {
    /// Take this into service; answers with the shards that were before.
    Apply(Box<Change>, SyncSender<Shards>),
    /// Verify tokens of this issuer with these keys; answers whether the issuer is configured.
    UseKeySet(String, Box<KeySet>, SyncSender<bool>),
    /// Send this to the provider of this name; answers whether it is one that wants an access token.
    UseToken(String, Token, SyncSender<bool>),
    /// Sign requests to the provider of this name with these; answers whether it is one that takes any.
    UseKeys(String, Keys, SyncSender<bool>),
}

/// An order on its way. Either it is obeyed or it is withdrawn, and both sides know which.
pub(crate) struct PendingOrder {
    order: Order,
    /// Whether one side has decided.
    decided: Arc<AtomicBool>,
}

/// The wait of whoever gave an order.
struct Wait<A> {
    answer: mpsc::Receiver<A>,
    decided: Arc<AtomicBool>,
}

impl PendingOrder {
    fn new<A>(order: impl FnOnce(SyncSender<A>) -> Order) -> (Self, Wait<A>) {
        let (done, answer) = mpsc::sync_channel(1);
        let decided = Arc::new(AtomicBool::new(false));
        let given = PendingOrder {
            order: order(done),
            decided: Arc::clone(&decided),
        };
        (given, Wait { answer, decided })
    }

    /// The order, to be obeyed now; `None` when it has been withdrawn.
    fn take(self) -> Option<Order> {
        let withdrawn = self.decided.swap(true, Ordering::AcqRel);
        (!withdrawn).then_some(self.order)
    }
}

impl<A> Wait<A> {
    /// What came of the order. One that is not begun with within `patience` is withdrawn; one that is begun with is
    /// waited for however long it takes, because nobody could say otherwise what is in force.
    fn outcome(self, patience: Duration) -> Result<A, Error> {
        match self.answer.recv_timeout(patience) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) if !self.decided.swap(true, Ordering::AcqRel) => Err(Error::Busy),
            Err(_) => self.answer.recv().map_err(|_| Error::NotRunning),
        }
    }
}

/// Gives the data-plane thread an order and waits for its answer.
///
/// # Errors
/// [`Error::Busy`] when the thread does not begin with it in time: it never will. [`Error::NotRunning`].
pub(crate) fn give<A>(
    orders: &Sender<PendingOrder>,
    order: impl FnOnce(SyncSender<A>) -> Order,
) -> Result<A, Error> {
    let (given, wait) = PendingOrder::new(order);
    orders.try_send(given).map_err(|_| Error::NotRunning)?;
    wait.outcome(PATIENCE)
}

/// Obeys orders as they come; runs as a task of the data-plane thread.
pub(crate) async fn obey(gateway: Rc<Gateway>, mut orders: Receiver<PendingOrder>) {
    while let Some(given) = orders.recv().await {
        match given.take() {
            Some(Order::Apply(change, done)) => {
                let _ = done.try_send(gateway.apply(*change));
            }
            Some(Order::UseKeySet(issuer, keys, done)) => {
                let catalog = gateway.catalog();
                let set = catalog.terms.authenticator.set_key_set(&issuer, *keys);
                let _ = done.try_send(set.is_ok());
            }
            Some(Order::UseToken(provider, token, done)) => {
                let _ = done.try_send(gateway.catalog().set_token(&provider, token));
            }
            Some(Order::UseKeys(provider, keys, done)) => {
                let _ = done.try_send(gateway.catalog().set_keys(&provider, keys));
            }
            None => {}
        }
    }
    // Nobody gives orders any more; the task is vital and must not end by itself.
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn order() -> (PendingOrder, Wait<bool>) {
        let (keys, _) = KeySet::parse(r#"{"keys":[]}"#).unwrap();
        PendingOrder::new(|done| Order::UseKeySet("issuer".into(), Box::new(keys), done))
    }

    #[test]
    fn an_order_that_is_not_begun_with_in_time_is_never_obeyed() {
        let (given, wait) = order();
        assert!(matches!(wait.outcome(Duration::ZERO), Err(Error::Busy)));
        assert!(given.take().is_none());
    }

    #[test]
    fn of_an_order_that_takes_long_the_true_outcome_is_told() {
        let (given, wait) = order();
        let Some(Order::UseKeySet(_, _, done)) = given.take() else {
            panic!("it has not been withdrawn");
        };
        let waits = thread::spawn(move || wait.outcome(Duration::ZERO));
        done.send(true).unwrap();
        assert!(matches!(waits.join().unwrap(), Ok(true)));
    }

    #[test]
    fn an_order_that_dies_with_its_thread_is_no_success() {
        let (given, wait) = order();
        drop(given.take());
        assert!(matches!(wait.outcome(Duration::ZERO), Err(Error::NotRunning)));
    }
}
