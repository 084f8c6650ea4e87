//! Recording and reporting of a worker's exchanges: the ledger, checkpoints, stored bodies,
//! metrics, the access log and traces, the analysis of responses, and the use of tenant limits.
//!
//! The data-plane thread waits only for the ledger ([`recorder`]). The other parts run on threads
//! that may be slow.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "internal crate: the names of the items describe them"
)]

pub mod analysis;
pub mod attribution;
pub mod evidence;
pub mod held_checkpoint;
pub mod incarnation;
pub mod ledger_delay;
pub mod ledger_keys;
pub mod ledger_thread;
pub mod limit_thread;
pub mod limit_usage;
pub mod metrics;
pub mod payloads;
pub mod recorder;
pub mod rejected_request;
pub mod rotation;
pub mod telemetry;
pub mod tenant_shards;
