//! Tests of the configurations that records name, which must be archived beside the logs.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use proofgate_evidence::configurations::{archive_path, check};
use proofgate_evidence::{Finding, ReadFile, ReadStorage, Report, Verdict, fsck, fsck_mirror};
use proofgate_ledger_testkit::{
    CONFIGURATION, CONFIGURATION_DIGEST, DurabilityModel, SHARD, replace_archived_config, start, vkey,
    worker_with_records,
};
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Creates two logs with one configuration.
fn two_logs() -> SimulatedDisk {
    let (disk, mut worker) = worker_with_records();
    worker.seal().unwrap();
    let mut next = start(&disk, &mut DurabilityModel::default()).unwrap();
    next.seal().unwrap();
    disk
}

fn checked(storage: &dyn ReadStorage, path: &Path) -> Report {
    let mut report = fsck(storage, path, Some(&vkey()), &[]).unwrap();
    check(storage, &mut report);
    report
}

fn found(report: &Report) -> Vec<(Option<&'static str>, Verdict)> {
    let told = |found: &Finding| (found.code, found.verdict);
    report.findings.iter().map(told).collect()
}

#[test]
fn a_configuration_that_is_gone_or_changed_is_found_once() {
    let disk = two_logs();
    let report = checked(&disk, Path::new("/"));
    assert_eq!(
        found(&report),
        [(Some("configuration_missing"), Verdict::Incomplete)]
    );
    let first = &report.incarnations[0].dir;
    let told = &report.findings[0];
    assert!(
        told.message.contains(&format!("record 0 of {first}")),
        "{}",
        told.message
    );
    let path = archive_path(Path::new("/"), &CONFIGURATION_DIGEST);
    assert_eq!(Path::new(&told.file), path);

    for other in [&b"{ }"[..], b""] {
        replace_archived_config(&disk, other);
        let report = checked(&disk, Path::new("/"));
        assert_eq!(
            found(&report),
            [(Some("configuration_changed"), Verdict::Invalid)]
        );
        assert_eq!(report.exit_code, 40);
    }
    replace_archived_config(&disk, CONFIGURATION);
    assert_eq!(found(&checked(&disk, Path::new("/"))), []);
    let mut mirror = fsck_mirror(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    check(&disk, &mut mirror);
    assert_eq!(found(&mirror), []);
}

#[test]
fn beside_a_log_or_a_shard_alone_there_are_none() {
    let disk = two_logs();
    let log = checked(&disk, Path::new("/")).incarnations[0].dir.clone();
    for path in [SHARD, &log] {
        assert_eq!(found(&checked(&disk, Path::new(path))), [], "{path}");
    }
}

/// A disk with a file that cannot be opened or read.
struct Faulty {
    disk: SimulatedDisk,
    open: io::ErrorKind,
}

impl ReadStorage for Faulty {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        match path.extension().is_some_and(|end| end == "json") {
            true => Err(self.open.into()),
            false => ReadStorage::open(&self.disk, path),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        ReadStorage::list(&self.disk, path)
    }
}

#[test]
fn one_that_cannot_be_read_is_found_and_the_logs_are_checked_all_the_same() {
    let disk = two_logs();
    replace_archived_config(&disk, CONFIGURATION);
    for (open, code, verdict) in [
        (io::ErrorKind::PermissionDenied, "unreadable", Verdict::Invalid),
        (io::ErrorKind::TimedOut, "unreadable", Verdict::Incomplete),
        (
            io::ErrorKind::InvalidData,
            "configuration_changed",
            Verdict::Invalid,
        ),
    ] {
        let disk = disk.clone();
        let report = checked(&Faulty { disk, open }, Path::new("/"));
        assert_eq!(found(&report), [(Some(code), verdict)]);
        assert_eq!(report.incarnations.len(), 2);
    }
}
