//! The evidence on disk: one directory per incarnation, written by one thread, read behind by another.
//!
//! The data-plane thread owns the [`Writer`]: it encodes records into a batch and writes the batch with one `pwrite`
//! per turn of its event loop. The ledger thread owns the [`Follower`]: it reads the log behind the writer through the
//! same reader as recovery and [`fsck`], extends the tree, syncs, signs checkpoints, and prepares segments ahead of
//! need. They share a [`Watermark`] and nothing else that either could wait for.
//!
//! ```text
//! start         gateway      read the predecessor's log; ftruncate of its zeros, while its lock is free
//!                            mkdir; open and flock salts; open, fallocate, pwrite zeros, fdatasync the first segment
//! happy path    data plane   pwrite <seq>.seg                      records are written
//!               ledger       pread, pwrite tree                    records are followed
//!                            fdatasync <seq>.seg, fdatasync salts  records are durable
//!                            fdatasync tree                        proofs are durable
//!                            open, pwrite, fdatasync checkpoint.tmp, rename, fsync directory
//! rotation      ledger       fstatvfs, and where there is room, ahead of need:
//!                            open <ordinal>.next, fallocate, pwrite zeros, fdatasync, fsync directory
//!               data plane   pwrite (header and first records)
//!               ledger       rename to <first seq>.seg
//! ```
//!
//! All I/O goes through [`Storage`], so that tests inject faults and crashes.
#![forbid(unsafe_code)]

mod checkpoint_file;
mod error;
mod follower;
mod frame;
mod fsck;
mod incarnation;
mod layout;
mod log_reader;
mod preparer;
pub mod prove;
pub mod recovery;
mod release;
mod salts;
mod segment;
mod segment_reader;
#[cfg(feature = "testing")]
pub mod simulated;
mod storage;
mod tree_file;
mod watermark;
mod writer;

pub use error::WalError;
pub use follower::{Follower, Progress};
pub use frame::{SEGMENT_HEADER, frame_bytes};
pub use fsck::{CheckpointState, Finding, IncarnationReport, Report, TreeState, Verdict, fsck};
pub use incarnation::{Incarnation, Options, fresh_ulid};
pub use preparer::Preparation;
pub use prove::export_leaves;
pub use release::give_back;
pub use salts::stored_salt;
pub use storage::{Directory, FileStorage, Storage, StoredFile, is_no_space};
pub use tree_file::TreeFile;
pub use ulid::Ulid;
pub use watermark::Watermark;
pub use writer::{Reservation, Writer};
