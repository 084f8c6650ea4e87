//! Short ids that records use for configurations, salts and keys.

use super::text::{base64_hash, hex};
use crate::{Hash, LedgerError};
use serde::{Deserialize, Serialize};

/// The id of the configuration in force: the first 8 bytes of its SHA-256, in hex. An earlier
/// `open` or `config` record in the same log contains the whole digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigId(#[serde(with = "hex")] pub [u8; 8]);

/// The SHA-256 of the contents of a configuration file, in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsDigest(#[serde(with = "hex")] pub Hash);

/// The digests by which `open` and `config` records name the configuration in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigDigests {
    /// The digest of the whole configuration.
    pub config: Hash,
    /// The digest of the configuration's file, if the file does not contain the whole
    /// configuration.
    pub settings: Option<SettingsDigest>,
}

impl ConfigDigests {
    /// Creates the digests of a configuration that is completely contained in its file.
    #[must_use]
    pub fn from_config(config: Hash) -> Self {
        Self {
            config,
            settings: None,
        }
    }

    /// Returns the configuration's short id in records.
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

/// The id of the salt of an exchange's commitments: the first 8 bytes of a digest of the salt, in
/// hex. It makes a changed salt detectable and reveals nothing about the salt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaltId(#[serde(with = "hex")] pub [u8; 8]);

/// The id of the [`ShredKey`](crate::ShredKey) that a salt needs: the first 8 bytes of a digest of
/// the key, in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShredKeyId(#[serde(with = "hex")] pub [u8; 8]);

impl std::str::FromStr for ShredKeyId {
    type Err = LedgerError;

    /// Parses 16 lower-case hex digits.
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
