//! HTTP/2 to providers (RFC 9113): each request uses a stream of a shared session.
//!
//! Response readers read HTTP/1.1, so that there is one set of checks: the head of a response is rewritten as HTTP/1.1, and
//! its body is passed on unchanged to the end of the stream. The end is explicit: a stream that is reset, or whose session
//! breaks, is an error. `h2` checks that the body length matches Content-Length and resets streams with connection-specific
//! fields. It delivers 1xx responses and trailers, which are dropped here.

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
