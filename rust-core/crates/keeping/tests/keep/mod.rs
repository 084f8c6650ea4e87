//! A shard with several logs on a simulated disk, and its retention job.
#![allow(dead_code, reason = "each test binary uses only some of these helpers")]

use proofgate_evidence::{FsckKeys, HeldCheckpoint, ReadStorage, Report, Ulid, fsck};
use proofgate_keeping::{
    HoldScope, PlanRequest, PlannedLog, RemovalAction, RetentionError, RetentionPolicy, RetentionState, plan,
    prune,
};
use proofgate_ledger::record::{Analysis, ConfigId};
use proofgate_ledger::{Justification, SigningKey};
use proofgate_ledger_testkit::{Worker, vkey};
use proofgate_state::memory::MemoryStorage;
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub const DAY: u64 = 86_400_000_000;
/// All records in the tests have times in the first moments of 1970.
pub const NOW: u64 = 200 * DAY;

pub fn keeping_key() -> SigningKey {
    SigningKey::generate("ledger.example/keeping", [5; 32]).unwrap()
}

/// Returns a justification with this reason.
pub fn why(reason: &str) -> Justification {
    Justification {
        author: "officer".to_owned(),
        reason: reason.to_owned(),
        ticket: Some("2026-17".to_owned()),
    }
}

/// A shard and its retention job.
pub struct Keep {
    pub disk: SimulatedDisk,
    pub state: MemoryStorage,
    pub retention: RetentionState,
    pub policy: RetentionPolicy,
    pub held: Vec<HeldCheckpoint>,
    pub now: u64,
}

impl Keep {
    pub fn of(disk: &SimulatedDisk) -> Self {
        let state = MemoryStorage::default();
        let retention =
            RetentionState::create(Arc::new(state.clone()), &vkey(), &keeping_key().verifying_key()).unwrap();
        Self {
            disk: disk.clone(),
            state,
            retention,
            policy: RetentionPolicy::new(180, BTreeMap::new()).unwrap(),
            held: Vec::new(),
            now: NOW,
        }
    }

    pub fn hold(&mut self, scope: HoldScope) -> u64 {
        self.retention
            .add_hold(None, scope, &why("a case"), 1)
            .unwrap()
            .id
    }

    fn with<T>(&self, act: impl FnOnce(&PlanRequest<'_>) -> T) -> T {
        let (key, keeping) = (vkey(), keeping_key().verifying_key());
        act(&PlanRequest {
            ledger: Path::new("/"),
            key: &key,
            retention_key: &keeping,
            retention: &self.retention,
            policy: &self.policy,
            justification: &why("the retention of 180 days"),
            held_checkpoints: &self.held,
            now: self.now,
            started_at: None,
        })
    }

    pub fn plan(&self) -> Vec<PlannedLog> {
        self.plan_of(&self.disk)
    }

    pub fn plan_of(&self, storage: &dyn ReadStorage) -> Vec<PlannedLog> {
        self.with(|what| plan(storage, what)).unwrap()
    }

    pub fn try_prune(&self) -> Result<Vec<PlannedLog>, RetentionError> {
        self.with(|what| prune(&self.disk, what, &keeping_key()))
    }

    pub fn prune(&self) -> Vec<String> {
        fates(&self.try_prune().unwrap())
    }

    /// Returns what happens to the logs, oldest first: `remove`, or the codes of the reasons to retain each.
    pub fn fates(&self) -> Vec<String> {
        fates(&self.plan())
    }

    pub fn check(&self) -> Report {
        check(&self.disk)
    }
}

pub fn fates(planned: &[PlannedLog]) -> Vec<String> {
    planned
        .iter()
        .map(|log| match &log.action {
            RemovalAction::Remove(_) => "remove".to_owned(),
            RemovalAction::Finish(_) => "finish".to_owned(),
            RemovalAction::Removed => "removed".to_owned(),
            RemovalAction::Retain(why) => {
                let mut codes: Vec<&str> = why.iter().map(|why| why.code).collect();
                codes.dedup();
                codes.join(" ")
            }
        })
        .collect()
}

pub fn check(disk: &SimulatedDisk) -> Report {
    let (key, keeping) = (vkey(), keeping_key().verifying_key());
    let keys = FsckKeys {
        ledger: Some(&key),
        retention: Some(&keeping),
        shred: None,
    };
    fsck(disk, Path::new("/"), keys, &[]).unwrap()
}

/// Returns codes and messages of the findings.
pub fn found(report: &Report) -> Vec<(Option<&'static str>, String)> {
    let logs = report.incarnations.iter().flat_map(|log| &log.findings);
    logs.chain(&report.findings)
        .map(|found| (found.code, found.message.clone()))
        .collect()
}

/// A change to a disk, with the codes that are reported for it.
pub type Attack<'a> = (&'static str, &'a dyn Fn(&SimulatedDisk));

/// Replaces a file by a directory, or creates the directory.
pub fn folder(disk: &SimulatedDisk, path: &Path) {
    let _ = disk.remove(path);
    disk.create_dir(path).unwrap();
}

/// Adds an analysis of the answer of an exchange that another log admitted.
pub fn analyse(worker: &mut Worker, exchange: &str, (log, admission): (Ulid, u64), ts: u64) {
    let log = log.to_string();
    let analysis = |seq, out: &mut Vec<u8>| {
        let analysis = Analysis {
            seq,
            ts,
            exchange: exchange.into(),
            admission,
            incarnation: Some(log.as_str().into()),
            tenant: "acme".into(),
            model: "m".into(),
            findings: vec!["loop".into()],
            answer: None,
            window: None,
            config: ConfigId([1; 8]),
        };
        analysis.encode_into(out)
    };
    worker.append(analysis).unwrap();
}

/// Returns a scope that covers only the end of `across`.
pub fn its_end() -> HoldScope {
    HoldScope {
        since: Some(60),
        ..HoldScope::default()
    }
}
