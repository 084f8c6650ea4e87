//! What workers consumed of their limits, as one file for each life of a worker on the shared volume.
//!
//! `<gateway>/<shard>/<incarnation>.limits`, named by the first incarnation of that life, holds its consumption, and that
//! of predecessors on its shard that crashed and whose last consumption it worked out from their logs. It has one
//! writer, which replaces it whole:
//!
//! ```text
//! open, pwrite <incarnation>.limits.tmp, [fdatasync], rename <incarnation>.limits, [fsync directory]
//! ```
//!
//! Everybody else reads it. All I/O goes through [`proofgate_wal::Storage`], so that tests inject faults and crashes.
//! It belongs on a slow thread.
//!
//! The file is a cache of the ledger: a damaged one of a predecessor is worked out anew from its log
//! ([`OpenedStore::crashed`]); of another shard, what was read before stands and the damage is reported.
#![forbid(unsafe_code)]

mod directory;
mod error;
mod format;
mod store;

pub use directory::file_name;
pub use error::{LimitStoreError, Problem};
pub use format::MAX_FILE_BYTES;
pub use store::{LimitStore, OpenedStore};
