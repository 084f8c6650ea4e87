//! The side of the clients: the listener, TLS, HTTP/1.1 and HTTP/2, and what becomes of the head of a request until its
//! exchange begins.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "for the layers above alone, where names say enough"
)]

mod connection;
mod cors;
pub mod front_door;
