//! What a worker records and reports of its exchanges: records and the ledger that holds them, checkpoints, stored bodies,
//! metrics, an access log and traces, the analysis of answers, and what tenants used of their limits.
//!
//! The data-plane thread has an end of each that waits for nothing but the ledger ([`recorder`]); threads that may be slow
//! have the others.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "only the layers above use it, and the names are clear enough"
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
pub mod limit_use;
pub mod metrics;
pub mod payloads;
pub mod recorder;
pub mod rejected_request;
pub mod rotation;
pub mod telemetry;
pub mod tenant_shards;
