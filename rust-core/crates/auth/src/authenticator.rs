use std::collections::HashMap;
use std::sync::Arc;

use crate::jwt::{Issuer, JwtVerifier, KeySet, RequestedKeySets, has_three_parts};
use proofgate_wire::ApiKeyHeaders;

use crate::key_extraction::{MAX_TOKEN_BYTES, unique_key};
use crate::shards::{ShardedTenant, TenantName};
use crate::{AuthError, Credential, Error, Identity, Shards, Tenant, TenantTable, hash_api_key};

/// Maximum length of an API key, in bytes.
const MAX_KEY_BYTES: usize = 512;

/// Authenticates requests by API key or token. It belongs to one thread; each configuration has a
/// separate authenticator.
#[derive(Debug)]
pub struct Authenticator {
    tenants: TenantTable,
    /// The indices of the plans that tenants of shards can have, by name.
    plans: HashMap<String, usize>,
    jwt: Option<JwtVerifier>,
}

impl Authenticator {
    /// Creates an authenticator from the tenants, and from the issuers whose tokens name tenants.
    /// Without issuers, only API keys are accepted. `plans` are the indices of the plans that
    /// tenants of shards name.
    ///
    /// An issuer has no keys until [`Authenticator::set_key_set`] or
    /// [`Authenticator::inherit_key_sets`] sets them.
    ///
    /// # Errors
    /// [`Error::DuplicateIssuer`] and [`Error::IncompleteIssuer`].
    pub fn new(
        tenants: TenantTable,
        plans: HashMap<String, usize>,
        issuers: Vec<Issuer>,
    ) -> Result<Self, Error> {
        let jwt = if issuers.is_empty() {
            None
        } else {
            Some(JwtVerifier::new(issuers)?)
        };
        Ok(Authenticator { tenants, plans, jwt })
    }

    /// Authenticates a request by the only key or token in its fields.
    ///
    /// A tenant's API key is never read as a token. A key in the configuration belongs to its
    /// tenant, even if a shard contains the same key. Any other value with two dots is a token if
    /// there are issuers.
    ///
    /// # Errors
    /// An [`AuthError`] that says what is wrong with which field, but never quotes the value.
    pub fn authenticate(
        &self,
        shards: &Shards,
        keys: &ApiKeyHeaders<'_>,
        now_unix_seconds: u64,
    ) -> Result<Identity, AuthError> {
        let most_bytes = match self.jwt {
            Some(_) => MAX_TOKEN_BYTES,
            None => MAX_KEY_BYTES,
        };
        let (field, token) = unique_key(keys, most_bytes)?;
        let digest = hash_api_key(token);
        let owner = match self.tenants.owner(&digest, now_unix_seconds) {
            Ok((tenant, key_name)) => Ok((tenant.clone(), key_name.cloned())),
            Err(AuthError::UnknownKey) => shards
                .owner(&digest, now_unix_seconds)
                .and_then(|(tenant, key_name)| Ok((self.with_plan(tenant)?, Some(key_name.into())))),
            Err(denial) => Err(denial),
        };
        match (owner, &self.jwt) {
            (Ok((tenant, key_name)), _) => Ok(Identity {
                tenant,
                credential: Credential::ApiKey(digest),
                key_name,
            }),
            (Err(AuthError::UnknownKey), Some(jwt)) => {
                let subject = match jwt.cached_subject(&digest, now_unix_seconds) {
                    Some(subject) => subject,
                    None if has_three_parts(token) => {
                        let is_tenant = |name: &TenantName| self.tenant(shards, name).map(|_| ());
                        jwt.verify(token, &digest, now_unix_seconds, is_tenant)?
                    }
                    None if token.len() > MAX_KEY_BYTES => return Err(AuthError::MalformedKey(field)),
                    None => return Err(AuthError::UnknownKey),
                };
                Ok(Identity {
                    tenant: self.tenant(shards, &subject.tenant)?,
                    credential: subject.credential,
                    key_name: None,
                })
            }
            (Err(denial), _) => Err(denial),
        }
    }

    /// Returns the tenant that a valid token names.
    fn tenant(&self, shards: &Shards, name: &TenantName) -> Result<Tenant, AuthError> {
        if let Some(tenant) = self.tenants.find(&name.text) {
            return Ok(tenant.clone());
        }
        let tenant = shards.find_tenant(&name.text, name.hash_prefix);
        self.with_plan(tenant.ok_or(AuthError::UnknownTenant)?)
    }

    fn with_plan(&self, tenant: &ShardedTenant) -> Result<Tenant, AuthError> {
        let plan = self.plan(&tenant.plan).ok_or(AuthError::UnknownPlan)?;
        Ok(Tenant {
            name: Arc::clone(&tenant.name),
            plan,
        })
    }

    /// Returns the index of the plan with this name.
    pub fn plan(&self, name: &str) -> Option<usize> {
        self.plans.get(name).copied()
    }

    /// Returns the tenants of the configuration.
    pub fn tenants(&self) -> &TenantTable {
        &self.tenants
    }

    /// Replaces the keys of an issuer immediately. Tokens that were verified with other keys are
    /// verified again. Setting the same set again changes nothing.
    ///
    /// # Errors
    /// [`Error::UnknownIssuer`].
    pub fn set_key_set(&self, issuer: &str, keys: KeySet) -> Result<(), Error> {
        let unknown = || Error::UnknownIssuer(issuer.to_owned());
        self.jwt.as_ref().ok_or_else(unknown)?.set_key_set(issuer, keys)
    }

    /// Copies the keys of every issuer that `previous` also has, so that a new configuration need
    /// not wait for keys.
    pub fn inherit_key_sets(&self, previous: &Authenticator) {
        if let (Some(jwt), Some(previous)) = (&self.jwt, &previous.jwt) {
            jwt.inherit_key_sets(previous);
        }
    }

    /// Returns the issuers whose keys should be fetched; another thread reads them.
    pub fn requested_key_sets(&self) -> RequestedKeySets {
        self.jwt
            .as_ref()
            .map(JwtVerifier::requested_key_sets)
            .unwrap_or_default()
    }
}
