//! A strict sans-IO HTTP/1.1 parser that prevents request smuggling.
//!
//! Request smuggling means that two parsers read one byte stream differently. This crate accepts
//! only messages that every other parser reads the same way. It refuses all other messages and
//! never repairs them. `httparse` splits a head into tokens. This crate makes every framing
//! decision, once, and the forwarded head is rewritten from the result.
//!
//! Three rules hold everywhere:
//! 1. The verdict does not depend on how the bytes were split into reads.
//! 2. A [`ProtocolError`] is final: respond with its status, close the connection, and read no
//!    further byte.
//! 3. This crate does no I/O and allocates no memory, except in a buffer that the caller passes to
//!    [`encode`].
//!
//! For each message on a connection, call [`HeadScanner::scan`] until it finds the end of the head,
//! then [`parse_request`] (or [`parse_response`]) with exactly the bytes of the head, then use a
//! [`BodyDecoder`] for the following bytes. Behind a load balancer that forwards bytes without
//! parsing them, first call [`parse_proxy_header`].
//!
//! If RFC 9110 and RFC 9112 allow a choice, this crate uses the stricter reading. `README.md` lists
//! every decision with the cases that test it, and every point in which this crate is stricter than
//! the RFCs.
#![forbid(unsafe_code)]

mod api_key_headers;
mod authority;
mod body;
pub mod encode;
mod fields;
mod headers;
mod limits;
mod method;
mod protocol_error;
mod proxy;
mod request;
mod response;
mod scan;
mod syntax;
mod target;
mod trailers;

pub use api_key_headers::ApiKeyHeaders;
pub use body::{BodyDecoder, Step};
pub use headers::{Headers, is_hop_by_hop};
pub use limits::{Limits, MAX_HEADERS};
pub use method::Method;
pub use protocol_error::ProtocolError;
pub use proxy::{ProxyHeader, parse_proxy_header};
pub use request::{RequestFraming, RequestHead, parse_request};
pub use response::{ResponseFraming, ResponseHead, parse_response};
pub use scan::HeadScanner;
