//! Sockets, TLS, pools, relay and drain: composes the pure crates into a worker.
//!
//! Three threads, none of which knows Python. The data-plane thread serves the traffic port on a single-threaded runtime
//! and writes records; the ledger thread follows what was written, hashes it into the tree, makes it durable and signs
//! checkpoints; the limits thread keeps what tenants used on the volume. [`Worker`] starts, drains and joins them.
#![forbid(unsafe_code)]

mod answer;
mod body;
mod catalog;
mod clock;
mod config;
mod connection;
mod data_plane;
mod deadline;
mod downstream;
mod draft;
mod endpoint;
mod error;
pub mod evidence;
mod exchange;
mod failure;
mod gateway;
mod incarnation;
mod ledger_delay;
mod ledger_thread;
mod lifecycle;
mod limit_thread;
mod metrics;
mod open_exchange;
mod priority;
mod recorder;
mod rejection;
mod relay;
mod reload;
mod request_id;
mod request_policy;
mod response_head;
mod spare;
mod upstream;
mod worker;

pub use config::Config;
pub use error::Error;
pub use worker::{Status, Worker};
