//! Writes the evidence log: one directory per incarnation, written by one thread and followed by another.
//!
//! The data-plane thread owns the [`Writer`]: it encodes records into a batch and writes the batch
//! with one `pwrite` per turn of its event loop. The ledger thread owns the [`Follower`]: it reads
//! the written records with the same reader as recovery and `fsck`, extends the tree, syncs, signs
//! checkpoints, and prepares segments in advance. The two threads share a [`Watermark`], and no
//! lock on which either thread could block.
//!
//! ```text
//! start         gateway      mkdir, fsync directory; read the predecessor's records after its resume point; ftruncate its
//!                            unused zeros if its lock is free; open and flock salts; open, fallocate, pwrite zeros,
//!                            fdatasync the first segment; write the opening records and sign a first checkpoint over them
//! happy path    data plane   pwrite <seq>.seg                      records are written
//!               ledger       pread, pwrite tree                    records are followed
//!                            fdatasync of files that records refer to ([`UnsyncedFiles`]), if there are any
//!                            fdatasync <seq>.seg, fdatasync salts  records are durable
//!                            fdatasync tree                        proofs are durable
//!                            open, pwrite, fdatasync checkpoint.tmp, rename, fsync directory; at times resume, too
//! segments      ledger       fstatvfs, and if there is space, in advance:
//!                            open <ordinal>.next, fallocate, pwrite zeros and fdatasync in pieces, fsync directory
//!               data plane   pwrite (header and first records)
//!               ledger       rename to <first seq>.seg
//! next log      own thread   same as start, while the current log runs
//!               data plane   pwrite (seal), then pwrite in the next log
//!               ledger       sign the last checkpoint of the former log before syncing anything of the next one
//! ```
//!
//! The `evidence` crate defines the file formats and reads them. All I/O goes through [`Storage`], so that tests can
//! inject faults and crashes.
#![forbid(unsafe_code)]

mod authenticity;
mod checkpoint_file;
mod error;
mod follower;
mod incarnation;
mod preparer;
pub mod recovery;
mod release_space;
mod resume;
mod resume_state;
mod salts;
mod segment_queue;
mod shared_locks;
#[cfg(feature = "testing")]
pub mod simulated;
mod storage;
pub mod succession;
mod tree_writer;
mod unsynced;
mod watermark;
mod writer;

pub use checkpoint_file::replace_file;
pub use error::WalError;
pub use follower::{Follower, StepProgress};
pub use incarnation::{Incarnation, LogOptions};
pub use preparer::Preparation;
pub use proofgate_evidence::frame::{SEGMENT_HEADER_LEN, frame_len};
pub use proofgate_evidence::{EvidenceError, FileStorage, ReadFile, ReadStorage, Ulid};
pub use recovery::{MissingLog, PreviousLog, RecoveryResult, Shard, UnfinishedExchange};
pub use release_space::release_unused_space;
pub use resume_state::ResumeState;
pub use storage::{Directory, Storage, StoredFile, is_out_of_space, write_full};
pub use unsynced::UnsyncedFiles;
pub use watermark::Watermark;
pub use writer::{Reservation, Writer};
