//! The short names that records have for configurations, salts and keys.

use super::text::{base64_hash, hex};
use crate::{Hash, LedgerError};
use serde::{Deserialize, Serialize};

/// Which configuration was in force: the first 8 bytes of its SHA-256, in hex. The `open` or `config` record with the
/// whole digest comes before it in the same log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigId(#[serde(with = "hex")] pub [u8; 8]);

/// SHA-256 of what a configuration's file says, in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsDigest(#[serde(with = "hex")] pub Hash);

/// Which configuration is in force, as `open` and `config` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigDigests {
    /// The digest of the whole configuration.
    pub config: Hash,
    /// The digest of its file, where the file does not hold all of it.
    pub settings: Option<SettingsDigest>,
}

impl ConfigDigests {
    /// The digests of a configuration that its file holds whole.
    #[must_use]
    pub fn from_config(config: Hash) -> Self {
        Self {
            config,
            settings: None,
        }
    }

    /// Its short name in records.
    #[must_use]
    pub fn id(&self) -> ConfigId {
        ConfigId::from(&self.config)
    }
}

impl From<&Hash> for ConfigId {
    fn from(digest: &Hash) -> Self {
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        Self(id)
    }
}

/// A commitment to a body, in base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commitment(#[serde(with = "base64_hash")] pub Hash);

/// Which salt the commitments of an exchange have: the first 8 bytes of a digest of it, in hex. It shows that a salt was
/// changed, and reveals nothing of the salt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaltId(#[serde(with = "hex")] pub [u8; 8]);

/// Which [`ShredKey`](crate::ShredKey) a salt needs: the first 8 bytes of a digest of it, in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShredKeyId(#[serde(with = "hex")] pub [u8; 8]);

impl std::str::FromStr for ShredKeyId {
    type Err = LedgerError;

    /// Reads 16 lower-case hex digits.
    fn from_str(text: &str) -> Result<Self, LedgerError> {
        let id = hex::decode(text).ok_or(LedgerError::ShredKeysMalformed(
            "an id must be 16 lower-case hex digits",
        ))?;
        Ok(Self(id))
    }
}

impl std::fmt::Display for ShredKeyId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}
