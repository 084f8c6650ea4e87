//! Size limits of messages.

/// The maximum number of header fields of a head, even if [`Limits::headers`] is larger, because
/// they are stored on the stack.
pub const MAX_HEADERS: usize = 128;

/// Size limits of the parts of a message. A message is refused as soon as a limit is known to be
/// exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of a head, from the first byte of the start line to the final CRLF CRLF, and
    /// of a trailer section.
    pub head_bytes: usize,
    /// Maximum bytes of a request target.
    pub target_bytes: usize,
    /// Maximum number of fields in a head, and in a trailer section. Values above [`MAX_HEADERS`]
    /// mean [`MAX_HEADERS`].
    pub headers: usize,
    /// Maximum bytes of a request body, without chunk framing.
    pub body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16 * 1024,
            target_bytes: 8 * 1024,
            headers: 64,
            body_bytes: 32 * 1024 * 1024,
        }
    }
}
