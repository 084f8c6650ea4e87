//! How many requests a session carries.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// What a session carries.
pub(super) struct SessionLoad {
    pub(super) streams: Cell<usize>,
    /// Whether it has been given a stream since the second began.
    pub(super) recently_used: Cell<bool>,
    pub(super) capacity: Rc<Notify>,
}

/// A stream's place in its session; released when it is dropped.
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
