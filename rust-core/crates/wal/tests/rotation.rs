//! Tests of a log that another log continues while the worker runs, with the results of `fsck`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{ReadStorage, Report, Verdict, fsck};
use proofgate_ledger::Checkpoint;
use proofgate_ledger::record::{Completion, ConfigId, Outcome, Seal, Takeover};
use proofgate_ledger_testkit::{
    DurabilityModel, Worker, key, root_of, small_log_options, start, start_options, vkey, worker_with_records,
};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Storage, Ulid, succession};
use std::path::Path;
use std::sync::Arc;

/// A log with an exchange in flight, and the log that continues it.
struct Rotated {
    disk: SimulatedDisk,
    old: Worker,
    new: Worker,
    admission: u64,
}

fn settle(worker: &mut Worker) {
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
}

fn rotated() -> Rotated {
    let (disk, mut old) = worker_with_records();
    let signed = Checkpoint::verify(old.durability_model.notes.last().unwrap(), &vkey()).unwrap();
    let admission = old.admit("in flight", 1).unwrap();
    let before = old.durability_model.incarnation.unwrap();
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    let made = succession::start_successor(
        &storage,
        &start_options(&key, small_log_options()),
        before,
        &signed,
    )
    .unwrap();
    let ulid = made.incarnation;
    let new = Worker::from_log(&disk, made);
    seal(&mut old, ulid);
    Rotated {
        disk,
        old,
        new,
        admission,
    }
}

fn seal(old: &mut Worker, successor: Ulid) {
    old.append(|seq, out| {
        Seal {
            seq,
            ts: 1,
            reason: "rotated".into(),
            records: seq,
            successor: Some(successor.to_string().into()),
            config: ConfigId([1; 8]),
        }
        .encode_into(out)
    })
    .unwrap();
    settle(old);
}

impl Rotated {
    fn take_over(&mut self, root: [u8; 32]) {
        let (size, of) = (
            self.old.durability_model.appended.len() as u64,
            self.old.durability_model.incarnation.unwrap(),
        );
        self.new
            .append(|seq, out| {
                Takeover {
                    seq,
                    ts: 1,
                    incarnation: of.to_string().into(),
                    size,
                    root,
                    config: ConfigId([1; 8]),
                }
                .encode_into(out)
            })
            .unwrap();
        settle(&mut self.new);
    }

    fn complete(&mut self) {
        let (admission, of) = (self.admission, self.old.durability_model.incarnation.unwrap());
        self.new
            .append(|seq, out| {
                Completion {
                    seq,
                    ts: 1,
                    id: "in flight".into(),
                    admission,
                    incarnation: Some(of.to_string().into()),
                    status: 200,
                    upstream_status: Some(200),
                    attempts: 1,
                    outcome: Outcome::Complete,
                    received: None,
                    bytes: 7,
                    response: [2; 32],
                    payloads: None,
                    usage: None,
                    charged: None,
                    cost_nanodollars: None,
                    duration_us: 1,
                    policy: None,
                    config: ConfigId([1; 8]),
                }
                .encode_into(out)
            })
            .unwrap();
        settle(&mut self.new);
    }

    fn check(&self) -> Report {
        fsck(&self.disk, Path::new("/"), Some(&vkey()), &[]).unwrap()
    }

    fn expect(&self, verdict: Verdict, message: &str) {
        let report = self.check();
        let mut findings = report.incarnations.iter().flat_map(|log| &log.findings);
        assert!(
            findings.any(|found| found.verdict == verdict && found.message.contains(message)),
            "{message}: {report:#?}"
        );
        assert_eq!(report.verdict, verdict, "{report:#?}");
    }
}

#[test]
fn a_log_that_goes_on_in_another_verifies_at_every_step() {
    let mut rotated = rotated();
    let root = root_of(&rotated.old.durability_model.appended);
    assert_eq!(rotated.check().verdict, Verdict::Ok, "{:#?}", rotated.check());
    rotated.take_over(root);
    assert_eq!(rotated.check().verdict, Verdict::Ok, "{:#?}", rotated.check());
    rotated.complete();
    assert_eq!(rotated.check().verdict, Verdict::Ok, "{:#?}", rotated.check());
    rotated.new.seal().unwrap();
    assert_eq!(rotated.check().verdict, Verdict::Ok, "{:#?}", rotated.check());
}

#[test]
fn a_log_that_ends_before_it_told_leaves_that_to_the_next_start() {
    let mut rotated = rotated();
    rotated.complete();
    rotated.new.seal().unwrap();
    assert_eq!(rotated.check().verdict, Verdict::Ok, "{:#?}", rotated.check());
    let Rotated { disk, old, new, .. } = rotated;
    drop((old, new));
    disk.restart();
    start(&disk, &mut DurabilityModel::default()).unwrap();
    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
}

#[test]
fn a_seal_that_names_another_log_than_the_one_that_goes_on_is_told() {
    let (disk, mut old) = worker_with_records();
    let (there, stranger) = worker_with_records();
    seal(&mut old, stranger.durability_model.incarnation.unwrap());
    for path in there.files() {
        if path.starts_with(&stranger.durability_model.dir) {
            if disk.list(&stranger.durability_model.dir).is_err() {
                disk.create_dir(&stranger.durability_model.dir).unwrap();
            }
            disk.create(&path).unwrap();
            let bytes = there.read(&path).unwrap();
            disk.corrupt(&path, |file| file.clone_from(&bytes));
        }
    }
    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(report.verdict, Verdict::Diverged, "{report:#?}");
}

#[test]
fn a_takeover_with_another_root_is_a_divergence() {
    let mut rotated = rotated();
    rotated.take_over([7; 32]);
    rotated.expect(Verdict::Diverged, "do not hash to the root");
}

#[test]
fn a_second_takeover_is_told() {
    let mut rotated = rotated();
    let root = root_of(&rotated.old.durability_model.appended);
    rotated.take_over(root);
    rotated.take_over(root);
    rotated.expect(Verdict::Invalid, "is a second takeover");
}

#[test]
fn an_exchange_that_ends_in_both_logs_is_told() {
    let mut rotated = rotated();
    rotated.complete();
    rotated.complete();
    rotated.expect(Verdict::Invalid, "that exchange has already ended");
}

#[test]
fn a_successor_that_a_seal_names_and_that_is_gone_is_told() {
    let rotated = rotated();
    let dir = rotated.new.durability_model.dir.clone();
    for name in rotated.disk.list(&dir).unwrap() {
        rotated.disk.remove(&dir.join(name)).unwrap();
    }
    rotated.disk.remove_dir(&dir);
    rotated.expect(Verdict::Incomplete, "is missing");
}
