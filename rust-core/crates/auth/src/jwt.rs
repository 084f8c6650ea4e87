//! Signed JSON Web Tokens (RFC 7519), verified as RFC 8725 recommends.

mod algorithm;
mod cache;
mod claims;
mod issuer;
mod key_set;
mod requested_key_sets;
mod token;
mod verifier;

pub use algorithm::SigningAlgorithm;
pub use issuer::Issuer;
pub use key_set::KeySet;
pub use requested_key_sets::RequestedKeySets;
pub(crate) use token::has_three_parts;
pub(crate) use verifier::JwtVerifier;
