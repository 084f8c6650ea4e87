//! The client side: TLS and HTTP/2 with a running worker, from a client's first byte to the record.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod abuse;
mod attribution;
mod azure;
mod bedrock;
mod chained;
mod claude_clients;
mod client;
mod client_certificates;
mod denied_betas;
mod descriptors;
mod dialects;
mod drain;
mod dying_provider;
mod early_failures;
mod egress_proxy;
mod exchanges;
mod faults;
mod file_uploads;
#[path = "../../../providers/tests/support/frames.rs"]
mod frames;
mod gateway;
mod google;
mod guarded_frames;
mod guarded_tools;
mod hosted_tools;
mod http2_failures;
mod http2_provider;
mod http2_upstream;
mod interrupted;
mod keys;
mod known_runs;
mod many_streams;
mod masking;
mod media;
mod model_health;
mod model_lists;
mod moved;
mod objects;
mod offers;
mod policies;
mod provider_errors;
mod provider_limits;
mod raw;
mod receipts;
mod relayed;
mod retire;
mod retries;
mod routes;
mod sending;
mod smuggling;
mod static_fields;
mod stream_ends;
mod streaming;
mod telemetry;
mod tenants;
mod tls;
mod token_counts;
mod translation;
mod uploads;
mod upstream;
mod upstream_tls;
mod vertex;
mod waiting;
mod warm;
mod without_responses;
