use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::{KeyHash, Tenant};

/// The authenticated sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The tenant of the request.
    pub tenant: Tenant,
    /// The tenant's credential that was used.
    pub credential: Credential,
    /// The configured name of the API key; `None` for a key without a name, and for a token.
    pub key_name: Option<Arc<str>>,
}

/// A credential of a tenant, as records and the limits per key identify it. It reveals no secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Credential {
    /// SHA-256 of an API key.
    ApiKey(KeyHash),
    /// SHA-256 of a token's issuer, a zero byte, and the token's subject (or tenant, if it has no
    /// subject): all tokens of one subject count as one key.
    Subject([u8; 32]),
}

impl Credential {
    pub(crate) fn from_subject(issuer: &str, subject: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(issuer)
            .chain_update([0])
            .chain_update(subject)
            .finalize();
        Credential::Subject(digest.into())
    }

    /// Returns the digest of the key or the subject.
    pub fn digest(&self) -> &[u8; 32] {
        match self {
            Credential::ApiKey(digest) | Credential::Subject(digest) => digest,
        }
    }
}

/// Shows the kind and the first four bytes: enough to compare credentials, too little to find a
/// weak key.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Credential::ApiKey(_) => "ApiKey",
            Credential::Subject(_) => "Subject",
        };
        let [a, b, c, d, ..] = self.digest();
        write!(f, "{kind}({a:02x}{b:02x}{c:02x}{d:02x})")
    }
}
