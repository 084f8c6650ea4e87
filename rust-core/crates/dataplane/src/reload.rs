//! What the control side tells the data-plane thread while it serves: another configuration, other tenants, other signing
//! keys, other access tokens and temporary credentials.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

use proofgate_auth::{KeySet, Shards};
use proofgate_base::Error;
use proofgate_exchange::gateway::{ConfigChange, Gateway};
use proofgate_upstream::access_token::Token;
use proofgate_upstream::signer::SigningCredentials;
use tokio::sync::mpsc::{Receiver, Sender};

/// Orders that may wait; whoever gives one waits for its answer, so there are never many.
pub(crate) const MAX_QUEUED_COMMANDS: usize = 16;

/// How long an order may wait until the data-plane thread begins with it.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// What the data-plane thread is to do, and who waits to hear that it is done.
pub(crate) enum Command {
    /// Take this into service; answers with the shards that were before.
    Apply(Box<ConfigChange>, SyncSender<Shards>),
    /// Verify tokens of this issuer with these keys; answers whether the issuer is configured.
    SetKeySet(String, Box<KeySet>, SyncSender<bool>),
    /// Send this to the provider of this name; answers whether it is one that wants an access token.
    SetAccessToken(String, Token, SyncSender<bool>),
    /// Sign requests to the provider of this name with these; answers whether it is one that takes any.
    SetAwsCredentials(String, SigningCredentials, SyncSender<bool>),
}

/// An order on its way. Either it is obeyed or it is withdrawn, and both sides know which.
pub(crate) struct PendingCommand {
    command: Command,
    /// Whether one side has decided.
    claimed: Arc<AtomicBool>,
}

/// The wait of whoever gave an order.
struct CommandReply<A> {
    response: mpsc::Receiver<A>,
    claimed: Arc<AtomicBool>,
}

impl PendingCommand {
    fn new<A>(order: impl FnOnce(SyncSender<A>) -> Command) -> (Self, CommandReply<A>) {
        let (done, answer) = mpsc::sync_channel(1);
        let decided = Arc::new(AtomicBool::new(false));
        let given = PendingCommand {
            command: order(done),
            claimed: Arc::clone(&decided),
        };
        (
            given,
            CommandReply {
                response: answer,
                claimed: decided,
            },
        )
    }

    /// The order, to be obeyed now; `None` when it has been withdrawn.
    fn claim(self) -> Option<Command> {
        let withdrawn = self.claimed.swap(true, Ordering::AcqRel);
        (!withdrawn).then_some(self.command)
    }
}

impl<A> CommandReply<A> {
    /// What came of the order. One that is not begun with within `patience` is withdrawn; one that is begun with is
    /// waited for however long it takes, because nobody could say otherwise what is in force.
    fn wait(self, patience: Duration) -> Result<A, Error> {
        match self.response.recv_timeout(patience) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) if !self.claimed.swap(true, Ordering::AcqRel) => Err(Error::Busy),
            Err(_) => self.response.recv().map_err(|_| Error::NotRunning),
        }
    }
}

/// Gives the data-plane thread an order and waits for its answer.
///
/// # Errors
/// [`Error::Busy`] when the thread does not begin with it in time: it never will. [`Error::NotRunning`].
pub(crate) fn send_command<A>(
    orders: &Sender<PendingCommand>,
    order: impl FnOnce(SyncSender<A>) -> Command,
) -> Result<A, Error> {
    let (given, wait) = PendingCommand::new(order);
    orders.try_send(given).map_err(|_| Error::NotRunning)?;
    wait.wait(START_TIMEOUT)
}

/// Obeys orders as they come; runs as a task of the data-plane thread.
pub(crate) async fn execute_commands(gateway: Rc<Gateway>, mut orders: Receiver<PendingCommand>) {
    while let Some(given) = orders.recv().await {
        match given.claim() {
            Some(Command::Apply(change, done)) => {
                let _ = done.try_send(gateway.apply(*change));
            }
            Some(Command::SetKeySet(issuer, keys, done)) => {
                let catalog = gateway.catalog();
                let set = catalog.settings.authenticator.set_key_set(&issuer, *keys);
                let _ = done.try_send(set.is_ok());
            }
            Some(Command::SetAccessToken(provider, token, done)) => {
                let _ = done.try_send(gateway.catalog().set_token(&provider, token));
            }
            Some(Command::SetAwsCredentials(provider, keys, done)) => {
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

    fn order() -> (PendingCommand, CommandReply<bool>) {
        let (keys, _) = KeySet::parse(r#"{"keys":[]}"#).unwrap();
        PendingCommand::new(|done| Command::SetKeySet("issuer".into(), Box::new(keys), done))
    }

    #[test]
    fn an_order_that_is_not_begun_with_in_time_is_never_obeyed() {
        let (given, wait) = order();
        assert!(matches!(wait.wait(Duration::ZERO), Err(Error::Busy)));
        assert!(given.claim().is_none());
    }

    #[test]
    fn of_an_order_that_takes_long_the_true_outcome_is_told() {
        let (given, wait) = order();
        let Some(Command::SetKeySet(_, _, done)) = given.claim() else {
            panic!("it has not been withdrawn");
        };
        let waits = thread::spawn(move || wait.wait(Duration::ZERO));
        done.send(true).unwrap();
        assert!(matches!(waits.join().unwrap(), Ok(true)));
    }

    #[test]
    fn an_order_that_dies_with_its_thread_is_no_success() {
        let (given, wait) = order();
        drop(given.claim());
        assert!(matches!(wait.wait(Duration::ZERO), Err(Error::NotRunning)));
    }
}
