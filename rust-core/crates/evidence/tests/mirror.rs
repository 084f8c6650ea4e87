//! Tests that a mirror copies the verified files, and that the copy passes the check of a mirror.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::key_successions::KEY_SUCCESSIONS_DIR;
use proofgate_evidence::{
    EvidenceError, FileStorage, HeldCheckpoint, PinnedFile, ReadStorage as _, Report, Verdict, fsck,
    fsck_mirror, fsck_pinned,
};
use proofgate_ledger::Checkpoint;
use proofgate_ledger_testkit::{Worker, vkey, worker_with_records};
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

fn sealed() -> (SimulatedDisk, Worker) {
    let (disk, mut worker) = worker_with_records();
    worker.seal().unwrap();
    (disk, worker)
}

fn held(worker: &Worker) -> HeldCheckpoint {
    HeldCheckpoint {
        file: "held".into(),
        checkpoint: Checkpoint::verify(worker.durability_model.notes.last().unwrap(), &vkey()).unwrap(),
    }
}

fn pinned(disk: &SimulatedDisk, worker: &Worker) -> (Verdict, Vec<PinnedFile>) {
    let (report, files) =
        fsck_pinned(disk, &worker.durability_model.dir, Some(&vkey()), &[held(worker)]).unwrap();
    (report.verdict, files)
}

/// Returns the copy that a mirror makes of the files.
fn copied(disk: &SimulatedDisk, files: &[PinnedFile]) -> SimulatedDisk {
    let copy = SimulatedDisk::new();
    for file in files {
        let mut dir = std::path::PathBuf::new();
        for part in file.path.parent().unwrap() {
            dir.push(part);
            if copy.list(&dir).is_err() {
                copy.create_dir(&dir).unwrap();
            }
        }
        let mut bytes = disk.read(&file.path).unwrap();
        bytes.truncate(usize::try_from(file.len).unwrap());
        assert_eq!(<[u8; 32]>::from(Sha256::digest(&bytes)), file.sha256);
        copy.create(&file.path).unwrap();
        copy.corrupt(&file.path, |content| content.clone_from(&bytes));
    }
    copy
}

#[test]
fn the_files_that_were_verified_are_a_ledger_without_salts_and_tree() {
    let (disk, worker) = sealed();
    let (verdict, files) = pinned(&disk, &worker);
    assert_eq!(verdict, Verdict::Ok);
    let names: Vec<_> = files.iter().map(|file| file.path.file_name().unwrap()).collect();
    assert!(
        !names.iter().any(|name| *name == "salts" || *name == "tree"),
        "{names:?}"
    );
    let copy = copied(&disk, &files);
    let report = fsck_mirror(&copy, Path::new("/"), Some(&vkey()), &[held(&worker)]).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
    // In a check as a full ledger, they are missing.
    let report = fsck(&copy, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(report.verdict, Verdict::Invalid);
}

#[test]
fn a_log_that_was_changed_or_cut_is_none_to_copy() {
    let (disk, worker) = sealed();
    let files = pinned(&disk, &worker).1;
    let segment = files.iter().find(|file| file.path.extension().is_some()).unwrap();
    let whole = disk.read(&segment.path).unwrap();
    disk.corrupt(&segment.path, |bytes| bytes[700] ^= 1);
    assert!(pinned(&disk, &worker).0 > Verdict::Incomplete);
    disk.corrupt(&segment.path, |bytes| {
        bytes.clone_from(&whole);
        bytes.truncate(600);
    });
    assert!(pinned(&disk, &worker).0 > Verdict::Incomplete);
}

/// The verified files, on a real file system.
struct Volume {
    ledger: tempfile::TempDir,
    log: PathBuf,
    held: HeldCheckpoint,
}

impl Volume {
    fn of(disk: &SimulatedDisk, worker: &Worker, files: &[PinnedFile]) -> Self {
        let ledger = tempfile::tempdir().unwrap();
        let place = |path: &Path| ledger.path().join(path.strip_prefix("/").unwrap());
        let log = place(&worker.durability_model.dir);
        fs::create_dir_all(&log).unwrap();
        for file in files {
            let mut bytes = disk.read(&file.path).unwrap();
            bytes.truncate(usize::try_from(file.len).unwrap());
            fs::write(place(&file.path), bytes).unwrap();
        }
        let held = held(worker);
        Self { ledger, log, held }
    }

    fn checked(&self) -> Result<Report, EvidenceError> {
        let held = std::slice::from_ref(&self.held);
        Ok(fsck_pinned(&FileStorage, &self.log, Some(&vkey()), held)?.0)
    }
}

#[test]
fn what_can_be_no_file_of_a_log_is_damage_and_no_failure_of_the_storage() {
    let (disk, worker) = sealed();
    let files = pinned(&disk, &worker).1;
    let replace: fn(&Path) = |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    };
    let lengthen: fn(&Path) = |path| {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(2 << 30).unwrap();
    };
    for (file, spoil) in files.iter().flat_map(|file| [(file, replace), (file, lengthen)]) {
        let volume = Volume::of(&disk, &worker, &files);
        assert_eq!(volume.checked().unwrap().verdict, Verdict::Ok);
        spoil(&volume.log.join(file.path.file_name().unwrap()));
        match volume.checked() {
            Ok(report) => assert!(report.verdict > Verdict::Incomplete, "{file:?}"),
            Err(error) => assert_eq!(error.code(), "ledger_corrupt", "{error}"),
        }
    }
}

#[test]
fn what_is_no_file_among_the_statements_of_keys_is_told_and_costs_no_log() {
    let (disk, worker) = sealed();
    let volume = Volume::of(&disk, &worker, &pinned(&disk, &worker).1);
    fs::create_dir_all(
        volume
            .ledger
            .path()
            .join(KEY_SUCCESSIONS_DIR)
            .join("planted.note"),
    )
    .unwrap();
    assert_eq!(volume.checked().unwrap().verdict, Verdict::Ok);
    let held = std::slice::from_ref(&volume.held);
    let report = fsck_mirror(&FileStorage, volume.ledger.path(), Some(&vkey()), held).unwrap();
    let codes: Vec<_> = report.findings.iter().filter_map(|found| found.code).collect();
    assert_eq!(
        (report.verdict, codes),
        (Verdict::Invalid, vec!["key_succession_refused"])
    );
}
