//! Where clients come in: the listener, the PROXY header, TLS and HTTP/2, each in front of what serves a connection.

mod http2;
mod listener;

pub use listener::{accept, wait_for_all};
