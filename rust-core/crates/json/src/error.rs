/// Why a document is refused, and at which byte. It quotes no text of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The document is not UTF-8 (RFC 8259 section 8.1).
    #[error("invalid UTF-8 at byte {at}")]
    InvalidUtf8 {
        /// The offset of the first byte that cannot be decoded.
        at: usize,
    },
    /// The document ends inside a value, or contains none.
    #[error("the document ends at byte {at}, before its value is complete")]
    UnexpectedEnd {
        /// The length of the document.
        at: usize,
    },
    /// A byte that is not allowed at this position.
    #[error("unexpected byte at {at}")]
    UnexpectedByte {
        /// Its offset.
        at: usize,
    },
    /// A number outside the grammar, such as `01`, `1.` or `-` (RFC 8259 section 6).
    #[error("invalid number at byte {at}")]
    InvalidNumber {
        /// Where the number begins.
        at: usize,
    },
    /// A backslash that does not begin an escape of RFC 8259 section 7.
    #[error("invalid escape at byte {at}")]
    InvalidEscape {
        /// The offset of the backslash.
        at: usize,
    },
    /// An unpaired surrogate: it is not valid Unicode text, and parsers disagree about it (RFC 8259 section 8.2).
    #[error("a lone surrogate at byte {at}")]
    LoneSurrogate {
        /// The offset of its backslash.
        at: usize,
    },
    /// An unescaped control character in a string.
    #[error("an unescaped control character at byte {at}")]
    ControlCharacter {
        /// Its offset.
        at: usize,
    },
    /// A duplicate key of an object: parsers disagree which one counts (RFC 8259 section 4).
    #[error("a repeated key at byte {at}")]
    DuplicateKey {
        /// The offset of the second key.
        at: usize,
    },
    /// Nesting exceeds the limit.
    #[error("nested too deeply at byte {at}")]
    TooDeep {
        /// Where the first object or array beyond the limit opens.
        at: usize,
    },
    /// Something other than white space after the value.
    #[error("trailing data at byte {at}")]
    TrailingData {
        /// The offset where it begins.
        at: usize,
    },
    /// The document has 2 GiB or more.
    #[error("the document is too long")]
    TooLong,
}

impl JsonError {
    /// Returns the byte offset of the error in the document.
    pub fn offset(&self) -> usize {
        match *self {
            JsonError::InvalidUtf8 { at }
            | JsonError::UnexpectedEnd { at }
            | JsonError::UnexpectedByte { at }
            | JsonError::InvalidNumber { at }
            | JsonError::InvalidEscape { at }
            | JsonError::LoneSurrogate { at }
            | JsonError::ControlCharacter { at }
            | JsonError::DuplicateKey { at }
            | JsonError::TooDeep { at }
            | JsonError::TrailingData { at } => at,
            JsonError::TooLong => 1 << 31,
        }
    }
}
