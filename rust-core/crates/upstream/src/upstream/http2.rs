//! HTTP/2 to providers (RFC 9113). Each request uses a stream of a shared session.
//!
//! The head of a response is rewritten as HTTP/1.1, so that the same code reads and checks the
//! responses of both protocols. The body is passed on unchanged to the end of the stream. A stream
//! that is reset, or whose session breaks, is an error. `h2` checks that the body length matches
//! Content-Length and resets streams with connection-specific fields. It delivers 1xx responses and
//! trailers, which are dropped here.

mod head;
mod limits;
mod load;
mod session;
mod stream;

pub(super) use self::limits::MAX_SESSIONS;
pub(super) use self::session::Sessions;
pub(super) use self::stream::Http2Stream;

/// The protocol name in TLS (RFC 9113 section 3.1).
pub(super) const ALPN: &[u8] = b"h2";
