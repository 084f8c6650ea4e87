//! Positions in the log from which a successor can resume reading.

use crate::recovery::UnfinishedExchange;
use ulid::Ulid;

/// The state at a position in the log that cannot be derived from the records after this position.
#[derive(Debug)]
pub struct ResumeState {
    /// Exchanges open at this position, including those admitted in an earlier log.
    pub open: Vec<UnfinishedExchange>,
    /// The log that this log continues.
    pub continues: Option<Ulid>,
    /// Whether this log has recorded the end of its predecessor; true if it has no predecessor.
    pub predecessor_ended: bool,
}

/// A mark from the data-plane thread and its position in the log.
#[derive(Debug)]
pub(crate) struct PositionedResumeState {
    /// Number of records before the position. No record after it had been written when the mark was set.
    pub(crate) size: u64,
    pub(crate) state: ResumeState,
}
