use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How far a worker has come on its way out. Retiring can be taken back; from the lame duck on, phases only advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Ready for traffic.
    Serving,
    /// Not ready, and serving what comes all the same, until it is told to drain or to stay.
    Retiring,
    /// Not ready, still accepting: whoever routes here needs a moment to notice.
    LameDuck,
    /// The listener is closed, idle connections too; exchanges in flight go on.
    Draining,
    /// The drain deadline has passed: what is still in flight is cut.
    Cancelled,
}

/// A view of the phase, one for each connection.
#[derive(Clone)]
pub(crate) struct Lifecycle(watch::Receiver<Phase>);

impl Lifecycle {
    pub(crate) fn new() -> (watch::Sender<Phase>, Lifecycle) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (sender, Lifecycle(receiver))
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until `phase` is reached; at once when it has been, or when nobody steers any more.
    pub(crate) async fn reached(&mut self, phase: Phase) {
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }

    /// Waits until a connection that carries no request may be closed: the worker drains, or has been on its way out
    /// for `patience` since this was called. A client that uses its connection more often than that is told by an
    /// answer, and never loses a request to a connection that closes under it.
    pub(crate) async fn idle_may_close(&mut self, patience: Duration) {
        loop {
            self.reached(Phase::Retiring).await;
            let turned = self
                .0
                .wait_for(|now| *now == Phase::Serving || *now >= Phase::Draining);
            match timeout(patience, turned).await {
                Ok(Ok(now)) if *now == Phase::Serving => {}
                _ => return,
            }
        }
    }
}
