//! A witness: it cosigns checkpoints of logs that it knows, after verifying that the log has only grown since the last
//! checkpoint that it cosigned (c2sp.org/tlog-witness).
//!
//! The new state is written durably before the cosignature is returned, so that no crash and no failed write makes it
//! cosign two roots of one size, or a smaller tree after a larger one. One process owns a state; requests for one log
//! are serialized, and requests for different logs run in parallel.
#![forbid(unsafe_code)]

mod error;
mod log_list;
mod witness;

pub use error::{CosignError, WitnessError};
pub use log_list::{ListedLog, parse_log_list};
pub use witness::{CosignedSize, Witness};
