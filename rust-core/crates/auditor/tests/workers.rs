//! Tests of the findings about a shard whose own worker does not answer, no longer exists, or stops
//! answering.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod audit;

use audit::{Audit, SECOND, auditor_key, remove, settings, two_lives};
use proofgate_auditor::{Auditor, FindingCode, Reachability, WorkerState, Workers};
use proofgate_evidence::{ReadFile, ReadStorage};
use proofgate_ledger_testkit::{log_dir, worker_with_records};
use proofgate_state::memory::MemoryStorage;
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn answering() -> Workers {
    told(true, None)
}

fn told(answers: bool, failing: Option<&str>) -> Workers {
    let failing = failing.map(str::to_owned);
    Workers::from([("3".to_owned(), Reachability { answers, failing })])
}

fn standing(audit: &Audit) -> Option<WorkerState> {
    audit.auditor.shard_statuses(audit.now)[0].worker
}

#[test]
fn a_worker_that_does_not_answer_is_told_once_that_is_to_be_told_and_nothing_else_is() {
    let (disk, _first, _second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.auditor.set_workers(answering());
    audit.is_quiet();
    assert_eq!(standing(&audit), Some(WorkerState::Answers));
    // Files that a worker does not serve cannot be read.
    audit.volume.swap(&SimulatedDisk::new());
    audit.auditor.set_workers(told(false, None));
    audit.is_quiet();
    assert_eq!(standing(&audit), Some(WorkerState::Silent));
    audit.auditor.set_workers(told(false, Some("it is away")));
    audit.poll();
    assert_eq!(
        audit.codes(),
        [FindingCode::WorkerUnreachable],
        "at once: who says so has waited"
    );
    assert_eq!(audit.auditor.findings()[0].shard, "3");
    audit.restart();
    audit.auditor.set_workers(told(false, None));
    audit.watch();
    assert_eq!(
        audit.codes(),
        [FindingCode::WorkerUnreachable],
        "as long as it does not answer"
    );
    audit.volume.swap(&disk);
    audit.auditor.set_workers(answering());
    audit.is_quiet();
}

#[test]
fn a_worker_that_answers_that_its_logs_are_gone_is_a_deletion() {
    let (disk, first, _second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.auditor.set_workers(answering());
    audit.is_quiet();
    remove(&disk, &log_dir(&first));
    audit.auditor.set_workers(answering());
    audit.expect(FindingCode::LogMissing);
    audit.volume.swap(&SimulatedDisk::new());
    audit.auditor.set_workers(answering());
    audit.expect(FindingCode::ShardMissing);
}

#[test]
fn a_sealed_shard_whose_worker_is_gone_is_no_finding_and_is_told_so() {
    let (disk, _first, mut second) = two_lives();
    second.seal().unwrap();
    let mut audit = Audit::of(&disk);
    audit.auditor.set_workers(answering());
    audit.is_quiet();
    audit.volume.swap(&SimulatedDisk::new());
    audit.auditor.set_workers(Workers::new());
    audit.is_quiet();
    assert_eq!(standing(&audit), Some(WorkerState::Gone));
}

#[test]
fn a_shard_that_was_not_sealed_when_its_worker_went_is_told_until_it_is_back() {
    let (disk, _first, _second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.auditor.set_workers(answering());
    audit.is_quiet();
    audit.volume.swap(&SimulatedDisk::new());
    audit.auditor.set_workers(Workers::new());
    audit.watch();
    assert_eq!(audit.codes(), [FindingCode::WorkerUnreachable]);
    audit.volume.swap(&disk);
    audit.auditor.set_workers(answering());
    audit.is_quiet();
}

#[test]
fn a_suspicion_outlives_the_silence_of_its_worker() {
    let (disk, first, _second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.auditor.set_workers(answering());
    audit.is_quiet();
    remove(&disk, &log_dir(&first));
    audit.poll();
    audit.auditor.set_workers(told(false, None));
    audit.watch();
    assert!(audit.auditor.findings().is_empty());
    audit.auditor.set_workers(answering());
    audit.poll();
    assert_eq!(
        audit.codes(),
        [FindingCode::LogMissing],
        "it is no first look any more"
    );
}

/// A worker's disk that stops answering between two calls.
struct Breaking(SimulatedDisk, Arc<AtomicBool>);

impl Breaking {
    fn asked(&self, path: &Path) -> io::Result<()> {
        // The ledger was listed before.
        let listed = path.components().count() <= 2;
        match self.1.load(Ordering::Relaxed) && !listed {
            true => Err(io::Error::new(io::ErrorKind::HostUnreachable, "it broke")),
            false => Ok(()),
        }
    }
}

impl ReadStorage for Breaking {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.asked(path)?;
        self.0.open(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.asked(path)?;
        self.0.list(path)
    }
}

#[test]
fn a_worker_that_breaks_off_while_it_is_read_makes_no_finding_of_its_own() {
    let (disk, mut worker) = worker_with_records();
    let broken = Arc::new(AtomicBool::new(false));
    let volume = Arc::new(Breaking(disk, Arc::clone(&broken)));
    let mut auditor = Auditor::create(
        volume,
        Arc::new(MemoryStorage::default()),
        auditor_key(),
        settings(),
    )
    .unwrap();
    let mut now = 1_000 * SECOND;
    for breaks in [false, true, false] {
        broken.store(breaks, Ordering::Relaxed);
        worker.run_exchange(if breaks { "unread" } else { "read" });
        for _ in 0..8 {
            now += SECOND;
            auditor.set_workers(answering());
            auditor.poll(now, u64::MAX, u64::MAX).unwrap();
        }
        assert_eq!(auditor.findings(), []);
    }
    assert_eq!(
        auditor.shard_statuses(now)[0].size,
        worker.durability_model.appended.len() as u64
    );
}
