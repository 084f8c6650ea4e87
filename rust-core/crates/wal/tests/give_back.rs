//! Releases only the space that a killed worker allocated and did not use.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{Verdict, fsck};
use proofgate_ledger_testkit::{
    self as testkit, DurabilityModel, SHARD, Worker, inspect, new_worker, raw_record, small_log_options,
    start, start_log_in, vkey, worker_with_records,
};
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use proofgate_wal::{FileStorage, Storage, Ulid, WalError, frame_len, release_unused_space};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::Path;

fn shard() -> &'static Path {
    Path::new(SHARD)
}

/// Kills the process of a worker.
fn kill(disk: &SimulatedDisk, worker: Worker) {
    drop(worker);
    disk.restart();
}

fn lengths(disk: &SimulatedDisk) -> Vec<(String, usize)> {
    let segments = disk.files().into_iter().filter(|path| {
        let kind = path.extension().and_then(|kind| kind.to_str());
        matches!(kind, Some("seg" | "next"))
    });
    segments
        .map(|path| (path.display().to_string(), disk.read(&path).unwrap().len()))
        .collect()
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other"), b"content").unwrap();
    std::os::unix::fs::symlink("other", folder.path().join("salts")).unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    for name in ["salts", "folder"] {
        let refused = FileStorage.open_writable(&folder.path().join(name));
        let kind = refused.err().map(|error| error.kind());
        assert_eq!(kind, Some(std::io::ErrorKind::InvalidData), "{name}");
    }
    assert!(FileStorage.open_writable(&folder.path().join("other")).is_ok());
}

#[test]
fn a_pipe_in_the_place_of_a_file_or_of_a_directory_is_waited_for_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let opened = FileStorage.open_synced(&pipe).err().map(|error| error.kind());
    assert_eq!(opened, Some(std::io::ErrorKind::InvalidData));
    let opened = FileStorage.open_dir(&pipe).err().map(|error| error.kind());
    assert_eq!(opened, Some(std::io::ErrorKind::NotADirectory));
    assert!(FileStorage.open_dir(folder.path()).is_ok());
}

#[test]
fn a_worker_that_is_killed_again_and_again_starts_in_the_room_of_one() {
    let disk = SimulatedDisk::new();
    // Two segments, the salts, and a little for records and checkpoints.
    disk.set_free(Some(2 * (64 << 10) + (48 << 10) + 20 * (40 << 10)));
    for life in 0..20 {
        let mut worker =
            start(&disk, &mut DurabilityModel::default()).unwrap_or_else(|error| panic!("{life}: {error}"));
        let admission = worker.admit("a", 10).unwrap();
        worker.complete("a", admission).unwrap();
        worker.admit("b", 10).unwrap();
        worker.flush().unwrap();
        kill(&disk, worker);
    }
    let report = fsck(&disk, shard(), Some(&vkey()), &[]).unwrap();
    assert_eq!(report.incarnations.len(), 20);
    assert!(report.verdict <= Verdict::Incomplete);
    for incarnation in &report.incarnations[1..] {
        assert_eq!(
            incarnation.records, 5,
            "open, one exchange aborted, two and a half more"
        );
    }
}

#[test]
fn what_was_written_stays_to_the_last_byte() {
    let (disk, mut worker) = worker_with_records();
    while worker.writer.watermark().segment() == 0 {
        worker.admit("late", 4_000).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    worker.step().unwrap();
    kill(&disk, worker);
    let found = inspect(&disk).unwrap().unwrap();
    let before = disk.snapshot();

    let given_back = release_unused_space(&disk, shard(), Some(found.incarnation), None);
    assert!(given_back > 64 << 10, "{given_back}");
    for path in before.files() {
        let (old, new) = (before.read(&path).unwrap(), disk.read(&path).unwrap());
        assert_eq!(old[..new.len()], new[..], "{}", path.display());
        assert!(
            old[new.len()..].iter().all(|byte| *byte == 0),
            "{}",
            path.display()
        );
    }
    assert_eq!(inspect(&disk).unwrap().unwrap(), found);
    assert_eq!(
        release_unused_space(&disk, shard(), Some(found.incarnation), None),
        0,
        "once is enough"
    );
}

#[test]
fn an_incarnation_that_still_lives_keeps_its_space() {
    let (disk, mut worker) = worker_with_records();
    let before = lengths(&disk);
    assert_eq!(release_unused_space(&disk, shard(), None, None), 0);
    assert_eq!(lengths(&disk), before);
    worker.admit("after", 10_000).unwrap();
    worker.flush().unwrap();
}

#[test]
fn nothing_is_cut_where_something_stands_behind_the_last_record() {
    let (disk, worker) = worker_with_records();
    let segment = worker.durability_model.dir.join("00000000000000000000.seg");
    kill(&disk, worker);
    disk.corrupt(&segment, |bytes| {
        let last = bytes.len() - 1;
        bytes[last] = 1;
    });
    release_unused_space(&disk, shard(), None, None);
    assert_eq!(disk.read(&segment).unwrap().len(), 64 << 10);
}

#[test]
fn starts_that_came_to_nothing_leave_no_space_taken() {
    let disk = SimulatedDisk::new();
    // There is space for a segment, but not for the salts that are written next.
    disk.set_free(Some(80 << 10));
    for _ in 0..5 {
        let refused = start(&disk, &mut DurabilityModel::default()).err().unwrap();
        assert!(matches!(refused, WalError::OutOfSpace { .. }), "{refused}");
        disk.restart();
    }
    release_unused_space(&disk, shard(), None, None);
    assert!(lengths(&disk).iter().all(|(_, bytes)| *bytes == 0));
}

#[test]
fn only_the_newest_incarnations_are_looked_at() {
    let (disk, worker) = new_worker();
    let first = worker.durability_model.incarnation.unwrap();
    kill(&disk, worker);
    let later = Ulid::from_parts(first.timestamp_ms() + 1, 0);
    assert_eq!(release_unused_space(&disk, shard(), Some(later), None), 0);
    assert!(release_unused_space(&disk, shard(), Some(first), None) > 0);
}

#[test]
fn a_disk_that_fails_gives_less_back_and_loses_nothing() {
    let (disk, worker) = worker_with_records();
    let size = worker.durability_model.appended.len() as u64;
    kill(&disk, worker);
    let calls = {
        let probe = disk.snapshot();
        release_unused_space(&probe, shard(), None, None);
        probe.calls()
    };
    for call in 0..calls {
        for fault in [
            InjectedFault::Crash,
            InjectedFault::Error(std::io::ErrorKind::Other),
        ] {
            let disk = disk.snapshot();
            disk.inject_fault_at(call, fault);
            release_unused_space(&disk, shard(), None, None);
            disk.crash(call);
            let found = inspect(&disk).unwrap().unwrap();
            assert_eq!(found.size, size, "{fault:?} at call {call}");
            release_unused_space(&disk, shard(), None, None);
            assert_eq!(inspect(&disk).unwrap().unwrap(), found);
        }
    }
}

#[test]
fn on_a_real_file_system_the_lock_lasts_as_long_as_the_incarnation() {
    let volume = tempfile::tempdir().unwrap();
    let shard = volume.path().join("3");
    let mut living = start_log_in(&shard, small_log_options());
    let beginning = testkit::records(&FileStorage, &living.dir, living.incarnation);
    living.writer.append(raw_record(100)).unwrap();
    living.writer.flush().unwrap();
    assert_eq!(release_unused_space(&FileStorage, &shard, None, None), 0);
    drop(living);
    let used = testkit::end_offset(&beginning) as u64 + frame_len(100);
    assert_eq!(
        release_unused_space(&FileStorage, &shard, None, None),
        2 * (64 << 10) - used
    );
}
