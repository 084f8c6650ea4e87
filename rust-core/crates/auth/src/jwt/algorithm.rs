use jsonwebtoken::Algorithm;
use serde::Deserialize;

/// The accepted signature algorithms. All are asymmetric: with a shared secret, anyone who can
/// verify can also forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum SigningAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256, keys of 2048 bits and more (RFC 7518 section 3.3).
    #[serde(rename = "RS256")]
    Rs256,
    /// ECDSA on P-256 with SHA-256 (RFC 7518 section 3.4).
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519 (RFC 8037 section 3.1), which RFC 9864 names `Ed25519`.
    #[serde(rename = "EdDSA", alias = "Ed25519")]
    EdDsa,
}

impl SigningAlgorithm {
    /// Parses the value of an `alg` parameter; `None` for an algorithm that is never accepted.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(SigningAlgorithm::Rs256),
            "ES256" => Some(SigningAlgorithm::Es256),
            "EdDSA" | "Ed25519" => Some(SigningAlgorithm::EdDsa),
            _ => None,
        }
    }
}

impl From<SigningAlgorithm> for Algorithm {
    fn from(algorithm: SigningAlgorithm) -> Self {
        match algorithm {
            SigningAlgorithm::Rs256 => Algorithm::RS256,
            SigningAlgorithm::Es256 => Algorithm::ES256,
            SigningAlgorithm::EdDsa => Algorithm::EdDSA,
        }
    }
}
