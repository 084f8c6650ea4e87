//! The client side: the listener, TLS, HTTP/1.1 and HTTP/2, and the handling of a request's head until its exchange
//! starts.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "only the layers above use it, and the names are clear enough"
)]

mod connection;
mod cors;
pub mod server;
