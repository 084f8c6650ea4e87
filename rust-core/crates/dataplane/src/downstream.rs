//! The side of the clients: the listener, what their bytes come through, and reading and writing it.

mod client;
mod http2;
mod listener;
mod stream;
mod tls;

pub(crate) use client::Client;
pub(crate) use listener::{accept, wait_for_all};
pub(crate) use stream::ClientStream;
pub(crate) use tls::tls;
