//! The logs that the worker has written in this run.

use std::sync::Arc;
use std::time::Instant;

use proofgate_wal::{Ulid, Watermark};

/// A log of this worker run that is no longer in service.
pub(super) struct FormerLog {
    pub(super) base: u64,
    pub(super) incarnation: Ulid,
    pub(super) watermark: Arc<Watermark>,
    /// Whether the next log records the end of this log.
    pub(super) end_recorded: bool,
}

/// The last resume point in the log.
#[derive(Clone, Copy)]
pub(super) struct LastResumePoint {
    pub(super) position: u64,
    pub(super) at: Instant,
}

impl LastResumePoint {
    pub(super) fn none() -> Self {
        Self {
            position: 0,
            at: Instant::now(),
        }
    }
}
