//! Segments: the names they have, and the hand-over of prepared ones from the ledger thread to the data-plane thread.

use crate::storage::StoredFile;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// Name of the segment whose first record is `first_seq`.
pub(crate) fn segment_name(first_seq: u64) -> String {
    format!("{first_seq:020}.seg")
}

/// Name of a segment that is prepared and holds no followed record yet. Its first record is not known when it is made,
/// so the ledger thread gives it its lasting name when it first reads from it.
pub(crate) fn prepared_name(ordinal: u64) -> String {
    format!("{ordinal:020}.next")
}

/// What a file name says about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentName {
    /// A segment whose first record has this number.
    First(u64),
    /// A prepared segment of this ordinal, which may hold records already.
    Prepared(u64),
}

impl SegmentName {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (number, kind) = name.split_once('.')?;
        if number.len() != 20 || !number.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let number = number.parse().ok()?;
        match kind {
            "seg" => Some(Self::First(number)),
            "next" => Some(Self::Prepared(number)),
            _ => None,
        }
    }
}

/// A segment that is open for writing and reading.
pub(crate) struct Segment {
    /// 0-based number of the segment in its incarnation.
    pub(crate) ordinal: u64,
    /// Allocated bytes, header included.
    pub(crate) bytes: u64,
    pub(crate) file: Arc<dyn StoredFile>,
}

/// Prepared segments on their way to the writer.
#[derive(Default)]
pub(crate) struct HandOver {
    waiting: AtomicUsize,
    segments: Mutex<VecDeque<Arc<Segment>>>,
}

impl HandOver {
    pub(crate) fn give(&self, segment: Arc<Segment>) {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        segments.push_back(segment);
        self.waiting.store(segments.len(), Ordering::Release);
    }

    /// Moves what is there to `ready`, without ever waiting: the giver holds the lock for a push only, and a missed
    /// turn is made up for at the next.
    pub(crate) fn take(&self, ready: &mut VecDeque<Arc<Segment>>) {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut segments = match self.segments.try_lock() {
            Ok(segments) => segments,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        ready.append(&mut segments);
        self.waiting.store(0, Ordering::Release);
    }
}
