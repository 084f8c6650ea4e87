//! How many requests a session carries.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

/// What a session carries.
pub(super) struct Load {
    pub(super) streams: Cell<usize>,
    /// Whether it has been given a stream since the second began.
    pub(super) used: Cell<bool>,
    pub(super) room: Rc<Notify>,
}

/// A stream's place in its session; released when it is dropped.
pub(super) struct Place(pub(super) Rc<Load>);

impl Drop for Place {
    fn drop(&mut self) {
        let Load { streams, room, .. } = &*self.0;
        streams.set(streams.get().saturating_sub(1));
        room.notify_one();
    }
}
