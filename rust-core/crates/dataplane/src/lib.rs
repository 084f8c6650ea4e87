//! Sockets, TLS, pools, relay and drain: composes the pure crates into a worker.
//!
//! A worker has three threads, which do not use Python. The data-plane thread serves the traffic
//! port on a single-threaded runtime and writes records. The ledger thread reads the written
//! records, hashes them into the tree, makes them durable and signs checkpoints. The limits thread
//! stores the tenants' usage on the volume. [`Worker`] starts, drains and joins them.
#![forbid(unsafe_code)]

mod data_plane;
mod reload;
mod worker;

pub use proofgate_base::Error;
pub use proofgate_base::descriptors::DescriptorShares;
pub use proofgate_base::panic_hook::install_panic_hook;
pub use proofgate_base::rejection::Rejection;
pub use proofgate_config::{Config, config_fields};
pub use proofgate_external_policies::{PolicyFailure, PolicyItem, PolicyQueue, Replacement, Verdict};
pub use proofgate_observe::evidence;
pub use proofgate_observe::limit_usage::{
    LimitUsage, LimitUsageReport, LimitUsages, NamespaceUsage, TenantUsage,
};
pub use proofgate_observe::telemetry::ExchangeQueue;
pub use proofgate_observe::tenant_shards::{IgnoredKey, RefusedShard, ShardFiles, ShardsReport};
pub use proofgate_upstream::price_list::prices_at;
pub use worker::{Worker, WorkerStatus};
