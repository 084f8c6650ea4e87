//! Stored payloads: request and response bodies, which are stored next to the log if a tenant
//! requires it. Records still contain only commitments. The key that seals a body is derived from
//! two parts: the tenant's shred key, which is stored outside the volume, and the exchange's half
//! of a salt, which is beside the log. If one of the parts is destroyed, no copy of the body can be
//! opened any more.
//!
//! The `evidence` crate defines the file formats ([`proofgate_evidence::payloads`]). This crate [seals](seal),
//! [writes](PayloadWriter) and [reads](StoredPayloads) bodies. It returns a body only if it opens, *and* a record
//! commits to it, *and* a checkpoint of the ledger's key covers that record.
#![forbid(unsafe_code)]

mod check;
mod error;
mod open;
mod punch;
mod read;
pub mod seal;
mod writer;

pub use check::check;
pub use error::PayloadError;
pub use open::{BodyResult, ExchangePayloads, open_exchange, stored_body};
pub use proofgate_evidence::payloads::PayloadField;
pub use punch::{is_punched, punch};
pub use read::StoredPayloads;
pub use seal::{BodySlot, PayloadKey};
pub use writer::{Payload, PayloadWriter};
