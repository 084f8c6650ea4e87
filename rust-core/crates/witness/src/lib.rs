//! A witness: it cosigns checkpoints of logs that it knows, once it has checked that the log has only grown since the last
//! one that it cosigned (c2sp.org/tlog-witness).
//!
//! What it cosigns is written durably before the cosignature leaves, so that no crash and no failed write lets it cosign
//! two roots of one size, or a smaller tree after a larger one. One process works on a state; requests for one log take
//! turns, those for different logs do not wait for each other.
#![forbid(unsafe_code)]

mod error;
mod log_list;
mod witness;

pub use error::{CosignError, WitnessError};
pub use log_list::{ListedLog, parse_log_list};
pub use witness::{LogHead, Witness};
