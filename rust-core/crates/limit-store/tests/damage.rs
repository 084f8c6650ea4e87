//! Damaged files are reported and never used; a failed write keeps the previous file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limit_store::LimitStoreError;
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use std::io::ErrorKind;
use support::{SECOND, START, file, start};

#[test]
fn any_changed_byte_is_found() {
    let disk = SimulatedDisk::new();
    let (mut writer, _) = start(&disk, 0, 0, false).unwrap();
    writer.consume(300, START).unwrap();
    writer.publish(START).unwrap();
    let whole = disk.read(&file(0, 0)).unwrap();
    for at in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            disk.corrupt(&file(0, 0), |bytes| bytes[at] ^= change);
            let (mut reader, found) = start(&disk, 1, 0, false).unwrap();
            assert_eq!(found.problems.len(), 1, "byte {at}");
            assert_eq!(reader.left(START), 1000, "byte {at}");
            disk.corrupt(&file(0, 0), |bytes| bytes.clone_from(&whole));
            assert_eq!(reader.look(START), []);
            assert_eq!(reader.left(START), 700);
        }
    }
}

#[test]
fn what_was_read_before_the_damage_stands() {
    let disk = SimulatedDisk::new();
    let (mut writer, _) = start(&disk, 0, 0, false).unwrap();
    writer.consume(300, START).unwrap();
    writer.publish(START).unwrap();
    let (mut reader, _) = start(&disk, 1, 0, false).unwrap();
    disk.corrupt(&file(0, 0), |bytes| bytes.truncate(20));
    assert_eq!(reader.look(START).len(), 1);
    assert_eq!(reader.look(START), [], "it is told once");
    assert_eq!(reader.left(START), 700);
}

#[test]
fn a_file_that_ends_early_or_late_is_refused() {
    let disk = SimulatedDisk::new();
    let (mut writer, _) = start(&disk, 0, 0, false).unwrap();
    writer.consume(300, START).unwrap();
    writer.publish(START).unwrap();
    let whole = disk.read(&file(0, 0)).unwrap();
    for length in (0..whole.len()).chain([whole.len() + 1]) {
        disk.corrupt(&file(0, 0), |bytes| {
            bytes.clone_from(&whole);
            bytes.resize(length, 0);
        });
        let (mut reader, found) = start(&disk, 1, 0, false).unwrap();
        assert_eq!(found.problems.len(), 1, "{length}");
        assert_eq!(reader.left(START), 1000);
        assert_eq!(reader.look(START), [], "it is told once");
    }
}

#[test]
fn a_damaged_predecessor_is_worked_out_from_nothing() {
    let disk = SimulatedDisk::new();
    let (mut before, _) = start(&disk, 0, 0, false).unwrap();
    before.consume(300, START).unwrap();
    before.publish(START).unwrap();
    disk.corrupt(&file(0, 0), |bytes| bytes[40] ^= 1);
    let (_, found) = start(&disk, 0, 1, false).unwrap();
    assert_eq!(found.problems.len(), 1);
    assert_eq!((found.crashed.len(), found.crashed[0].through_seq), (1, 0));
    assert!(found.crashed[0].subjects.is_empty());
    // For another shard it is a reported problem and nothing else.
    let (_, found) = start(&disk, 5, 1, false).unwrap();
    assert_eq!((found.problems.len(), found.crashed.len()), (1, 0));
}

#[test]
fn nobody_speaks_for_another_shard() {
    let disk = SimulatedDisk::new();
    let (mut one, _) = start(&disk, 0, 0, false).unwrap();
    one.consume(300, START).unwrap();
    one.publish(START).unwrap();
    start(&disk, 1, 0, false).unwrap();
    let stolen = disk.read(&file(0, 0)).unwrap();
    disk.corrupt(&file(1, 0), |bytes| *bytes = stolen);
    let (_, found) = start(&disk, 2, 0, false).unwrap();
    assert_eq!(
        found.problems,
        [(
            file(1, 0),
            "the state file is damaged: it belongs to another incarnation".to_owned()
        )]
    );

    let mut ended = one.store.own_snapshot().clone();
    ended.finished = true;
    let (mut forger, _) = start(&disk, 3, 0, false).unwrap();
    forger.store.inherit(ended, START);
    forger.publish(START).unwrap();
    let (_, found) = start(&disk, 4, 0, false).unwrap();
    assert!(
        found.problems.iter().any(|(path, _)| *path == file(3, 0)),
        "{:?}",
        found.problems
    );
}

#[test]
fn without_space_the_file_before_stays_and_the_next_write_succeeds() {
    let disk = SimulatedDisk::new();
    let (mut writer, _) = start(&disk, 0, 0, false).unwrap();
    let before = disk.read(&file(0, 0)).unwrap();
    disk.set_free(Some(10));
    writer.consume(300, START).unwrap();
    let failed = writer.publish(START).unwrap_err();
    assert!(
        matches!(&failed, LimitStoreError::Io { call: "write", source, .. } if source.kind() == ErrorKind::StorageFull),
        "{failed}"
    );
    assert_eq!(disk.read(&file(0, 0)).unwrap(), before);
    disk.set_free(None);
    assert!(writer.publish(START).unwrap(), "it is still unwritten");
    let (mut reader, _) = start(&disk, 1, 0, false).unwrap();
    assert_eq!(reader.left(START), 700);
}

#[test]
fn a_look_that_fails_is_told_and_made_up_for_by_the_next() {
    for call in 0.. {
        let disk = SimulatedDisk::new();
        let (mut reader, _) = start(&disk, 1, 0, false).unwrap();
        let (mut writer, _) = start(&disk, 0, 0, false).unwrap();
        writer.consume(300, START).unwrap();
        writer.publish(START).unwrap();
        let last = disk.calls() + call;
        disk.inject_fault_at(last, InjectedFault::Error(ErrorKind::Other));
        let told = reader.look(START);
        if disk.calls() <= last {
            assert!(call > 5, "a look is of several calls");
            break;
        }
        assert_eq!(told.len(), 1, "call {call}");
        assert_eq!(reader.look(START), []);
        assert_eq!(reader.left(START), 700, "call {call}");
    }
}

/// With `sync`, at whatever call the machine dies, the file is the previous or the new one.
#[test]
fn a_crash_at_any_call_leaves_a_whole_file() {
    for call in 0..8 {
        for seed in 0..20 {
            let disk = SimulatedDisk::new();
            let (mut writer, _) = start(&disk, 0, 0, true).unwrap();
            disk.open_all(&["/", "/0"]);
            writer.consume(300, START).unwrap();
            writer.publish(START).unwrap();
            writer.consume(200, START).unwrap();
            disk.inject_fault_at(disk.calls() + call, InjectedFault::Crash);
            let written = writer.publish(START).is_ok();
            disk.crash(seed);
            let (mut reader, found) = start(&disk, 1, 0, true).unwrap();
            assert_eq!(found.problems, [], "call {call}, seed {seed}");
            let left = reader.left(START);
            assert!(
                left == 500 || (left == 700 && !written),
                "call {call}, seed {seed}: {left} left"
            );
            assert!(disk.read(&file(0, 0)).is_some());
        }
    }
}

/// Without `sync`, a power loss may leave anything; the file is either whole or reported.
#[test]
fn a_loss_of_power_without_sync_is_noticed() {
    let mut told = 0;
    for seed in 0..60 {
        let disk = SimulatedDisk::new();
        let (mut writer, _) = start(&disk, 0, 0, false).unwrap();
        disk.open_all(&["/", "/0"]);
        writer.consume(300, START).unwrap();
        writer.publish(START).unwrap();
        disk.crash(seed);
        let (mut successor, found) = start(&disk, 0, 1, false).unwrap();
        let left = successor.left(START + SECOND);
        assert!(left == 700 || left == 1000);
        told += found.problems.len();
        assert!(
            left == 700
                || found.crashed.iter().any(|state| state.through_seq == 0)
                || found.crashed.is_empty()
        );
    }
    assert!(told > 0, "the disk never lost anything");
}

trait OpenAll {
    fn open_all(&self, directories: &[&str]);
}

impl OpenAll for SimulatedDisk {
    /// Makes the names in these directories durable, as claiming an incarnation does.
    fn open_all(&self, directories: &[&str]) {
        use proofgate_wal::Storage;
        for directory in directories {
            self.open_dir(std::path::Path::new(directory))
                .unwrap()
                .sync()
                .unwrap();
        }
    }
}
