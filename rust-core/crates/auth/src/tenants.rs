use std::collections::HashMap;
use std::sync::Arc;

use crate::api_key::{ApiKey, KeyHash};
use crate::key_index::{IndexedKey, KeyIndex};
use crate::{AuthError, Error};

/// A tenant: the unit of audit and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// The tenant's name in records.
    pub name: Arc<str>,
    /// The index of the tenant's plan in the configuration.
    pub plan: usize,
}

/// The tenants of a configuration and the digests of their keys; immutable after construction.
#[derive(Debug, Default)]
pub struct TenantTable {
    tenants: Vec<Tenant>,
    by_name: HashMap<Arc<str>, usize>,
    keys: KeyIndex<Owner>,
}

/// The owner and the name of a key.
#[derive(Debug)]
struct Owner {
    tenant: usize,
    key_name: Option<Arc<str>>,
}

impl TenantTable {
    /// Builds the table from all tenants and their keys. A tenant without a key can only be used
    /// with a token.
    ///
    /// # Errors
    /// [`Error::DuplicateTenant`] if two tenants have the same name;
    /// [`Error::DuplicateKeyAcrossTenants`] and [`Error::DuplicateKey`] if a digest appears twice.
    pub fn new(tenants: impl IntoIterator<Item = (Tenant, Vec<ApiKey>)>) -> Result<Self, Error> {
        let mut table = TenantTable::default();
        let mut keys: Vec<(ApiKey, usize)> = Vec::new();
        for (tenant, own) in tenants {
            let index = table.tenants.len();
            if table.by_name.insert(Arc::clone(&tenant.name), index).is_some() {
                return Err(Error::DuplicateTenant(tenant.name.as_ref().into()));
            }
            keys.extend(own.into_iter().map(|key| (key, index)));
            table.tenants.push(tenant);
        }
        keys.sort_by_key(|(key, owner)| (key.hash, *owner));
        for pair in keys.windows(2) {
            if pair[0].0.hash == pair[1].0.hash {
                let [one, other] = [pair[0].1, pair[1].1].map(|index| table.tenants[index].name.to_string());
                return Err(if one == other {
                    Error::DuplicateKey(one)
                } else {
                    Error::DuplicateKeyAcrossTenants(one, other)
                });
            }
        }
        let indexed = keys.into_iter().map(|(key, tenant)| IndexedKey {
            hash: key.hash,
            expires_at: key.expires_at,
            owner: Owner {
                tenant,
                key_name: key.name,
            },
        });
        table.keys = KeyIndex::new(indexed.collect());
        Ok(table)
    }

    /// Returns the tenant that owns the key with this digest, and the key's name.
    ///
    /// # Errors
    /// [`AuthError::UnknownKey`], or [`AuthError::ExpiredKey`] after the key's expiry.
    pub fn owner(
        &self,
        hash: &KeyHash,
        now_unix_seconds: u64,
    ) -> Result<(&Tenant, Option<&Arc<str>>), AuthError> {
        let owner = self.keys.owner(hash, now_unix_seconds)?;
        Ok((&self.tenants[owner.tenant], owner.key_name.as_ref()))
    }

    /// Returns the tenant with this name.
    pub fn find(&self, name: &str) -> Option<&Tenant> {
        self.by_name.get(name).map(|index| &self.tenants[*index])
    }

    /// Iterates over all tenants, in their original order.
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
