//! Turns the signed records of logs into rows of exchanges, from which an index of a ledger is built.
//!
//! | what | where |
//! |---|---|
//! | logs that are signed beyond the known size | `signed` |
//! | reading a log in batches, never beyond what was signed | `reader`, `place` |
//! | one row from the records of one exchange | `batch`, `exchange`, `names` |
//! | the values in each minute | `minutes` |
//! | the results of answer analysis | `analysed` |
//!
//! Only records that a verified checkpoint covers are returned: a batch ends at a size whose root is proven to lead to
//! the signed one. The volume is only read. The caller stores the [`LogCursor`] of a batch with its rows, or after them,
//! and resumes from there.
#![forbid(unsafe_code)]

mod analysed;
mod batch;
mod error;
mod exchange;
mod minutes;
mod names;
mod place;
mod reader;
mod signed;
mod sums;

pub use analysed::{AnalysisRow, AnalysisWindow};
pub use batch::{Batch, ConfigurationChange, Day};
pub use error::IndexError;
pub use exchange::{
    Attempt, AttributionRow, Exchange, ExchangeEnd, LateKind, LateRecord, RequestId, Verdict,
};
pub use minutes::{IndexedColumn, MinuteIndex};
pub use place::LogCursor;
pub use reader::{BatchLimits, BatchReader};
pub use signed::{SignedLog, signed_logs};
pub use sums::{ExchangeSums, SumsKey};
