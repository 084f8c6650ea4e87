//! Limits of the resources that one provider may use over HTTP/2.

/// Maximum number of streams of one session; a provider may allow fewer.
pub(super) const MAX_STREAMS: usize = 100;
/// Maximum number of sessions with one provider.
pub(crate) const MAX_SESSIONS: usize = 256;
/// Maximum bytes of one response that a provider may send before the client has read them.
/// [`SESSION_WINDOW`] is the maximum of all responses of a session. It is large enough that a
/// client that reads nothing does not block the others.
pub(super) const STREAM_WINDOW: u32 = 128 * 1024;
/// Maximum bytes of all responses of a session that a provider may send ahead of the clients.
pub(super) const SESSION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;
/// Maximum overhead of `h2` for small DATA frames that wait for their clients. All windows may be
/// full of 64-byte frames, such as the events of a stream.
pub(super) const MAX_SMALL_FRAME_BYTES: usize = 3 * SESSION_WINDOW as usize;
/// Maximum bytes of one request that may be buffered for the session.
pub(super) const SEND_BUFFER: usize = 64 * 1024;
/// Maximum bytes of the header fields of a response, as HTTP/2 counts them.
pub(super) const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;
/// Maximum number of streams that the provider breaks in a session; one more ends the session.
pub(super) const MAX_BROKEN_STREAMS: usize = 100;
