//! Tests of the search for logs: directories of the file system are skipped, and unreadable
//! directories are errors.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{EvidenceError, ReadFile, ReadStorage, SearchMode, Verdict, find_records, fsck};
use proofgate_ledger_testkit::{Worker, vkey, worker_with_records};
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A volume with one directory that the worker's user may not read.
struct Volume {
    disk: SimulatedDisk,
    unreadable: PathBuf,
}

impl Volume {
    fn with_unreadable(path: &str) -> (Self, Worker) {
        let (disk, mut worker) = worker_with_records();
        worker.seal().unwrap();
        proofgate_wal::Storage::create_dir(&disk, Path::new(path)).unwrap();
        let unreadable = PathBuf::from(path);
        (Self { disk, unreadable }, worker)
    }
}

impl ReadStorage for Volume {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk.open(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        if path == self.unreadable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.disk.list(path)
    }
}

#[test]
fn the_lost_and_found_of_a_volume_is_passed_over() {
    let (volume, _worker) = Volume::with_unreadable("/lost+found");
    let report = fsck(&volume, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
    assert_eq!(report.records, 82);
    assert_eq!(
        find_records(&volume, Path::new("/"), "req-17", SearchMode::Scan)
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_shard_that_may_not_be_read_is_an_error_and_not_passed_over() {
    let (volume, _worker) = Volume::with_unreadable("/4");
    match fsck(&volume, Path::new("/"), Some(&vkey()), &[]) {
        Err(EvidenceError::Io {
            call: "list", path, ..
        }) => assert_eq!(path, Path::new("/4")),
        other => panic!("{other:?}"),
    }
}
