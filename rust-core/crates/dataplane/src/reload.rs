//! Commands from the control side to the serving data-plane thread: a new configuration, new tenants, new signing
//! keys, access tokens and temporary credentials.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

use proofgate_auth::{KeySet, Shards};
use proofgate_base::Error;
use proofgate_exchange::gateway::{ConfigChange, Gateway};
use proofgate_upstream::access_token::ExpiringToken;
use proofgate_upstream::signer::SigningCredentials;
use tokio::sync::mpsc::{Receiver, Sender};

/// Capacity of the command queue; every sender waits for its response, so there are never many.
pub(crate) const MAX_QUEUED_COMMANDS: usize = 16;

/// How long a command may wait until the data-plane thread starts it.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A command for the data-plane thread, with the channel for its response.
pub(crate) enum Command {
    /// Applies a change; responds with the shards that were in service before.
    Apply(Box<ConfigChange>, SyncSender<Shards>),
    /// Replaces the keys that verify an issuer's tokens; responds whether the issuer is configured.
    SetKeySet(String, Box<KeySet>, SyncSender<bool>),
    /// Sets the access token of the named provider; responds whether the provider uses one.
    SetAccessToken(String, ExpiringToken, SyncSender<bool>),
    /// Sets the credentials that sign requests to the named provider; responds whether the provider accepts any.
    SetAwsCredentials(String, SigningCredentials, SyncSender<bool>),
}

/// A command in transit. It is either executed or withdrawn, and both sides know which.
pub(crate) struct PendingCommand {
    command: Command,
    /// Whether one side has claimed or withdrawn the command.
    claimed: Arc<AtomicBool>,
}

/// The sender's side of a command: waits for the response.
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

    /// Claims the command for execution; `None` if it was withdrawn.
    fn claim(self) -> Option<Command> {
        let withdrawn = self.claimed.swap(true, Ordering::AcqRel);
        (!withdrawn).then_some(self.command)
    }
}

impl<A> CommandReply<A> {
    /// Waits for the response. A command that is not started within `patience` is withdrawn. The
    /// wait for a started command has no limit, because otherwise it would be unknown which
    /// configuration is active.
    fn wait(self, patience: Duration) -> Result<A, Error> {
        match self.response.recv_timeout(patience) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) if !self.claimed.swap(true, Ordering::AcqRel) => {
                Err(Error::CommandTimedOut)
            }
            Err(_) => self.response.recv().map_err(|_| Error::NotRunning),
        }
    }
}

/// Sends a command to the data-plane thread and waits for its response.
///
/// # Errors
/// [`Error::CommandTimedOut`] if the thread does not start it in time; it is then never executed. [`Error::NotRunning`].
pub(crate) fn send_command<A>(
    orders: &Sender<PendingCommand>,
    order: impl FnOnce(SyncSender<A>) -> Command,
) -> Result<A, Error> {
    let (given, wait) = PendingCommand::new(order);
    orders.try_send(given).map_err(|_| Error::NotRunning)?;
    wait.wait(START_TIMEOUT)
}

/// Executes commands as they arrive; runs as a task of the data-plane thread.
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
    // All senders are dropped. The task is vital and must not end on its own.
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
        assert!(matches!(wait.wait(Duration::ZERO), Err(Error::CommandTimedOut)));
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
