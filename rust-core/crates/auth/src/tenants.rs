use std::collections::HashMap;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Denial;

/// SHA-256 of an API key.
pub type KeyHash = [u8; 32];

/// The longest API key that is looked at, in bytes.
const MAX_KEY_BYTES: usize = 512;

/// The digest by which a key is stored.
pub fn hash_api_key(key: &[u8]) -> KeyHash {
    Sha256::digest(key).into()
}

/// Who is audited, and what they may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Name in the manifest.
    pub name: String,
    /// Models this tenant may call; `None` means all of them.
    pub models: Option<Vec<String>>,
}

impl Tenant {
    /// Whether this tenant may call `model`.
    pub fn may_use(&self, model: &str) -> bool {
        self.models
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|name| name == model))
    }
}

/// Why a tenant table cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TenantTableError {
    /// Two tenants own the same key, so a request could not be attributed.
    #[error("tenants {0:?} and {1:?} share an API key: give each its own")]
    SharedKey(String, String),
}

#[derive(Debug)]
struct Entry {
    hash: KeyHash,
    tenant: usize,
}

/// All tenants and the digests of their keys; built once per configuration, never changed.
#[derive(Debug, Default)]
pub struct TenantTable {
    tenants: Vec<Tenant>,
    by_prefix: HashMap<[u8; 8], Vec<Entry>>,
}

impl TenantTable {
    /// Builds the table from every tenant and the digests of its keys.
    ///
    /// # Errors
    /// [`TenantTableError::SharedKey`] when a digest appears under two tenants.
    pub fn new(tenants: impl IntoIterator<Item = (Tenant, Vec<KeyHash>)>) -> Result<Self, TenantTableError> {
        let mut table = TenantTable::default();
        for (tenant, hashes) in tenants {
            let index = table.tenants.len();
            for hash in hashes {
                let entries = table.by_prefix.entry(prefix(&hash)).or_default();
                match entries.iter().find(|entry| entry.hash == hash) {
                    Some(entry) => {
                        let owner = table.tenants[entry.tenant].name.clone();
                        return Err(TenantTableError::SharedKey(owner, tenant.name));
                    }
                    None => entries.push(Entry { hash, tenant: index }),
                }
            }
            table.tenants.push(tenant);
        }
        Ok(table)
    }

    /// Finds who sends a request, from the value of its `Authorization` header (RFC 6750 section 2.1).
    ///
    /// # Errors
    /// A [`Denial`] that says what is wrong with the header, never what it held.
    pub fn authenticate(&self, authorization: Option<&[u8]>) -> Result<(usize, KeyHash), Denial> {
        let key = bearer_token(authorization.ok_or(Denial::MissingKey)?)?;
        let hash = hash_api_key(key);
        let candidates = self.by_prefix.get(&prefix(&hash)).ok_or(Denial::UnknownKey)?;
        candidates
            .iter()
            .find(|entry| bool::from(entry.hash.ct_eq(&hash)))
            .map(|entry| (entry.tenant, hash))
            .ok_or(Denial::UnknownKey)
    }

    /// The tenant at an index that [`TenantTable::authenticate`] returned.
    pub fn tenant(&self, index: usize) -> &Tenant {
        &self.tenants[index]
    }
}

fn prefix(hash: &KeyHash) -> [u8; 8] {
    let mut prefix = [0; 8];
    prefix.copy_from_slice(&hash[..8]);
    prefix
}

fn bearer_token(value: &[u8]) -> Result<&[u8], Denial> {
    let (scheme, token) = value.split_at_checked(7).ok_or(Denial::MalformedKey)?;
    let well_formed = scheme.eq_ignore_ascii_case(b"bearer ")
        && !token.is_empty()
        && token.len() <= MAX_KEY_BYTES
        && token.iter().all(u8::is_ascii_graphic);
    if well_formed {
        Ok(token)
    } else {
        Err(Denial::MalformedKey)
    }
}
