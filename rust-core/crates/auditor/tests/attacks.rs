//! What an auditor says of logs that somebody tampered with.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod audit;
#[path = "../../wal/tests/support/mod.rs"]
mod support;

use audit::{Audit, SECOND, copy, dir, newest_segment, remove, two_lives, ulid};
use proofgate_auditor::Code;
use proofgate_evidence::{ReadStorage, Ulid};
use proofgate_ledger::Checkpoint;
use proofgate_wal::Storage;
use std::path::Path;
use support::{Promised, SHARD, filled, fresh, key, reframe, start, vkey};

#[test]
fn any_flipped_byte_of_a_new_record_is_found() {
    let (disk, mut worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    worker.complete_one("more");
    let path = newest_segment(&disk, &worker);
    let text = |bytes: &[u8]| bytes.windows(4).rposition(|word| word == b"more").unwrap();
    disk.rot(&path, |bytes| {
        let at = text(bytes);
        bytes[at] ^= 1;
    });
    audit.expect(Code::RecordsDamaged);
}

#[test]
fn a_record_that_is_rewritten_with_right_checksums_is_found() {
    let (disk, mut worker) = fresh();
    worker.complete_one("one");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    worker.complete_one("more");
    let path = newest_segment(&disk, &worker);
    disk.rot(&path, |bytes| {
        reframe(bytes, ulid(&worker), b"\"status\":200", b"\"status\":500")
    });
    audit.expect(Code::RecordsChanged);
}

#[test]
fn an_old_record_that_changes_is_found_by_the_scrub_and_only_then() {
    let (disk, worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let path = dir(&worker).join("00000000000000000000.seg");
    disk.rot(&path, |bytes| bytes[600] ^= 1);
    audit.is_quiet();
    for _ in 0..12 {
        audit.now += SECOND;
        audit.auditor.poll(audit.now, 0, 4_000).unwrap();
    }
    assert_eq!(audit.codes(), [Code::RecordsDamaged]);
}

#[test]
fn an_older_state_of_the_volume_is_a_rollback_also_after_a_restart() {
    let (disk, mut worker) = filled();
    let mut audit = Audit::of(&disk);
    let older = disk.snapshot();
    worker.complete_one("more");
    audit.is_quiet();
    audit.restart();
    audit.volume.swap(&older);
    audit.expect(Code::Rollback);
    // Putting the newer one back does not make it undone.
    audit.volume.swap(&disk);
    audit.expect(Code::Rollback);
}

#[test]
fn an_older_checkpoint_that_is_put_back_is_a_rollback_and_none_is_told() {
    let (disk, mut worker) = filled();
    let path = dir(&worker).join("checkpoint");
    let old = disk.read(&path).unwrap();
    worker.complete_one("more");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let new = disk.read(&path).unwrap();
    disk.rot(&path, |bytes| *bytes = old);
    audit.expect(Code::Rollback);
    disk.rot(&path, |bytes| *bytes = new.clone());
    disk.rot(&path, |bytes| {
        let end = bytes.len() - 5;
        bytes[end] ^= 1;
    });
    audit.expect(Code::CheckpointRefused);
    disk.remove(&path).unwrap();
    audit.expect(Code::CheckpointMissing);
}

#[test]
fn two_roots_of_one_size_are_an_equivocation() {
    let (disk, worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let path = dir(&worker).join("checkpoint");
    let note = String::from_utf8(disk.read(&path).unwrap()).unwrap();
    let other = Checkpoint {
        root: [7; 32],
        ..Checkpoint::verify(&note, &vkey()).unwrap()
    };
    disk.rot(&path, |bytes| *bytes = other.sign(&key()).unwrap().into_bytes());
    audit.expect(Code::Equivocation);
}

#[test]
fn records_that_are_cut_off_are_told_before_and_after_they_were_read() {
    let (disk, worker) = filled();
    let path = newest_segment(&disk, &worker);
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(300);
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    disk.rot(&path, cut);
    audit.expect(Code::Truncated);
    let mut late = Audit::of(&disk);
    late.watch();
    assert!(
        late.codes()
            .iter()
            .any(|code| [Code::Truncated, Code::RecordsDamaged].contains(code)),
        "{:?}",
        late.codes()
    );
}

#[test]
fn a_log_or_a_shard_that_is_removed_is_told() {
    let (disk, first, second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    remove(&disk, &dir(&first));
    audit.expect(Code::LogMissing);
    remove(&disk, &dir(&second));
    disk.remove_dir(Path::new(SHARD));
    audit.expect(Code::ShardMissing);
}

#[test]
fn a_predecessor_that_was_gone_before_the_first_look_is_told() {
    let (disk, first, _second) = two_lives();
    remove(&disk, &dir(&first));
    Audit::of(&disk).expect(Code::PredecessorMissing);
}

#[test]
fn a_log_that_is_planted_is_told() {
    let (disk, worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let later = Ulid::from_parts(u64::MAX >> 20, 1);
    let planted = Path::new(SHARD).join(later.to_string());
    copy(&disk, &dir(&worker), &planted);
    audit.expect(Code::CheckpointForeign);
    disk.remove(&planted.join("checkpoint")).unwrap();
    audit.expect(Code::PlantedLog);
    // In another shard's directory, under its own name.
    let mut swapped = Audit::of(&disk);
    disk.create_dir(Path::new("/4")).unwrap();
    copy(
        &disk,
        &dir(&worker),
        &Path::new("/4").join(ulid(&worker).to_string()),
    );
    swapped.expect(Code::CheckpointForeign);
}

#[test]
fn two_successors_of_one_log_are_a_fork() {
    let (disk, first) = filled();
    let other = disk.snapshot();
    let mut second = start(&disk, &mut Promised::default()).unwrap();
    second.complete_one("here");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let mut fork = start(&other, &mut Promised::default()).unwrap();
    fork.complete_one("there");
    let to = dir(&fork);
    disk.create_dir(&to).unwrap();
    for name in other.list(&to).unwrap() {
        let bytes = other.read(&to.join(&name)).unwrap();
        disk.create(&to.join(&name)).unwrap();
        disk.rot(&to.join(&name), |file| *file = bytes);
    }
    audit.expect(Code::Fork);
    let found = audit
        .auditor
        .findings()
        .iter()
        .find(|found| found.code == Code::Fork)
        .unwrap();
    assert!(found.origin.ends_with(&ulid(&first).to_string()), "{found:?}");
}

#[test]
fn a_log_that_goes_on_behind_the_end_that_its_successor_recorded_has_two_writers() {
    let (disk, mut first) = filled();
    let mut second = start(&disk, &mut Promised::default()).unwrap();
    second.complete_one("of the second");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    first.complete_one("of one that was taken for dead");
    audit.expect(Code::TwoWriters);
}
