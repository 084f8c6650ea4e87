//! The section `ledger`: how and where exchanges are recorded.

use std::time::Duration;

use serde::Deserialize;

use crate::seconds::seconds;

/// The settings of the ledger.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ledger {
    pub name: String,
    pub directory: String,
    pub shard: u32,
    pub durability: Durability,
    #[serde(rename = "checkpointIntervalSeconds", deserialize_with = "seconds")]
    pub checkpoint_interval: Duration,
    pub signing_key: SigningKeyFile,
    pub segment_bytes: u64,
    /// When a log ends and the next one begins.
    pub rotation: LogRotation,
    /// How bodies are stored; `None` if no tenant may have them stored.
    #[serde(default)]
    pub payloads: Option<PayloadsConfig>,
    /// The directory of tenants' shred keys, which is read when this configuration is put into service, so that the keys are
    /// nowhere else. `None` means that salts are stored whole.
    #[serde(default)]
    pub shred_keys_directory: Option<String>,
    /// Whether records contain the client's address.
    #[serde(default)]
    pub record_client_address: bool,
    /// Whether records contain the end user's name, as the client sends it.
    #[serde(default)]
    pub record_end_user: bool,
    /// Where a checkpoint of each shard is held outside the ledger.
    #[serde(default)]
    pub held_checkpoints: Option<HeldCheckpoints>,
}

impl Ledger {
    /// Returns which personal data records contain.
    pub fn personal_data(&self) -> PersonalData {
        PersonalData {
            client_address: self.record_client_address,
            end_user: self.record_end_user,
        }
    }

    /// Whether everything that is fixed for the life of a worker is the same as in `other`.
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

/// When a log ends and the next one begins.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogRotation {
    /// Maximum bytes of its records.
    pub bytes: u64,
    /// Maximum age.
    #[serde(rename = "seconds", deserialize_with = "seconds")]
    pub age: Duration,
}

/// How bodies are stored beside the log.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PayloadsConfig {
    /// The default for plans and tenants without a setting.
    pub mode: PayloadMode,
    /// Maximum bytes of a stored body.
    pub max_bytes: usize,
    /// Maximum bytes of all copies in memory together.
    pub budget_bytes: usize,
}

/// How bodies are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum PayloadMode {
    /// Records only contain commitments to them.
    Committed,
    /// They are stored as well.
    Stored,
}

/// The text of a signing key's file: the key, the previous key if it is still needed, and key succession statements. Two are
/// equal if the key is the same.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct SigningKeyFile(pub String);

impl PartialEq for SigningKeyFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.trim_start().lines().next() == other.0.trim_start().lines().next()
    }
}

/// Checkpoints stored where no writer of the volume can change them.
#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeldCheckpoints {
    /// The directory with one file for each shard, named by its number.
    pub directory: String,
    #[serde(rename = "keptBy")]
    pub held_by: HeldBy,
}

/// Who writes the held checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum HeldBy {
    /// The worker itself.
    Worker,
    /// The operator: the worker only reads.
    Operator,
}

/// When a record counts as written.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Durability {
    /// After `write(2)`: survives a crash of the process, but not of the machine.
    Written,
    /// After `fdatasync(2)`: survives a crash of the machine.
    Synced,
}
