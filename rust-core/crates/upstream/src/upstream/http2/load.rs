//! The number of requests in flight on a session.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// The load of a session.
pub(super) struct SessionLoad {
    pub(super) streams: Cell<usize>,
    /// Whether a stream was opened since the last removal of idle sessions.
    pub(super) recently_used: Cell<bool>,
    /// Notified when the session may have capacity for another stream, and when it ends.
    pub(super) capacity_freed: Rc<Notify>,
}

/// The slot of a stream in its session; released on drop.
pub(super) struct StreamSlot(pub(super) Rc<SessionLoad>);

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let SessionLoad {
            streams,
            capacity_freed,
            ..
        } = &*self.0;
        streams.set(streams.get().saturating_sub(1));
        capacity_freed.notify_one();
    }
}
