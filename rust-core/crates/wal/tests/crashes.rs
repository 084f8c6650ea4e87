//! Tests that crash the machine, or let a call fail, at every storage call of a short worker run.
//! They check invariants I1 to I5 of the ledger reference: acknowledged records exist, published
//! checkpoints are extended, recovery is idempotent, each origin and size has one root, and no
//! durable record is cut.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{ReadStorage, Verdict, fsck};
use proofgate_ledger_testkit::{DurabilityModel, SHARD, inspect, start, vkey};
use proofgate_wal::WalError;
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use std::io;
use std::path::Path;

/// Runs a worker with admissions in flight, several checkpoints, a change of segment and a seal.
fn live(disk: &SimulatedDisk, promised: &mut DurabilityModel) -> Result<(), WalError> {
    let mut worker = start(disk, promised)?;
    let mut lived = || -> Result<(), WalError> {
        let first = worker.admit("a", 10)?;
        worker.flush()?;
        let second = worker.admit("b", 10)?;
        worker.complete("a", first)?;
        worker.flush()?;
        worker.step()?;
        worker.sync()?;
        worker.checkpoint()?;
        for turn in 0..6 {
            let id = format!("c{turn}");
            let admission = worker.admit(&id, 14_000)?;
            if turn % 2 == 0 {
                worker.complete(&id, admission)?;
            }
            worker.flush()?;
            worker.step()?;
            if turn == 4 {
                worker.sync()?;
                worker.checkpoint()?;
            }
        }
        worker.complete("b", second)?;
        worker.flush()?;
        worker.step()?;
        worker.sync()?;
        worker.seal()
    };
    let lived = lived();
    *promised = worker.durability_model.clone();
    lived
}

fn length_of_a_life() -> u64 {
    let disk = SimulatedDisk::new();
    live(&disk, &mut DurabilityModel::default()).unwrap();
    disk.calls()
}

/// Recovers after a crash, checks every promise, continues with a successor, and runs `fsck` on the result.
fn survive(disk: &SimulatedDisk, promised: &DurabilityModel, what: &str) {
    let found = inspect(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    promised.check(found.as_ref());
    let again = inspect(disk).unwrap();
    assert_eq!(found, again, "{what}: I3, recovery is idempotent");

    let mut next = DurabilityModel::default();
    live(disk, &mut next).unwrap_or_else(|error| panic!("{what}: the successor fails: {error}"));
    let report = fsck(disk, Path::new(SHARD), Some(&vkey()), &[]).unwrap();
    let findings = report
        .incarnations
        .iter()
        .flat_map(|incarnation| &incarnation.findings);
    let findings: Vec<_> = findings.map(|finding| &finding.message).collect();
    assert!(report.verdict <= Verdict::Incomplete, "{what}: {findings:?}");
    if let Some(found) = found {
        let covered = report
            .incarnations
            .iter()
            .find(|one| one.incarnation == found.incarnation.to_string());
        assert_eq!(covered.unwrap().records, found.size, "{what}");
    }
}

#[test]
fn power_lost_at_any_call_loses_nothing_that_was_promised() {
    for call in 0..length_of_a_life() {
        for seed in 0..6 {
            let disk = SimulatedDisk::new();
            disk.inject_fault_at(call, InjectedFault::Crash);
            let mut promised = DurabilityModel::default();
            // The last calls release unused space. Their failure is not a failure of the run.
            let _ = live(&disk, &mut promised);
            disk.crash(seed);
            survive(&disk, &promised, &format!("call {call}, seed {seed}"));
        }
    }
}

#[test]
fn a_process_killed_at_any_call_loses_nothing_that_was_written() {
    for call in 0..length_of_a_life() {
        let disk = SimulatedDisk::new();
        disk.inject_fault_at(call, InjectedFault::Crash);
        let mut promised = DurabilityModel::default();
        let _ = live(&disk, &mut promised);
        disk.restart();
        let found = inspect(&disk).unwrap();
        let size = found.as_ref().map_or(0, |found| found.size);
        assert!(
            size >= promised.written,
            "call {call}: {size} of {} written records",
            promised.written
        );
        survive(&disk, &promised, &format!("call {call}"));
    }
}

#[test]
fn a_crash_of_the_recovery_changes_nothing() {
    let disk = SimulatedDisk::new();
    disk.inject_fault_at(length_of_a_life() - 40, InjectedFault::Crash);
    let mut promised = DurabilityModel::default();
    assert!(live(&disk, &mut promised).is_err());
    disk.crash(1);
    let found = inspect(&disk.snapshot()).unwrap();
    let probe = disk.snapshot();
    inspect(&probe).unwrap();
    for call in 0..probe.calls() {
        let disk = disk.snapshot();
        disk.inject_fault_at(call, InjectedFault::Crash);
        assert!(inspect(&disk).is_err());
        disk.crash(call);
        assert_eq!(inspect(&disk).unwrap(), found, "call {call}");
    }
}

#[test]
fn an_error_of_any_call_loses_nothing_that_was_promised() {
    for kind in [io::ErrorKind::Other, io::ErrorKind::StorageFull] {
        for call in 0..length_of_a_life() {
            let disk = SimulatedDisk::new();
            disk.inject_fault_at(call, InjectedFault::Error(kind));
            let mut promised = DurabilityModel::default();
            // Some errors are tolerated, for instance a segment that could not be prepared.
            let _ = live(&disk, &mut promised);
            for seed in 0..2 {
                let disk = disk.snapshot();
                disk.crash(seed);
                survive(&disk, &promised, &format!("{kind:?} at call {call}, seed {seed}"));
            }
        }
    }
}

#[test]
fn a_short_write_at_any_call_loses_nothing_that_was_promised() {
    for call in 0..length_of_a_life() {
        let disk = SimulatedDisk::new();
        disk.inject_fault_at(call, InjectedFault::ShortWrite);
        let mut promised = DurabilityModel::default();
        let _ = live(&disk, &mut promised);
        disk.crash(call);
        survive(&disk, &promised, &format!("call {call}"));
    }
}

#[test]
fn a_shard_of_many_lives_is_one_chain() {
    let disk = SimulatedDisk::new();
    for life in 0..12 {
        let call = disk.calls() + 50 + 5 * life;
        if life % 3 != 2 {
            disk.inject_fault_at(call, InjectedFault::Crash);
        }
        let mut promised = DurabilityModel::default();
        let ended = live(&disk, &mut promised);
        assert_eq!(ended.is_ok(), life % 3 == 2);
        if life % 2 == 0 {
            disk.crash(life);
        } else {
            disk.restart();
        }
        promised.check(inspect(&disk).unwrap().as_ref());
    }
    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert!(report.verdict <= Verdict::Incomplete, "{report:#?}");
    let begun = disk.list(Path::new(SHARD)).unwrap().len();
    assert!(begun >= 8, "{begun}");
    assert_eq!(report.incarnations.len(), begun);
}

#[test]
fn a_log_that_begins_on_an_almost_full_disk_is_as_durable() {
    for seed in 0..64 {
        let disk = SimulatedDisk::new();
        disk.set_free(Some(100_000));
        let mut worker = start(&disk, &mut DurabilityModel::default()).unwrap();
        worker.step().unwrap();
        worker.sync().unwrap();
        disk.crash(seed);
        worker.durability_model.check(inspect(&disk).unwrap().as_ref());
    }
}
