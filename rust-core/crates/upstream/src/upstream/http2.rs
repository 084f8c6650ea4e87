//! HTTP/2 to providers (RFC 9113): a request takes a stream of a session that it shares with others.
//!
//! Whatever reads an answer reads HTTP/1.1, so that there is one set of checks: the head of an answer is written as HTTP/1.1
//! writes it, and its body comes as it is, to the end of the stream. That end is one of its own: a stream that is reset, or
//! whose session breaks, is an error. `h2` sees to it that a body is as long as its Content-Length says, and resets streams
//! with connection-specific fields; 1xx and trailers it hands over, and they are left out.

mod head;
mod limits;
mod load;
mod session;
mod stream;

pub(super) use self::limits::MAX_SESSIONS;
pub(super) use self::session::Sessions;
pub(super) use self::stream::Http2Stream;

/// The name of the protocol in TLS (RFC 9113 section 3.1).
pub(super) const ALPN: &[u8] = b"h2";
