//! Tests of a worker that starts with a new key. The logs of the old key are verified with the old
//! key and continued under the new key, even if the start is interrupted at any call.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::key_successions::{self, KEY_SUCCESSIONS_DIR};
use proofgate_evidence::{Report, Verdict, fsck};
use proofgate_ledger::{KeySuccession, SigningKey, VerifyingKey};
use proofgate_ledger_testkit::{
    self as testkit, LEDGER, SHARD, Worker, key, small_log_options, start, start_options, vkey,
};
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use proofgate_wal::succession::{self, StartOptions, StartedLog};
use proofgate_wal::{ReadStorage, Shard, Storage, WalError};
use std::path::Path;
use std::sync::Arc;

const LATER: u64 = 1_000_000_000;

fn new_key() -> SigningKey {
    SigningKey::generate(LEDGER, [77; 32]).unwrap()
}

fn statement(old: &SigningKey, new: &SigningKey) -> String {
    KeySuccession::sign(old, new, 1, LATER).unwrap()
}

/// Starts a worker with the new key, and with the old key as `previous_key` if the old key is still
/// available.
fn begin(disk: &SimulatedDisk, old: Option<&SigningKey>) -> Result<StartedLog, WalError> {
    begin_by(disk, old, LATER)
}

/// Same as [`start`], with a statement that the validity of the old key ends at `until`.
fn begin_by(disk: &SimulatedDisk, old: Option<&SigningKey>, until: u64) -> Result<StartedLog, WalError> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let successions = [KeySuccession::sign(&key(), &new_key(), 1, until).unwrap()];
    let text = format!("{}\n\n{}", new_key().to_text(), successions[0]);
    let new = SigningKey::from_file_text(&text).unwrap();
    let plain = start_options(&new, small_log_options());
    let terms = StartOptions {
        shard: Shard {
            previous_key: old,
            ..plain.shard
        },
        successions: &successions,
        ..plain
    };
    succession::start(&storage, &terms, None)
}

/// Creates a log of the old key with an open exchange, whose worker was killed.
fn killed() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let mut worker = start(&disk, &mut testkit::DurabilityModel::default()).unwrap();
    worker.run_exchange("a");
    worker.admit("b", 10).unwrap();
    worker.flush().unwrap();
    disk
}

fn judged(disk: &SimulatedDisk, known: &VerifyingKey) -> Report {
    fsck(disk, Path::new(SHARD), Some(known), &[]).unwrap()
}

fn whole(disk: &SimulatedDisk, what: &str) {
    for known in [vkey(), new_key().verifying_key()] {
        let report = judged(disk, &known);
        assert!(report.verdict <= Verdict::Incomplete, "{what}: {report:?}");
        let unsigned = report.incarnations.iter().flat_map(|log| &log.findings);
        for finding in unsigned {
            assert!(
                !finding.message.contains("not covered by a checkpoint"),
                "{what}: {finding:?}"
            );
        }
    }
}

#[test]
fn a_log_of_the_new_key_goes_on_behind_one_of_the_old_and_either_key_verifies_both() {
    let disk = killed();
    let begun = begin(&disk, Some(&key())).unwrap();
    assert_eq!(begun.recovery.as_ref().unwrap().unfinished_exchanges.len(), 1);
    drop(begun);
    whole(&disk, "after one start");
    let report = judged(&disk, &vkey());
    let keys: Vec<_> = report.keys.iter().map(|key| key.vkey.clone()).collect();
    assert_eq!(keys, [vkey().to_text(), new_key().verifying_key().to_text()]);
    let signed: Vec<_> = report
        .incarnations
        .iter()
        .map(|log| log.key.clone().unwrap())
        .collect();
    assert_eq!(signed, keys);
}

#[test]
fn a_log_that_another_key_signs_than_its_open_names_is_told() {
    let disk = killed();
    let begun = begin(&disk, Some(&key())).unwrap();
    // The worker of these tests signs with the old key.
    Worker::from_log(&disk, begun.log).run_exchange("c");
    let report = judged(&disk, &vkey());
    let codes: Vec<_> = report.incarnations[1]
        .findings
        .iter()
        .filter_map(|found| found.code)
        .collect();
    assert_eq!(codes, ["key_differs"]);
}

fn put(disk: &SimulatedDisk, path: &Path, bytes: &[u8]) {
    disk.create(path).unwrap().write_at(bytes, 0).unwrap();
}

/// Writes a log with one exchange under this key on a separate disk, and copies it after the logs on `disk`.
fn put_behind(disk: &SimulatedDisk, by: &SigningKey, now: u64) {
    let elsewhere = SimulatedDisk::new();
    let storage: Arc<dyn Storage> = Arc::new(elsewhere.clone());
    let begun = succession::start(
        &storage,
        &StartOptions {
            now,
            ..start_options(by, small_log_options())
        },
        None,
    )
    .unwrap();
    let (dir, mut log) = (begun.log.dir.clone(), begun.log);
    log.follower.sign_checkpoint(by).unwrap();
    disk.create_dir(&dir).unwrap();
    for name in elsewhere.list(&dir).unwrap() {
        let path = dir.join(name);
        put(disk, &path, &elsewhere.read(&path).unwrap());
    }
}

#[test]
fn a_writer_of_the_volume_plants_no_key_of_his_own() {
    let disk = killed();
    drop(begin(&disk, Some(&key())).unwrap());
    let (his, accomplice) = (
        SigningKey::generate(LEDGER, [60; 32]).unwrap(),
        SigningKey::generate(LEDGER, [61; 32]).unwrap(),
    );
    // The attacker has a signature by another key and the bytes of the true statement.
    let mixed = statement(&his, &accomplice).replace(
        &his.verifying_key().to_text(),
        &new_key().verifying_key().to_text(),
    );
    let dir = Path::new(SHARD).parent().unwrap().join(KEY_SUCCESSIONS_DIR);
    for note in [statement(&his, &accomplice), mixed] {
        put(
            &disk,
            &dir.join(key_successions::file_name(&note)),
            note.as_bytes(),
        );
    }
    put_behind(&disk, &his, 2_000_000);
    let report = judged(&disk, &vkey());
    assert_eq!(report.verdict, Verdict::Invalid);
    assert_eq!(report.keys.len(), 2, "{:?}", report.keys);
    let codes: Vec<_> = report.findings.iter().filter_map(|found| found.code).collect();
    assert_eq!(codes, ["key_succession_refused"]);
    let refused = &report.incarnations[2].findings;
    assert!(
        refused.iter().any(|found| found.verdict == Verdict::Invalid),
        "{refused:?}"
    );
}

#[test]
fn two_successors_of_one_key_are_told_and_neither_is_believed() {
    let disk = killed();
    drop(begin(&disk, Some(&key())).unwrap());
    let other = SigningKey::generate(LEDGER, [60; 32]).unwrap();
    let note = statement(&key(), &other);
    let dir = Path::new(SHARD).parent().unwrap().join(KEY_SUCCESSIONS_DIR);
    put(
        &disk,
        &dir.join(key_successions::file_name(&note)),
        note.as_bytes(),
    );
    let report = judged(&disk, &vkey());
    let codes: Vec<_> = report.findings.iter().filter_map(|found| found.code).collect();
    assert_eq!(codes, ["key_line_forked"]);
    assert_eq!(report.verdict, Verdict::Invalid);
}

#[test]
fn a_log_of_the_old_key_behind_one_of_the_new_is_told() {
    let disk = killed();
    drop(begin(&disk, Some(&key())).unwrap());
    put_behind(&disk, &key(), 2_000_000);
    let report = judged(&disk, &new_key().verifying_key());
    let codes: Vec<_> = report.incarnations[2]
        .findings
        .iter()
        .filter_map(|found| found.code)
        .collect();
    assert_eq!(codes, ["key_out_of_turn"]);
    assert_eq!(report.verdict, Verdict::Invalid);
    // The same after the validity of the old key has ended.
    put_behind(&disk, &key(), LATER + 1_000_000);
    let report = judged(&disk, &new_key().verifying_key());
    let late = &report.incarnations[3].findings;
    assert!(
        late.iter()
            .any(|found| found.message.contains("was no longer valid")),
        "{late:?}"
    );
}

#[test]
fn the_old_key_is_needed_for_no_start_behind_a_log_of_the_new_one() {
    let disk = killed();
    drop(begin(&disk, Some(&key())).unwrap());
    let begun = begin(&disk, None).unwrap();
    assert!(begun.recovery.is_some());
    whole(&disk, "without the old key");
}

#[test]
fn without_the_old_key_nothing_is_chained_to_a_log_of_it() {
    let disk = killed();
    let refused = begin(&disk, None).unwrap_err();
    assert_eq!(refused.code(), "another_key", "{refused}");
    let foreign = SigningKey::generate(LEDGER, [78; 32]).unwrap();
    assert!(begin(&disk, Some(&foreign)).is_err());
}

#[test]
fn a_log_that_the_old_key_began_after_its_end_is_not_gone_on_from() {
    let disk = killed();
    put_behind(&disk, &key(), 2_000_000);
    assert!(begin_by(&disk.snapshot(), Some(&key()), 2_000_000).is_ok());
    let refused = begin_by(&disk, Some(&key()), 1_000_000).unwrap_err();
    assert!(refused.to_string().contains("was no longer valid"), "{refused}");
}

#[test]
fn a_worker_with_the_old_key_does_not_go_on_behind_a_log_of_the_new_one() {
    let disk = killed();
    drop(begin(&disk, Some(&key())).unwrap());
    assert!(start(&disk, &mut testkit::DurabilityModel::default()).is_err());
}

#[test]
fn a_key_that_has_ended_begins_no_log() {
    let storage: Arc<dyn Storage> = Arc::new(SimulatedDisk::new());
    let key = key();
    let plain = start_options(&key, small_log_options());
    let terms = |now| StartOptions {
        key_valid_until: Some(5_000),
        now,
        ..plain
    };
    let refused = succession::start(&storage, &terms(6_000), None).unwrap_err();
    assert_eq!(refused.code(), "key_ended");
    assert!(succession::start(&storage, &terms(5_000), None).is_ok());
}

fn calls_of_a_start() -> (u64, u64) {
    let disk = killed();
    let before = disk.calls();
    drop(begin(&disk, Some(&key())).unwrap());
    (before, disk.calls())
}

#[test]
fn a_start_with_a_new_key_that_is_cut_at_any_call_is_finished_by_the_next() {
    let (before, after) = calls_of_a_start();
    for call in before..after {
        let disk = killed();
        disk.inject_fault_at(call, InjectedFault::Crash);
        // Releasing space is attempted and may fail.
        let _ = begin(&disk, Some(&key()));
        disk.restart();
        let begun = begin(&disk, Some(&key())).unwrap_or_else(|error| panic!("call {call}: {error}"));
        drop(begun);
        whole(&disk, &format!("call {call}"));
        // The old key may be removed, because the log that served belongs to the new key.
        drop(begin(&disk, None).unwrap_or_else(|error| panic!("call {call}: {error}")));
    }
}

#[test]
fn shards_go_over_one_by_one_and_the_statement_is_kept_once() {
    let disk = killed();
    drop(begin(&disk, Some(&key())).unwrap());
    drop(begin(&disk, Some(&key())).unwrap());
    let ledger = Path::new(SHARD).parent().unwrap();
    let kept = key_successions::read(&disk, ledger).unwrap();
    assert_eq!(kept.signed.len(), 1);
    assert!(kept.refused.is_empty());
    assert_eq!(disk.list(&ledger.join(KEY_SUCCESSIONS_DIR)).unwrap().len(), 1);
}
