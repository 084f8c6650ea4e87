/// Why a document is refused, and at which of its bytes. Nothing of the document is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The document is not UTF-8 (RFC 8259 section 8.1).
    #[error("invalid UTF-8 at byte {at}")]
    InvalidUtf8 {
        /// The first byte that cannot be decoded.
        at: usize,
    },
    /// The document ends inside a value, or holds none.
    #[error("the document ends at byte {at}, before its value is complete")]
    UnexpectedEnd {
        /// The length of the document.
        at: usize,
    },
    /// A byte that cannot stand where it stands.
    #[error("unexpected byte at {at}")]
    UnexpectedByte {
        /// Its place.
        at: usize,
    },
    /// A number outside the grammar, such as `01`, `1.` or `-` (RFC 8259 section 6).
    #[error("invalid number at byte {at}")]
    InvalidNumber {
        /// Where the number begins.
        at: usize,
    },
    /// A backslash that begins no escape of RFC 8259 section 7.
    #[error("invalid escape at byte {at}")]
    InvalidEscape {
        /// Where the backslash stands.
        at: usize,
    },
    /// Half of a surrogate pair: no Unicode text holds it, and parsers disagree about it (RFC 8259 section 8.2).
    #[error("a lone surrogate at byte {at}")]
    LoneSurrogate {
        /// Where its backslash stands.
        at: usize,
    },
    /// A control character inside a string, unescaped.
    #[error("an unescaped control character at byte {at}")]
    ControlCharacter {
        /// Its place.
        at: usize,
    },
    /// A key that its object already has: parsers disagree which one counts (RFC 8259 section 4).
    #[error("a repeated key at byte {at}")]
    DuplicateKey {
        /// Where the second one begins.
        at: usize,
    },
    /// Nesting beyond the limit.
    #[error("nested too deeply at byte {at}")]
    TooDeep {
        /// Where the first object or array beyond the limit opens.
        at: usize,
    },
    /// Something other than white space after the value.
    #[error("trailing data at byte {at}")]
    TrailingData {
        /// Where it begins.
        at: usize,
    },
    /// The document has 2 GiB or more.
    #[error("the document is too long")]
    TooLong,
}

impl JsonError {
    /// The byte of the document that the error is about.
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
