use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::line::{LineError, MAX_LINE_BYTES, parse_key_line, parse_tenant_line};
use super::tenant_name::hash_prefix_of;
use crate::AuthError;
use crate::api_key::KeyHash;
use crate::key_index::{IndexedKey, KeyIndex};
use crate::well_known_keys::is_well_known;

/// Maximum length of a file in bytes: the maximum size of a Secret.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Maximum number of lines of a file.
const MAX_LINES: usize = 1 << 14;

/// A tenant of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardedTenant {
    /// The tenant's name, `<namespace>/<name>`.
    pub name: Arc<str>,
    /// The name of the tenant's plan, which may be missing in the configuration.
    pub plan: Arc<str>,
}

/// The position of a tenant's name in the text of all names, followed by the key's name; and the
/// hash prefix of the tenant.
#[derive(Debug, Clone, Copy)]
struct Owner {
    start: u32,
    length: u16,
    key_length: u8,
    hash_prefix: u64,
}

/// The owner and the name of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyOwner<'s> {
    pub(super) tenant: &'s str,
    pub(super) hash_prefix: u64,
    pub(super) key_name: &'s str,
}

/// A key that is refused because it is well known, with its tenant and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WellKnownKey {
    /// `<namespace>/<name>` of the tenant.
    pub tenant: Box<str>,
    /// The key's name.
    pub name: Box<str>,
}

/// A shard of keys and tenants, parsed from two files; immutable after construction. The tenant of
/// a key is usually in another shard.
#[derive(Debug, Default)]
pub struct Shard {
    keys: KeyIndex<Owner>,
    /// The names of the keys' tenants, each directly followed by the key's name.
    names: Box<str>,
    /// The hash prefixes of `tenants`, ascending.
    tenant_prefixes: Box<[u64]>,
    tenants: Box<[ShardedTenant]>,
    well_known_keys: Box<[WellKnownKey]>,
    digest: [u8; 32],
}

/// One of a shard's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardFile {
    /// Key digests and their owners.
    Keys,
    /// Tenants and their plans.
    Tenants,
}

impl fmt::Display for ShardFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ShardFile::Keys => "keys",
            ShardFile::Tenants => "tenants",
        })
    }
}

/// A reason why a shard's files are refused; it quotes nothing from the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of {file}: {problem}")]
pub struct ShardError {
    /// The invalid file.
    pub file: ShardFile,
    /// The number of the invalid line, from 1; 0: the whole file.
    pub line: usize,
    /// The mistake.
    pub problem: LineError,
}

impl Shard {
    /// Parses a shard. Every line must be well-formed and in ascending order. Well-known keys are
    /// left out.
    ///
    /// # Errors
    /// [`ShardError`] with the first invalid line.
    pub fn parse(keys: &[u8], tenants: &[u8]) -> Result<Self, ShardError> {
        if keys.is_empty() && tenants.is_empty() {
            return Ok(Shard::default());
        }
        let mut shard = Shard {
            digest: Sha256::new()
                .chain_update((keys.len() as u64).to_be_bytes())
                .chain_update(keys)
                .chain_update(tenants)
                .finalize()
                .into(),
            ..Shard::default()
        };
        shard.read_keys(keys)?;
        shard.read_tenants(tenants)?;
        Ok(shard)
    }

    fn read_keys(&mut self, text: &[u8]) -> Result<(), ShardError> {
        let mut names = String::new();
        let mut keys = Vec::new();
        let mut well_known = Vec::new();
        let mut previous: Option<KeyHash> = None;
        for_each_line(ShardFile::Keys, text, |line| {
            let line = parse_key_line(line)?;
            let hash = line.hash;
            if previous.is_some_and(|previous| previous >= hash) {
                return Err(LineError::NotSorted);
            }
            previous = Some(hash);
            if is_well_known(&hash) {
                well_known.push(WellKnownKey {
                    tenant: line.tenant.into(),
                    name: line.name.into(),
                });
                return Ok(());
            }
            let owner = Owner {
                start: u32::try_from(names.len()).map_err(|_| LineError::TooLong)?,
                length: u16::try_from(line.tenant.len()).map_err(|_| LineError::TooLong)?,
                key_length: u8::try_from(line.name.len()).map_err(|_| LineError::TooLong)?,
                hash_prefix: hash_prefix_of(line.tenant),
            };
            names.push_str(line.tenant);
            names.push_str(line.name);
            keys.push(IndexedKey {
                hash,
                expires_at: line.expires_at,
                owner,
            });
            Ok(())
        })?;
        (self.keys, self.names) = (KeyIndex::new(keys), names.into());
        self.well_known_keys = well_known.into();
        Ok(())
    }

    fn read_tenants(&mut self, text: &[u8]) -> Result<(), ShardError> {
        let mut tenants: Vec<(u64, ShardedTenant)> = Vec::new();
        let mut plans: HashSet<Arc<str>> = HashSet::new();
        let mut previous: Option<Arc<str>> = None;
        for_each_line(ShardFile::Tenants, text, |line| {
            let (name, plan) = parse_tenant_line(line)?;
            if previous.as_deref().is_some_and(|previous| previous >= name) {
                return Err(LineError::NotSorted);
            }
            let place = hash_prefix_of(name);
            let name: Arc<str> = name.into();
            previous = Some(Arc::clone(&name));
            let plan = match plans.get(plan) {
                Some(known) => Arc::clone(known),
                None => {
                    let new: Arc<str> = plan.into();
                    plans.insert(Arc::clone(&new));
                    new
                }
            };
            tenants.push((place, ShardedTenant { name, plan }));
            Ok(())
        })?;
        tenants.sort_by_key(|(place, _)| *place);
        let (places, tenants): (Vec<_>, Vec<_>) = tenants.into_iter().unzip();
        (self.tenant_prefixes, self.tenants) = (places.into(), tenants.into());
        Ok(())
    }

    /// Returns the SHA-256 of the shard's files; zeros if both are empty.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Returns the number of the shard's keys.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Returns the shard's tenants.
    pub fn tenants(&self) -> &[ShardedTenant] {
        &self.tenants
    }

    /// Returns the well-known keys that were left out.
    pub fn well_known_keys(&self) -> &[WellKnownKey] {
        &self.well_known_keys
    }

    pub(super) fn key_prefixes(&self) -> &[u64] {
        self.keys.prefixes()
    }

    /// Returns the hash prefixes of the names of the shard's tenants, in ascending order.
    pub(super) fn tenant_prefixes(&self) -> &[u64] {
        &self.tenant_prefixes
    }

    #[inline]
    pub(super) fn owner(&self, hash: &KeyHash, now_unix_seconds: u64) -> Result<KeyOwner<'_>, AuthError> {
        let owner = self.keys.owner(hash, now_unix_seconds)?;
        let (start, length) = (owner.start as usize, usize::from(owner.length));
        let both = self
            .names
            .get(start..start + length + usize::from(owner.key_length));
        let (tenant, key_name) = both
            .and_then(|both| both.split_at_checked(length))
            .ok_or(AuthError::UnknownKey)?;
        Ok(KeyOwner {
            tenant,
            hash_prefix: owner.hash_prefix,
            key_name,
        })
    }

    #[inline]
    pub(super) fn tenant(&self, name: &str, place: u64) -> Option<&ShardedTenant> {
        let first = self.tenant_prefixes.partition_point(|other| *other < place);
        let same = self.tenant_prefixes[first..]
            .iter()
            .take_while(|other| **other == place);
        let candidates = &self.tenants[first..first + same.count()];
        candidates.iter().find(|tenant| *tenant.name == *name)
    }
}

/// Passes every line of a file, without its line feed, to `read`. The last line must end with a
/// line feed too.
fn for_each_line(
    file: ShardFile,
    text: &[u8],
    mut read: impl FnMut(&str) -> Result<(), LineError>,
) -> Result<(), ShardError> {
    let bad = |line, problem| ShardError { file, line, problem };
    if text.len() > MAX_FILE_BYTES {
        return Err(bad(0, LineError::TooLong));
    }
    let Some((last, _)) = text.split_last() else {
        return Ok(());
    };
    if *last != b'\n' {
        return Err(bad(0, LineError::Unterminated));
    }
    for (index, line) in text[..text.len() - 1].split(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        if number > MAX_LINES || line.len() > MAX_LINE_BYTES {
            return Err(bad(number, LineError::TooLong));
        }
        let line = std::str::from_utf8(line).map_err(|_| bad(number, LineError::Malformed))?;
        read(line).map_err(|problem| bad(number, problem))?;
    }
    Ok(())
}
