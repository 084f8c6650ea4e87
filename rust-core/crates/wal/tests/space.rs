//! Tests of the capacity for records: reservations guarantee it, and a full disk stops only
//! admission.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{TreeState, Verdict, fsck, prove};
use proofgate_ledger::Checkpoint;
use proofgate_ledger_testkit::{
    DurabilityModel, Worker, key, new_worker, raw_record, records, small_log_options, start_with, vkey,
    worker_with_records,
};
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use proofgate_wal::{EvidenceError, LogOptions, Preparation, WalError, frame_len};
use std::io;
use std::path::PathBuf;

#[test]
fn a_reservation_holds_when_the_disk_is_full_and_the_rest_is_refused() {
    let (disk, mut worker) = new_worker();
    disk.set_free(Some(0));
    let mut reservations = Vec::new();
    let refused = loop {
        match worker.writer.reserve(frame_len(700) + frame_len(300)) {
            Ok(reservation) => reservations.push(reservation),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, WalError::OutOfSpace { .. }), "{refused}");
    assert!(reservations.len() > 60, "{}", reservations.len());
    assert!(matches!(
        worker.writer.append(raw_record(16_000)),
        Err(WalError::OutOfSpace { .. })
    ));

    // Every reservation has its capacity, in any order of use and across a change of segment.
    while !reservations.is_empty() {
        let at = (reservations.len() * 7) / 11;
        let mut reservation = reservations.swap_remove(at);
        worker
            .writer
            .append_reserved(&mut reservation, raw_record(300))
            .unwrap();
        worker
            .writer
            .append_reserved(&mut reservation, raw_record(700))
            .unwrap();
        assert_eq!(reservation.remaining(), 0);
        worker.writer.flush().unwrap();
        assert!(matches!(
            worker.follower.prepare(),
            Preparation::Sufficient | Preparation::NoSpace(_)
        ));
    }
    worker.writer.seal(raw_record(1000)).unwrap();
    worker.writer.flush().unwrap();
    assert!(worker.writer.watermark().segment() > 0);
}

#[test]
fn a_dropped_reservation_gives_its_room_back() {
    let (_, mut worker) = new_worker();
    let kept = worker.writer.reserved();
    let mut reservation = worker.writer.reserve(4096).unwrap();
    assert_eq!(worker.writer.reserved(), kept + 4096);
    worker
        .writer
        .append_reserved(&mut reservation, raw_record(100))
        .unwrap();
    assert_eq!(worker.writer.reserved(), kept + 4096 - frame_len(100));
    reservation.shrink_to(1000);
    assert_eq!(worker.writer.reserved(), kept + 1000);
    drop(reservation);
    assert_eq!(worker.writer.reserved(), kept);
}

#[test]
fn a_record_larger_than_its_reservation_takes_free_room_or_is_refused() {
    let (disk, mut worker) = new_worker();
    let mut small = worker.writer.reserve(frame_len(8)).unwrap();
    worker
        .writer
        .append_reserved(&mut small, raw_record(2_000))
        .unwrap();
    disk.set_free(Some(0));
    let mut small = worker.writer.reserve(frame_len(8)).unwrap();
    let mut all = Vec::new();
    while let Ok(reservation) = worker.writer.reserve(512) {
        all.push(reservation);
    }
    let refused = worker.writer.append_reserved(&mut small, raw_record(2_000));
    assert!(matches!(refused, Err(WalError::OutOfSpace { .. })));
    worker.writer.append_reserved(&mut small, raw_record(8)).unwrap();
}

#[test]
fn a_full_disk_stops_admission_and_space_resumes_it() {
    let (disk, mut worker) = new_worker();
    disk.set_free(Some(1000));
    let mut admitted = 0;
    let refused = loop {
        match worker.writer.append(raw_record(4000)) {
            Ok(_) => admitted += 1,
            Err(error) => break error,
        }
        worker.writer.flush().unwrap();
        if let Preparation::NoSpace(error) = worker.follower.prepare() {
            assert!(matches!(error, WalError::OutOfSpace { .. }), "{error}");
        }
    };
    assert!(matches!(refused, WalError::OutOfSpace { .. }), "{refused}");
    assert!(admitted > 15);
    assert!(!worker.writer.watermark().is_poisoned());
    disk.set_free(None);
    assert!(matches!(worker.follower.prepare(), Preparation::Prepared));
    worker.writer.append(raw_record(4000)).unwrap();
    worker.writer.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
}

#[test]
fn salts_without_space_refuse_the_exchange_and_not_the_log() {
    let (disk, mut worker) = new_worker();
    disk.set_free(Some(0));
    assert!(matches!(
        worker.writer.salt(1024),
        Err(WalError::OutOfSpace { .. })
    ));
    worker.writer.append(raw_record(10)).unwrap();
    disk.set_free(None);
    worker.writer.salt(1025).unwrap();
    worker.writer.flush().unwrap();
}

#[test]
fn a_log_that_was_begun_has_salts_also_when_the_disk_is_full_by_then() {
    let (disk, mut worker) = new_worker();
    disk.set_free(Some(0));
    worker.admit("first", 10).unwrap();
    worker.flush().unwrap();
    assert_eq!(worker.writer.watermark().written(), 2);
}

#[test]
fn a_write_that_finds_no_space_for_a_while_is_made_again_and_the_log_goes_on() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
        let (disk, mut worker) = new_worker();
        let mut room = worker.writer.reserve(2 * frame_len(300)).unwrap();
        worker.writer.append_reserved(&mut room, raw_record(300)).unwrap();
        for _ in 0..3 {
            disk.inject_fault_now(InjectedFault::Error(kind));
            assert!(worker.writer.flush().unwrap_err().is_out_of_space());
        }
        let watermark = worker.writer.watermark();
        assert!(!watermark.is_poisoned());
        assert_eq!(watermark.written(), 1, "only the open record");
        assert!(matches!(
            worker.writer.reserve(1),
            Err(WalError::OutOfSpace { .. })
        ));
        assert!(matches!(
            worker.writer.append(raw_record(1)),
            Err(WalError::OutOfSpace { .. })
        ));
        worker.writer.append_reserved(&mut room, raw_record(300)).unwrap();

        worker.writer.flush().unwrap();
        assert_eq!(watermark.written(), 3);
        worker.writer.reserve(1).unwrap();
        worker.writer.append(raw_record(1)).unwrap();
        worker.writer.flush().unwrap();
        worker.step().unwrap();
        worker.sync().unwrap();
        disk.crash(1);
        let found = records(&disk, &worker.durability_model.dir, worker.writer.incarnation());
        let lengths: Vec<usize> = found.iter().skip(1).map(Vec::len).collect();
        assert_eq!(lengths, [300, 300, 1]);
    }
}

#[test]
fn a_short_write_is_carried_on_with() {
    let (disk, mut worker) = new_worker();
    worker.writer.append(raw_record(9_000)).unwrap();
    disk.inject_fault_now(InjectedFault::ShortWrite);
    worker.writer.flush().unwrap();
    assert_eq!(worker.writer.watermark().written(), 2);
    worker.step().unwrap();
    worker.sync().unwrap();
    disk.crash(1);
    let found = records(&disk, &worker.durability_model.dir, worker.writer.incarnation());
    assert_eq!(found.get(1).map(Vec::len), Some(9_000));
}

/// Returns a worker whose next call of `prepare` prepares a segment.
fn in_its_second_segment() -> (SimulatedDisk, Worker) {
    let (disk, mut worker) = new_worker();
    while worker.writer.watermark().segment() == 0 {
        worker.writer.append(raw_record(4000)).unwrap();
        worker.writer.flush().unwrap();
    }
    (disk, worker)
}

#[test]
fn a_segment_that_would_not_fit_takes_no_space_from_the_files_beside_it_even_for_a_while() {
    let (disk, mut worker) = in_its_second_segment();
    let needed = small_log_options().segment_bytes / 4 * 5;
    disk.set_free(Some(needed - 1));
    let calls = disk.calls();
    match worker.follower.prepare() {
        Preparation::NoSpace(WalError::OutOfSpace { bytes }) => assert_eq!(bytes, needed),
        other => panic!("{other:?}"),
    }
    assert_eq!(disk.calls(), calls + 1, "only the question how much is free");
    disk.set_free(Some(needed));
    assert!(matches!(worker.follower.prepare(), Preparation::Prepared));
}

#[test]
fn a_file_system_that_does_not_know_its_free_space_is_asked_for_the_segment() {
    let (disk, mut worker) = in_its_second_segment();
    disk.inject_fault_now(InjectedFault::Error(io::ErrorKind::Unsupported));
    assert!(matches!(worker.follower.prepare(), Preparation::Prepared));
}

#[test]
fn a_file_system_that_promised_too_much_gets_back_what_it_gave() {
    let (disk, mut worker) = in_its_second_segment();
    let (files, third_call) = (disk.files(), disk.calls() + 2);
    disk.inject_fault_at(third_call, InjectedFault::Error(io::ErrorKind::QuotaExceeded));
    match worker.follower.prepare() {
        Preparation::NoSpace(WalError::Evidence(EvidenceError::Io { call: "allocate", .. })) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(disk.files(), files);
    assert!(!worker.writer.watermark().is_poisoned());
}

#[test]
fn a_checkpoint_without_space_keeps_the_former_one_and_is_tried_again() {
    let (disk, mut worker) = worker_with_records();
    worker.admit("late", 10).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    disk.set_free(Some(0));
    assert!(worker.follower.sign_checkpoint(&key()).is_err());
    assert!(!worker.writer.watermark().is_poisoned());
    assert_eq!(worker.writer.watermark().checkpointed(), 81);
    disk.set_free(None);
    worker.checkpoint().unwrap();
    assert_eq!(worker.writer.watermark().checkpointed(), 82);
    assert_eq!(
        Checkpoint::verify(worker.durability_model.notes.last().unwrap(), &vkey())
            .unwrap()
            .size,
        82
    );
}

#[test]
fn a_tree_without_space_stops_neither_reading_nor_syncing_nor_signing() {
    /// Number of records. Each takes 64 bytes of tree, in total more than the 4 MiB that may wait
    /// for space.
    const RECORDS: u64 = 66_000;
    let disk = SimulatedDisk::new();
    let large = LogOptions {
        segment_bytes: 8 << 20,
        ..small_log_options()
    };
    let mut worker = start_with(&disk, &mut DurabilityModel::default(), large).unwrap();
    disk.set_free(Some(0));
    for _ in 0..RECORDS {
        let record = |seq, out: &mut Vec<u8>| {
            out.extend_from_slice(format!(r#"{{"v":1,"kind":"later","seq":{seq},"ts":1}}"#).as_bytes());
            Ok(())
        };
        worker.writer.append(record).unwrap();
    }
    worker.writer.flush().unwrap();
    let mut steps = 0;
    while worker.follower.step().unwrap().has_more {
        steps += 1;
        assert!(steps <= RECORDS / 512 + 1, "steps that follow nothing");
    }
    worker.follower.sync().unwrap();
    let watermark = worker.writer.watermark();
    assert_eq!(watermark.durable(), RECORDS + 1);
    assert!(
        worker
            .follower
            .sign_checkpoint(&key())
            .unwrap_err()
            .is_out_of_space()
    );
    // Space for a note, but not for the tree.
    disk.set_free(Some(1024));
    worker.follower.sign_checkpoint(&key()).unwrap();
    assert_eq!(watermark.checkpointed(), RECORDS + 1);

    let report = fsck(&disk, &worker.durability_model.dir, Some(&vkey()), &[]).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
    assert_eq!(report.incarnations[0].tree, TreeState::Short);
    let last = prove::record_proof(&disk, &worker.durability_model.dir, RECORDS, Some(&vkey()));
    assert_eq!(last.unwrap().index, RECORDS, "proved from the records");
}

/// Returns a worker whose segments are prepared in several pieces.
fn with_large_segments() -> (SimulatedDisk, Worker) {
    let disk = SimulatedDisk::new();
    let large = LogOptions {
        segment_bytes: 5 << 20,
        ..small_log_options()
    };
    let mut worker = start_with(&disk, &mut DurabilityModel::default(), large).unwrap();
    while worker.writer.watermark().segment() == 0 {
        worker.admit("one of many", 16_000).unwrap();
        worker.flush().unwrap();
    }
    (disk, worker)
}

#[test]
fn a_segment_is_prepared_in_pieces_and_handed_over_whole() {
    const PIECE: u64 = 256 << 10;
    let (_disk, mut worker) = with_large_segments();
    for piece in 1..20 {
        let preparation = worker.follower.prepare_bounded(PIECE);
        assert!(
            matches!(preparation, Preparation::InProgress),
            "piece {piece}: {preparation:?}"
        );
    }
    assert!(matches!(
        worker.follower.prepare_bounded(PIECE),
        Preparation::Prepared
    ));
    assert!(matches!(
        worker.follower.prepare_bounded(PIECE),
        Preparation::Sufficient
    ));
}

#[test]
fn a_disk_that_fills_up_while_a_segment_is_prepared_gets_back_what_was_taken() {
    let (disk, mut worker) = with_large_segments();
    let files = disk.files();
    assert!(matches!(
        worker.follower.prepare_bounded(1),
        Preparation::InProgress
    ));
    disk.inject_fault_now(InjectedFault::Error(io::ErrorKind::StorageFull));
    let starved = worker.follower.prepare_bounded(1);
    assert!(matches!(starved, Preparation::NoSpace(_)), "{starved:?}");
    assert_eq!(disk.files(), files);
    assert!(matches!(worker.follower.prepare(), Preparation::Prepared));
}

#[test]
fn a_log_that_ends_while_a_segment_is_prepared_leaves_nothing_of_it() {
    let (disk, mut worker) = with_large_segments();
    assert!(matches!(
        worker.follower.prepare_bounded(1),
        Preparation::InProgress
    ));
    let prepared = |disk: &SimulatedDisk| {
        let files = disk.files();
        files
            .into_iter()
            .filter(|file| file.extension().is_some_and(|end| end == "next"))
            .count()
    };
    assert_eq!(prepared(&disk), 2);
    worker.seal().unwrap();
    assert_eq!(prepared(&disk), 0);
}

/// Returns the newest segment that holds records.
fn newest(disk: &SimulatedDisk) -> PathBuf {
    let files = disk.files();
    let segments = files
        .into_iter()
        .filter(|file| file.extension().is_some_and(|end| end == "seg"));
    segments.max().unwrap()
}

#[test]
fn a_batch_is_written_in_whole_blocks_so_that_no_write_waits_for_a_read() {
    let (disk, mut worker) = new_worker();
    let mut blocks = 0;
    for records in [1, 3, 8, 1] {
        worker.follower.sync().unwrap();
        for _ in 0..records {
            worker.writer.append(raw_record(700)).unwrap();
        }
        worker.writer.flush().unwrap();
        for write in disk.unsynced_ranges(&newest(&disk)).unwrap() {
            assert_eq!((write.start % 4096, write.end % 4096), (0, 0), "{write:?}");
            blocks += write.len() / 4096;
        }
        while worker.follower.step().unwrap().has_more {}
    }
    assert!(blocks > 4, "{blocks}");
}

#[test]
fn what_is_synced_and_will_not_be_read_again_leaves_the_page_cache() {
    let (disk, mut worker) = with_large_segments();
    worker.step().unwrap();
    let first = worker.writer.watermark().segment();
    while worker.writer.watermark().segment() == first {
        worker.follower.prepare();
        worker.admit("one of many", 16_000).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    worker.follower.sync().unwrap();
    let mut segments: Vec<PathBuf> = disk
        .files()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|end| end == "seg"))
        .collect();
    segments.sort();
    assert!(segments.len() > 2, "{segments:?}");
    let current = segments.pop().unwrap();
    for ended in segments {
        assert!(disk.evicted_bytes(&ended).unwrap() >= 5 << 20, "{ended:?}");
    }
    assert_eq!(
        disk.evicted_bytes(&current),
        Some(0),
        "the part that is being written stays"
    );
}
