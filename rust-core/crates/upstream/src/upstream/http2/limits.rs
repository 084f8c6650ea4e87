//! What one provider may take up over HTTP/2.

/// Streams of one session, at most; a provider may allow fewer.
pub(super) const MAX_STREAMS: usize = 100;
/// Sessions with one provider, at most.
pub(crate) const MAX_SESSIONS: usize = 256;
/// Bytes of an answer that its provider may send ahead of its client, and of all answers of a session: one client that
/// takes nothing does not stop the others.
pub(super) const STREAM_WINDOW: u32 = 128 * 1024;
pub(super) const SESSION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;
/// What `h2` may spend on small DATA frames that wait for their clients: all windows may be full of such with 64 bytes, the
/// events of a stream for example.
pub(super) const MAX_SMALL_FRAME_BYTES: usize = 3 * SESSION_WINDOW as usize;
/// Bytes of one request that may wait for the session.
pub(super) const SEND_BUFFER: usize = 64 * 1024;
/// Bytes of the fields of an answer, as HTTP/2 counts them.
pub(super) const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;
/// Streams that the provider broke; one more ends the session.
pub(super) const MAX_BROKEN_STREAMS: usize = 100;
