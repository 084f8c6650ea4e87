//! Passes prepared segments from the ledger thread to the data-plane thread.

use crate::storage::StoredFile;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// A segment that is open for writing and reading.
pub(crate) struct Segment {
    /// 0-based number of the segment in its incarnation.
    pub(crate) ordinal: u64,
    /// Allocated bytes, including the header.
    pub(crate) bytes: u64,
    pub(crate) file: Arc<dyn StoredFile>,
}

/// A queue of prepared segments for the writer.
#[derive(Default)]
pub(crate) struct SegmentQueue {
    pending: AtomicUsize,
    segments: Mutex<VecDeque<Arc<Segment>>>,
}

impl SegmentQueue {
    pub(crate) fn push(&self, segment: Arc<Segment>) {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        segments.push_back(segment);
        self.pending.store(segments.len(), Ordering::Release);
    }

    /// Moves the queued segments to `ready` without waiting. If the other side holds the lock for a
    /// push, the next call moves the segments.
    pub(crate) fn drain_into(&self, ready: &mut VecDeque<Arc<Segment>>) {
        if self.pending.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut segments = match self.segments.try_lock() {
            Ok(segments) => segments,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        ready.append(&mut segments);
        self.pending.store(0, Ordering::Release);
    }
}
