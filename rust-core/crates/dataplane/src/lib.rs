//! Sockets, TLS, pools, relay and drain: composes the pure crates into a worker.
//!
//! Two threads, neither of which knows Python. The data-plane thread serves the traffic port on a single-threaded
//! runtime and writes records; the ledger thread follows what was written, hashes it into the tree, makes it durable
//! and signs checkpoints. [`Worker`] starts, drains and joins both.
#![forbid(unsafe_code)]

mod answer;
mod catalog;
mod client;
mod config;
mod connection;
mod data_plane;
mod error;
pub mod evidence;
mod exchange;
mod gateway;
mod incarnation;
mod ledger_thread;
mod lifecycle;
mod listener;
mod metrics;
mod priority;
mod recorder;
mod rejection;
mod relay;
mod request_id;
mod upstream;
mod worker;

pub use config::Config;
pub use error::Error;
pub use worker::{Status, Worker};
