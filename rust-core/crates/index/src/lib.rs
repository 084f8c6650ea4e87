//! Exchanges as rows, out of the signed records of logs: what an index of a ledger is made of.
//!
//! | what | where |
//! |---|---|
//! | which logs have been signed further than is known | `signed` |
//! | reading one of them on, in batches, none of which goes beyond what was signed | `reader`, `place` |
//! | the records of one exchange as one row | `batch`, `exchange`, `names` |
//! | what each minute holds | `minutes` |
//! | what the analysis of answers found | `analysed` |
//!
//! Only what a verified checkpoint covers is handed out: a batch ends where the log's root is known to lead to the signed
//! one. The volume is only read. Whoever keeps the rows keeps the [`LogCursor`] of the batch with them, or after them, and goes
//! on from there.
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
