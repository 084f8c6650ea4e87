//! Tests of damage and tampering: the findings of `fsck`, and the refusals of recovery. Invariants
//! I5, I7 and I8.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::frame::frame_len;
use proofgate_evidence::{CheckpointState, EvidenceError, Report, TreeState, Verdict, fsck};
use proofgate_ledger::{Checkpoint, SigningKey};
use proofgate_ledger_testkit::{DurabilityModel, Worker, end_offset, inspect, key, start, vkey};
use proofgate_wal::WalError;
use proofgate_wal::simulated::SimulatedDisk;
use std::path::{Path, PathBuf};

fn sealed() -> (SimulatedDisk, Worker) {
    let (disk, mut worker) = open();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    worker.seal().unwrap();
    (disk, worker)
}

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

fn check(disk: &SimulatedDisk) -> Report {
    fsck(disk, Path::new("/"), Some(&vkey()), &[]).unwrap()
}

fn segment(worker: &Worker) -> PathBuf {
    worker.durability_model.dir.join("00000000000000000000.seg")
}

#[test]
fn every_flipped_byte_of_a_segment_is_reported_with_its_place() {
    let (disk, worker) = sealed();
    let path = segment(&worker);
    let whole = disk.read(&path).unwrap();
    // Compute the start of each frame from the lengths in the file. The header comes first.
    let mut frames = vec![0, 128];
    while let Some(at) = frames.last().copied().filter(|at| *at < whole.len()) {
        let len = u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
        frames.push(at + frame_len(len) as usize);
    }
    assert_eq!(
        frames.last(),
        Some(&whole.len()),
        "a sealed segment has no unused space"
    );
    for at in 0..whole.len() {
        let disk = disk.snapshot();
        disk.corrupt(&path, |bytes| bytes[at] ^= 1 << (at % 8));
        let report = check(&disk);
        assert_eq!(report.verdict, Verdict::Invalid, "byte {at}");
        let start = frames.iter().rfind(|start| **start <= at).unwrap();
        let findings = &report.incarnations[0].findings;
        assert!(
            findings
                .iter()
                .any(|found| found.file == path.display().to_string() && found.offset == *start as u64),
            "byte {at} of the frame at {start}: {findings:?}"
        );
        assert!(
            matches!(
                inspect(&disk),
                Err(WalError::Evidence(EvidenceError::Corruption { .. }))
            ),
            "byte {at}"
        );
    }
}

#[test]
fn a_flipped_byte_of_unused_space_is_reported_with_its_place() {
    let (disk, mut worker) = open();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    let path = segment(&worker);
    for at in [60_000, 65_535] {
        let disk = disk.snapshot();
        disk.corrupt(&path, |bytes| bytes[at] = 1);
        let report = check(&disk);
        let findings = &report.incarnations[0].findings;
        assert_eq!(report.verdict, Verdict::Incomplete);
        assert!(
            findings.iter().any(|found| found.offset == at as u64),
            "{findings:?}"
        );
        assert_eq!(inspect(&disk).unwrap().unwrap().size, 13, "nothing is lost");
    }
}

#[test]
fn a_flipped_byte_of_the_tree_or_the_checkpoint_is_reported() {
    let (disk, worker) = sealed();
    for (name, state) in [("tree", Verdict::Invalid), ("checkpoint", Verdict::Invalid)] {
        let path = worker.durability_model.dir.join(name);
        for at in 0..disk.read(&path).unwrap().len() {
            let disk = disk.snapshot();
            disk.corrupt(&path, |bytes| bytes[at] ^= 1);
            let report = check(&disk);
            assert_eq!(report.verdict, state, "byte {at} of {name}");
            if name == "tree" {
                let offset = at as u64 / 32 * 32;
                assert!(
                    report.incarnations[0]
                        .findings
                        .iter()
                        .any(|found| found.offset == offset)
                );
                assert_eq!(report.incarnations[0].tree, TreeState::Bad);
            }
        }
    }
}

#[test]
fn a_torn_tail_that_nothing_proves_durable_is_cut_and_reported() {
    let (disk, worker) = open();
    let path = segment(&worker);
    let end = end_offset(&worker.durability_model.appended);
    disk.corrupt(&path, |bytes| bytes[end - 20] ^= 1);
    let found = inspect(&disk).unwrap().unwrap();
    assert_eq!(found.size, 12);
    assert!(found.torn.is_some());
    assert_eq!(
        found.0.unfinished_exchanges.len(),
        1,
        "the completion that was cut leaves its admission open"
    );
    let report = check(&disk);
    assert_eq!(report.verdict, Verdict::Incomplete);
    assert!(report.incarnations[0].torn);
}

#[test]
fn a_bad_record_under_a_checkpoint_is_corruption() {
    let (disk, mut worker) = open();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    disk.corrupt(&segment(&worker), |bytes| bytes[300] ^= 1);
    assert!(matches!(
        inspect(&disk),
        Err(WalError::Evidence(EvidenceError::Corruption { offset: 128, .. }))
    ));
    assert_eq!(check(&disk).verdict, Verdict::Invalid);
}

#[test]
fn a_bad_record_that_a_later_one_saw_durable_is_corruption_without_a_checkpoint() {
    let (disk, mut worker) = open();
    worker.sync().unwrap();
    worker.admit("later", 1).unwrap();
    worker.flush().unwrap();
    disk.corrupt(&segment(&worker), |bytes| bytes[300] ^= 1);
    assert!(matches!(
        inspect(&disk),
        Err(WalError::Evidence(EvidenceError::Corruption { offset: 128, .. }))
    ));
}

#[test]
fn a_cut_tail_under_a_checkpoint_is_a_divergence() {
    let (disk, worker) = sealed();
    disk.corrupt(&segment(&worker), |bytes| bytes.truncate(128 + 4000));
    let report = check(&disk);
    assert!(report.verdict >= Verdict::Diverged);
    assert_eq!(report.incarnations[0].checkpoint, CheckpointState::Bad);
    assert!(matches!(
        inspect(&disk),
        Err(WalError::Evidence(EvidenceError::Corruption { .. }))
    ));
}

#[test]
fn a_log_that_was_rewritten_with_right_checksums_diverges() {
    let (disk, worker) = sealed();
    let dir = &worker.durability_model.dir;
    let origin = format!(
        "ledger.example/demo/3/{}",
        worker.durability_model.incarnation.unwrap()
    );
    let forged = Checkpoint {
        origin,
        size: worker.durability_model.appended.len() as u64,
        root: [9; 32],
    };
    let note = forged.sign(&key()).unwrap();
    disk.corrupt(&dir.join("checkpoint"), |bytes| *bytes = note.into_bytes());
    let report = check(&disk);
    assert_eq!(report.verdict, Verdict::Diverged);
    assert_eq!(report.exit_code, 30);
    assert!(matches!(
        inspect(&disk),
        Err(WalError::Evidence(EvidenceError::Corruption { .. }))
    ));
}

#[test]
fn a_checkpoint_by_another_key_or_of_another_log_is_refused() {
    let (disk, worker) = sealed();
    let path = worker.durability_model.dir.join("checkpoint");
    let real = Checkpoint::parse_unverified(worker.durability_model.notes.last().unwrap()).unwrap();
    let stranger = SigningKey::generate("ledger.example/demo", [8; 32]).unwrap();
    let elsewhere = Checkpoint {
        origin: "ledger.example/demo/3/elsewhere".to_owned(),
        ..real.clone()
    };
    for (note, code) in [
        (real.sign(&stranger).unwrap(), Some("another_key")),
        (elsewhere.sign(&key()).unwrap(), None),
    ] {
        disk.corrupt(&path, |bytes| *bytes = note.into_bytes());
        assert!(inspect(&disk).is_err());
        let report = check(&disk);
        assert_eq!(report.verdict, Verdict::Invalid);
        let findings = report.incarnations.iter().flat_map(|log| &log.findings);
        let mut codes = findings.filter(|found| found.verdict == Verdict::Invalid);
        assert_eq!(codes.next().unwrap().code, code);
    }
}

#[test]
fn without_a_key_the_verdict_is_incomplete() {
    let (disk, _) = sealed();
    let report = fsck(&disk, Path::new("/"), None, &[]).unwrap();
    assert_eq!((report.verdict, report.exit_code), (Verdict::Incomplete, 10));
    assert_eq!(report.incarnations[0].checkpoint, CheckpointState::Unverified);
}

#[test]
fn a_successor_covers_the_tail_and_notices_when_it_changes() {
    let (disk, mut worker) = open();
    worker.admit("orphan", 1).unwrap();
    worker.flush().unwrap();
    disk.restart();
    let mut next = start(&disk, &mut DurabilityModel::default()).unwrap();
    next.step().unwrap();
    next.seal().unwrap();
    let report = check(&disk);
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");

    // A zombie of the former incarnation continues to write.
    worker.admit("zombie", 1).unwrap();
    worker.flush().unwrap();
    let report = check(&disk);
    assert_eq!(report.verdict, Verdict::Incomplete);
    assert!(
        report.incarnations[0]
            .findings
            .iter()
            .any(|found| found.message.contains("were written after"))
    );

    // Truncate the tail that only the successor's note covers.
    disk.corrupt(&segment(&worker), |bytes| bytes[4000..].fill(0));
    assert!(check(&disk).verdict >= Verdict::Diverged);
}
