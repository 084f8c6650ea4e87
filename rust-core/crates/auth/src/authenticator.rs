use crate::bearer::bearer_token;
use crate::jwt::{Issuer, JwtVerifier, KeySet, WantedKeySets, has_three_parts};
use crate::{AuthError, Credential, Error, Identity, TenantTable, hash_api_key};

/// The longest API key that is looked at, in bytes.
const MAX_KEY_BYTES: usize = 512;

/// Finds out who sends a request, by API key or by token. It belongs to one thread; a new configuration is a new one.
#[derive(Debug)]
pub struct Authenticator {
    tenants: TenantTable,
    jwt: Option<JwtVerifier>,
}

impl Authenticator {
    /// Joins the tenants with the issuers whose tokens name them. Without issuers there are only API keys.
    ///
    /// An issuer has no keys until [`Authenticator::set_key_set`] or [`Authenticator::keep_key_sets_of`] brings them.
    ///
    /// # Errors
    /// [`Error::RepeatedIssuer`] and [`Error::IncompleteIssuer`].
    pub fn new(tenants: TenantTable, issuers: Vec<Issuer>) -> Result<Self, Error> {
        let jwt = if issuers.is_empty() {
            None
        } else {
            Some(JwtVerifier::new(issuers)?)
        };
        Ok(Authenticator { tenants, jwt })
    }

    /// Who sends a request, from the value of its `Authorization` header (RFC 6750 section 2.1).
    ///
    /// A value that is some tenant's API key is just that. Any other with two dots is a token when there are issuers.
    ///
    /// # Errors
    /// A [`AuthError`] that says what is wrong with the header, never what it held.
    pub fn authenticate(
        &self,
        authorization: Option<&[u8]>,
        now_unix_seconds: u64,
    ) -> Result<Identity, AuthError> {
        let token = bearer_token(authorization.ok_or(AuthError::MissingKey)?)?;
        if token.len() > MAX_KEY_BYTES && self.jwt.is_none() {
            return Err(AuthError::MalformedKey);
        }
        let digest = hash_api_key(token);
        match (self.tenants.owner(&digest, now_unix_seconds), &self.jwt) {
            (Ok(tenant), _) => Ok(Identity {
                tenant,
                credential: Credential::ApiKey(digest),
            }),
            (Err(AuthError::UnknownKey), Some(jwt)) => match jwt.remembered(&digest, now_unix_seconds) {
                Some(identity) => Ok(identity),
                None if has_three_parts(token) => jwt.verify(token, &digest, now_unix_seconds, &self.tenants),
                None if token.len() > MAX_KEY_BYTES => Err(AuthError::MalformedKey),
                None => Err(AuthError::UnknownKey),
            },
            (Err(denial), _) => Err(denial),
        }
    }

    /// The tenants that identities point to.
    pub fn tenants(&self) -> &TenantTable {
        &self.tenants
    }

    /// Replaces the keys of an issuer at once. Tokens that were verified with others are verified again; the same set
    /// once more changes nothing.
    ///
    /// # Errors
    /// [`Error::UnknownIssuer`].
    pub fn set_key_set(&self, issuer: &str, keys: KeySet) -> Result<(), Error> {
        let unknown = || Error::UnknownIssuer(issuer.to_owned());
        self.jwt.as_ref().ok_or_else(unknown)?.set_key_set(issuer, keys)
    }

    /// Takes over the keys of every issuer that `previous` has too, so that a new configuration need not wait for them.
    pub fn keep_key_sets_of(&self, previous: &Authenticator) {
        if let (Some(jwt), Some(previous)) = (&self.jwt, &previous.jwt) {
            jwt.keep_key_sets_of(previous);
        }
    }

    /// The issuers whose keys should be fetched, for another thread to look at.
    pub fn wanted_key_sets(&self) -> WantedKeySets {
        self.jwt.as_ref().map(JwtVerifier::wanted).unwrap_or_default()
    }
}
