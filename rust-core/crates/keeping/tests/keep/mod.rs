//! A shard of several lives on a simulated disk, and its keeper.
#![allow(dead_code, reason = "each test binary uses its part")]

use crate::support::{Promised, Worker, filled, start, vkey};
use proofgate_evidence::{HeldCheckpoint, Keys, Report, Ulid, fsck};
use proofgate_keeping::{Fate, Keeper, KeepingError, Plan, Planned, Policy, Scope, plan, prune};
use proofgate_ledger::SigningKey;
use proofgate_state::memory::Memory;
use proofgate_wal::simulated::SimulatedDisk;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const DAY: u64 = 86_400_000_000;
/// All records of the tests are of the first moments of 1970.
pub const NOW: u64 = 200 * DAY;

pub fn keeping_key() -> SigningKey {
    SigningKey::generate("ledger.example/keeping", [5; 32]).unwrap()
}

/// A shard, and who keeps it.
pub struct Keep {
    pub disk: SimulatedDisk,
    pub state: Memory,
    pub keeper: Keeper,
    pub policy: Policy,
    pub held: Vec<HeldCheckpoint>,
    pub now: u64,
}

impl Keep {
    pub fn of(disk: &SimulatedDisk) -> Self {
        let state = Memory::default();
        let keeper = Keeper::begin(Arc::new(state.clone()), &vkey(), &keeping_key().verifying_key()).unwrap();
        Self {
            disk: disk.clone(),
            state,
            keeper,
            policy: Policy::new(180, BTreeMap::new()).unwrap(),
            held: Vec::new(),
            now: NOW,
        }
    }

    pub fn hold(&mut self, scope: Scope) -> u64 {
        self.keeper
            .add(None, scope, "a case", Some("2026-17"), 1)
            .unwrap()
            .id
    }

    fn with<T>(&self, act: impl FnOnce(&Plan<'_>) -> T) -> T {
        let (key, keeping) = (vkey(), keeping_key().verifying_key());
        act(&Plan {
            ledger: Path::new("/"),
            key: &key,
            keeping: &keeping,
            keeper: &self.keeper,
            policy: &self.policy,
            reason: "the retention of 180 days",
            held: &self.held,
            now: self.now,
        })
    }

    pub fn plan(&self) -> Vec<Planned> {
        self.with(|what| plan(&self.disk, what)).unwrap()
    }

    pub fn try_prune(&self) -> Result<Vec<Planned>, KeepingError> {
        self.with(|what| prune(&self.disk, what, &keeping_key()))
    }

    pub fn prune(&self) -> Vec<String> {
        fates(&self.try_prune().unwrap())
    }

    /// What is to become of the logs, the oldest first: `remove`, or the codes of why each stays.
    pub fn fates(&self) -> Vec<String> {
        fates(&self.plan())
    }

    pub fn check(&self) -> Report {
        check(&self.disk)
    }
}

pub fn fates(planned: &[Planned]) -> Vec<String> {
    planned
        .iter()
        .map(|log| match &log.fate {
            Fate::Remove(_) => "remove".to_owned(),
            Fate::Finish(_) => "finish".to_owned(),
            Fate::Removed => "removed".to_owned(),
            Fate::Stay(why) => {
                let mut codes: Vec<&str> = why.iter().map(|why| why.code).collect();
                codes.dedup();
                codes.join(" ")
            }
        })
        .collect()
}

pub fn check(disk: &SimulatedDisk) -> Report {
    let (key, keeping) = (vkey(), keeping_key().verifying_key());
    let keys = Keys {
        ledger: Some(&key),
        keeping: Some(&keeping),
        shred: None,
    };
    fsck(disk, Path::new("/"), keys, &[]).unwrap()
}

/// Codes and messages of what was found.
pub fn found(report: &Report) -> Vec<(Option<&'static str>, String)> {
    let logs = report.incarnations.iter().flat_map(|log| &log.findings);
    logs.chain(&report.findings)
        .map(|found| (found.code, found.message.clone()))
        .collect()
}

/// Four lives of a shard. The first was killed with an exchange open and its last records under no checkpoint of its own,
/// so the second ends that; the second and the third were sealed; the fourth goes on.
pub fn four_lives() -> (SimulatedDisk, Vec<Worker>) {
    let (disk, mut first) = filled();
    first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut workers = vec![first];
    for name in ["second", "third", "fourth"] {
        let mut worker = start(&disk, &mut Promised::default()).unwrap();
        worker.complete_one(name);
        if name != "fourth" {
            worker.seal().unwrap();
            disk.restart();
        }
        workers.push(worker);
    }
    (disk, workers)
}

pub fn dir(worker: &Worker) -> PathBuf {
    worker.promised.dir.clone()
}

pub fn ulid(worker: &Worker) -> Ulid {
    worker.promised.incarnation.unwrap()
}
