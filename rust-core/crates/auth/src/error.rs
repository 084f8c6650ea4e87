/// A reason why a configuration or a key set cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two tenants own the same key, so a request could not be attributed.
    #[error("tenants {0:?} and {1:?} share an API key: give each tenant a separate API key")]
    DuplicateKeyAcrossTenants(String, String),
    /// A tenant has the same key twice, perhaps with two expiries.
    #[error("tenant {0:?} has the same API key twice: list it once")]
    DuplicateKey(String),
    /// Two tenants have the same name.
    #[error("tenant {0:?} is given twice")]
    DuplicateTenant(String),
    /// Two entries describe the same issuer.
    #[error("JWT issuer {0:?} is given twice")]
    DuplicateIssuer(String),
    /// An issuer lacks a setting that is required to verify tokens.
    #[error("JWT issuer {issuer:?} has no {missing}")]
    IncompleteIssuer {
        /// The issuer's name.
        issuer: String,
        /// The missing setting.
        missing: &'static str,
    },
    /// A key set was given for an issuer that is not configured.
    #[error("JWT issuer {0:?} is not configured")]
    UnknownIssuer(String),
    /// A key set exceeds the limits.
    #[error("the key set is too large: at most {max_bytes} bytes and {max_keys} keys are accepted")]
    KeySetTooLarge {
        /// The maximum size of its text, in bytes.
        max_bytes: usize,
        /// The maximum number of its keys.
        max_keys: usize,
    },
    /// The text is not a JWK Set.
    #[error("the key set is not JSON of the form {{\"keys\": [...]}} (RFC 7517 section 5)")]
    MalformedKeySet,
}
