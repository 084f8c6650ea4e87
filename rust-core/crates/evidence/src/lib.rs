//! Readers for the stored evidence. This crate writes no file.
//!
//! A log is one directory per incarnation, `<gateway>/<shard>/<incarnation>/`:
//!
//! | file | contents | read by |
//! |---|---|---|
//! | `<first seq>.seg`, `<ordinal>.next` | records in checksummed frames | [`frame`], [`segment`], [`segment_reader`], [`log_reader`] |
//! | `tree` | node hashes of the tree over these records, derived | [`TreeFile`] |
//! | `checkpoint`, `<incarnation>.checkpoint` | the newest signed notes | [`checkpoint_file`] |
//! | `salts` | the salts of the commitments in records | [`salts`] |
//! | `payloads`, `payload-index` | sealed bodies, if they are stored | [`payloads`] |
//! | `erasures` | statements about destroyed salts | [`erasures`] |
//! | `tombstone`, `<seq>.record`, … | the retained parts of a removed log | [`removal`] |
//!
//! Two directories of statements about keys are beside the shards: `key-successions` for the
//! successions of ledger keys ([`key_successions`]), and `key-destructions` for destroyed tenant
//! keys ([`key_destructions`]). The tenant keys themselves are stored outside the volume
//! ([`ShredKeys`]).
//!
//! Only this crate defines the formats, including their encoding, so that the writer (the `wal`
//! crate) and every reader agree. [`layout`] lists the logs, [`LogReader`](log_reader::LogReader)
//! reads the records of one log in order, and [`fsck`], [`prove`] and [`export_leaves`] build on
//! it. All I/O goes through [`ReadStorage`].
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
mod pinning_storage;
pub mod prove;
mod rebuilt_tree;
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
    ExchangeStart, FoundRecord, SearchMode, find_exchange_start, find_records, find_removed, read_record,
    read_records,
};
pub use pinning_storage::PinnedFile;
pub use refusal::Refusal;
pub use report::{
    CheckpointState, Finding, IncarnationReport, KeyReport, RemovedReport, Report, TreeState, Verdict,
};
pub use salts::read_stored_salt;
pub use segments::unused_segment_space;
pub use shred_keys::{ShredKeys, tenant_file as shred_key_file};
pub use storage::{FileStorage, ReadFile, ReadStorage, read_full};
pub use tree_file::{NODE_LEN, TREE_FILE, TreeFile};
pub use ulid::Ulid;
