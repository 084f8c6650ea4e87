//! The side of the clients: TLS and HTTP/2 against a running worker, from a client's first byte to its record.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod abuse;
mod client;
mod dialects;
mod drain;
mod exchanges;
mod gateway;
mod keys;
mod policies;
mod raw;
mod relayed;
mod retire;
mod sending;
mod smuggling;
mod streaming;
mod tenants;
mod tls;
mod translation;
mod upstream;
