//! Turns the signed records of logs into rows of exchanges, from which an index of a ledger is built.
//!
//! | what | where |
//! |---|---|
//! | logs that are signed beyond the known size | `signed_log` |
//! | reading a log in batches, never beyond what was signed | `reader`, `cursor` |
//! | one row from the records of one exchange | `batch`, `exchange`, `interner` |
//! | the values in each minute | `minutes` |
//! | the results of answer analysis | `analysis` |
//!
//! Only records that a verified checkpoint covers are returned: a batch ends at a size whose root is proven to lead to
//! the signed one. The volume is only read. The caller stores the [`LogCursor`] of a batch with its rows, or after them,
//! and resumes from there.
#![forbid(unsafe_code)]

mod analysis;
mod batch;
mod cursor;
mod error;
mod exchange;
mod interner;
mod minutes;
mod reader;
mod signed_log;
mod sums;

pub use analysis::{AnalysisRow, AnalysisWindow};
pub use batch::{Batch, ConfigurationChange, Day};
pub use cursor::LogCursor;
pub use error::IndexError;
pub use exchange::{
    Attempt, AttributionRow, Exchange, ExchangeEnd, LateKind, LateRecord, RequestId, Verdict,
};
pub use minutes::{IndexedColumn, MinuteIndex};
pub use reader::{BatchLimits, BatchReader};
pub use signed_log::{SignedLog, signed_logs};
pub use sums::{ExchangeSums, SumsKey};
