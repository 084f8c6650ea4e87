//! A strict sans-IO HTTP/1.1 parser that prevents request smuggling.
//!
//! Request smuggling means that two parsers read one byte stream differently. This crate accepts only messages that every
//! other parser reads the same way, and refuses the rest; it never repairs. `httparse` splits a head into tokens, every
//! framing decision is made here, once, and the forwarded head is rewritten from the result.
//!
//! Three rules hold everywhere:
//! 1. The verdict does not depend on how the bytes were split into reads.
//! 2. A [`ProtocolError`] is final: respond with its status, close the connection, read no further byte of it.
//! 3. Nothing here does I/O or allocates, except into a buffer that the caller lends to [`encode`].
//!
//! The order of use for a connection: [`HeadScanner::scan`] until it finds the end of the head, [`parse_request`] (or
//! [`parse_response`]) on exactly those bytes, then a [`BodyDecoder`] for what follows. Behind a load balancer that passes
//! bytes on without parsing them, [`parse_proxy_header`] comes first.
//!
//! Where RFC 9110 and RFC 9112 leave a choice, the stricter reading is taken. `README.md` lists every decision with the
//! cases that test it, and every point in which it is stricter than the RFCs.
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
