//! The stored evidence as its readers see it. Nothing here writes.
//!
//! A log is one directory per incarnation, `<gateway>/<shard>/<incarnation>/`:
//!
//! | file | what it holds | read by |
//! |---|---|---|
//! | `<first seq>.seg`, `<ordinal>.next` | records in checksummed frames | [`frame`], [`segment`], [`segment_reader`], [`log_reader`] |
//! | `tree` | node hashes of the range over them, derived | [`TreeFile`] |
//! | `checkpoint`, `<incarnation>.checkpoint` | the newest signed notes | [`checkpoint_file`] |
//! | `salts` | what the commitments in records were salted with | [`salts`] |
//! | `payloads`, `payload-index` | bodies, sealed, where they are stored | [`payloads`] |
//! | `erasures` | which of them were destroyed, and why | [`erasures`] |
//! | `tombstone`, `<seq>.record`, … | what stays of a log that was removed by right | [`removal`] |
//!
//! Beside the shards stand `key-successions`: which key of the ledger followed which ([`key_successions`]); and
//! `key-destructions`: which keys of tenants are no more ([`key_destructions`]). The keys themselves lie elsewhere ([`ShredKeys`]).
//!
//! The formats have their one home here, encoding included, so that the writer (the `wal` crate) and every reader agree.
//! [`layout`] tells which logs there are, [`LogReader`](log_reader::LogReader) strings the records of one together,
//! and [`fsck`], [`prove`] and [`export_leaves`] stand on it. All I/O goes through [`ReadStorage`].
#![forbid(unsafe_code)]

pub mod checkpoint_file;
pub mod configurations;
mod consistency;
pub mod erasures;
mod error;
mod export;
pub mod frame;
mod fsck;
mod held_checkpoint;
pub mod hold_statements;
pub mod key_destructions;
pub mod key_successions;
pub mod layout;
pub mod log_reader;
mod lookup;
pub mod note_files;
pub mod payloads;
mod pinned;
pub mod prove;
mod rebuilt;
mod refusal;
pub mod removal;
mod report;
pub mod rules;
pub mod salts;
pub mod segment;
pub mod segment_reader;
mod segments;
mod shred_keys;
mod storage;
mod time_search;
mod tree_file;

pub use consistency::{
    check as check_consistency, prove_consistency, prove_consistency_from_size, read_notes,
};
pub use error::EvidenceError;
pub use export::export_leaves;
pub use fsck::{FsckKeys, fsck, fsck_mirror, fsck_pinned};
pub use held_checkpoint::HeldCheckpoint;
pub use lookup::{
    ExchangeStart, FoundRecord, SearchMode, find, find_exchange_start, find_removed, read_record,
    read_records,
};
pub use pinned::PinnedFile;
pub use refusal::Refusal;
pub use report::{
    CheckpointState, Finding, IncarnationReport, KeyReport, RemovedReport, Report, TreeState, Verdict,
};
pub use salts::read_stored_salt;
pub use segments::unused_segments;
pub use shred_keys::{ShredKeys, tenant_file as shred_key_file};
pub use storage::{FileStorage, ReadFile, ReadStorage, read_full};
pub use tree_file::{NODE_LEN, TREE_FILE, TreeFile};
pub use ulid::Ulid;
