//! The control side's view of the tenants that come in shards: what is in service, and what was refused.

use std::collections::BTreeSet;

use proofgate_auth::{SHARD_COUNT, Shard, ShardError, Shards, WellKnownKey};
use proofgate_ledger::Hash;
use proofgate_ledger::record::{ConfigDigests, SettingsDigest};
use serde::Serialize;

use crate::metrics::Metrics;

/// So many keys that are left out are named.
const MAX_LISTED_KEYS: usize = 8;

/// The files of one shard of tenants as they are now; a file that is not there is empty.
#[derive(Debug, Clone, Copy)]
pub struct ShardFiles<'f> {
    /// The shard's number, from 0 on.
    pub number: usize,
    /// Lines `<digest> <tenant> <key name>[ not_after=<seconds since 1970>]`, sorted by digest.
    pub keys: &'f [u8],
    /// Lines `<tenant> <plan>`, sorted.
    pub tenants: &'f [u8],
}

/// What has become of the shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardsReport {
    /// Tenants in service.
    pub tenants: usize,
    /// Keys in service.
    pub keys: usize,
    /// Of those that were given: what is wrong with each that stays as it was.
    pub refused: Vec<RefusedShard>,
    /// How many keys are left out because everybody can guess them.
    pub well_known: usize,
    /// The first of those, by the shards' numbers.
    pub first_well_known: Vec<IgnoredKey>,
}

/// A key that lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IgnoredKey {
    /// The tenant that it was to be of.
    pub tenant: String,
    /// Its name there.
    pub key: String,
}

/// Why a shard stays as it was; it repeats nothing of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedShard {
    /// Its number.
    pub shard: usize,
    /// `keys` or `tenants`.
    pub file: String,
    /// Counts from 1; 0 when the whole file is meant.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
}

impl From<&WellKnownKey> for IgnoredKey {
    fn from(key: &WellKnownKey) -> Self {
        IgnoredKey {
            tenant: key.tenant.to_string(),
            key: key.name.to_string(),
        }
    }
}

impl RefusedShard {
    pub fn new(shard: usize, error: &ShardError) -> Self {
        RefusedShard {
            shard,
            file: error.file.to_string(),
            line: error.line,
            problem: error.problem.to_string(),
        }
    }
}

/// The shards in service with the configuration that they belong to.
#[derive(Clone)]
pub struct TenantShards {
    /// Of the configuration alone.
    configuration: Hash,
    /// Whether it has shards.
    shards_configured: bool,
    shards: Shards,
    refused_shards: BTreeSet<usize>,
}

impl TenantShards {
    pub fn new(configuration: &Hash, wanted: bool) -> Self {
        TenantShards {
            configuration: *configuration,
            shards_configured: wanted,
            shards: Shards::default(),
            refused_shards: BTreeSet::new(),
        }
    }

    /// The same under another configuration; without tenants, if that has no shards.
    pub fn with_configuration(&self, configuration: &Hash, wanted: bool) -> Self {
        match wanted {
            true => TenantShards {
                configuration: *configuration,
                shards_configured: wanted,
                ..self.clone()
            },
            false => TenantShards::new(configuration, wanted),
        }
    }

    /// The same with other content of some shards. One that cannot be read stays as it is.
    pub fn with_files(&self, files: &[ShardFiles<'_>]) -> (Self, Vec<RefusedShard>) {
        let mut next = self.clone();
        let (mut parsed, mut refused) = (Vec::new(), Vec::new());
        for file in files.iter().filter(|file| file.number < SHARD_COUNT) {
            match Shard::parse(file.keys, file.tenants) {
                Ok(shard) => {
                    parsed.push((file.number, shard));
                    next.refused_shards.remove(&file.number);
                }
                Err(error) => {
                    next.refused_shards.insert(file.number);
                    refused.push(RefusedShard::new(file.number, &error));
                }
            }
        }
        if !parsed.is_empty() {
            next.shards = next.shards.with_shards(parsed);
        }
        (next, refused)
    }

    pub fn active_shards(&self) -> &Shards {
        &self.shards
    }

    pub fn has_configured_shards(&self) -> bool {
        self.shards_configured
    }

    /// What stands in records: the configuration's own digest, or with shards one over that and theirs.
    pub fn digests(&self) -> ConfigDigests {
        match self.shards_configured {
            true => ConfigDigests {
                config: self.shards.digest_with(&self.configuration),
                settings: Some(SettingsDigest(self.configuration)),
            },
            false => ConfigDigests::from_config(self.configuration),
        }
    }

    pub fn report(&self, refused: Vec<RefusedShard>) -> ShardsReport {
        ShardsReport {
            tenants: self.shards.iter().map(|shard| shard.tenants().len()).sum(),
            keys: self.shards.iter().map(|shard| shard.key_count()).sum(),
            refused,
            well_known: self.well_known().count(),
            first_well_known: self
                .well_known()
                .take(MAX_LISTED_KEYS)
                .map(IgnoredKey::from)
                .collect(),
        }
    }

    fn well_known(&self) -> impl Iterator<Item = &WellKnownKey> {
        self.shards.iter().flat_map(|shard| shard.well_known())
    }

    pub fn record_metrics(&self, metrics: &Metrics) {
        let report = self.report(Vec::new());
        let gauge = |count| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.shard_tenants.set(gauge(report.tenants));
        metrics.shard_keys.set(gauge(report.keys));
        metrics.shard_keys_well_known.set(gauge(report.well_known));
        metrics.shards_refused.set(gauge(self.refused_shards.len()));
    }
}
