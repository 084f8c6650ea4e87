use tokio::sync::watch;

/// How far a worker has come on its way out. Phases only ever advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Ready for traffic.
    Serving,
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
}
