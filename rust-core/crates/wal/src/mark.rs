//! Places in the log where a successor may take up reading it.

use crate::recovery::UnfinishedExchange;
use ulid::Ulid;

/// What cannot be read from the records behind a place.
#[derive(Debug)]
pub struct LogMark {
    /// Exchanges that are open there, also such as were admitted in a log before.
    pub open: Vec<UnfinishedExchange>,
    /// The log that this one continues.
    pub continues: Option<Ulid>,
    /// Whether this one has recorded how that one ended; true where it continues none.
    pub predecessor_ended: bool,
}

/// What the data-plane thread says of the records up to a place.
#[derive(Debug)]
pub(crate) struct PositionedMark {
    /// How many records lie before it; none behind it is written yet when this is said.
    pub(crate) size: u64,
    pub(crate) mark: LogMark,
}
