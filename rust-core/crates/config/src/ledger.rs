//! The section `ledger`: how and where exchanges are recorded.

use std::time::Duration;

use serde::Deserialize;

use crate::seconds::seconds;

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
    /// How bodies are stored; `None` where no tenant may have them stored.
    #[serde(default)]
    pub payloads: Option<PayloadsConfig>,
    /// The folder of tenants' shred keys, which is read when this comes into service, so that they are nowhere else; `None`
    /// means that salts are stored whole.
    #[serde(default)]
    pub shred_keys_directory: Option<String>,
    /// Whether records have the address of the client.
    #[serde(default)]
    pub record_client_address: bool,
    /// Whether records have the end user's name, as the client gives it.
    #[serde(default)]
    pub record_end_user: bool,
    /// Where a checkpoint of each shard is held, outside the ledger.
    #[serde(default)]
    pub held_checkpoints: Option<HeldCheckpoints>,
}

impl Ledger {
    /// What records say of persons.
    pub fn personal_data(&self) -> PersonalData {
        PersonalData {
            client_address: self.record_client_address,
            end_user: self.record_end_user,
        }
    }

    /// Whether all that is fixed for the life of a worker is as in `other`.
    pub(crate) fn is_fixed_as(&self, other: &Ledger) -> bool {
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

/// What records say of persons beyond pseudonyms: a record cannot be erased, only its whole log removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PersonalData {
    /// The address of the client.
    pub client_address: bool,
    /// The end user's name, as the client gives it.
    pub end_user: bool,
}

/// When a log ends and the next one begins.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogRotation {
    /// Bytes of its records.
    pub bytes: u64,
    /// How long it lasts at most.
    #[serde(rename = "seconds", deserialize_with = "seconds")]
    pub age: Duration,
}

/// How bodies are stored beside the log.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PayloadsConfig {
    /// What holds for plans and tenants that say nothing of it.
    pub mode: PayloadMode,
    /// Bytes of a body that is stored, at most.
    pub max_bytes: usize,
    /// Bytes of all copies in memory together, at most.
    pub budget_bytes: usize,
}

/// What becomes of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum PayloadMode {
    /// Records have commitments to them, and that is all.
    Committed,
    /// They are stored as well.
    Stored,
}

/// The text of a signing key's file: the key, the one before it where that is still needed, and statements of succession.
/// Two are equal when the key is.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct SigningKeyFile(pub String);

impl PartialEq for SigningKeyFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.trim_start().lines().next() == other.0.trim_start().lines().next()
    }
}

/// Checkpoints kept where no writer of the volume can change them.
#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HeldCheckpoints {
    /// One file for each shard, named by its number.
    pub directory: String,
    #[serde(rename = "keptBy")]
    pub by: HeldBy,
}

/// Who keeps them.
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
    /// After `write(2)`: survives the process, not the machine.
    Written,
    /// After `fdatasync(2)`: survives the machine.
    Synced,
}
