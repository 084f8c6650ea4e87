//! Tests of proofs of single records: from the running tree, from the stored files, and under a
//! successor's checkpoint.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{
    EvidenceError, ReadFile, ReadStorage, SearchMode, TreeState, Verdict, export_leaves, find_records, fsck,
    prove,
};
use proofgate_ledger::{Checkpoint, Hash, inclusion_proof, leaf_hash, verify_inclusion};
use proofgate_ledger_testkit::{
    DurabilityModel, SHARD, inspect, key, root_of, small_log_options, start, start_with, vkey,
    worker_with_records,
};
use proofgate_wal::LogOptions;
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[test]
fn the_running_tree_proves_every_record() {
    let (_, worker) = worker_with_records();
    let tree = worker.follower.tree();
    let root = root_of(&worker.durability_model.appended);
    for (index, record) in worker.durability_model.appended.iter().enumerate() {
        let proof = inclusion_proof(&tree, index as u64, 81).unwrap();
        verify_inclusion(&leaf_hash(record), index as u64, 81, &proof, &root).unwrap();
    }
}

#[test]
fn both_records_of_a_request_are_found_and_proved_also_without_a_tree_file() {
    let (disk, worker) = worker_with_records();
    let dir = worker.durability_model.dir.clone();
    for damage in [false, true] {
        if damage {
            disk.corrupt(&dir.join("tree"), |bytes| bytes.truncate(100));
        }
        let found = find_records(&disk, Path::new("/"), "req-17", SearchMode::Scan).unwrap();
        assert_eq!(found.len(), 2);
        for record in found {
            assert_eq!(
                record.record,
                worker.durability_model.appended[record.seq as usize]
            );
            let proof = prove::record_proof(&disk, &record.dir, record.seq, Some(&vkey())).unwrap();
            proof.verify(&record.record, &vkey()).unwrap();
        }
    }
    assert!(
        find_records(&disk, Path::new("/"), "req", SearchMode::Scan)
            .unwrap()
            .is_empty()
    );
    assert!(matches!(
        prove::record_proof(&disk, &dir, 81, None),
        Err(EvidenceError::NoSuchRecord { .. })
    ));
}

#[test]
fn a_record_under_no_checkpoint_is_not_proved() {
    let (disk, mut worker) = worker_with_records();
    worker.admit("late", 1).unwrap();
    worker.flush().unwrap();
    let refused = prove::record_proof(&disk, &worker.durability_model.dir, 81, None);
    assert!(matches!(
        refused,
        Err(EvidenceError::NotCovered {
            seq: 81,
            size: 81,
            ..
        })
    ));
}

#[test]
fn a_successor_covers_what_its_predecessor_left_under_no_checkpoint() {
    let (disk, mut worker) = worker_with_records();
    worker.admit("late", 1).unwrap();
    worker.flush().unwrap();
    let (dir, record) = (
        worker.durability_model.dir.clone(),
        worker.durability_model.appended[81].clone(),
    );
    drop(worker);
    let left = inspect(&disk).unwrap().unwrap();
    start(&disk, &mut DurabilityModel::default()).unwrap();
    let origin = format!("{}/3/{}", key().name(), left.incarnation);
    let proof = prove::record_proof(&disk, &dir, 81, Some(&vkey())).unwrap();
    assert_eq!(proof.verify(&record, &vkey()).unwrap().origin, origin);
    let report = fsck(&disk, Path::new(SHARD), Some(&vkey()), &[]).unwrap();
    assert!(report.exit_code <= Verdict::Incomplete.exit_code(), "{report:?}");
}

/// A disk that counts the bytes read from it.
struct Counted<'d>(&'d SimulatedDisk, Arc<AtomicU64>);

struct CountedFile(Arc<dyn ReadFile>, Arc<AtomicU64>);

impl ReadStorage for Counted<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = ReadStorage::open(self.0, path)?;
        Ok(Arc::new(CountedFile(file, Arc::clone(&self.1))))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        ReadStorage::list(self.0, path)
    }
}

impl ReadFile for CountedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(into, offset)?;
        self.1.fetch_add(read as u64, Relaxed);
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

/// A change to a tree file.
type Change = fn(&mut Vec<u8>);

/// Returns a log of 4,001 records whose worker was killed and whose tree lacks the last nodes, the
/// log's durability model, and the checkpoint that the successor signed for the log.
fn killed(change: impl FnOnce(&mut Vec<u8>)) -> (SimulatedDisk, DurabilityModel, Checkpoint) {
    let disk = SimulatedDisk::new();
    let large = LogOptions {
        segment_bytes: 1 << 20,
        ..small_log_options()
    };
    let mut worker = start_with(&disk, &mut DurabilityModel::default(), large).unwrap();
    for number in 0..2000 {
        let id = format!("req-{number}");
        let admission = worker.admit(&id, 100).unwrap();
        worker.complete(&id, admission).unwrap();
        if number % 10 == 0 {
            worker.flush().unwrap();
            worker.step().unwrap();
        }
    }
    worker.flush().unwrap();
    let promised = worker.durability_model.clone();
    drop(worker);
    let next = start(&disk, &mut DurabilityModel::default()).unwrap();
    drop(next);
    disk.corrupt(&promised.dir.join("tree"), change);
    let left = prove::successor_checkpoint(&disk, &promised.dir, &vkey()).unwrap();
    (disk, promised, left.unwrap())
}

#[test]
fn all_proofs_of_a_killed_log_hash_its_records_once_whatever_its_tree_lacks() {
    let changes: [(TreeState, Change); 5] = [
        (TreeState::Short, |_| {}),
        (TreeState::Short, |tree| tree.truncate(3001 * 32 + 7)),
        (TreeState::Short, |tree| tree.truncate(0)),
        (TreeState::Bad, |tree| tree[100] ^= 1),
        (TreeState::Bad, |tree| {
            tree.truncate(5000 * 32);
            tree[64..80].fill(7);
        }),
    ];
    for (state, change) in changes {
        let (disk, promised, signed) = killed(change);
        assert_eq!(signed.size, 4001);
        let whole: u64 = promised.appended.iter().map(|record| record.len() as u64).sum();
        let counted = Counted(&disk, Arc::default());
        for _ in 0..3 {
            for (seq, record) in promised.appended.iter().enumerate().step_by(20) {
                let leaf = leaf_hash(record);
                let path =
                    prove::inclusion_path(&counted, &promised.dir, seq as u64, &leaf, &signed).unwrap();
                verify_inclusion(&leaf, seq as u64, signed.size, &path, &signed.root).unwrap();
            }
        }
        let read = counted.1.load(Relaxed);
        assert!(
            read < 100 * whole,
            "{read} bytes were read for 603 proofs in {whole} bytes"
        );
        let report = fsck(&disk, Path::new(SHARD), Some(&vkey()), &[]).unwrap();
        assert_eq!(report.incarnations[0].tree, state);
        let expected = match state {
            TreeState::Bad => Verdict::Incomplete,
            _ => Verdict::Ok,
        };
        assert_eq!(report.verdict, expected);
    }
}

#[test]
fn nothing_kept_of_one_log_proves_a_record_of_another_or_a_record_that_was_changed() {
    let (disk, promised, signed) = killed(|tree| tree.truncate(0));
    let prove = |seq, leaf: &Hash, signed: &Checkpoint| {
        prove::inclusion_path(&disk, &promised.dir, seq, leaf, signed).map_err(|error| error.code())
    };
    let leaf = leaf_hash(&promised.appended[7]);
    assert!(prove(7, &leaf, &signed).is_ok());
    assert_eq!(prove(8, &leaf, &signed), Err("ledger_corrupt"));
    assert_eq!(prove(signed.size, &leaf, &signed), Err("ledger_refused"));
    let forged = Checkpoint {
        root: [7; 32],
        ..signed.clone()
    };
    assert_eq!(prove(7, &leaf, &forged), Err("ledger_corrupt"));
    let ahead = Checkpoint {
        size: signed.size + 1,
        ..signed
    };
    assert_eq!(prove(7, &leaf, &ahead), Err("no_such_record"));
}

#[test]
fn leaves_behind_a_residue_are_exported() {
    let (disk, worker) = worker_with_records();
    let dir = &worker.durability_model.dir;
    let first = dir.join("00000000000000000000.seg");
    disk.corrupt(&first, |bytes| *bytes.last_mut().unwrap() = 1);
    let mut out = Vec::new();
    assert_eq!(export_leaves(&disk, dir, &mut out).unwrap(), 81);
}
