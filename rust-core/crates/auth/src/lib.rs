//! Who sends a request, and what they may use: tenants, their API keys, and the models each may call.
//!
//! Keys are known only by their SHA-256. A key is high-entropy by contract (the operator refuses short ones), so a
//! plain digest is enough at rest and the table lookup can go by digest prefix; the rest of the digest is compared in
//! constant time.
#![forbid(unsafe_code)]

mod denial;
mod tenants;

pub use denial::Denial;
pub use tenants::{KeyHash, Tenant, TenantTable, TenantTableError, hash_api_key};
