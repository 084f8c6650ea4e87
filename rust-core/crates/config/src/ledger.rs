//! The section `ledger`: how and where exchanges are recorded.

use std::time::Duration;

use serde::Deserialize;

use crate::seconds::seconds;

/// The settings of the ledger.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ledger {
    /// The name of the ledger and of its signing key; every origin starts with it.
    pub name: String,
    /// The directory of the ledger.
    pub directory: String,
    /// The number of this worker's shard.
    pub shard: u32,
    pub durability: Durability,
    #[serde(rename = "checkpointIntervalSeconds", deserialize_with = "seconds")]
    pub checkpoint_interval: Duration,
    pub signing_key: SigningKeyFile,
    /// Bytes of one file of the log.
    pub segment_bytes: u64,
    /// The size and age at which a log is closed and the next one is started.
    pub rotation: LogRotation,
    /// The storage of bodies; `None` if no tenant may have stored bodies.
    #[serde(default)]
    pub payloads: Option<PayloadsConfig>,
    /// The directory of tenants' shred keys; `None`: salts are stored unencrypted. The directory is
    /// read when this configuration is put into service, so that the keys are stored nowhere else.
    #[serde(default)]
    pub shred_keys_directory: Option<String>,
    /// Whether records contain the client's address.
    #[serde(default)]
    pub record_client_address: bool,
    /// Whether records contain the end user's name, as the client sends it.
    #[serde(default)]
    pub record_end_user: bool,
    /// The place outside the ledger that holds a checkpoint of each shard; `None`: no checkpoint is
    /// held.
    #[serde(default)]
    pub held_checkpoints: Option<HeldCheckpoints>,
}

impl Ledger {
    /// Returns the personal data that records contain.
    pub fn personal_data(&self) -> PersonalData {
        PersonalData {
            client_address: self.record_client_address,
            end_user: self.record_end_user,
        }
    }

    /// Whether all settings that a worker reads only at its start are the same as in `other`.
    pub(crate) fn has_same_fixed_settings(&self, other: &Ledger) -> bool {
        let Ledger {
            name,
            directory,
            shard,
            durability,
            checkpoint_interval,
            signing_key,
            segment_bytes,
            rotation,
            payloads,
            shred_keys_directory: _,
            record_client_address: _,
            record_end_user: _,
            held_checkpoints,
        } = self;
        let memory = |payloads: &Option<PayloadsConfig>| payloads.map(|payloads| payloads.budget_bytes);
        *name == other.name
            && *directory == other.directory
            && *shard == other.shard
            && *durability == other.durability
            && *checkpoint_interval == other.checkpoint_interval
            && *signing_key == other.signing_key
            && *segment_bytes == other.segment_bytes
            && *rotation == other.rotation
            && memory(payloads) == memory(&other.payloads)
            && *held_checkpoints == other.held_checkpoints
    }
}

/// Personal data that records contain beyond pseudonyms. A record cannot be erased; only its whole log can be removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PersonalData {
    /// The client's address.
    pub client_address: bool,
    /// The end user's name, as the client sends it.
    pub end_user: bool,
}

/// The limits at which a log is closed and the next one is started.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogRotation {
    /// Maximum bytes of the log's records.
    pub bytes: u64,
    /// Maximum age of the log.
    #[serde(rename = "seconds", deserialize_with = "seconds")]
    pub age: Duration,
}

/// The settings for bodies stored next to the log.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PayloadsConfig {
    /// The default for plans and tenants without a setting.
    pub mode: PayloadMode,
    /// Maximum bytes of a stored body.
    pub max_bytes: usize,
    /// Maximum bytes of memory for all copies of bodies.
    pub budget_bytes: usize,
}

/// The handling of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum PayloadMode {
    /// Records contain only commitments to bodies.
    Committed,
    /// Bodies are stored as well.
    Stored,
}

/// The text of a signing key's file: the key, the previous key if it is still needed, and key
/// succession statements. Two texts are equal if their signing keys are the same.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct SigningKeyFile(pub String);

impl PartialEq for SigningKeyFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.trim_start().lines().next() == other.0.trim_start().lines().next()
    }
}

/// The place of checkpoints that no writer of the volume can change.
#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeldCheckpoints {
    /// The directory with one file for each shard, named by the shard's number.
    pub directory: String,
    #[serde(rename = "keptBy")]
    pub held_by: HeldBy,
}

/// The writer of the held checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum HeldBy {
    /// The worker itself.
    Worker,
    /// The operator; the worker only reads them.
    Operator,
}

/// The point at which a record counts as written.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Durability {
    /// After `write(2)`: the record survives a crash of the process, but not of the machine.
    Written,
    /// After `fdatasync(2)`: the record survives a crash of the machine.
    Synced,
}
