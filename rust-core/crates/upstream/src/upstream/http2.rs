//! HTTP/2 to providers (RFC 9113): a request takes a stream of a session that it shares with others.
//!
//! Whatever reads an answer reads HTTP/1.1, so that there is one set of checks: the head of an answer is written as HTTP/1.1
//! writes it, and its body comes as it is, to the end of the stream. That end is one of its own: a stream that is reset, or
//! whose session breaks, is an error. `h2` sees to it that a body is as long as its Content-Length says, and resets streams
//! with connection-specific fields; 1xx and trailers it hands over, and they are left out.

mod head;
mod session;
mod stream;

pub(super) use self::session::Sessions;
pub(super) use self::stream::Http2Stream;

/// The name of the protocol in TLS (RFC 9113 section 3.1).
pub(super) const ALPN: &[u8] = b"h2";

/// Streams of one session, at most; a provider may allow fewer.
const MAX_STREAMS: usize = 100;
/// Sessions with one provider, at most.
pub(super) const MAX_SESSIONS: usize = 256;
/// Bytes of an answer that its provider may send ahead of its client, and of all answers of a session: one client that
/// takes nothing does not stop the others.
const STREAM_WINDOW: u32 = 128 * 1024;
const SESSION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;
/// What `h2` may spend on small DATA frames that wait for their clients: all windows may be full of such with 64 bytes, the
/// events of a stream for example.
const SMALL_FRAMES: usize = 3 * SESSION_WINDOW as usize;
/// Bytes of one request that may wait for the session.
const SEND_BUFFER: usize = 64 * 1024;
/// Bytes of the fields of an answer, as HTTP/2 counts them.
const HEADER_LIST: u32 = 64 * 1024;
/// Streams that the provider broke; one more ends the session.
const MAX_BROKEN_STREAMS: usize = 100;
