/// The reason why a form is refused: it is malformed, or parsers could read it differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MultipartError {
    /// The body is not declared as a form.
    #[error("The Content-Type must be multipart/form-data with a boundary and nothing else.")]
    InvalidContentType,
    /// The boundary is missing, longer than 70 characters, or contains a character that parsers read differently.
    #[error("The boundary must be 1 to 70 letters, digits or characters of '+_-.()/:=?, without spaces.")]
    InvalidBoundary,
    /// There is data before the first boundary.
    #[error("The form has data before its first boundary.")]
    Preamble,
    /// There is data after the last boundary.
    #[error("The form has data after its last boundary.")]
    Epilogue,
    /// A boundary is followed by other data on its line, or the line does not end in CRLF.
    #[error("A boundary of the form must be followed by CRLF, or by -- and the end.")]
    BoundaryLine,
    /// The boundary follows a line break that is not CRLF, or appears where no part has ended.
    #[error("The form contains its boundary in a place where only some parsers recognize it.")]
    StrayBoundary,
    /// The body ended before its last boundary.
    #[error("The form ends before its last boundary.")]
    Truncated,
    /// There are more than [`MAX_PARTS`](crate::MAX_PARTS) parts.
    #[error("The form has more than 256 parts.")]
    TooManyParts,
    /// The head of a part is longer than [`MAX_HEAD_BYTES`](crate::MAX_HEAD_BYTES).
    #[error("The headers of a part of the form are longer than 4096 bytes.")]
    HeadTooLong,
    /// A header line of a part is not a header field, is folded, or does not end in CRLF.
    #[error("A header line in a part of the form is malformed.")]
    InvalidHeadLine,
    /// A part has a header other than `Content-Disposition`, `Content-Type`, `Content-Length` and a
    /// `Content-Transfer-Encoding` that does not change the content, or has one of them twice.
    #[error(
        "A part of a form must have one Content-Disposition, and may have Content-Type, Content-Length and an identity Content-Transfer-Encoding; no other header is accepted."
    )]
    UnexpectedHeadField,
    /// A part's `Content-Length` is not a number, or does not match its content.
    #[error("A part's Content-Length is not the length of its content.")]
    InvalidPartLength,
    /// `Content-Disposition` is missing, or is not `form-data` with a `name` and at most a `filename`.
    #[error(
        "A part's Content-Disposition must be form-data; name=\"...\", followed by filename=\"...\" for a file; filename* is not accepted."
    )]
    InvalidDisposition,
    /// A name contains a character that parsers read differently.
    #[error("A part's name must be printable ASCII without quotes, backslashes and %.")]
    InvalidName,
    /// A file name is empty, or contains a character that parsers read differently.
    #[error("A file's name must be UTF-8 without quotes, backslashes and control characters, and not empty.")]
    InvalidFileName,
    /// The `Content-Type` of a part is malformed, is the type of a nested form, or is the type of a
    /// file in a part that is not a file.
    #[error(
        "A part's Content-Type is not accepted: a field must be text/plain or application/json in UTF-8, and a file must not be multipart."
    )]
    InvalidPartType,
}
