//! Stored payloads: what was asked and answered, beside the log, where a tenant wants that. Records go on holding
//! commitments alone; a body is sealed with a key that needs the tenant's shred key, which lies off the volume, and the
//! exchange's half of a salt, which the log holds. Without either, nothing opens it any more, wherever it was copied to.
//!
//! How the files look is the `evidence` crate's ([`proofgate_evidence::payloads`]). Here is how bodies are [sealed](seal),
//! [written](PayloadWriter) and [read](StoredPayloads): a body is handed out only if it opens *and* is the one that a
//! record commits to, and the record is under a checkpoint of the ledger's key.
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
