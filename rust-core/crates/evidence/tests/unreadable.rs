//! Tests of `fsck` when part of a ledger cannot be read: it reports that part, and checks the rest.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{
    EvidenceError, ReadFile, ReadStorage, Report, SearchMode, Verdict, find_records, fsck, fsck_pinned,
};
use proofgate_ledger_testkit::{DurabilityModel, start, vkey, worker_with_records};
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The fault of one file or directory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// A block of the file is lost.
    BadSector,
    /// A pipe, a directory or a device has the name of the file.
    NoFile,
    /// Opening the file is not permitted.
    Forbidden,
    /// The storage does not respond.
    Away,
}

const FAULTS: [Fault; 4] = [Fault::BadSector, Fault::NoFile, Fault::Forbidden, Fault::Away];

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Fault::BadSector => io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()),
            Fault::NoFile => io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"),
            Fault::Forbidden => io::ErrorKind::PermissionDenied.into(),
            Fault::Away => io::ErrorKind::TimedOut.into(),
        }
    }
}

struct Faulty<'d> {
    disk: &'d SimulatedDisk,
    at: PathBuf,
    fault: Fault,
}

struct BadFile {
    file: Arc<dyn ReadFile>,
}

impl ReadStorage for Faulty<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        match (path == self.at, self.fault) {
            (false, _) => ReadStorage::open(self.disk, path),
            (true, Fault::BadSector) => {
                let file = ReadStorage::open(self.disk, path)?;
                Ok(Arc::new(BadFile { file }))
            }
            (true, fault) => Err(fault.error()),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        match path == self.at {
            true => Err(self.fault.error()),
            false => ReadStorage::list(self.disk, path),
        }
    }
}

impl ReadFile for BadFile {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(Fault::BadSector.error())
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

/// Creates three incarnations, each with its directory. The last incarnation is running.
fn three_lives() -> (SimulatedDisk, Vec<PathBuf>) {
    let (disk, mut first) = worker_with_records();
    first.seal().unwrap();
    let mut dirs = vec![first.durability_model.dir.clone()];
    for life in ["second", "third"] {
        disk.restart();
        let mut worker = start(&disk, &mut DurabilityModel::default()).unwrap();
        let admission = worker.admit(life, 1).unwrap();
        worker.complete(life, admission).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
        worker.sync().unwrap();
        worker.checkpoint().unwrap();
        if life == "second" {
            worker.seal().unwrap();
        }
        dirs.push(worker.durability_model.dir.clone());
    }
    (disk, dirs)
}

fn check(storage: &dyn ReadStorage) -> Report {
    fsck(storage, Path::new("/"), Some(&vkey()), &[]).unwrap()
}

/// Returns the findings of every log except the unreadable one.
fn others<'r>(report: &'r Report, dir: &Path) -> Vec<&'r str> {
    let others = report.incarnations.iter();
    let others = others.filter(|log| log.dir != dir.display().to_string());
    others
        .flat_map(|log| &log.findings)
        .filter(|found| found.verdict > Verdict::Incomplete)
        .map(|found| found.message.as_str())
        .collect()
}

#[test]
fn whatever_of_a_log_cannot_be_read_is_a_finding_of_it_and_the_rest_is_checked() {
    let (disk, dirs) = three_lives();
    assert_eq!(check(&disk).verdict, Verdict::Ok);
    let mut told = 0;
    for dir in &dirs {
        let names = ReadStorage::list(&disk, dir).unwrap();
        let files = names.iter().map(|name| dir.join(name));
        for at in files.chain([dir.clone()]) {
            for fault in FAULTS {
                let faulty = Faulty {
                    disk: &disk,
                    at: at.clone(),
                    fault,
                };
                let report = check(&faulty);
                assert_eq!(report.incarnations.len(), 3, "{at:?} {fault:?}");
                assert_eq!(others(&report, dir), [""; 0], "{at:?} {fault:?}: {report:#?}");
                let findings = report.incarnations.iter().flat_map(|log| &log.findings);
                let found: Vec<_> = findings
                    .filter(|found| found.code == Some("unreadable"))
                    .collect();
                let Some(found) = found.first() else {
                    // A file that is never read.
                    assert_eq!(report.verdict, Verdict::Ok, "{at:?} {fault:?}: {report:#?}");
                    continue;
                };
                told += 1;
                assert_eq!(found.file, at.display().to_string(), "{fault:?}");
                let expected = match fault {
                    Fault::Away => Verdict::Incomplete,
                    // For a directory that cannot be listed, it is unknown whether anything is lost.
                    Fault::BadSector if at == *dir => Verdict::Incomplete,
                    _ => Verdict::Invalid,
                };
                assert_eq!(found.verdict, expected, "{at:?} {fault:?}");
                assert!(report.exit_code != 0);
            }
        }
    }
    assert!(told >= 3 * 4 * FAULTS.len(), "only {told} were told");
}

#[test]
fn statements_beside_the_logs_that_cannot_be_read_are_findings_and_all_logs_are_checked() {
    let (disk, _) = three_lives();
    for name in ["key-successions", "key-destructions"] {
        let faulty = Faulty {
            disk: &disk,
            at: Path::new("/").join(name),
            fault: Fault::Away,
        };
        let keys = proofgate_evidence::FsckKeys {
            ledger: Some(&vkey()),
            retention: Some(&vkey()),
            shred: None,
        };
        let report = fsck(&faulty, Path::new("/"), keys, &[]).unwrap();
        assert_eq!(report.incarnations.len(), 3, "{name}");
        let found = report
            .findings
            .iter()
            .find(|found| found.code == Some("unreadable"));
        assert!(found.is_some(), "{name}: {report:#?}");
    }
}

#[test]
fn a_log_that_is_to_be_mirrored_is_read_again_when_it_cannot_be_read() {
    let (disk, dirs) = three_lives();
    let faulty = Faulty {
        disk: &disk,
        at: dirs[0].join("checkpoint"),
        fault: Fault::BadSector,
    };
    let read = fsck_pinned(&faulty, &dirs[0], Some(&vkey()), &[]);
    assert!(matches!(read, Err(EvidenceError::Io { .. })));
}

#[test]
fn an_exchange_is_found_though_another_log_cannot_be_read_and_one_that_may_be_in_it_is_an_error() {
    let (disk, dirs) = three_lives();
    let segment = dirs[1].join("00000000000000000000.seg");
    for fault in FAULTS {
        let faulty = Faulty {
            disk: &disk,
            at: segment.clone(),
            fault,
        };
        let search = |id| find_records(&faulty, Path::new("/"), id, SearchMode::Scan);
        for (id, there) in [
            ("third", fault != Fault::Away),
            ("second", false),
            ("nobody", false),
        ] {
            match search(id) {
                Ok(found) => assert!(there && found.len() == 2, "{fault:?}: {id}"),
                Err(error) => {
                    assert!(!there, "{fault:?}: {id}: {error}");
                    assert!(error.to_string().contains(segment.to_str().unwrap()), "{error}");
                }
            }
        }
    }
}
