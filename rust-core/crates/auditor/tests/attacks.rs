//! Tests of an auditor's findings about logs that were tampered with.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod audit;
mod planted;

use audit::{Audit, SECOND, auditor_key, copy, newest_segment, remove, settings, two_lives};
use base64::{Engine, engine::general_purpose::STANDARD};
use planted::{Counts, Planted};
use proofgate_auditor::{Auditor, FindingCode};
use proofgate_evidence::frame::SegmentHeader;
use proofgate_evidence::segment::{MAX_SEGMENT_BYTES, prepared_name, segment_name};
use proofgate_evidence::{ReadStorage, Ulid};
use proofgate_ledger::Checkpoint;
use proofgate_ledger_testkit::{
    DurabilityModel, SHARD, Worker, edit_last_record, key, log_dir, new_worker, start, ulid, vkey,
    worker_with_records,
};
use proofgate_state::memory::MemoryStorage;
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[test]
fn any_flipped_byte_of_a_new_record_is_found() {
    let (disk, mut worker) = worker_with_records();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    worker.run_exchange("more");
    let path = newest_segment(&disk, &worker);
    let text = |bytes: &[u8]| bytes.windows(4).rposition(|word| word == b"more").unwrap();
    disk.corrupt(&path, |bytes| {
        let at = text(bytes);
        bytes[at] ^= 1;
    });
    audit.expect(FindingCode::RecordsDamaged);
}

#[test]
fn a_record_that_is_rewritten_with_right_checksums_is_found() {
    let (disk, mut worker) = new_worker();
    worker.run_exchange("one");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    worker.run_exchange("more");
    let path = newest_segment(&disk, &worker);
    disk.corrupt(&path, |bytes| {
        edit_last_record(bytes, ulid(&worker), b"\"status\":200", b"\"status\":500")
    });
    audit.expect(FindingCode::RecordsChanged);
}

#[test]
fn an_old_record_that_changes_is_found_by_the_scrub_and_only_then() {
    let (disk, worker) = worker_with_records();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let path = log_dir(&worker).join("00000000000000000000.seg");
    disk.corrupt(&path, |bytes| bytes[600] ^= 1);
    audit.is_quiet();
    for _ in 0..12 {
        audit.now += SECOND;
        audit.auditor.poll(audit.now, 0, 4_000).unwrap();
    }
    assert_eq!(audit.codes(), [FindingCode::RecordsDamaged]);
}

#[test]
fn an_older_state_of_the_volume_is_a_rollback_also_after_a_restart() {
    let (disk, mut worker) = worker_with_records();
    let mut audit = Audit::of(&disk);
    let older = disk.snapshot();
    worker.run_exchange("more");
    audit.is_quiet();
    audit.restart();
    audit.volume.swap(&older);
    audit.expect(FindingCode::Rollback);
    // Restoring the newer volume does not resolve the finding.
    audit.volume.swap(&disk);
    audit.expect(FindingCode::Rollback);
}

#[test]
fn an_older_checkpoint_that_is_put_back_is_a_rollback_and_none_is_told() {
    let (disk, mut worker) = worker_with_records();
    let path = log_dir(&worker).join("checkpoint");
    let old = disk.read(&path).unwrap();
    worker.run_exchange("more");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let new = disk.read(&path).unwrap();
    disk.corrupt(&path, |bytes| *bytes = old);
    audit.expect(FindingCode::Rollback);
    disk.corrupt(&path, |bytes| *bytes = new.clone());
    disk.corrupt(&path, |bytes| {
        let end = bytes.len() - 5;
        bytes[end] ^= 1;
    });
    audit.expect(FindingCode::CheckpointRefused);
    disk.remove(&path).unwrap();
    audit.expect(FindingCode::CheckpointMissing);
}

#[test]
fn two_roots_of_one_size_are_an_equivocation() {
    let (disk, worker) = worker_with_records();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let path = log_dir(&worker).join("checkpoint");
    let note = String::from_utf8(disk.read(&path).unwrap()).unwrap();
    let other = Checkpoint {
        root: [7; 32],
        ..Checkpoint::verify(&note, &vkey()).unwrap()
    };
    disk.corrupt(&path, |bytes| *bytes = other.sign(&key()).unwrap().into_bytes());
    audit.expect(FindingCode::Equivocation);
}

#[test]
fn records_that_are_cut_off_are_told_before_and_after_they_were_read() {
    let (disk, worker) = worker_with_records();
    let path = newest_segment(&disk, &worker);
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(300);
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    disk.corrupt(&path, cut);
    audit.expect(FindingCode::Truncated);
    let mut late = Audit::of(&disk);
    late.watch();
    assert!(
        late.codes()
            .iter()
            .any(|code| [FindingCode::Truncated, FindingCode::RecordsDamaged].contains(code)),
        "{:?}",
        late.codes()
    );
}

#[test]
fn a_log_or_a_shard_that_is_removed_is_told() {
    let (disk, first, second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    remove(&disk, &log_dir(&first));
    audit.expect(FindingCode::LogMissing);
    remove(&disk, &log_dir(&second));
    disk.remove_dir(Path::new(SHARD));
    audit.expect(FindingCode::ShardMissing);
}

#[test]
fn a_predecessor_that_was_gone_before_the_first_look_is_told() {
    let (disk, first, _second) = two_lives();
    remove(&disk, &log_dir(&first));
    Audit::of(&disk).expect(FindingCode::PredecessorMissing);
}

#[test]
fn a_log_that_is_planted_is_told() {
    let (disk, worker) = worker_with_records();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let later = Ulid::from_parts(u64::MAX >> 20, 1);
    let planted = Path::new(SHARD).join(later.to_string());
    copy(&disk, &log_dir(&worker), &planted);
    audit.expect(FindingCode::CheckpointForeign);
    disk.remove(&planted.join("checkpoint")).unwrap();
    audit.expect(FindingCode::PlantedLog);
    // In another shard's directory, under its own name.
    let mut swapped = Audit::of(&disk);
    disk.create_dir(Path::new("/4")).unwrap();
    copy(
        &disk,
        &log_dir(&worker),
        &Path::new("/4").join(ulid(&worker).to_string()),
    );
    swapped.expect(FindingCode::CheckpointForeign);
}

/// Creates a log with two successors, and an auditor that has seen one of them.
fn forked() -> (SimulatedDisk, Worker, Audit) {
    let (disk, first) = worker_with_records();
    let other = disk.snapshot();
    let mut second = start(&disk, &mut DurabilityModel::default()).unwrap();
    second.run_exchange("here");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let mut fork = start(&other, &mut DurabilityModel::default()).unwrap();
    fork.run_exchange("there");
    let to = log_dir(&fork);
    disk.create_dir(&to).unwrap();
    for name in other.list(&to).unwrap() {
        let bytes = other.read(&to.join(&name)).unwrap();
        disk.create(&to.join(&name)).unwrap();
        disk.corrupt(&to.join(&name), |file| *file = bytes);
    }
    (disk, first, audit)
}

#[test]
fn two_successors_of_one_log_are_a_fork() {
    let (_disk, first, mut audit) = forked();
    audit.expect(FindingCode::Fork);
    let found = audit
        .auditor
        .findings()
        .iter()
        .find(|found| found.code == FindingCode::Fork)
        .unwrap();
    assert!(found.origin.ends_with(&ulid(&first).to_string()), "{found:?}");
}

#[test]
fn an_empty_directory_does_not_hide_that_a_log_has_no_successor() {
    let (disk, _first, mut audit) = forked();
    for number in 0..3 {
        let empty = Ulid::from_parts(u64::MAX >> 20, number);
        disk.create_dir(&Path::new(SHARD).join(empty.to_string()))
            .unwrap();
    }
    audit.expect(FindingCode::NoSuccessor);
}

#[test]
fn what_others_add_to_a_checkpoint_is_not_told() {
    let (disk, worker) = worker_with_records();
    let path = log_dir(&worker).join("checkpoint");
    let note = disk.read(&path).unwrap();
    let stranger = format!("\u{2014} stranger {}\n", STANDARD.encode([7; 9_000]));
    disk.corrupt(&path, |bytes| bytes.extend_from_slice(stranger.as_bytes()));
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let told: Vec<Vec<u8>> = audit
        .entries()
        .into_iter()
        .map(|entry| entry.checkpoint.into_bytes())
        .collect();
    assert_eq!(told, std::slice::from_ref(&note));
    assert_eq!(
        audit.auditor.shard_statuses(audit.now)[0].checkpoint.as_bytes(),
        note
    );
}

/// Creates an auditor of a disk with planted files that cost an attacker nothing.
fn flooded(planted: Planted) -> (Auditor, Counts) {
    let counts = planted.counts();
    let state = Arc::new(MemoryStorage::default());
    let auditor = Auditor::create(Arc::new(planted), state, auditor_key(), settings()).unwrap();
    (auditor, counts)
}

/// Runs this many polls. Returns the largest number of bytes read in one poll, and the findings.
fn most_read(auditor: &mut Auditor, counts: &Counts, polls: u64) -> (u64, Vec<FindingCode>) {
    let mut most = 0;
    for second in 0..polls {
        counts.reset();
        auditor
            .poll((1_000 + second) * SECOND, 64 << 20, 1 << 20)
            .unwrap();
        most = most.max(counts.bytes());
    }
    (most, auditor.findings().iter().map(|found| found.code).collect())
}

#[test]
fn a_segment_that_never_ends_costs_a_poll_little_and_is_found() {
    const ENDLESS: u64 = 1 << 50;
    let later = Ulid::from_parts(u64::MAX >> 20, 1);
    let header = SegmentHeader {
        incarnation: later,
        ordinal: 0,
        first_seq: 0,
        origin_digest: [0; 32],
    };
    let mut garbage = header.encode().to_vec();
    garbage.push(1);
    for (len, bytes, found) in [
        (ENDLESS, Vec::new(), vec![FindingCode::PlantedLog]),
        (ENDLESS, garbage.clone(), vec![FindingCode::PlantedLog]),
        // The longest allowed length. An interrupted start leaves a file of zeros only.
        (MAX_SEGMENT_BYTES, garbage, vec![FindingCode::PlantedLog]),
        (MAX_SEGMENT_BYTES, Vec::new(), vec![]),
    ] {
        let (disk, _worker) = worker_with_records();
        let mut planted = Planted::on(&disk);
        let log = Path::new(SHARD).join(later.to_string());
        planted.directory(&log);
        planted.file(&log.join(segment_name(0)), len, bytes);
        for number in 1..50 {
            planted.file(&log.join(prepared_name(number)), len, Vec::new());
            planted.file(&log.join(segment_name(1000 * number)), len, Vec::new());
        }
        let (mut auditor, counts) = flooded(planted);
        let (read, codes) = most_read(&mut auditor, &counts, 8);
        assert_eq!(codes, found, "{len}");
        assert!(read < 4 << 20, "{read} bytes were read in a poll");
    }
}

#[test]
fn an_old_segment_that_somebody_lengthened_costs_a_poll_little_and_is_found_if_it_is_too_long() {
    for (len, found) in [
        (1 << 50, vec![FindingCode::RecordsDamaged]),
        (MAX_SEGMENT_BYTES, vec![]),
    ] {
        let (disk, worker) = worker_with_records();
        let mut planted = Planted::on(&disk);
        let old = log_dir(&worker).join(segment_name(0));
        planted.file(&old, len, disk.read(&old).unwrap());
        let (mut auditor, counts) = flooded(planted);
        let (read, codes) = most_read(&mut auditor, &counts, if found.is_empty() { 2 } else { 8 });
        assert_eq!(codes, found, "{len}");
        assert!(read < 160 << 20, "{read} bytes were read in a poll");
        let reached = auditor
            .shard_statuses(2_000 * SECOND)
            .first()
            .map(|head| head.size);
        assert_eq!(
            reached.is_some(),
            found.is_empty(),
            "what is not too long is read as before"
        );
    }
}

#[test]
fn directories_without_number_are_found_and_keep_no_log_from_being_followed() {
    let (disk, mut worker) = worker_with_records();
    let mut planted = Planted::on(&disk);
    for number in 0..50_000 {
        // Logs that are older and newer than the worker's log.
        let ms = [1, u64::MAX >> 20][number % 2];
        let empty = Ulid::from_parts(ms, number as u128);
        planted.directory(&Path::new(SHARD).join(empty.to_string()));
    }
    let (counts, state) = (planted.counts(), Arc::new(MemoryStorage::default()));
    let before = Auditor::create(Arc::new(disk), state.clone(), auditor_key(), settings());
    before.unwrap().poll(900 * SECOND, u64::MAX, 0).unwrap();
    let mut auditor = Auditor::open(Arc::new(planted), state, auditor_key(), settings()).unwrap();
    let mut calls = 0;
    for second in [0, 6, 12] {
        worker.run_exchange("more");
        counts.reset();
        let now = (1_000 + second) * SECOND;
        auditor.poll(now, 64 << 20, 1 << 20).unwrap();
        calls = calls.max(counts.calls());
        let size = worker.durability_model.appended.len() as u64;
        assert_eq!(auditor.shard_statuses(now)[0].size, size);
    }
    let codes: Vec<FindingCode> = auditor.findings().iter().map(|found| found.code).collect();
    assert_eq!(codes, [FindingCode::TooManyLogs]);
    assert!(calls < 20_000, "{calls} calls in a poll");
}

#[test]
fn shards_that_somebody_planted_cost_a_poll_its_budget_and_are_found_by_turns_while_a_ledger_is_followed() {
    const BUDGET: u64 = 4 << 20;
    let (disk, worker) = worker_with_records();
    let mut planted = Planted::on(&disk);
    for shard in 100..116 {
        let dir = PathBuf::from(format!("/{shard}"));
        planted.directory(&dir);
        for number in 0..2 {
            // Logs that are older than the worker's log, and as long as the part of an unsigned log
            // that is read.
            let incarnation = Ulid::from_parts(0, 2 * shard + number);
            let header = SegmentHeader {
                incarnation,
                ordinal: 0,
                first_seq: 0,
                origin_digest: [0; 32],
            };
            let mut garbage = header.encode().to_vec();
            garbage.resize(1 << 20, 1);
            let log = dir.join(incarnation.to_string());
            planted.directory(&log);
            planted.file(&log.join(segment_name(0)), 1 << 20, garbage);
        }
    }
    let (mut auditor, counts) = flooded(planted);
    for poll in 0..20 {
        counts.reset();
        let now = (1_000 + 6 * poll) * SECOND;
        auditor.poll(now, BUDGET, 0).unwrap();
        let read = counts.bytes();
        assert!(read < BUDGET + (2 << 20), "{read} bytes were read in a poll");
        if poll > 0 {
            let size = worker.durability_model.appended.len() as u64;
            assert_eq!(auditor.shard_statuses(now)[0].size, size);
        }
    }
    let found = auditor.findings().iter();
    let planted = found.filter(|found| found.code == FindingCode::PlantedLog);
    assert_eq!(planted.count(), 32);
}

#[test]
fn a_log_that_goes_on_behind_the_end_that_its_successor_recorded_has_two_writers() {
    let (disk, mut first) = worker_with_records();
    let mut second = start(&disk, &mut DurabilityModel::default()).unwrap();
    second.run_exchange("of the second");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    first.run_exchange("of one that was taken for dead");
    audit.expect(FindingCode::TwoWriters);
}
