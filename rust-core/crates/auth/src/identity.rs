use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::{KeyHash, Tenant};

/// Who sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// For whom.
    pub tenant: Tenant,
    /// Which of the tenant's credentials was used.
    pub credential: Credential,
    /// What the configuration calls the API key; `None` of a key without a name, and of a token.
    pub key_name: Option<Arc<str>>,
}

/// What tells one credential of a tenant from another, in records and in limits for each key. It reveals no secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Credential {
    /// SHA-256 of an API key.
    ApiKey(KeyHash),
    /// SHA-256 of a token's issuer, a zero byte, and its subject (of its tenant, when it has none): all tokens of one
    /// subject are one key.
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

    /// The digest, whatever it is of.
    pub fn digest(&self) -> &[u8; 32] {
        match self {
            Credential::ApiKey(digest) | Credential::Subject(digest) => digest,
        }
    }
}

/// The kind and the first four bytes: enough to compare, too little to look up a weak key.
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
