//! Tests of the start of a log after another log has ended: the data that is read, refused, signed
//! and recorded. Someone who can write to the volume but has no key cannot get anything signed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::checkpoint_file::{CHECKPOINT_FILE, successor_note_name};
use proofgate_evidence::{ReadStorage, TREE_FILE, Verdict, fsck};
use proofgate_ledger::record::{ConfigId, Record, Takeover};
use proofgate_ledger::{Checkpoint, SigningKey, record};
use proofgate_ledger_testkit::{
    self as testkit, DurabilityModel, SHARD, Worker, inspect, key, new_worker, records, root_of,
    small_log_options, start, start_options, vkey,
};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::succession::{self, StartOptions, StartedLog};
use proofgate_wal::{Incarnation, MissingLog, ResumeState, Storage, UnfinishedExchange, WalError, Writer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Creates a disk with a worker that has served six requests. All records are under a checkpoint
/// and in one segment.
fn served() -> (SimulatedDisk, Worker) {
    let (disk, mut worker) = new_worker();
    for number in 0..6 {
        let id = format!("req-{number}");
        let admission = worker.admit(&id, 10).unwrap();
        worker.complete(&id, admission).unwrap();
    }
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    (disk, worker)
}

fn begin(disk: &SimulatedDisk) -> Result<StartedLog, WalError> {
    begin_behind(disk, None)
}

fn begin_behind(disk: &SimulatedDisk, held: Option<&Checkpoint>) -> Result<StartedLog, WalError> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    succession::start(&storage, &start_options(&key(), small_log_options()), held)
}

fn kill(disk: &SimulatedDisk, worker: Worker) -> DurabilityModel {
    let promised = worker.durability_model.clone();
    drop(worker);
    disk.restart();
    promised
}

/// Returns every signed checkpoint on the volume.
fn notes(disk: &SimulatedDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let is_note = |path: &PathBuf| path.to_string_lossy().ends_with(CHECKPOINT_FILE);
    let paths = disk.files().into_iter().filter(is_note);
    paths
        .map(|path| (path.clone(), disk.read(&path).unwrap()))
        .collect()
}

/// Checks that the start fails with this message and that nothing was signed.
fn refused(disk: &SimulatedDisk, held: Option<&Checkpoint>, says: &str) {
    let before = notes(disk);
    let error = begin_behind(disk, held).err().unwrap();
    assert!(error.to_string().contains(says), "{error}");
    assert_eq!(notes(disk), before, "something was signed");
}

fn signed(promised: &DurabilityModel) -> Checkpoint {
    Checkpoint::verify(promised.notes.last().unwrap(), &vkey()).unwrap()
}

#[test]
fn a_log_serves_only_once_its_beginning_is_signed() {
    let (disk, worker) = new_worker();
    let checkpoint = worker.follower.last_checkpoint().unwrap();
    assert_eq!(checkpoint.size, worker.writer.next_seq());
    let stored = disk
        .read(&worker.durability_model.dir.join(CHECKPOINT_FILE))
        .unwrap();
    let stored = Checkpoint::verify(&String::from_utf8(stored).unwrap(), &vkey()).unwrap();
    assert_eq!(&stored, checkpoint);
}

#[test]
fn a_log_that_served_and_has_no_checkpoint_is_refused() {
    let (disk, worker) = served();
    let dir = kill(&disk, worker).dir;
    disk.remove(&dir.join(CHECKPOINT_FILE)).unwrap();
    refused(
        &disk,
        None,
        "the first checkpoint is written before the first request",
    );
}

#[test]
fn a_sealed_log_that_was_shortened_and_whose_checkpoint_was_deleted_is_refused() {
    let (disk, mut worker) = served();
    worker.seal().unwrap();
    let promised = kill(&disk, worker);
    let segment = promised.dir.join("00000000000000000000.seg");
    disk.corrupt(&segment, |bytes| {
        let keep = bytes.len() * 2 / 3;
        bytes[keep..].fill(0);
    });
    disk.remove(&promised.dir.join(CHECKPOINT_FILE)).unwrap();
    disk.remove(&promised.dir.join(TREE_FILE)).unwrap();
    refused(
        &disk,
        None,
        "the first checkpoint is written before the first request",
    );
}

#[test]
fn a_start_that_was_cut_before_it_was_signed_is_passed_over() {
    let (disk, worker) = served();
    let first = kill(&disk, worker).incarnation;
    let begun = begin(&disk).unwrap();
    disk.remove(&begun.log.dir.join(CHECKPOINT_FILE)).unwrap();
    disk.restart();
    let next = begin(&disk).unwrap();
    assert_eq!(Some(next.recovery.unwrap().newest.incarnation), first);
}

/// Writes the log of an attacker who has the volume, the source code and another key.
fn planted(disk: &SimulatedDisk, forger: &SigningKey) -> Incarnation {
    let elsewhere = SimulatedDisk::new();
    let storage: Arc<dyn Storage> = Arc::new(elsewhere.clone());
    let later = StartOptions {
        now: 1_000_000,
        ..start_options(forger, small_log_options())
    };
    let begun = succession::start(&storage, &later, None).unwrap();
    let mut worker = Worker::from_log(&elsewhere, begun.log);
    worker.admit("planted", 10).unwrap();
    worker.flush().unwrap();
    disk.create_dir(&worker.durability_model.dir).unwrap();
    for path in elsewhere.files() {
        let file = disk.create(&path).unwrap();
        let bytes = elsewhere.read(&path).unwrap();
        if !path.ends_with(CHECKPOINT_FILE) {
            file.write_at(&bytes, 0).unwrap();
        }
        if path.ends_with(CHECKPOINT_FILE) {
            disk.remove(&path).unwrap();
        }
    }
    Incarnation {
        origin: String::new(),
        incarnation: worker.durability_model.incarnation.unwrap(),
        dir: worker.durability_model.dir,
        writer: worker.writer,
        follower: worker.follower,
    }
}

#[test]
fn a_log_that_was_planted_is_refused() {
    let (disk, worker) = served();
    kill(&disk, worker);
    let forger = SigningKey::generate("ledger.example/demo", [8; 32]).unwrap();
    planted(&disk, &forger);
    refused(&disk, None, "was not written with the signing key");
}

#[test]
fn records_that_were_rewritten_behind_the_checkpoint_are_refused() {
    let (disk, mut worker) = served();
    worker.admit("late", 10).unwrap();
    worker.flush().unwrap();
    let promised = kill(&disk, worker);
    // The same record with another model and matching checksums. A text editor and the source code
    // suffice to make it.
    let segment = promised.dir.join("00000000000000000000.seg");
    disk.corrupt(&segment, |bytes| {
        testkit::edit_last_record(bytes, promised.incarnation.unwrap(), b"\"late\"", b"\"LATE\"")
    });
    refused(&disk, None, "was not written with the signing key");
}

#[test]
fn what_is_changed_before_it_is_read_back_is_not_signed() {
    let (disk, mut worker) = served();
    worker.admit("late", 10).unwrap();
    worker.flush().unwrap();
    let segment = worker.durability_model.dir.join("00000000000000000000.seg");
    let incarnation = worker.durability_model.incarnation.unwrap();
    disk.corrupt(&segment, |bytes| {
        testkit::edit_last_record(bytes, incarnation, b"\"late\"", b"\"LATE\"")
    });
    let error = worker.step().err().unwrap();
    assert!(error.to_string().contains("its tag does not match"), "{error}");
    assert!(worker.checkpoint().is_err(), "the log has stopped");
}

#[test]
fn an_older_checkpoint_put_back_over_a_shortened_log_is_refused_once_a_newer_one_is_held() {
    let (disk, mut worker) = served();
    let path = worker.durability_model.dir.join(CHECKPOINT_FILE);
    let old = disk.read(&path).unwrap();
    let old_end = worker.durability_model.appended.len();
    for number in 0..20 {
        let admission = worker.admit(&format!("more-{number}"), 10).unwrap();
        worker.complete(&format!("more-{number}"), admission).unwrap();
    }
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    let promised = kill(&disk, worker);
    let held = signed(&promised);
    disk.corrupt(&path, |bytes| *bytes = old);
    let segment = promised.dir.join("00000000000000000000.seg");
    let end = testkit::end_offset(&promised.appended[..old_end]);
    disk.corrupt(&segment, |bytes| bytes[end..].fill(0));
    disk.remove(&promised.dir.join(TREE_FILE)).unwrap();
    refused(
        &disk,
        Some(&held),
        "the ledger is behind the checkpoint held outside",
    );
}

#[test]
fn a_volume_without_the_log_that_is_held_is_refused() {
    let (disk, worker) = served();
    kill(&disk, worker);
    let older = disk.snapshot();
    let mut later = Worker::from_log(&disk, begin(&disk).unwrap().log);
    later.checkpoint().unwrap();
    let held = signed(&kill(&disk, later));
    refused(&older, Some(&held), "the volume has no such log");
    refused(&SimulatedDisk::new(), Some(&held), "the volume has no such log");
    assert!(begin_behind(&disk, Some(&held)).is_ok());
}

#[test]
fn a_held_checkpoint_of_a_log_with_other_records_is_refused() {
    let (disk, worker) = served();
    let promised = kill(&disk, worker);
    let held = Checkpoint {
        root: [9; 32],
        ..signed(&promised)
    };
    refused(&disk, Some(&held), "different records");
    let held = signed(&promised);
    assert!(begin_behind(&disk, Some(&held)).is_ok());
}

#[test]
fn a_held_checkpoint_is_found_in_the_records_when_the_tree_is_gone() {
    let (disk, mut worker) = served();
    let held = signed(&worker.durability_model);
    worker.admit("more", 10).unwrap();
    worker.flush().unwrap();
    let promised = kill(&disk, worker);
    disk.remove(&promised.dir.join(TREE_FILE)).unwrap();
    assert!(begin_behind(&disk, Some(&held)).is_ok());
}

#[test]
fn the_log_of_another_shard_is_refused() {
    let (disk, worker) = served();
    let promised = kill(&disk, worker);
    let before = notes(&disk);
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    let mut terms: StartOptions<'_> = start_options(&key, small_log_options());
    terms.shard.number = 4;
    let error = succession::start(&storage, &terms, None).err().unwrap();
    let says = format!(
        "it is a checkpoint of \"ledger.example/demo/3/{}\"",
        promised.incarnation.unwrap()
    );
    assert!(error.to_string().contains(&says), "{error}");
    assert_eq!(notes(&disk), before);
}

/// Marks a position near the end of a log, from which a successor can resume; returns the number of records.
fn marked(disk: &SimulatedDisk, worker: &mut Worker) -> u64 {
    let open = worker.admit("open", 10).unwrap();
    worker.flush().unwrap();
    worker.writer.set_resume_state(ResumeState {
        open: vec![unended(worker, open, "open")],
        continues: None,
        predecessor_ended: true,
    });
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    assert!(disk.read(&worker.durability_model.dir.join("resume")).is_some());
    worker.durability_model.appended.len() as u64
}

fn unended(worker: &Worker, admission: u64, id: &str) -> UnfinishedExchange {
    UnfinishedExchange {
        incarnation: worker.durability_model.incarnation.unwrap(),
        admission,
        ts: 1,
        id: id.to_owned(),
        tenant: "acme".to_owned(),
        key: "01234567".to_owned(),
        reserved: None,
        reserved_nanodollars: None,
        shared_plan: None,
        model: "m".into(),
    }
}

#[test]
fn a_restart_reads_only_what_lies_behind_the_place_to_resume() {
    let (disk, mut worker) = served();
    let place = marked(&disk, &mut worker);
    let late = worker.admit("late", 10).unwrap();
    worker.admit("later", 10).unwrap();
    worker.complete("late", late).unwrap();
    worker.flush().unwrap();
    let promised = kill(&disk, worker);
    let found = inspect(&disk).unwrap().unwrap();
    assert_eq!(found.0.records_read, 3);
    assert_eq!((found.size, found.root), (place + 3, root_of(&promised.appended)));
    let ids: Vec<_> = found
        .0
        .unfinished_exchanges
        .iter()
        .map(|open| open.id.as_str())
        .collect();
    assert_eq!(ids, ["open", "later"]);

    disk.remove(&promised.dir.join("resume")).unwrap();
    let whole = inspect(&disk).unwrap().unwrap();
    assert_eq!(whole.0.records_read, place + 3);
    assert_eq!(
        (&whole.0.newest, whole.0.unfinished_exchanges.len()),
        (&found.0.newest, 2)
    );
}

#[test]
fn a_place_to_resume_survives_a_change_of_segment() {
    let (disk, mut worker) = served();
    for number in 0..30 {
        worker.admit(&format!("large-{number}"), 9_000).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    marked(&disk, &mut worker);
    for number in 0..30 {
        worker.admit(&format!("huge-{number}"), 9_000).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    let promised = kill(&disk, worker);
    let found = inspect(&disk).unwrap().unwrap();
    assert_eq!(
        (found.0.records_read, found.root),
        (30, root_of(&promised.appended))
    );
}

#[test]
fn a_resume_file_that_was_changed_is_not_believed() {
    let (disk, mut worker) = served();
    let place = marked(&disk, &mut worker);
    let promised = kill(&disk, worker);
    let path = promised.dir.join("resume");
    for at in 0..disk.read(&path).unwrap().len() {
        let disk = disk.snapshot();
        disk.corrupt(&path, |bytes| bytes[at] ^= 1);
        assert_eq!(
            inspect(&disk).unwrap().unwrap().0.records_read,
            place,
            "byte {at}"
        );
    }
}

#[test]
fn a_checkpoint_older_than_the_place_to_resume_is_refused() {
    let (disk, mut worker) = served();
    let path = worker.durability_model.dir.join(CHECKPOINT_FILE);
    let old = disk.read(&path).unwrap();
    marked(&disk, &mut worker);
    kill(&disk, worker);
    disk.corrupt(&path, |bytes| *bytes = old);
    refused(&disk, None, "removed or replaced by an older one");
    disk.remove(&path).unwrap();
    refused(&disk, None, "removed or replaced by an older one");
}

#[test]
fn records_that_the_tree_remembers_and_the_log_does_not_are_told() {
    let (disk, mut worker) = served();
    let end = testkit::end_offset(&worker.durability_model.appended);
    for number in 0..5 {
        worker.admit(&format!("lost-{number}"), 10).unwrap();
    }
    worker.flush().unwrap();
    worker.step().unwrap();
    let promised = kill(&disk, worker);
    disk.corrupt(&promised.dir.join("00000000000000000000.seg"), |bytes| {
        bytes[end..].fill(0)
    });
    let begun = begin(&disk).unwrap();
    assert_eq!(begun.recovery.unwrap().newest.lost_records, 5);
    let first = &records(&disk, &begun.log.dir, begun.log.incarnation)[0];
    let Record::Open(open) = record::parse(first).unwrap() else {
        panic!("no open record");
    };
    assert_eq!(open.predecessor.unwrap().lost, 5);
}

fn remove_log(disk: &SimulatedDisk, dir: &Path) {
    for path in disk.files().into_iter().filter(|path| path.starts_with(dir)) {
        disk.remove(&path).unwrap();
    }
    disk.remove_dir(dir);
}

/// Returns the missing predecessor that the first record of a log names, if any.
fn said_to_be_missing(disk: &SimulatedDisk, begun: &StartedLog) -> Option<String> {
    let first = &records(disk, &begun.log.dir, begun.log.incarnation)[0];
    let Record::Open(open) = record::parse(first).unwrap() else {
        panic!("no open record");
    };
    open.predecessor.unwrap().missing.map(Into::into)
}

#[test]
fn a_start_behind_a_log_whose_predecessor_was_moved_away_says_which_and_fsck_tells_it_from_then_on() {
    let (disk, worker) = served();
    let first = kill(&disk, worker);
    let begun = begin(&disk).unwrap();
    assert_eq!(begun.recovery.as_ref().unwrap().missing, None);
    assert_eq!(said_to_be_missing(&disk, &begun), None);
    let mut second = Worker::from_log(&disk, begun.log);
    second.run_exchange("second");
    let second = kill(&disk, second);
    remove_log(&disk, &first.dir);

    let begun = begin(&disk).unwrap();
    let missing = MissingLog {
        incarnation: first.incarnation.unwrap(),
        named_by: second.incarnation.unwrap(),
    };
    assert_eq!(begun.recovery.as_ref().unwrap().missing, Some(missing));
    assert_eq!(
        said_to_be_missing(&disk, &begun),
        Some(missing.incarnation.to_string())
    );
    let mut third = Worker::from_log(&disk, begun.log);
    third.run_exchange("third");
    kill(&disk, third);
    let begun = begin(&disk).unwrap();
    assert_eq!(begun.recovery.unwrap().missing, None, "it was said once");
    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    let says = format!("its predecessor {} is missing", missing.incarnation);
    let told = report.incarnations.iter().flat_map(|log| &log.findings);
    assert_eq!(
        told.map(|found| (found.verdict, found.message.as_str()))
            .collect::<Vec<_>>(),
        [(Verdict::Incomplete, says.as_str())]
    );
}

#[test]
fn a_predecessor_of_which_only_the_directory_is_left_is_missing_too() {
    let (disk, worker) = served();
    let first = kill(&disk, worker);
    let mut second = Worker::from_log(&disk, begin(&disk).unwrap().log);
    second.run_exchange("second");
    kill(&disk, second);
    remove_log(&disk, &first.dir);
    disk.create_dir(&first.dir).unwrap();
    let missing = begin(&disk).unwrap().recovery.unwrap().missing;
    assert_eq!(missing.map(|missing| missing.incarnation), first.incarnation);
}

#[test]
fn that_a_predecessor_is_missing_is_seen_also_behind_a_place_to_resume() {
    let (disk, worker) = served();
    let first = kill(&disk, worker);
    let mut second = Worker::from_log(&disk, begin(&disk).unwrap().log);
    marked(&disk, &mut second);
    let second = kill(&disk, second);
    remove_log(&disk, &first.dir);
    let recovered = begin(&disk.snapshot()).unwrap().recovery.unwrap();
    assert_eq!(recovered.records_read, 0);
    assert_eq!(
        recovered.missing.map(|missing| missing.incarnation),
        first.incarnation
    );

    // A first record rewritten to name another predecessor is refused.
    let segment = second.dir.join("00000000000000000000.seg");
    let (name, other) = (
        first.incarnation.unwrap().to_string(),
        second.incarnation.unwrap(),
    );
    disk.corrupt(&segment, |bytes| {
        testkit::edit_last_record(bytes, other, name.as_bytes(), other.to_string().as_bytes());
    });
    refused(&disk, None, "record 0 was not written with the signing key");
}

#[test]
fn a_listing_from_before_the_newest_log_hides_it_from_no_start() {
    let (disk, worker) = served();
    kill(&disk, worker);
    let before = disk.list(Path::new(SHARD)).unwrap();
    let mut second = Worker::from_log(&disk, begin(&disk).unwrap().log);
    second.run_exchange("second");
    let second = kill(&disk, second);
    disk.cache_listing(Path::new(SHARD), before);
    let found = begin(&disk).unwrap().recovery.unwrap();
    assert_eq!(Some(found.newest.incarnation), second.incarnation);
    sound(&disk);
}

#[test]
fn locks_that_only_one_node_sees_give_nothing_back() {
    let disk = SimulatedDisk::new();
    disk.make_locks_local();
    let worker = start(&disk, &mut DurabilityModel::default()).unwrap();
    let promised = kill(&disk, worker);
    assert!(disk.read(&promised.dir.join("unlocked")).is_some());
    assert_eq!(begin(&disk).unwrap().released_bytes, 0);
}

/// Checks that the whole shard is one chain without findings.
fn sound(disk: &SimulatedDisk) {
    let report = fsck(disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
}

/// Creates the next log while the current one runs.
fn beside(disk: &SimulatedDisk, worker: &Worker) -> Incarnation {
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    let former = worker.follower.last_checkpoint().unwrap();
    succession::start_successor(
        &storage,
        &start_options(&key, small_log_options()),
        worker.follower.incarnation(),
        former,
    )
    .unwrap()
}

/// Switches from one log to the next like the data-plane thread. The former log is not followed
/// further.
fn go_over(worker: &mut Worker, next: Incarnation, disk: &SimulatedDisk) -> Worker {
    let successor = next.incarnation.to_string();
    let mut next = Worker::from_log(disk, next);
    next.writer.take_over(&worker.writer).unwrap();
    worker.seal_with_successor(Some(&successor)).unwrap();
    next
}

fn tell(next: &mut Worker, former: &Worker) {
    let left = former.follower.to_previous_log();
    next.append(|seq, out| {
        Takeover {
            seq,
            ts: 9,
            incarnation: left.incarnation.to_string().into(),
            size: left.size,
            root: left.root,
            config: ConfigId([1; 8]),
        }
        .encode_into(out)
    })
    .unwrap();
    next.flush().unwrap();
}

#[test]
fn a_log_continued_while_it_runs_is_one_chain_and_exchanges_end_in_the_next() {
    let (disk, mut worker) = served();
    let open = worker.admit("across", 10).unwrap();
    let abandoned = worker.admit("abandoned", 10).unwrap();
    worker.flush().unwrap();
    let next = beside(&disk, &worker);
    let mut next = go_over(&mut worker, next, &disk);
    let before = worker.durability_model.incarnation.unwrap();
    next.complete_from_log(Some(before), "across", open).unwrap();
    next.admit("new", 10).unwrap();
    next.flush().unwrap();
    worker.follower.finish(&key()).unwrap();
    tell(&mut next, &worker);
    kill(&disk, next);

    let found = inspect(&disk).unwrap().unwrap();
    assert!(found.0.logs_with_unrecorded_end.is_empty());
    let ids: Vec<_> = found
        .0
        .unfinished_exchanges
        .iter()
        .map(|open| (open.id.as_str(), open.admission))
        .collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert!(ids.contains(&("abandoned", abandoned)));
    drop(begin(&disk).unwrap());
    sound(&disk);
}

#[test]
fn a_worker_killed_before_it_told_how_the_former_log_ended_leaves_that_to_its_successor() {
    let (disk, mut worker) = served();
    let open = worker.admit("across", 10).unwrap();
    worker.flush().unwrap();
    let next = beside(&disk, &worker);
    let mut next = go_over(&mut worker, next, &disk);
    let former = worker.durability_model.clone();
    next.admit("new", 10).unwrap();
    next.flush().unwrap();
    drop(worker);
    let newest = kill(&disk, next).incarnation.unwrap();

    let begun = begin(&disk).unwrap();
    let found = begun.recovery.unwrap();
    assert_eq!(found.newest.incarnation, newest);
    let untold: Vec<_> = found
        .logs_with_unrecorded_end
        .iter()
        .map(|left| (Some(left.incarnation), left.size))
        .collect();
    assert_eq!(untold, [(former.incarnation, former.appended.len() as u64)]);
    assert!(
        found
            .unfinished_exchanges
            .iter()
            .any(|left| left.admission == open)
    );
    let note = begun
        .log
        .dir
        .join(successor_note_name(former.incarnation.unwrap()));
    let note = String::from_utf8(disk.read(&note).unwrap()).unwrap();
    assert_eq!(
        Checkpoint::verify(&note, &vkey()).unwrap().root,
        root_of(&former.appended)
    );
    let told = records(&disk, &begun.log.dir, begun.log.incarnation);
    let told = told
        .iter()
        .filter_map(|record| match record::parse(record).unwrap() {
            Record::Takeover(takeover) => Some((takeover.size, takeover.root)),
            _ => None,
        });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(former.appended.len() as u64, root_of(&former.appended))]
    );
    sound(&disk);

    // A start that was interrupted at this point, before it was signed, never served.
    disk.remove(&begun.log.dir.join(CHECKPOINT_FILE)).unwrap();
    drop(begun.log);
    disk.restart();
    let again = begin(&disk).unwrap().recovery.unwrap();
    assert_eq!(
        (again.newest.incarnation, again.logs_with_unrecorded_end.len()),
        (newest, 1)
    );
    sound(&disk);
}

#[test]
fn a_next_log_that_nobody_went_over_to_costs_nothing() {
    let (disk, worker) = served();
    drop(beside(&disk, &worker));
    let former = kill(&disk, worker);
    let found = begin(&disk).unwrap().recovery.unwrap();
    assert_eq!(found.logs_with_unrecorded_end.len(), 1);
    assert_eq!(
        Some(found.logs_with_unrecorded_end[0].incarnation),
        former.incarnation
    );
    assert_eq!(found.logs_with_unrecorded_end[0].root, root_of(&former.appended));
    sound(&disk);
}

#[test]
fn a_log_whose_continued_one_is_gone_is_refused() {
    let (disk, mut worker) = served();
    worker.admit("across", 10).unwrap();
    worker.flush().unwrap();
    let next = beside(&disk, &worker);
    let next = go_over(&mut worker, next, &disk);
    let former = worker.durability_model.dir.clone();
    drop(worker);
    kill(&disk, next);
    for path in disk.files().into_iter().filter(|path| path.starts_with(&former)) {
        disk.remove(&path).unwrap();
    }
    Storage::remove_dir(&disk, &former).unwrap();
    refused(&disk, None, "which is missing");
}

#[test]
fn what_was_reserved_counts_in_the_log_that_continues() {
    let (disk, mut worker) = served();
    let mut room = worker.writer.reserve(4096).unwrap();
    let next = beside(&disk, &worker);
    let mut next = go_over(&mut worker, next, &disk);
    let reserved = |writer: &Writer| writer.reserved();
    assert!(reserved(&next.writer) >= 4096);
    let before = reserved(&next.writer);
    next.writer
        .append_reserved(&mut room, testkit::raw_record(100))
        .unwrap();
    assert!(reserved(&next.writer) < before);
    drop(room);
    assert!(reserved(&next.writer) < 4096, "only the seal's is left");
    assert_eq!(disk.list(Path::new(SHARD)).unwrap().len(), 2);
}
