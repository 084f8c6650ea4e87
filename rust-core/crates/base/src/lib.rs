//! Parts that all layers of a worker use: clock, memory, file descriptors, lifecycle, client I/O,
//! and error responses.
//!
//! Nothing here depends on exchanges, providers or the ledger. The layers above are `observe`,
//! `upstream`, `exchange`, `front` and `dataplane`; each layer uses only the layers below it.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "internal crate: the names of the items describe them"
)]

pub mod anthropic_headers;
pub mod approvals;
pub mod bounded_copy;
pub mod buffer_pool;
pub mod client;
pub mod clock;
pub mod deadline;
pub mod descriptors;
mod error;
pub mod error_response;
pub mod lifecycle;
pub mod memory;
pub mod open_exchange_table;
pub mod panic_hook;
pub mod priority;
pub mod random;
pub mod rejection;
pub mod request_id;
pub mod response_head;
pub mod routing;
pub mod single_writer;
pub mod threads;
pub mod workspace;

pub use error::Error;
