//! Minimal workers on a simulated disk: a limiter and a store each.
#![allow(dead_code, reason = "each test binary uses only some of these helpers")]

use proofgate_limit_store::{LimitStore, LimitStoreError, OpenedStore, file_name};
use proofgate_limits::{
    Changes, CredentialId, LimitExceeded, Limiter, Limits, Quotas, TenantId, TenantLimits,
};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Storage, Ulid};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const SECOND: u64 = 1_000_000;
/// 2023-11-14, 22:13:20.5 UTC.
pub const START: u64 = 1_700_000_000 * SECOND + SECOND / 2;
pub const KEY: CredentialId = CredentialId::ApiKey([1, 2, 3, 4]);

/// Returns the ULID of an incarnation that began this many seconds after `START`.
pub fn ulid(shard: u32, after: u64) -> Ulid {
    Ulid::from_parts(START / 1000 + after * 1000, u128::from(shard) + 1)
}

pub fn file(shard: u32, after: u64) -> PathBuf {
    Path::new("/")
        .join(shard.to_string())
        .join(file_name(ulid(shard, after)))
}

pub struct Worker {
    pub limiter: Limiter,
    pub acme: TenantId,
    pub store: LimitStore,
    /// Records in its ledger.
    pub records: u64,
    changes: Changes,
}

/// Claims a directory and opens a store in it; the tenant has 1000 tokens per minute and 4 concurrent requests.
pub fn start(
    disk: &SimulatedDisk,
    shard: u32,
    after: u64,
    sync: bool,
) -> Result<(Worker, Found), LimitStoreError> {
    let _ = disk.create_dir(&Path::new("/").join(shard.to_string()));
    let now = START + after * SECOND;
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let opened = LimitStore::open(storage, Path::new("/"), shard, ulid(shard, after), sync, now)?;
    let mut limiter = Limiter::new();
    let limits = Limits {
        tokens_per_minute: NonZeroU64::new(1000),
        concurrency: NonZeroU64::new(4),
        ..Limits::default()
    };
    let acme = limiter.set_limits(&[TenantLimits {
        name: "acme".into(),
        quotas: Arc::new(Quotas::new(&limits, &Limits::default())),
    }]);
    let OpenedStore {
        store,
        crashed_predecessors: crashed,
        problems,
    } = opened;
    let mut worker = Worker {
        limiter,
        acme: acme[0],
        store,
        records: 1,
        changes: Changes::default(),
    };
    worker.absorb(now);
    let found = Found {
        crashed,
        problems: problems
            .into_iter()
            .map(|problem| (problem.path, problem.reason))
            .collect(),
    };
    Ok((worker, found))
}

/// The result of `start`.
pub struct Found {
    pub crashed: Vec<proofgate_limits::Snapshot>,
    pub problems: Vec<(PathBuf, String)>,
}

impl Worker {
    /// Consumes one request that uses its whole reservation, with both its records.
    pub fn consume(&mut self, tokens: u64, now: u64) -> Result<(), LimitExceeded> {
        let mut grant = self.limiter.admit(self.acme, KEY, tokens, now)?;
        self.limiter.mark_recorded(&mut grant);
        self.limiter.keep_reservation(grant);
        self.records += 2;
        Ok(())
    }

    /// Takes changes and writes the file.
    pub fn publish(&mut self, now: u64) -> Result<bool, LimitStoreError> {
        self.limiter.take_changes(self.records, now, &mut self.changes);
        self.store.apply(&self.changes);
        self.store.write(now)
    }

    /// Reads what the other workers have published.
    pub fn look(&mut self, now: u64) -> Vec<(PathBuf, String)> {
        let problems = self.store.poll(now);
        self.absorb(now);
        problems
            .into_iter()
            .map(|problem| (problem.path, problem.reason))
            .collect()
    }

    pub fn absorb(&mut self, now: u64) {
        let sums = self.store.remote_changes(usize::MAX, now);
        self.limiter.apply_remote(&sums, now);
    }

    /// Returns the tenant's remaining tokens in this minute.
    pub fn left(&mut self, now: u64) -> u64 {
        let mut lines = Vec::new();
        self.limiter.limit_status(self.acme, KEY, now).write(&mut lines);
        let lines = String::from_utf8(lines).unwrap();
        let left = lines
            .lines()
            .find_map(|line| line.strip_prefix("x-ratelimit-remaining-tokens: "));
        left.map_or(0, |left| left.parse().unwrap())
    }
}
