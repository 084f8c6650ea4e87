//! Consumption of limits, stored as one file for each worker life on the shared volume.
//!
//! `<gateway>/<shard>/<incarnation>.limits` is named after the first incarnation of that life. It
//! contains the life's own consumption, and the consumption of crashed predecessors on its shard,
//! which was recovered from their logs. It has one writer, which replaces the whole file:
//!
//! ```text
//! open, pwrite <incarnation>.limits.tmp, [fdatasync], rename <incarnation>.limits, [fsync directory]
//! ```
//!
//! All other workers read the file. All I/O goes through [`proofgate_wal::Storage`], so that tests
//! can inject faults and crashes. Use the store on a slow thread.
//!
//! The file is a cache of the ledger. A damaged file of a predecessor is rebuilt from its log ([`OpenedStore::crashed_predecessors`]).
//! For a damaged file of another shard, the previously read data stays in effect and the damage is
//! reported.
#![forbid(unsafe_code)]

mod directory;
mod error;
mod format;
mod store;

pub use directory::file_name;
pub use error::{LimitStoreError, Problem};
pub use format::MAX_FILE_BYTES;
pub use store::{LimitStore, OpenedStore};
