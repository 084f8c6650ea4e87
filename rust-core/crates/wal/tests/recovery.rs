//! Tests of the results of recovery at a start, and of its refusals.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use proofgate_evidence::{EvidenceError, fsck};
use proofgate_ledger_testkit::{DurabilityModel, SHARD, Worker, inspect, start, vkey};
use proofgate_wal::simulated::SimulatedDisk;
use std::path::Path;

fn open() -> (SimulatedDisk, Worker) {
    let disk = SimulatedDisk::new();
    let mut worker = start(&disk, &mut DurabilityModel::default()).unwrap();
    for number in 0..6 {
        let id = format!("req-{number}");
        let admission = worker.admit(&id, number).unwrap();
        worker.complete(&id, admission).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    (disk, worker)
}

#[test]
fn unended_exchanges_are_told_once_and_survive_a_crash_while_they_are_closed() {
    let (disk, mut worker) = open();
    for id in ["x", "y"] {
        worker.admit(id, 1).unwrap();
    }
    worker.flush().unwrap();
    let unended = || {
        let found = inspect(&disk).unwrap().unwrap();
        let told = found.0.unfinished_exchanges.iter();
        told.map(|open| (open.id.clone(), open.admission))
            .collect::<Vec<_>>()
    };
    let told = vec![("x".to_owned(), 13), ("y".to_owned(), 14)];
    assert_eq!(unended(), told);

    // The successor crashes before it has signed its opening records, so it never served.
    let second = start(&disk, &mut DurabilityModel::default()).unwrap();
    proofgate_wal::Storage::remove(&disk, &second.durability_model.dir.join("checkpoint")).unwrap();
    drop(second);
    assert_eq!(unended(), told);

    start(&disk, &mut DurabilityModel::default()).unwrap();
    assert_eq!(unended(), []);
}

#[test]
fn a_start_refuses_what_fsck_calls_no_valid_log() {
    let (disk, mut worker) = open();
    let admission = worker.admit("x", 1).unwrap();
    for _ in 0..2 {
        worker.complete("x", admission).unwrap();
    }
    worker.flush().unwrap();
    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    let said = "completes record 13, which is not an open admission";
    assert!(format!("{report:?}").contains(said), "{report:?}");
    let refused = start(&disk, &mut DurabilityModel::default()).err().unwrap();
    assert!(refused.to_string().contains(said), "{refused}");
}

#[test]
fn nothing_and_beginnings_of_something_are_no_predecessor() {
    let disk = SimulatedDisk::new();
    assert_eq!(inspect(&disk).unwrap(), None);
    let (disk, worker) = open();
    let newer = Path::new(SHARD).join("7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    proofgate_wal::Storage::create_dir(&disk, &newer).unwrap();
    let found = inspect(&disk).unwrap().unwrap();
    assert_eq!(Some(found.incarnation), worker.durability_model.incarnation);
    assert!(matches!(
        fsck(&SimulatedDisk::new(), Path::new("/"), None, &[]),
        Err(EvidenceError::NotALog(_))
    ));
}
