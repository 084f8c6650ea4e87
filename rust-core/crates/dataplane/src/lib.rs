//! Sockets, TLS, pools, relay and drain: composes the pure crates into a worker.
//!
//! Three threads, none of which knows Python. The data-plane thread serves the traffic port on a single-threaded runtime
//! and writes records; the ledger thread follows what was written, hashes it into the tree, makes it durable and signs
//! checkpoints; the limits thread keeps what tenants used on the volume. [`Worker`] starts, drains and joins them.
#![forbid(unsafe_code)]

mod access_token;
mod admission;
mod analysis;
mod answer;
mod attempt;
mod azure_path;
mod batch_input;
mod batch_lines;
mod body;
mod bounded_copy;
mod catalog;
mod client;
mod client_fields;
mod client_tls;
mod clock;
mod config;
mod connection;
mod cors;
mod data_plane;
mod deadline;
mod delivery;
mod endpoint;
mod error;
pub mod evidence;
mod exchange;
mod failure;
mod fallback;
mod form;
mod front_door;
mod gateway;
mod google_path;
mod held_checkpoint;
mod hooks;
mod hosted_tools;
mod incarnation;
mod ledger_delay;
mod ledger_keys;
mod ledger_thread;
mod lifecycle;
mod limit_thread;
mod limit_use;
mod memory;
mod metrics;
mod models;
mod open_exchange;
mod open_table;
mod panics;
mod path_end;
mod payloads;
mod price_list;
mod pricing;
mod priority;
mod receipts;
mod recorder;
mod refusals;
mod rejection;
mod relay;
mod reload;
mod reply;
mod request_id;
mod request_policy;
mod response_head;
mod rotation;
mod routes;
mod routing;
mod sender;
mod settlement;
#[cfg(test)]
mod settlement_money_tests;
mod signer;
mod spare;
mod stored_path;
mod telemetry;
mod tenant_shards;
mod terms;
mod threads;
mod translation;
mod upload;
mod upstream;
mod usage_report;
mod worker;
mod workspace;

pub use config::Config;
pub use error::Error;
pub use hooks::{Failure, PolicyItem, PolicyQueue, Replacement, Verdict};
pub use limit_use::{LimitUse, TenantUse, Used};
pub use panics::tell_places_alone;
pub use price_list::prices_at;
pub use telemetry::ExchangeQueue;
pub use tenant_shards::{RefusedShard, ShardFiles, ShardsReport};
pub use worker::{Status, Worker};
