use std::collections::HashMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::digest::same_digest;
use crate::{AuthError, Error};

/// SHA-256 of an API key.
pub type KeyHash = [u8; 32];

/// The digest by which a key is stored.
pub fn hash_api_key(key: &[u8]) -> KeyHash {
    Sha256::digest(key).into()
}

/// One API key of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiKey {
    /// SHA-256 of the key.
    pub hash: KeyHash,
    /// The first second, since 1970, at which the key is refused; `None` means never.
    pub expires_at: Option<u64>,
}

/// A key without an end.
impl From<KeyHash> for ApiKey {
    fn from(hash: KeyHash) -> Self {
        ApiKey {
            hash,
            expires_at: None,
        }
    }
}

/// What a request can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Endpoint {
    /// `POST /v1/chat/completions`.
    #[serde(rename = "chat.completions")]
    ChatCompletions,
    /// `GET /v1/models`.
    #[serde(rename = "models")]
    Models,
}

impl Endpoint {
    /// Every endpoint.
    pub const ALL: [Endpoint; 2] = [Endpoint::ChatCompletions, Endpoint::Models];

    /// The name in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Endpoint::ChatCompletions => "chat.completions",
            Endpoint::Models => "models",
        }
    }
}

/// Who is audited, and what they may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tenant {
    /// Name in the manifest.
    pub name: String,
    /// Models this tenant may call; `None` means all of them.
    pub models: Option<Vec<String>>,
    /// Endpoints this tenant may call; `None` means all of them.
    pub endpoints: Option<Vec<Endpoint>>,
}

impl Tenant {
    /// Whether this tenant may call `model`.
    pub fn may_use_model(&self, model: &str) -> bool {
        self.models
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|name| name == model))
    }

    /// Whether this tenant may call `endpoint`; if not, the answer is [`AuthError::EndpointNotAllowed`].
    pub fn may_use_endpoint(&self, endpoint: Endpoint) -> bool {
        self.endpoints
            .as_ref()
            .is_none_or(|allowed| allowed.contains(&endpoint))
    }
}

#[derive(Debug, Clone, Copy)]
struct OwnedKey {
    key: ApiKey,
    tenant: usize,
}

/// All tenants and the digests of their keys; built once per configuration, never changed. A tenant's index is its
/// place in the order that the table was built in.
#[derive(Debug, Default)]
pub struct TenantTable {
    tenants: Vec<Tenant>,
    by_name: HashMap<String, usize>,
    /// Sorted by digest.
    keys: Vec<OwnedKey>,
    /// The first eight bytes of every digest in `keys`, in the same order: a look-up touches little memory.
    prefixes: Vec<u64>,
}

impl TenantTable {
    /// Builds the table from every tenant and its keys. A tenant without a key can only be reached by a token.
    ///
    /// # Errors
    /// [`Error::RepeatedTenant`] when two tenants have one name; [`Error::SharedKey`] and [`Error::RepeatedKey`] when a
    /// digest appears twice.
    pub fn new(tenants: impl IntoIterator<Item = (Tenant, Vec<ApiKey>)>) -> Result<Self, Error> {
        let mut table = TenantTable::default();
        for (tenant, keys) in tenants {
            let index = table.tenants.len();
            if table.by_name.insert(tenant.name.clone(), index).is_some() {
                return Err(Error::RepeatedTenant(tenant.name));
            }
            table
                .keys
                .extend(keys.into_iter().map(|key| OwnedKey { key, tenant: index }));
            table.tenants.push(tenant);
        }
        table.keys.sort_by_key(|owned| (owned.key.hash, owned.tenant));
        for pair in table.keys.windows(2) {
            if pair[0].key.hash == pair[1].key.hash {
                let [one, other] =
                    [pair[0].tenant, pair[1].tenant].map(|index| table.tenants[index].name.clone());
                return Err(if one == other {
                    Error::RepeatedKey(one)
                } else {
                    Error::SharedKey(one, other)
                });
            }
        }
        table.prefixes = table.keys.iter().map(|owned| prefix(&owned.key.hash)).collect();
        Ok(table)
    }

    /// The tenant that owns the key with this digest. The search goes by the digest's prefix, of which an attacker can
    /// learn nothing about a key; the rest is compared in constant time.
    ///
    /// # Errors
    /// [`AuthError::UnknownKey`], or [`AuthError::ExpiredKey`] from the key's end on.
    pub fn owner(&self, hash: &KeyHash, now_unix_seconds: u64) -> Result<usize, AuthError> {
        let wanted = prefix(hash);
        let first = self.prefixes.partition_point(|prefix| *prefix < wanted);
        let same_prefix = self.prefixes[first..]
            .iter()
            .take_while(|prefix| **prefix == wanted)
            .count();
        let found = self.keys[first..first + same_prefix]
            .iter()
            .find(|owned| same_digest(&owned.key.hash, hash))
            .ok_or(AuthError::UnknownKey)?;
        match found.key.expires_at {
            Some(end) if now_unix_seconds >= end => Err(AuthError::ExpiredKey),
            _ => Ok(found.tenant),
        }
    }

    /// The tenant at an index that this table gave.
    ///
    /// # Panics
    /// When the index is of another table and this one is shorter.
    pub fn tenant(&self, index: usize) -> &Tenant {
        &self.tenants[index]
    }

    /// The index of the tenant with this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Every tenant, in the order of their indices.
    pub fn iter(&self) -> std::slice::Iter<'_, Tenant> {
        self.tenants.iter()
    }
}

impl<'t> IntoIterator for &'t TenantTable {
    type Item = &'t Tenant;
    type IntoIter = std::slice::Iter<'t, Tenant>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn prefix(hash: &KeyHash) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(first)
}
