//! Tests of the findings of `fsck` for a log that was changed by someone who can write to the
//! volume but does not hold the key.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::checkpoint_file::successor_note_name;
use proofgate_evidence::{HeldCheckpoint, ReadStorage, Report, Verdict, fsck};
use proofgate_ledger::Checkpoint;
use proofgate_ledger::record::{Abort, Attempt, ConfigId, Seal, SendOutcome};
use proofgate_ledger_testkit::{
    self as testkit, DurabilityModel, SHARD, Worker, raw_record, start, vkey, worker_with_records,
};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Storage, succession};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn check(disk: &SimulatedDisk) -> Report {
    fsck(disk, Path::new("/"), Some(&vkey()), &[]).unwrap()
}

fn expect(report: &Report, verdict: Verdict, message: &str) {
    let findings = report.incarnations.iter().flat_map(|log| &log.findings);
    let told = findings
        .chain(&report.findings)
        .any(|found| found.verdict == verdict && found.message.contains(message));
    assert!(told, "{message}: {report:#?}");
    assert_eq!(report.verdict, verdict, "{report:#?}");
}

fn remove_incarnation(disk: &SimulatedDisk, dir: &Path) {
    for name in disk.list(dir).unwrap() {
        disk.remove(&dir.join(name)).unwrap();
    }
}

/// Creates two incarnations. The first was killed with an exchange open, and its own checkpoint
/// does not cover its last records.
fn two_lives() -> (SimulatedDisk, Worker, Worker) {
    let (disk, mut first) = worker_with_records();
    first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut second = start(&disk, &mut DurabilityModel::default()).unwrap();
    let admission = second.admit("after", 1).unwrap();
    second.complete("after", admission).unwrap();
    second.flush().unwrap();
    second.step().unwrap();
    second.sync().unwrap();
    second.checkpoint().unwrap();
    (disk, first, second)
}

#[test]
fn two_lives_as_they_are_verify() {
    let (disk, _first, mut second) = two_lives();
    assert_eq!(check(&disk).verdict, Verdict::Ok, "{:#?}", check(&disk));
    second.seal().unwrap();
    assert_eq!(check(&disk).verdict, Verdict::Ok);
}

#[test]
fn a_predecessor_that_is_gone_is_told_also_when_one_incarnation_is_left() {
    let (disk, first, _second) = two_lives();
    remove_incarnation(&disk, &first.durability_model.dir);
    disk.remove_dir(&first.durability_model.dir);
    let report = check(&disk);
    assert_eq!(report.incarnations.len(), 1);
    expect(&report, Verdict::Incomplete, "is missing");
}

#[test]
fn salts_that_are_gone_or_short_are_told_and_zeroed_ones_are_counted() {
    let (disk, worker) = worker_with_records();
    let salts = worker.durability_model.dir.join("salts");
    disk.corrupt(&salts, |bytes| bytes[32..64].fill(0));
    let report = check(&disk);
    assert_eq!(
        (report.verdict, report.incarnations[0].erased_salts),
        (Verdict::Ok, 1)
    );
    disk.corrupt(&salts, |bytes| bytes.truncate(320));
    expect(&check(&disk), Verdict::Invalid, "are missing");
    disk.corrupt(&salts, Vec::clear);
    expect(&check(&disk), Verdict::Invalid, "the salts of 40 requests");
    disk.remove(&salts).unwrap();
    expect(&check(&disk), Verdict::Invalid, "the salts of 40 requests");
}

#[test]
fn a_salt_that_was_changed_is_told_with_its_record_and_one_put_elsewhere_too() {
    let (disk, worker) = worker_with_records();
    let salts = worker.durability_model.dir.join("salts");
    let stored = disk.read(&salts).unwrap();
    for at in 32..64 {
        disk.corrupt(&salts, |bytes| bytes[at] ^= 1);
        expect(
            &check(&disk),
            Verdict::Invalid,
            "the salts of 1 requests (first: record 1) do not match their records",
        );
        disk.corrupt(&salts, |bytes| bytes.clone_from(&stored));
    }
    // Every second record is an admission: swap the salts of two of them.
    disk.corrupt(&salts, |bytes| {
        let (first, second) = (bytes[32..64].to_vec(), bytes[96..128].to_vec());
        bytes[32..64].clone_from_slice(&second);
        bytes[96..128].clone_from_slice(&first);
    });
    expect(
        &check(&disk),
        Verdict::Invalid,
        "the salts of 2 requests (first: record 1) do not match",
    );
    disk.corrupt(&salts, |bytes| bytes[32..128].fill(0));
    assert_eq!(
        check(&disk).verdict,
        Verdict::Ok,
        "what is erased was not changed"
    );
}

#[test]
fn every_flipped_byte_of_the_note_over_the_predecessor_is_reported() {
    let (disk, first, second) = two_lives();
    let path = second
        .durability_model
        .dir
        .join(successor_note_name(first.durability_model.incarnation.unwrap()));
    let note = disk.read(&path).unwrap();
    for at in 0..note.len() {
        disk.corrupt(&path, |bytes| bytes[at] ^= 1);
        assert!(check(&disk).verdict >= Verdict::Diverged, "byte {at}");
        disk.corrupt(&path, |bytes| bytes.clone_from(&note));
    }
    disk.remove(&path).unwrap();
    expect(&check(&disk), Verdict::Incomplete, "cannot be proved");
}

#[test]
fn a_checkpoint_that_is_gone_is_told() {
    let (disk, worker) = worker_with_records();
    disk.remove(&worker.durability_model.dir.join("checkpoint"))
        .unwrap();
    expect(
        &check(&disk),
        Verdict::Invalid,
        "served requests without a checkpoint",
    );
}

#[test]
fn a_start_that_was_cut_short_needs_no_checkpoint() {
    let (disk, worker) = testkit::new_worker();
    disk.remove(&worker.durability_model.dir.join("checkpoint"))
        .unwrap();
    assert_eq!(check(&disk).verdict, Verdict::Ok);
}

#[test]
fn a_tail_that_was_cut_off_is_told_by_the_longer_tree() {
    let (disk, mut worker) = testkit::new_worker();
    worker.run_exchange("early");
    let admission = worker.admit("late", 1).unwrap();
    worker.complete("late", admission).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    let covered = testkit::end_offset(&worker.durability_model.appended[..3]);
    let segment = worker.durability_model.dir.join("00000000000000000000.seg");
    disk.corrupt(&segment, |bytes| bytes[covered..].fill(0));
    let report = check(&disk);
    assert_eq!(report.records, 3);
    expect(&report, Verdict::Incomplete, "the log was longer");
}

fn append_aborted(worker: &mut Worker, of: &Worker, admission: u64) {
    let incarnation = of.durability_model.incarnation.unwrap().to_string();
    worker
        .append(|seq, out| {
            Abort {
                seq,
                ts: 1,
                id: "twice".into(),
                incarnation: incarnation.into(),
                admission,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        })
        .unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
}

#[test]
fn an_exchange_with_two_ends_is_told() {
    for admission in [81, 1] {
        // The orphan was aborted when the second incarnation began; record 1 was completed in the first.
        let (disk, first, mut second) = two_lives();
        append_aborted(&mut second, &first, admission);
        expect(&check(&disk), Verdict::Invalid, "that exchange has already ended");
    }
    let (disk, mut worker) = worker_with_records();
    worker.complete("req-0", 1).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    expect(&check(&disk), Verdict::Invalid, "which is not an open admission");
}

#[test]
fn a_tenants_admission_that_is_missing_or_counted_twice_is_told() {
    for (newest, next) in [(41, 42), (39, 40), (0, 1), (u64::MAX - 1, u64::MAX)] {
        let (disk, mut worker) = worker_with_records();
        assert_eq!(worker.admission_count, 40);
        worker.admission_count = newest;
        worker.run_exchange("next");
        let said = format!("is request {next} of acme, but this log has 40 earlier requests");
        expect(&check(&disk), Verdict::Invalid, &said);
    }
}

#[test]
fn the_admissions_of_a_tenant_are_counted_from_one_in_each_log() {
    let (disk, mut worker) = testkit::new_worker();
    worker.admission_count = 1;
    worker.run_exchange("first");
    expect(
        &check(&disk),
        Verdict::Invalid,
        "is request 2 of acme, but this log has 0",
    );
    let (disk, _, mut second) = two_lives();
    second.run_exchange("first of the second");
    assert_eq!(check(&disk).verdict, Verdict::Ok);
}

#[test]
fn an_attempt_of_what_was_not_admitted_or_has_ended_is_told() {
    let attempt = |worker: &mut Worker, id: &'static str, admission| {
        let appended = worker.append(|seq, out| {
            Attempt {
                seq,
                ts: 1,
                id: id.into(),
                admission,
                incarnation: None,
                attempt: 2,
                provider: "other".into(),
                upstream_model: "m".into(),
                failure: "upstream_declined".into(),
                failed_status: Some(429),
                failed_sent: SendOutcome::Answered,
                dropped: Vec::new(),
                dropped_unnamed: 0,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        });
        appended.unwrap();
    };
    let (disk, mut worker) = worker_with_records();
    let open = worker.admit("open", 1).unwrap();
    attempt(&mut worker, "open", open);
    worker.complete("open", open).unwrap();
    worker.run_exchange("next");
    assert_eq!(check(&disk).verdict, Verdict::Ok);
    attempt(&mut worker, "open", open);
    worker.run_exchange("last");
    expect(&check(&disk), Verdict::Invalid, "which is not an open admission");
}

#[test]
fn an_admission_without_an_end_in_a_log_that_has_ended_is_told() {
    let (disk, mut worker) = worker_with_records();
    worker.admit("open", 1).unwrap();
    worker.seal().unwrap();
    expect(&check(&disk), Verdict::Incomplete, "have not ended");
    let mut next = start(&disk, &mut DurabilityModel::default()).unwrap();
    let admission = next.admit("after", 1).unwrap();
    next.complete("after", admission).unwrap();
    next.seal().unwrap();
    assert_eq!(check(&disk).verdict, Verdict::Ok, "the successor closed it");
}

#[test]
fn a_seal_that_states_another_number_of_records_is_told() {
    let (disk, mut worker) = worker_with_records();
    worker
        .append(|seq, out| {
            Seal {
                seq,
                ts: 1,
                reason: "drained".into(),
                records: seq - 1,
                successor: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        })
        .unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    expect(
        &check(&disk),
        Verdict::Invalid,
        "is a seal of 80 records, not of 81",
    );
}

#[test]
fn two_successors_of_one_log_are_a_fork() {
    let (disk, _first, second) = two_lives();
    let there = disk.snapshot();
    let aside = PathBuf::from("/aside");
    disk.create_dir(&aside).unwrap();
    move_incarnation(&disk, &second.durability_model.dir, &aside);
    let mut rival = start(&disk, &mut DurabilityModel::default()).unwrap();
    let admission = rival.admit("rival", 1).unwrap();
    rival.complete("rival", admission).unwrap();
    rival.flush().unwrap();
    rival.step().unwrap();
    rival.sync().unwrap();
    rival.checkpoint().unwrap();
    for path in there.files() {
        if path.starts_with(&second.durability_model.dir) {
            copy(&there, &disk, &path);
        }
    }
    expect(&check(&disk), Verdict::Diverged, "the chain forks");
}

fn move_incarnation(disk: &SimulatedDisk, dir: &Path, to: &Path) {
    for name in disk.list(dir).unwrap() {
        disk.rename(&dir.join(&name), &to.join(&name)).unwrap();
    }
}

fn copy(from: &SimulatedDisk, to: &SimulatedDisk, path: &Path) {
    to.create(path).unwrap();
    let bytes = from.read(path).unwrap();
    to.corrupt(path, |there| there.clone_from(&bytes));
}

#[test]
fn a_record_of_a_later_kind_is_a_leaf_like_any_other() {
    let (disk, mut worker) = worker_with_records();
    worker
        .append(|seq, out| {
            out.extend_from_slice(
                format!(r#"{{"v":1,"kind":"hold","seq":{seq},"ts":1,"until":7}}"#).as_bytes(),
            );
            Ok(())
        })
        .unwrap();
    worker.seal().unwrap();
    let report = check(&disk);
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
    assert_eq!(report.incarnations[0].unknown_kinds, 1);
    // An older worker starts on the shard.
    start(&disk, &mut DurabilityModel::default()).unwrap();
    assert_eq!(check(&disk).verdict, Verdict::Ok);
}

fn held(worker: &Worker, note: usize) -> HeldCheckpoint {
    HeldCheckpoint {
        file: PathBuf::from("kept"),
        checkpoint: Checkpoint::verify(&worker.durability_model.notes[note], &vkey()).unwrap(),
    }
}

#[test]
fn a_checkpoint_held_outside_tells_a_rollback() {
    let (disk, mut worker) = worker_with_records();
    let before = disk.snapshot();
    worker.run_exchange("late");
    let kept = [
        held(&worker, 0),
        held(&worker, worker.durability_model.notes.len() - 1),
    ];
    let against = |disk: &SimulatedDisk| fsck(disk, Path::new("/"), Some(&vkey()), &kept).unwrap();
    let report = against(&disk);
    assert_eq!((report.verdict, report.against), (Verdict::Ok, 2), "{report:#?}");
    // An earlier copy of the whole volume, checkpoint included, is consistent in itself.
    assert_eq!(check(&before).verdict, Verdict::Ok);
    expect(
        &against(&before),
        Verdict::Diverged,
        "states 83 records, but only 81 are present",
    );
}

#[test]
fn a_checkpoint_held_outside_tells_that_a_log_was_removed() {
    let (disk, _first, second) = two_lives();
    let kept = [held(&second, 0)];
    remove_incarnation(&disk, &second.durability_model.dir);
    disk.remove_dir(&second.durability_model.dir);
    assert!(check(&disk).verdict < Verdict::Diverged);
    let report = fsck(&disk, Path::new(SHARD), Some(&vkey()), &kept).unwrap();
    expect(&report, Verdict::Diverged, "but that log is not in the directory");
}

/// Creates shards 3 and 4 of one gateway, each with a log that served and was sealed. Returns the
/// last notes of both logs.
fn two_shards() -> (SimulatedDisk, [PathBuf; 2], [HeldCheckpoint; 2]) {
    let (disk, mut worker) = worker_with_records();
    worker.seal().unwrap();
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), testkit::key());
    let mut terms = testkit::start_options(&key, testkit::small_log_options());
    terms.shard.dir = Path::new("/4");
    terms.shard.number = 4;
    let begun = succession::start(&storage, &terms, None).unwrap();
    let mut other = Worker::from_log(&disk, begun.log);
    other.run_exchange("other");
    other.seal().unwrap();
    let dirs = [
        worker.durability_model.dir.clone(),
        other.durability_model.dir.clone(),
    ];
    let last = |worker: &Worker| held(worker, worker.durability_model.notes.len() - 1);
    let kept = [last(&worker), last(&other)];
    assert_eq!(check(&disk).verdict, Verdict::Ok);
    (disk, dirs, kept)
}

/// Moves the directory of a log into the directory of another shard, like `mv`. Returns the new
/// path.
fn move_to_shard(disk: &SimulatedDisk, dir: &Path, shard: &str) -> PathBuf {
    let to = Path::new(shard).join(dir.file_name().unwrap());
    disk.create_dir(&to).unwrap();
    move_incarnation(disk, dir, &to);
    disk.remove_dir(dir);
    to
}

#[test]
fn two_shards_that_changed_places_are_told_also_beside_checkpoints_held_outside() {
    let (disk, [third, fourth], kept) = two_shards();
    let (third, fourth) = (
        move_to_shard(&disk, &third, "/4"),
        move_to_shard(&disk, &fourth, "/3"),
    );
    let says = "this is a log of shard 3, but it is in the directory 4";
    expect(&check(&disk), Verdict::Diverged, says);
    let against = |path: &Path| fsck(&disk, path, Some(&vkey()), &kept).unwrap();
    expect(&against(Path::new("/")), Verdict::Diverged, says);
    for (path, says) in [
        (Path::new("/4"), says),
        (&third, says),
        (&fourth, "this is a log of shard 4, but it is in the directory 3"),
    ] {
        let report = fsck(&disk, path, Some(&vkey()), &[]).unwrap();
        expect(&report, Verdict::Diverged, says);
    }
}

#[test]
fn a_log_in_the_directory_of_another_shard_is_told() {
    let (disk, [third, _], _) = two_shards();
    move_to_shard(&disk, &third, "/4");
    expect(
        &check(&disk),
        Verdict::Diverged,
        "this is a log of shard 3, but it is in the directory 4",
    );
}

#[test]
fn a_shard_under_a_name_of_its_own_is_told_in_a_ledger_and_may_be_checked_alone() {
    let (disk, [third, _], _) = two_shards();
    disk.create_dir(Path::new("/copy-of-3")).unwrap();
    move_to_shard(&disk, &third, "/copy-of-3");
    expect(
        &check(&disk),
        Verdict::Diverged,
        "this is a log of shard 3, but it is in the directory copy-of-3",
    );
    let alone = fsck(&disk, Path::new("/copy-of-3"), Some(&vkey()), &[]).unwrap();
    assert_eq!(alone.verdict, Verdict::Ok, "{alone:#?}");
}

#[test]
fn a_checkpoint_held_outside_tells_another_history_of_the_same_length() {
    let (disk, worker) = worker_with_records();
    let mut kept = held(&worker, worker.durability_model.notes.len() - 1);
    kept.checkpoint.root = [7; 32];
    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[kept]).unwrap();
    expect(&report, Verdict::Diverged, "do not hash to the root");
}

#[test]
fn records_that_are_none_are_told() {
    let (disk, mut worker) = worker_with_records();
    worker.append(raw_record(20)).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    expect(&check(&disk), Verdict::Invalid, "record 81");
}
