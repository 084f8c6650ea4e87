//! The tenant shards as the control side sees them: the shards in service, and the refused shards.

use std::collections::BTreeSet;

use proofgate_auth::{SHARD_COUNT, Shard, ShardError, Shards, WellKnownKey};
use proofgate_ledger::Hash;
use proofgate_ledger::record::{ConfigDigests, SettingsDigest};
use serde::Serialize;

use crate::metrics::Metrics;

/// Maximum number of ignored keys that a report names.
const MAX_LISTED_KEYS: usize = 8;

/// The current files of one tenant shard; a missing file is empty.
#[derive(Debug, Clone, Copy)]
pub struct ShardFiles<'f> {
    /// The shard's number, from 0.
    pub number: usize,
    /// Lines `<digest> <tenant> <key name>[ not_after=<seconds since 1970>]`, sorted by digest.
    pub keys: &'f [u8],
    /// Lines `<tenant> <plan>`, sorted.
    pub tenants: &'f [u8],
}

/// The state of the shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardsReport {
    /// Tenants in service.
    pub tenants: usize,
    /// Keys in service.
    pub keys: usize,
    /// The shards that were not applied, each with its error.
    pub refused: Vec<RefusedShard>,
    /// Number of keys that are ignored because they are well known.
    pub well_known: usize,
    /// The first of these keys, by shard number.
    pub first_well_known: Vec<IgnoredKey>,
}

/// An ignored key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IgnoredKey {
    /// Tenant of the key.
    pub tenant: String,
    /// The key's name.
    pub key: String,
}

/// The reason why a shard was not applied. It quotes no part of the shard's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedShard {
    /// Number of the shard.
    pub shard: usize,
    /// `keys` or `tenants`.
    pub file: String,
    /// Line number, from 1; 0 means the whole file.
    pub line: usize,
    /// The mistake.
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

/// The shards in service, with the configuration to which they belong.
#[derive(Clone)]
pub struct TenantShards {
    /// The digest of the configuration alone.
    configuration: Hash,
    /// Whether the configuration uses shards.
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

    /// Returns the same shards under another configuration, or no shards if that configuration does
    /// not use shards.
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

    /// Returns the shards with new contents for some of them, and the refused shards. A shard with
    /// an invalid file remains unchanged.
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

    /// Returns the shards in service.
    pub fn active_shards(&self) -> &Shards {
        &self.shards
    }

    /// Returns whether the configuration uses shards.
    pub fn has_configured_shards(&self) -> bool {
        self.shards_configured
    }

    /// Returns the digests for records. Without shards, this is the configuration's digest; with
    /// shards, also a digest over this digest and the shards' digests.
    pub fn digests(&self) -> ConfigDigests {
        match self.shards_configured {
            true => ConfigDigests {
                config: self.shards.digest_with(&self.configuration),
                settings: Some(SettingsDigest(self.configuration)),
            },
            false => ConfigDigests::from_config(self.configuration),
        }
    }

    /// Creates the report of the shards in service and the `refused` shards.
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
        self.shards.iter().flat_map(|shard| shard.well_known_keys())
    }

    /// Sets the metrics of tenant shards.
    pub fn record_metrics(&self, metrics: &Metrics) {
        let report = self.report(Vec::new());
        let gauge = |count| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.shard_tenants.set(gauge(report.tenants));
        metrics.shard_keys.set(gauge(report.keys));
        metrics.shard_keys_well_known.set(gauge(report.well_known));
        metrics.shards_refused.set(gauge(self.refused_shards.len()));
    }
}
