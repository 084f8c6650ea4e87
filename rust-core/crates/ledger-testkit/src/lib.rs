//! Tools for tests that write ledgers. This crate is only a dev-dependency and is not shipped.
//!
//! | contents | where |
//! |---|---|
//! | a minimal worker in one thread on a simulated disk, with a model of its durability guarantees | [`Worker`], [`DurabilityModel`] |
//! | successive incarnations of a shard: killed, sealed, rotated | [`four_incarnations`], [`five_incarnations`], [`rotate`] |
//! | manipulations by someone who can write to the volume but holds no key | [`forge_records`], [`edit_last_record`], [`flip_byte`], [`restore_old_checkpoint`], [`remove_files`] |
//! | disks that fail or change while they are read | [`DeniedPathStorage`], [`InterceptedStorage`] |
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "it is for tests, which may stop at the first failure"
)]

mod disks;
mod durability_model;
mod scenarios;
mod tamper;
mod worker;

pub use disks::{DeniedPathStorage, InterceptedStorage};
pub use durability_model::{DurabilityModel, InspectionResult, inspect};
pub use scenarios::{
    checkpoint_all, end_exchange_later, five_incarnations, four_incarnations, new_worker, rotate, rotate_at,
    start, start_successor_log, start_with, worker_with_records,
};
pub use tamper::{
    edit_last_record, flip_byte, forge_records, records_with_renamed_ids, remove_files,
    replace_archived_config, restore_old_checkpoint,
};
pub use worker::Worker;

use proofgate_evidence::frame::{SEGMENT_HEADER_LEN, frame_len};
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_ledger::record::ConfigDigests;
use proofgate_ledger::{Hash, LedgerError, Mmr, SigningKey, VerifyingKey, leaf_hash};
use proofgate_wal::{FileStorage, Incarnation, LogOptions, Shard, Storage, Ulid, succession};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directory of the shard on a simulated disk.
pub const SHARD: &str = "/3";
/// Name of the ledger.
pub const LEDGER: &str = "ledger.example/demo";
/// The configuration of the test workers. `CONFIGURATION_DIGEST` is its SHA-256.
pub const CONFIGURATION: &[u8] = b"{}";
pub const CONFIGURATION_DIGEST: Hash = [
    0x44, 0x13, 0x6f, 0xa3, 0x55, 0xb3, 0x67, 0x8a, 0x11, 0x46, 0xad, 0x16, 0xf7, 0xe8, 0x64, 0x9e, 0x94,
    0xfb, 0x4f, 0xc2, 0x1f, 0xe7, 0x7e, 0x83, 0x10, 0xc0, 0x60, 0xf6, 0x1c, 0xaa, 0xff, 0x8a,
];

pub fn shard(key: &SigningKey) -> Shard<'_> {
    Shard {
        dir: Path::new(SHARD),
        ledger: LEDGER,
        number: 3,
        key,
        previous_key: None,
    }
}

/// Starts a log in a directory of a real file system.
pub fn start_log_in(dir: &Path, options: LogOptions) -> Incarnation {
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(FileStorage), key());
    let terms = succession::StartOptions {
        shard: Shard { dir, ..shard(&key) },
        ..start_options(&key, options)
    };
    succession::start(&storage, &terms, None).unwrap().log
}

pub fn start_options(key: &SigningKey, options: LogOptions) -> succession::StartOptions<'_> {
    succession::StartOptions {
        shard: shard(key),
        key_valid_until: None,
        successions: &[],
        options,
        config: ConfigDigests::from_config(CONFIGURATION_DIGEST),
        version: "0",
        now: 1,
    }
}

/// Returns all records of a log as they are stored.
pub fn records(disk: &dyn Storage, dir: &Path, incarnation: Ulid) -> Vec<Vec<u8>> {
    let mut log = LogReader::open(disk, dir, incarnation).unwrap();
    let mut records = Vec::new();
    while let LogItem::Record(stored) = log.next().unwrap() {
        records.push(log.payload(&stored).to_vec());
    }
    records
}

pub fn key() -> SigningKey {
    SigningKey::generate("ledger.example/demo", [7; 32]).unwrap()
}

pub fn vkey() -> VerifyingKey {
    key().verifying_key()
}

pub fn small_log_options() -> LogOptions {
    LogOptions {
        segment_bytes: 64 << 10,
        segments_ahead: 1,
    }
}

/// Returns the root of the tree over these records.
pub fn root_of(records: &[Vec<u8>]) -> Hash {
    let mut mmr = Mmr::new();
    for record in records {
        mmr.push(leaf_hash(record), &mut |_| {});
    }
    mmr.root()
}

/// Returns an encoder for a record of this many bytes `x`, to pass to an append.
pub fn raw_record(bytes: usize) -> impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError> {
    move |_, out| {
        out.resize(out.len() + bytes, b'x');
        Ok(())
    }
}

/// Returns the offset at which the frames of these records end in a first segment.
pub fn end_offset(records: &[Vec<u8>]) -> usize {
    let frames = records.iter().map(|record| frame_len(record.len()) as usize);
    SEGMENT_HEADER_LEN + frames.sum::<usize>()
}

pub fn log_dir(worker: &Worker) -> PathBuf {
    worker.durability_model.dir.clone()
}

pub fn ulid(worker: &Worker) -> Ulid {
    worker.durability_model.incarnation.unwrap()
}
