//! Authentication of requests and the permissions of tenants: API keys, JSON Web Tokens,
//! allow-lists.
//!
//! [`Authenticator::authenticate`] is the entry point: it takes the header fields that can contain
//! a key ([`ApiKeyHeaders`]) and the time, and returns an [`Identity`] or an [`AuthError`]. This
//! crate does no I/O and reads no clock, and no error quotes a value of the request. A request may
//! contain the same key in several fields. Two different keys are refused, because a proxy in front
//! of the gateway could use one and the gateway the other.
//!
//! **API keys** are only known by their SHA-256. A key must have high entropy (the operator refuses
//! short keys), so a plain digest is sufficient for storage, and the look-up can use the digest
//! prefix; the whole digest is then compared in constant time. A tenant can have several keys, each
//! with an expiry, so keys are rotated by adding a new key and letting the old one expire. A
//! [`TenantTable`] is immutable: a new configuration has a new table. [`Shards`] contain the
//! tenants and keys that change without a new configuration, each shard separately.
//!
//! **Tokens** are signed JWTs (RFC 7519) of configured issuers, verified as RFC 8725 recommends:
//! algorithms come from the configuration and from the key, never from the token alone. Cheap
//! checks come first, so that a signature is only verified for a token that names a known issuer,
//! audience and key and is within its validity period. A verified token is cached by its SHA-256,
//! so the next request with it costs one digest.
#![forbid(unsafe_code)]

mod allow_list;
mod api_key;
mod auth_error;
mod authenticator;
mod digest;
mod error;
mod identity;
mod jwt;
mod key_extraction;
mod key_header;
mod key_index;
mod shards;
mod tenants;
mod well_known_keys;

pub use allow_list::{AllowList, Endpoint};
pub use api_key::{ApiKey, KeyHash, hash_api_key};
pub use auth_error::AuthError;
pub use authenticator::Authenticator;
pub use error::Error;
pub use identity::{Credential, Identity};
pub use jwt::{Issuer, KeySet, RequestedKeySets, SigningAlgorithm};
pub use key_header::KeyHeader;
pub use proofgate_wire::ApiKeyHeaders;
pub use shards::{LineError, SHARD_COUNT, Shard, ShardError, ShardFile, ShardedTenant, Shards, WellKnownKey};
pub use tenants::{Tenant, TenantTable};
