//! Proofs of single records: from the running tree, from what is stored, and by a successor's checkpoint.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod support;

use proofgate_evidence::{EvidenceError, Search, Verdict, export_leaves, find, fsck, prove};
use proofgate_ledger::{inclusion_proof, leaf_hash, verify_inclusion};
use std::path::Path;
use support::{Promised, SHARD, filled, inspect, key, root_of, start, vkey};

#[test]
fn the_running_tree_proves_every_record() {
    let (_, worker) = filled();
    let tree = worker.follower.tree();
    let root = root_of(&worker.promised.appended);
    for (index, record) in worker.promised.appended.iter().enumerate() {
        let proof = inclusion_proof(&tree, index as u64, 81).unwrap();
        verify_inclusion(&leaf_hash(record), index as u64, 81, &proof, &root).unwrap();
    }
}

#[test]
fn both_records_of_a_request_are_found_and_proved_also_without_a_tree_file() {
    let (disk, worker) = filled();
    let dir = worker.promised.dir.clone();
    for damage in [false, true] {
        if damage {
            disk.rot(&dir.join("tree"), |bytes| bytes.truncate(100));
        }
        let found = find(&disk, Path::new("/"), "req-17", Search::Scan).unwrap();
        assert_eq!(found.len(), 2);
        for record in found {
            assert_eq!(record.record, worker.promised.appended[record.seq as usize]);
            let proof = prove::proof(&disk, &record.dir, record.seq, Some(&vkey())).unwrap();
            proof.verify(&record.record, &vkey()).unwrap();
        }
    }
    assert!(
        find(&disk, Path::new("/"), "req", Search::Scan)
            .unwrap()
            .is_empty()
    );
    assert!(matches!(
        prove::proof(&disk, &dir, 81, None),
        Err(EvidenceError::NoSuchRecord { .. })
    ));
}

#[test]
fn a_record_under_no_checkpoint_is_not_proved() {
    let (disk, mut worker) = filled();
    worker.admit("late", 1).unwrap();
    worker.flush().unwrap();
    let refused = prove::proof(&disk, &worker.promised.dir, 81, None);
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
    let (disk, mut worker) = filled();
    worker.admit("late", 1).unwrap();
    worker.flush().unwrap();
    let (dir, record) = (worker.promised.dir.clone(), worker.promised.appended[81].clone());
    drop(worker);
    let left = inspect(&disk).unwrap().unwrap();
    start(&disk, &mut Promised::default()).unwrap();
    let origin = format!("{}/3/{}", key().name(), left.incarnation);
    let proof = prove::proof(&disk, &dir, 81, Some(&vkey())).unwrap();
    assert_eq!(proof.verify(&record, &vkey()).unwrap().origin, origin);
    let report = fsck(&disk, Path::new(SHARD), Some(&vkey()), &[]).unwrap();
    assert!(report.exit_code <= Verdict::Incomplete.exit_code(), "{report:?}");
}

#[test]
fn leaves_behind_a_residue_are_exported() {
    let (disk, worker) = filled();
    let dir = &worker.promised.dir;
    let first = dir.join("00000000000000000000.seg");
    disk.rot(&first, |bytes| *bytes.last_mut().unwrap() = 1);
    let mut out = Vec::new();
    assert_eq!(export_leaves(&disk, dir, &mut out).unwrap(), 81);
}
