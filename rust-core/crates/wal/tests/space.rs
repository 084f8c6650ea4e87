//! Room for records: reservations keep it, and a disk without it stops admission and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod support;

use proofgate_ledger::Checkpoint;
use proofgate_wal::{Preparation, WalError, frame_bytes};
use support::{filled, fresh, key, raw, vkey};

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
