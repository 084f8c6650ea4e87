//! The client side: the listener, TLS, HTTP/1.1 and HTTP/2, and the handling of a request's head until its exchange
//! starts.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "internal crate: the names of the items describe them"
)]

mod connection;
mod cors;
pub mod server;
