//! Who sends a request, and what they may use: tenants, API keys, JSON Web Tokens, allow-lists.
//!
//! [`Authenticator::authenticate`] is the one entry: the fields in which a key can stand ([`ApiKeyHeaders`]) and the time go
//! in, an [`Identity`] or a [`AuthError`] comes out. Nothing here does I/O or reads a clock, and no denial quotes what
//! was sent. A request may say the same key in several fields; two different ones are refused, because whoever stands in
//! front of the gateway could go by one and the gateway by the other.
//!
//! **API keys** are known only by their SHA-256. A key is high-entropy by contract (the operator refuses short ones),
//! so a plain digest is enough at rest and the look-up can go by digest prefix; the whole digest is then compared in
//! constant time. A tenant can have several keys, each with an end, so keys are rotated by adding one and letting the
//! other expire. A [`TenantTable`] never changes: a new configuration is a new table. Beside it there are [`Shards`]:
//! tenants and keys that come and go without a new configuration, each part by itself.
//!
//! **Tokens** are signed JWTs (RFC 7519) of configured issuers, verified as RFC 8725 asks: algorithms come from the
//! configuration and from the key, never from the token alone. What costs nothing is checked first, so that a signature
//! is only computed for a token that names a known issuer, audience and key and is in its time. A verified token is
//! remembered by its SHA-256, so the next request with it costs a digest.
#![forbid(unsafe_code)]

mod allow_list;
mod api_key;
mod auth_error;
mod authenticator;
mod digest;
mod error;
mod identity;
mod jwt;
mod key_field;
mod key_fields;
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
pub use key_field::KeyField;
pub use proofgate_wire::ApiKeyHeaders;
pub use shards::{LineError, SHARD_COUNT, Shard, ShardError, ShardFile, ShardedTenant, Shards, WellKnownKey};
pub use tenants::{Tenant, TenantTable};
