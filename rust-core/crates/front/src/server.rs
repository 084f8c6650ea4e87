//! The entry point for clients: the listener, the PROXY header, TLS and HTTP/2, in front of the code that serves a
//! connection.

mod http2;
mod listener;

pub use listener::{accept, wait_for_connections};
