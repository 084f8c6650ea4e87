//! The number of requests in flight on a session.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// The load of a session.
pub(super) struct SessionLoad {
    pub(super) streams: Cell<usize>,
    /// Whether a stream was opened since the last removal of idle sessions.
    pub(super) recently_used: Cell<bool>,
    pub(super) capacity: Rc<Notify>,
}

/// The slot of a stream in its session; released on drop.
pub(super) struct StreamSlot(pub(super) Rc<SessionLoad>);

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let SessionLoad {
            streams,
            capacity: room,
            ..
        } = &*self.0;
        streams.set(streams.get().saturating_sub(1));
        room.notify_one();
    }
}
