//! The writer, the follower, proofs and exports on an undisturbed log, and the ways in which it says no.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod support;

use proofgate_ledger::{Checkpoint, inclusion_proof, leaf_hash, verify_inclusion};
use proofgate_wal::recovery::{cover_predecessor, inspect};
use proofgate_wal::simulated::{Fault, SimulatedDisk};
use proofgate_wal::{
    FileStorage, Incarnation, Options, Preparation, Ulid, Verdict, WalError, export_leaves, frame_bytes,
    fsck, prove, stored_salt,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Promised, SHARD, Worker, key, root_of, small, start, start_with, vkey};

fn raw(bytes: usize) -> impl FnOnce(u64, &mut Vec<u8>) -> Result<(), proofgate_ledger::LedgerError> {
    move |_, out| {
        out.resize(out.len() + bytes, b'x');
        Ok(())
    }
}

fn fresh() -> (SimulatedDisk, Worker) {
    let disk = SimulatedDisk::new();
    let worker = start(&disk, &mut Promised::default()).unwrap();
    (disk, worker)
}

fn filled() -> (SimulatedDisk, Worker) {
    let (disk, mut worker) = fresh();
    for number in 0..40 {
        let id = format!("req-{number}");
        let admission = worker.admit(&id, 100 * (number % 100)).unwrap();
        worker.complete(&id, admission).unwrap();
        if number % 3 == 0 {
            worker.flush().unwrap();
            worker.step().unwrap();
        }
    }
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    (disk, worker)
}

#[test]
fn records_cross_segments_and_read_back_in_order() {
    let (disk, mut worker) = fresh();
    for number in 0..60 {
        worker.admit(&format!("req-{number}"), 9_000).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    worker.seal().unwrap();
    let names: Vec<_> = disk
        .files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "seg"))
        .collect();
    assert_eq!(names.len(), 9, "{names:?}");
    assert!(
        !disk
            .files()
            .iter()
            .any(|path| path.extension().is_some_and(|kind| kind == "next"))
    );

    let mut leaves = Vec::new();
    let count = export_leaves(&disk, &worker.promised.dir, &mut leaves).unwrap();
    assert_eq!(count, 62);
    let mut rest = leaves.as_slice();
    for record in &worker.promised.appended {
        let (length, more) = rest.split_first_chunk::<4>().unwrap();
        assert_eq!(&more[..u32::from_be_bytes(*length) as usize], record);
        rest = &more[u32::from_be_bytes(*length) as usize..];
    }
    assert!(rest.is_empty());

    let report = fsck(&disk, Path::new("/"), Some(&vkey())).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
    assert!(report.incarnations[0].sealed);
    assert_eq!(report.incarnations[0].segments, 9);
}

/// Somewhere to write to; when all is written, the log gets one more record and a checkpoint that covers it.
struct Meanwhile<'w>(&'w mut Worker);

impl std::io::Write for Meanwhile<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let Meanwhile(worker) = self;
        worker.admit("meanwhile", 100).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
        worker.sync().unwrap();
        worker.checkpoint().unwrap();
        Ok(())
    }
}

#[test]
fn leaves_of_a_log_that_is_being_written_can_be_exported() {
    let (disk, mut worker) = fresh();
    worker.admit("before", 100).unwrap();
    worker.flush().unwrap();
    let dir = worker.promised.dir.clone();
    assert_eq!(
        export_leaves(&disk, &dir, &mut Meanwhile(&mut worker)).unwrap(),
        2
    );
}

#[test]
fn one_batch_may_cross_several_segments() {
    let disk = SimulatedDisk::new();
    let options = Options {
        segments_ahead: 4,
        ..small()
    };
    let mut worker = start_with(&disk, &mut Promised::default(), options).unwrap();
    for number in 0..17 {
        worker.admit(&format!("req-{number}"), 14_000).unwrap();
    }
    let before = disk.calls();
    worker.flush().unwrap();
    assert_eq!(disk.calls() - before, 5, "one write for each segment");
    worker.step().unwrap();
    worker.seal().unwrap();
    assert_eq!(
        fsck(&disk, Path::new("/"), Some(&vkey())).unwrap().verdict,
        Verdict::Ok
    );
}

#[test]
fn a_flush_is_one_call_and_an_append_none() {
    let (disk, mut worker) = fresh();
    worker.admit("a", 10).unwrap();
    worker.flush().unwrap();
    let before = disk.calls();
    for number in 0..50 {
        worker.admit(&format!("req-{number}"), 10).unwrap();
    }
    assert_eq!(disk.calls(), before);
    worker.flush().unwrap();
    assert_eq!(disk.calls(), before + 1);
    worker.flush().unwrap();
    assert_eq!(disk.calls(), before + 1, "an empty batch is not written");
}

#[test]
fn a_reservation_holds_when_the_disk_is_full_and_the_rest_is_refused() {
    let (disk, mut worker) = fresh();
    disk.set_free(Some(0));
    let mut reservations = Vec::new();
    let refused = loop {
        match worker.writer.reserve(frame_bytes(700) + frame_bytes(300)) {
            Ok(reservation) => reservations.push(reservation),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, WalError::Full { .. }), "{refused}");
    assert!(reservations.len() > 60, "{}", reservations.len());
    assert!(matches!(
        worker.writer.append(raw(16_000)),
        Err(WalError::Full { .. })
    ));

    // Used in any order, every one of them finds its room, across the change of segment.
    while !reservations.is_empty() {
        let at = (reservations.len() * 7) / 11;
        let mut reservation = reservations.swap_remove(at);
        worker.writer.append_reserved(&mut reservation, raw(300)).unwrap();
        worker.writer.append_reserved(&mut reservation, raw(700)).unwrap();
        assert_eq!(reservation.remaining(), 0);
        worker.writer.flush().unwrap();
        assert!(matches!(
            worker.follower.prepare(),
            Preparation::Enough | Preparation::Starved(_)
        ));
    }
    worker.writer.seal(raw(1000)).unwrap();
    worker.writer.flush().unwrap();
    assert!(worker.writer.watermark().segment() > 0);
}

#[test]
fn a_dropped_reservation_gives_its_room_back() {
    let (_, mut worker) = fresh();
    let kept = worker.writer.reserved();
    let mut reservation = worker.writer.reserve(4096).unwrap();
    assert_eq!(worker.writer.reserved(), kept + 4096);
    worker.writer.append_reserved(&mut reservation, raw(100)).unwrap();
    assert_eq!(worker.writer.reserved(), kept + 4096 - frame_bytes(100));
    reservation.shrink_to(1000);
    assert_eq!(worker.writer.reserved(), kept + 1000);
    drop(reservation);
    assert_eq!(worker.writer.reserved(), kept);
}

#[test]
fn a_record_larger_than_its_reservation_takes_free_room_or_is_refused() {
    let (disk, mut worker) = fresh();
    let mut small = worker.writer.reserve(frame_bytes(8)).unwrap();
    worker.writer.append_reserved(&mut small, raw(2_000)).unwrap();
    disk.set_free(Some(0));
    let mut small = worker.writer.reserve(frame_bytes(8)).unwrap();
    let mut all = Vec::new();
    while let Ok(reservation) = worker.writer.reserve(512) {
        all.push(reservation);
    }
    let refused = worker.writer.append_reserved(&mut small, raw(2_000));
    assert!(matches!(refused, Err(WalError::Full { .. })));
    worker.writer.append_reserved(&mut small, raw(8)).unwrap();
}

#[test]
fn a_full_disk_stops_admission_and_space_resumes_it() {
    let (disk, mut worker) = fresh();
    disk.set_free(Some(1000));
    let mut admitted = 0;
    let refused = loop {
        match worker.writer.append(raw(4000)) {
            Ok(_) => admitted += 1,
            Err(error) => break error,
        }
        worker.writer.flush().unwrap();
        if let Preparation::Starved(error) = worker.follower.prepare() {
            assert!(error.to_string().contains("allocate"), "{error}");
        }
    };
    assert!(matches!(refused, WalError::Full { .. }), "{refused}");
    assert!(admitted > 15);
    assert!(!worker.writer.watermark().is_poisoned());
    disk.set_free(None);
    assert!(matches!(worker.follower.prepare(), Preparation::Prepared));
    worker.writer.append(raw(4000)).unwrap();
    worker.writer.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
}

#[test]
fn salts_without_space_refuse_the_exchange_and_not_the_log() {
    let (disk, mut worker) = fresh();
    disk.set_free(Some(0));
    assert!(matches!(worker.writer.salt(1), Err(WalError::Full { .. })));
    worker.writer.append(raw(10)).unwrap();
    disk.set_free(None);
    worker.writer.salt(2).unwrap();
    worker.writer.flush().unwrap();
}

#[test]
fn a_salt_is_stored_before_it_is_used_and_one_write_serves_1024() {
    let (disk, mut worker) = fresh();
    let first = worker.writer.salt(1).unwrap();
    assert_eq!(stored_salt(&disk, &worker.promised.dir, 1).unwrap(), Some(first));
    let before = disk.calls();
    let others: Vec<_> = (2..1024).map(|seq| worker.writer.salt(seq).unwrap()).collect();
    assert_eq!(disk.calls(), before);
    assert!(others.iter().all(|salt| *salt != first));
    worker.writer.salt(1024).unwrap();
    assert_eq!(disk.calls(), before + 1);
    assert!(matches!(
        worker.writer.salt(1),
        Err(WalError::SaltNotAtHand { seq: 1 })
    ));
    assert_eq!(stored_salt(&disk, &worker.promised.dir, 5000).unwrap(), None);
}

#[test]
fn a_failed_or_short_write_stops_the_log_for_good() {
    for fault in [
        Fault::Error(io::ErrorKind::Other),
        Fault::Error(io::ErrorKind::StorageFull),
        Fault::ShortWrite,
    ] {
        let (disk, mut worker) = fresh();
        let woken = Arc::new(AtomicBool::new(false));
        let wake = Arc::clone(&woken);
        worker
            .writer
            .watermark()
            .on_progress(move || wake.store(true, Ordering::Relaxed));
        worker.writer.append(raw(100)).unwrap();
        disk.fault_now(fault);
        assert!(matches!(
            worker.writer.flush(),
            Err(WalError::Io { call: "write", .. })
        ));
        assert_eq!(worker.writer.watermark().written(), 1, "only the open record");
        assert!(worker.writer.watermark().stopped().unwrap().contains("write"));
        assert!(woken.load(Ordering::Relaxed));
        for _ in 0..3 {
            assert!(matches!(worker.writer.flush(), Err(WalError::Poisoned { .. })));
            assert!(matches!(
                worker.writer.append(raw(1)),
                Err(WalError::Poisoned { .. })
            ));
            assert!(matches!(worker.writer.reserve(1), Err(WalError::Poisoned { .. })));
            assert!(matches!(worker.writer.salt(2), Err(WalError::Poisoned { .. })));
        }
        // What was written before can still be made durable and signed.
        worker.step().unwrap();
        worker.sync().unwrap();
        worker.checkpoint().unwrap();
        assert_eq!(worker.promised.durable, 1);
        disk.crash(1);
        assert_eq!(
            inspect(&disk, Path::new(SHARD), &vkey()).unwrap().unwrap().size,
            1
        );
    }
}

#[test]
fn a_failed_sync_stops_the_log_for_good_and_is_never_tried_again() {
    let (disk, mut worker) = filled();
    let durable = worker.promised.durable;
    worker.admit("late", 10).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    disk.fault_now(Fault::Error(io::ErrorKind::Other));
    assert!(matches!(
        worker.follower.sync(),
        Err(WalError::Io { call: "sync", .. })
    ));
    let calls = disk.calls();
    for _ in 0..3 {
        assert!(matches!(worker.follower.sync(), Err(WalError::Poisoned { .. })));
        assert!(matches!(worker.follower.step(), Err(WalError::Poisoned { .. })));
        assert!(matches!(
            worker.follower.checkpoint(&key()),
            Err(WalError::Poisoned { .. })
        ));
        assert!(matches!(
            worker.writer.append(raw(1)),
            Err(WalError::Poisoned { .. })
        ));
        assert!(matches!(worker.writer.flush(), Err(WalError::Poisoned { .. })));
    }
    assert_eq!(disk.calls(), calls);
    assert_eq!(worker.writer.watermark().durable(), durable);
    // The cache still shows the lost record; recovery looks at the disk.
    disk.restart();
    assert_eq!(
        inspect(&disk, Path::new(SHARD), &vkey()).unwrap().unwrap().size,
        durable
    );
}

#[test]
fn a_checkpoint_without_space_keeps_the_former_one_and_is_tried_again() {
    let (disk, mut worker) = filled();
    worker.admit("late", 10).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    disk.set_free(Some(0));
    assert!(worker.follower.checkpoint(&key()).is_err());
    assert!(!worker.writer.watermark().is_poisoned());
    assert_eq!(worker.writer.watermark().checkpointed(), 81);
    disk.set_free(None);
    worker.checkpoint().unwrap();
    assert_eq!(worker.writer.watermark().checkpointed(), 82);
    assert_eq!(
        Checkpoint::verify(worker.promised.notes.last().unwrap(), &vkey())
            .unwrap()
            .size,
        82
    );
}

#[test]
fn nothing_follows_a_seal() {
    let (_, mut worker) = filled();
    worker.seal().unwrap();
    assert!(worker.writer.watermark().sealed());
    assert!(matches!(worker.writer.append(raw(1)), Err(WalError::Sealed)));
    assert!(matches!(worker.writer.reserve(1), Err(WalError::Sealed)));
}

#[test]
fn a_record_that_cannot_be_encoded_or_is_too_large_leaves_the_batch_as_it_was() {
    let (disk, mut worker) = fresh();
    let limit = worker.writer.max_record();
    assert!(matches!(
        worker.writer.append(raw(limit + 1)),
        Err(WalError::RecordTooLarge { .. })
    ));
    let failed = worker.writer.append(|_, out| {
        out.extend_from_slice(b"half a record");
        Err(proofgate_ledger::LedgerError::RecordTooLarge { bytes: 1 })
    });
    assert!(matches!(failed, Err(WalError::Ledger(_))));
    worker.admit("a", 1).unwrap();
    worker.seal().unwrap();
    assert_eq!(
        fsck(&disk, Path::new("/"), Some(&vkey())).unwrap().verdict,
        Verdict::Ok
    );
}

#[test]
fn a_directory_is_claimed_once() {
    let (disk, worker) = fresh();
    let storage = Arc::new(disk);
    let again = Incarnation::create(
        storage,
        Path::new(SHARD),
        worker.promised.incarnation.unwrap(),
        "ledger.example/demo",
        3,
        small(),
    );
    match again {
        Err(WalError::Io { source, .. }) => assert_eq!(source.kind(), io::ErrorKind::AlreadyExists),
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_that_cannot_work_are_refused() {
    for (ledger, segment_bytes) in [
        ("a", 1000),
        ("a", (64 << 10) + 1),
        ("", 64 << 10),
        ("a b", 64 << 10),
        ("a+b", 64 << 10),
    ] {
        let options = Options {
            segment_bytes,
            segments_ahead: 1,
        };
        let storage = Arc::new(SimulatedDisk::new());
        let made = Incarnation::create(storage, Path::new(SHARD), Ulid::nil(), ledger, 3, options);
        assert!(matches!(made, Err(WalError::Options(_))));
    }
}

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
        let found = prove::find(&disk, Path::new("/"), "req-17").unwrap();
        assert_eq!(found.len(), 2);
        for record in found {
            assert_eq!(record.record, worker.promised.appended[record.seq as usize]);
            let proof = prove::proof(&disk, &record.dir, record.seq, Some(&vkey())).unwrap();
            proof.verify(&record.record, &vkey()).unwrap();
        }
    }
    assert!(prove::find(&disk, Path::new("/"), "req").unwrap().is_empty());
    assert!(matches!(
        prove::proof(&disk, &dir, 81, None),
        Err(WalError::NoSuchRecord { .. })
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
        Err(WalError::NotCovered {
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
    let left = inspect(&disk, Path::new(SHARD), &vkey()).unwrap().unwrap();
    let successor = start(&disk, &mut Promised::default()).unwrap();
    let origin = format!("{}/0/{}", key().name(), left.incarnation);
    cover_predecessor(&disk, &successor.promised.dir, &origin, &left, &key()).unwrap();
    let proof = prove::proof(&disk, &dir, 81, Some(&vkey())).unwrap();
    assert_eq!(proof.verify(&record, &vkey()).unwrap().origin, origin);
    let report = fsck(&disk, Path::new(SHARD), Some(&vkey())).unwrap();
    assert!(report.exit_code <= Verdict::Incomplete.exit_code(), "{report:?}");
}

#[test]
fn the_same_log_comes_out_of_a_real_file_system() {
    let root = tempfile::tempdir().unwrap();
    let shard = root.path().join("0");
    let ulid = proofgate_wal::fresh_ulid(None);
    let storage = Arc::new(FileStorage);
    let made = Incarnation::create(storage, &shard, ulid, "ledger.example/demo", 3, small()).unwrap();
    let promised = Promised {
        incarnation: Some(ulid),
        dir: made.dir.clone(),
        ..Promised::default()
    };
    let mut worker = Worker::adopt(made.writer, made.follower, promised);
    worker.begin(ulid, None).unwrap();
    let admission = worker.admit("a", 10).unwrap();
    for number in 0..30 {
        worker.admit(&format!("req-{number}"), 10_000).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    let found = inspect(&FileStorage, &shard, &vkey()).unwrap().unwrap();
    assert_eq!((found.size, found.root), (32, root_of(&worker.promised.appended)));
    assert_eq!(found.orphans.len(), 31);
    worker.complete("a", admission).unwrap();
    worker.seal().unwrap();
    let report = fsck(&FileStorage, root.path(), Some(&vkey())).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
    assert!(
        serde_json::to_string(&report)
            .unwrap()
            .contains("\"checkpoint\":\"verified\"")
    );
    let proof = prove::proof(&FileStorage, &made.dir, 7, Some(&vkey())).unwrap();
    proof.verify(&worker.promised.appended[7], &vkey()).unwrap();
}

#[test]
fn a_writer_and_a_follower_on_two_threads_agree_on_every_record() {
    let root = tempfile::tempdir().unwrap();
    let shard = root.path().join("0");
    let storage = Arc::new(FileStorage);
    let options = Options {
        segments_ahead: 2,
        ..small()
    };
    let ulid = proofgate_wal::fresh_ulid(None);
    let made = Incarnation::create(storage, &shard, ulid, "ledger.example/demo", 3, options).unwrap();
    let (mut writer, mut follower) = (made.writer, made.follower);
    let ledger = std::thread::spawn(move || {
        let watermark = follower.watermark();
        while !watermark.sealed() {
            watermark.wait_written(follower.followed(), std::time::Duration::from_secs(5));
            follower.prepare();
            while follower.step().unwrap().behind {
                follower.prepare();
            }
            follower.sync().unwrap();
        }
        Checkpoint::verify(&follower.finish(&key()).unwrap(), &vkey()).unwrap()
    });
    let mut mmr = proofgate_ledger::Mmr::new();
    let mut record = Vec::new();
    for number in 0..20_000_usize {
        record.clear();
        record.resize(1 + number % 300, number as u8);
        loop {
            let appended = writer.append(|_, out| {
                out.extend_from_slice(&record);
                Ok(())
            });
            match appended {
                Ok(seq) => break assert_eq!(seq, number as u64),
                Err(WalError::Full { .. }) => {
                    writer.flush().unwrap();
                    writer.watermark().wake_follower();
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        }
        mmr.push(leaf_hash(&record), &mut |_| {});
        if number % 7 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.seal(raw(10)).unwrap();
    writer.flush().unwrap();
    mmr.push(leaf_hash(b"xxxxxxxxxx"), &mut |_| {});
    let signed = ledger.join().unwrap();
    assert_eq!((signed.size, signed.root), (20_001, mmr.root()));
    assert_eq!(
        export_leaves(&FileStorage, &made.dir, &mut io::sink()).unwrap(),
        20_001
    );
}
