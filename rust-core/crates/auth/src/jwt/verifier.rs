use std::cell::RefCell;

use super::cache::{Subject, TokenCache, VerifiedToken};
use super::claims::{Claims, text_claim};
use super::key_set::KeyLookupError;
use super::token::CompactToken;
use super::{Issuer, KeySet, RequestedKeySets};
use crate::shards::TenantName;
use crate::{AuthError, Credential, Error};

/// Verifies tokens of the configured issuers, and caches valid tokens.
#[derive(Debug)]
pub(crate) struct JwtVerifier {
    issuers: Vec<Issuer>,
    state: RefCell<State>,
    requested: RequestedKeySets,
}

#[derive(Debug)]
struct State {
    /// The current key set of each issuer.
    key_sets: Vec<CurrentKeySet>,
    cache: TokenCache,
}

#[derive(Debug, Clone, Default)]
struct CurrentKeySet {
    keys: Option<KeySet>,
    /// A number that each replacement of the key set increments.
    generation: u64,
}

fn is_live(key_sets: &[CurrentKeySet], entry: &VerifiedToken, now_unix_seconds: u64) -> bool {
    entry.valid_seconds.contains(&now_unix_seconds) && key_sets[entry.issuer].generation == entry.generation
}

impl JwtVerifier {
    pub(crate) fn new(issuers: Vec<Issuer>) -> Result<Self, Error> {
        for (index, issuer) in issuers.iter().enumerate() {
            issuer.check()?;
            if issuers[..index]
                .iter()
                .any(|earlier| earlier.issuer == issuer.issuer)
            {
                return Err(Error::DuplicateIssuer(issuer.issuer.clone()));
            }
        }
        Ok(JwtVerifier {
            state: RefCell::new(State {
                key_sets: vec![CurrentKeySet::default(); issuers.len()],
                cache: TokenCache::new(),
            }),
            requested: RequestedKeySets::for_issuers(&issuers),
            issuers,
        })
    }

    /// Returns the subject of the token with this SHA-256; `None` if the cache has no live entry
    /// for it.
    pub(crate) fn cached_subject(&self, digest: &[u8; 32], now_unix_seconds: u64) -> Option<Subject> {
        let state = self.state.borrow();
        let is_live = |entry: &VerifiedToken| is_live(&state.key_sets, entry, now_unix_seconds);
        state.cache.get(digest, is_live)
    }

    /// Verifies a token and returns its subject. `digest` is the token's SHA-256, under which a
    /// valid token of an existing tenant is cached.
    ///
    /// Cheap checks come first. Only the look-up of the tenant follows the signature check,
    /// although it is cheap: otherwise forged tokens could be used to find out which tenants exist.
    pub(crate) fn verify(
        &self,
        token: &[u8],
        digest: &[u8; 32],
        now_unix_seconds: u64,
        is_tenant: impl Fn(&TenantName) -> Result<(), AuthError>,
    ) -> Result<Subject, AuthError> {
        let mut state = self.state.borrow_mut();
        let State { key_sets, cache } = &mut *state;
        let token = CompactToken::parse(token)?;
        let claims = Claims::parse(&token.payload)?;
        let name = claims.iss.as_deref().ok_or(AuthError::InvalidClaims)?;
        let index = self.index_of(name).ok_or(AuthError::UnknownIssuer)?;
        let issuer = &self.issuers[index];
        if !issuer.algorithms.contains(&token.header.algorithm) {
            return Err(AuthError::UnsupportedAlgorithm);
        }
        let valid = claims.check(issuer, now_unix_seconds)?;
        self.check_signature(&token, index, key_sets[index].keys.as_ref())?;
        let tenant_name = text_claim(&token.payload, &issuer.tenant_claim).ok_or(AuthError::UnknownTenant)?;
        let tenant = TenantName::new(tenant_name.into());
        is_tenant(&tenant)?;
        let subject = claims.sub.as_deref().filter(|subject| !subject.is_empty());
        let credential = Credential::from_subject(name, subject.unwrap_or(&tenant.text));
        let subject = Subject { tenant, credential };
        let verified = VerifiedToken {
            token: *digest,
            valid_seconds: valid,
            issuer: index,
            generation: key_sets[index].generation,
            subject: Some(subject.clone()),
        };
        cache.insert(verified, |entry| is_live(key_sets, entry, now_unix_seconds));
        Ok(subject)
    }

    fn check_signature(
        &self,
        token: &CompactToken<'_>,
        issuer: usize,
        keys: Option<&KeySet>,
    ) -> Result<(), AuthError> {
        match keys.map_or(Err(KeyLookupError::Missing), |keys| keys.verify(token)) {
            Ok(verdict) => verdict,
            Err(KeyLookupError::WrongAlgorithm) => Err(AuthError::UnsupportedAlgorithm),
            Err(KeyLookupError::Ambiguous) => Err(AuthError::UnknownSigningKey),
            Err(KeyLookupError::Missing) => {
                self.requested.mark(issuer);
                Err(AuthError::UnknownSigningKey)
            }
        }
    }

    pub(crate) fn set_key_set(&self, issuer: &str, keys: KeySet) -> Result<(), Error> {
        let index = self
            .index_of(issuer)
            .ok_or_else(|| Error::UnknownIssuer(issuer.to_owned()))?;
        self.replace(index, keys);
        Ok(())
    }

    fn replace(&self, issuer: usize, keys: KeySet) {
        let current = &mut self.state.borrow_mut().key_sets[issuer];
        if !current
            .keys
            .as_ref()
            .is_some_and(|known| known.has_same_source(&keys))
        {
            current.keys = Some(keys);
            current.generation += 1;
        }
    }

    pub(crate) fn inherit_key_sets(&self, previous: &JwtVerifier) {
        let theirs = previous.state.borrow().key_sets.clone();
        for (issuer, current) in previous.issuers.iter().zip(theirs) {
            if let (Some(index), Some(keys)) = (self.index_of(&issuer.issuer), current.keys) {
                self.replace(index, keys);
            }
        }
    }

    pub(crate) fn requested_key_sets(&self) -> RequestedKeySets {
        self.requested.clone()
    }

    fn index_of(&self, issuer: &str) -> Option<usize> {
        self.issuers.iter().position(|known| known.issuer == issuer)
    }
}
