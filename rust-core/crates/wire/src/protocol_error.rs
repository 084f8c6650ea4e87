//! The rules whose violation leads to the refusal of a message, with one variant per rule.

use thiserror::Error;

/// A rule that a message broke. This error is final: respond with [`ProtocolError::status`], close
/// the connection, and read no further byte.
///
/// The `Display` text is for people and quotes no part of the message. [`ProtocolError::code`] is
/// stable and for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The head exceeds [`crate::Limits::head_bytes`].
    #[error("the message head is larger than this gateway accepts")]
    HeadTooLarge,
    /// The head has more header fields than [`crate::Limits::headers`].
    #[error("the message has more header fields than this gateway accepts")]
    TooManyHeaders,
    /// The request target exceeds [`crate::Limits::target_bytes`].
    #[error("the request target is longer than this gateway accepts")]
    TargetTooLong,
    /// The declared or the counted length of the body exceeds [`crate::Limits::body_bytes`].
    #[error("the request body is larger than this gateway accepts")]
    BodyTooLarge,
    /// Expect contains a value other than `100-continue`, or occurs twice (RFC 9110 section
    /// 10.1.1).
    #[error("the only expectation that this gateway supports is 100-continue")]
    UnknownExpectation,
    /// There is an empty line before the start line. RFC 9112 section 2.2 allows a server to skip
    /// this line, but this crate refuses it.
    #[error("an empty line precedes the start line")]
    LeadingEmptyLine,
    /// The head contains LF without CR (RFC 9112 section 2.2).
    #[error("a line ends with LF alone; lines must end with CRLF")]
    BareLineFeed,
    /// The head contains CR without LF (RFC 9112 section 2.2).
    #[error("a CR is not followed by LF")]
    BareCarriageReturn,
    /// The head contains NUL, another control byte, or DEL. Only HTAB is allowed, in values (RFC
    /// 9110 section 5.5).
    #[error("the message head contains a control byte")]
    ControlByte,
    /// The input is not exactly one complete head.
    #[error("the message head is incomplete")]
    IncompleteHead,
    /// The start line is not three parts separated by single spaces (RFC 9112 sections 3 and 4).
    #[error("the start line is malformed")]
    InvalidStartLine,
    /// The method is not a token (RFC 9110 section 9.1).
    #[error("the request method is not a token")]
    InvalidMethod,
    /// The method is CONNECT, but this gateway opens no tunnels.
    #[error("CONNECT is not supported")]
    ConnectMethod,
    /// An Upgrade field requests a WebSocket, without which the request has no effect. Every other
    /// offer is ignored (RFC 9110 section 7.8).
    #[error(
        "this gateway does not support WebSocket; send the request by POST, and read its answer as server-sent events"
    )]
    WebSocketRequested,
    /// The version is not exactly `HTTP/1.1`.
    #[error("the only version that this gateway accepts on this connection is HTTP/1.1")]
    UnsupportedVersion,
    /// The target contains a byte that must be escaped in a URL, or a malformed or NUL escape (RFC 9112 section 3.2, RFC
    /// 3986 section 3).
    #[error("the request target contains a byte or an escape that is not allowed there")]
    InvalidTarget,
    /// The target is in authority or asterisk form, or in absolute form with a scheme other than http or
    /// https.
    #[error("the request target is neither a path nor an http(s) URL")]
    UnsupportedTargetForm,
    /// The authority of an absolute target differs from the Host. RFC 9112 section 3.2.2 prefers
    /// the authority, but this crate refuses the request.
    #[error("the host in the request target differs from the Host header")]
    TargetContradictsHost,
    /// There is no Host header (RFC 9112 section 3.2).
    #[error("the Host header is missing")]
    MissingHost,
    /// There is more than one Host header (RFC 9112 section 3.2).
    #[error("the Host header is given more than once")]
    DuplicateHost,
    /// The Host value is not one `uri-host [":" port]` (RFC 9110 section 7.2).
    #[error("the Host header must be one host with an optional port")]
    InvalidHost,
    /// A field name is empty or not a token (RFC 9110 section 5.1).
    #[error("a header name is not a token")]
    InvalidHeaderName,
    /// There is whitespace between a field name and its colon (RFC 9112 section 5.1).
    #[error("there is whitespace between a header name and its colon")]
    SpaceBeforeColon,
    /// A line starts with whitespace: obsolete line folding (RFC 9112 section 5.2).
    #[error("a header line is folded or starts with whitespace")]
    FoldedHeader,
    /// A field value contains a byte that is not allowed (RFC 9110 section 5.5), or a framing field
    /// contains a tab. RFC 9110 section 5.6.3 allows tabs around a value, but some parsers treat
    /// them as part of the value.
    #[error("a header value contains a byte that is not allowed there")]
    InvalidHeaderValue,
    /// A field name equals the name of a framing or security field except for other punctuation
    /// instead of `-`. Some servers treat both names as the same field.
    #[error("a header name differs from a framing or security header only in punctuation")]
    ImitatedHeader,
    /// A field that determines the sender or the kind of body occurs more than once (RFC 9110 section 5.3).
    #[error("a header that may be given only once is repeated")]
    DuplicateHeader,
    /// There are both Content-Length and Transfer-Encoding (RFC 9112 section 6.3, rule 3).
    #[error("Content-Length and Transfer-Encoding are both present")]
    LengthAndCoding,
    /// There is more than one Content-Length, equal or not (RFC 9112 section 6.3, rule 5).
    #[error("Content-Length is given more than once")]
    DuplicateContentLength,
    /// Content-Length is not a plain decimal number without leading zeros that fits 64 bits.
    #[error("Content-Length is not a plain decimal number")]
    InvalidContentLength,
    /// Transfer-Encoding is not exactly one `chunked` (RFC 9112 section 6.1).
    #[error("the only transfer coding that this gateway accepts is chunked, given once")]
    InvalidTransferEncoding,
    /// A GET, HEAD or TRACE request, or a 1xx or 204 response, has a body (RFC 9112 section 6.3,
    /// rule 1).
    #[error("this message must not have a body")]
    UnexpectedBody,
    /// A Connection option is not a token (RFC 9110 section 7.6.1), or a request has both `close`
    /// and `keep-alive`: by RFC 9112 section 9.3 `close` applies, but some parsers use the last
    /// option.
    #[error("the Connection header is malformed or contradicts itself")]
    InvalidConnection,
    /// Connection names a framing or security field, so an intermediary would remove this field.
    #[error("the Connection header names a header that must not be removed")]
    ProtectedConnectionOption,
    /// A chunk size is not 1 to 16 hexadecimal digits (RFC 9112 section 7.1).
    #[error("a chunk size is not a plain hexadecimal number")]
    InvalidChunkSize,
    /// There is a chunk extension (RFC 9112 section 7.1.1).
    #[error("chunk extensions are not accepted")]
    ChunkExtension,
    /// Chunk data is not followed by CRLF (RFC 9112 section 7.1).
    #[error("chunk data does not match the chunk size")]
    InvalidChunkEnd,
    /// A trailer field is malformed (RFC 9112 section 7.1.2).
    #[error("a trailer field is malformed")]
    InvalidTrailer,
    /// A trailer field has the name of a framing, connection or security field (RFC 9110 section
    /// 6.5.1). Some parsers obey such fields even in trailers.
    #[error("the trailer has a field that is not allowed in a trailer")]
    ForbiddenTrailer,
    /// The trailer section exceeds [`crate::Limits::head_bytes`] or [`crate::Limits::headers`].
    #[error("the trailer section is larger than this gateway accepts")]
    TrailersTooLarge,
    /// The connection ended before the end of the body (RFC 9112 section 8).
    #[error("the message body is incomplete")]
    TruncatedBody,
    /// A response status is outside 100 to 599 (RFC 9110 section 15).
    #[error("the status code is not valid")]
    InvalidStatus,
    /// The response is 101 Switching Protocols, but this gateway never requests an upgrade.
    #[error("the server switched protocols without being asked")]
    UnexpectedUpgrade,
    /// The connection does not start with the required PROXY v2 header.
    #[error("the connection does not start with a valid PROXY protocol header")]
    InvalidProxyHeader,
}

impl ProtocolError {
    /// Returns the response status for a refused request. For a refused *response* the status is always 502.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::HeadTooLarge | Self::TooManyHeaders | Self::TrailersTooLarge => 431,
            Self::TargetTooLong => 414,
            Self::BodyTooLarge => 413,
            Self::UnknownExpectation => 417,
            // On this status, Codex immediately falls back to POST. On any other status, it retries
            // for seconds.
            Self::WebSocketRequested => 426,
            _ => 400,
        }
    }

    /// Returns the stable machine code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::HeadTooLarge => "head_too_large",
            Self::TooManyHeaders => "too_many_headers",
            Self::TargetTooLong => "target_too_long",
            Self::BodyTooLarge => "body_too_large",
            Self::UnknownExpectation => "unknown_expectation",
            Self::LeadingEmptyLine => "leading_empty_line",
            Self::BareLineFeed => "bare_line_feed",
            Self::BareCarriageReturn => "bare_carriage_return",
            Self::ControlByte => "control_byte",
            Self::IncompleteHead => "incomplete_head",
            Self::InvalidStartLine => "invalid_start_line",
            Self::InvalidMethod => "invalid_method",
            Self::ConnectMethod => "connect_method",
            Self::WebSocketRequested => "websocket_requested",
            Self::UnsupportedVersion => "unsupported_version",
            Self::InvalidTarget => "invalid_target",
            Self::UnsupportedTargetForm => "unsupported_target_form",
            Self::TargetContradictsHost => "target_contradicts_host",
            Self::MissingHost => "missing_host",
            Self::DuplicateHost => "duplicate_host",
            Self::InvalidHost => "invalid_host",
            Self::InvalidHeaderName => "invalid_header_name",
            Self::SpaceBeforeColon => "space_before_colon",
            Self::FoldedHeader => "folded_header",
            Self::InvalidHeaderValue => "invalid_header_value",
            Self::ImitatedHeader => "imitated_header",
            Self::DuplicateHeader => "duplicate_header",
            Self::LengthAndCoding => "length_and_coding",
            Self::DuplicateContentLength => "duplicate_content_length",
            Self::InvalidContentLength => "invalid_content_length",
            Self::InvalidTransferEncoding => "invalid_transfer_encoding",
            Self::UnexpectedBody => "unexpected_body",
            Self::InvalidConnection => "invalid_connection",
            Self::ProtectedConnectionOption => "protected_connection_option",
            Self::InvalidChunkSize => "invalid_chunk_size",
            Self::ChunkExtension => "chunk_extension",
            Self::InvalidChunkEnd => "invalid_chunk_end",
            Self::InvalidTrailer => "invalid_trailer",
            Self::ForbiddenTrailer => "forbidden_trailer",
            Self::TrailersTooLarge => "trailers_too_large",
            Self::TruncatedBody => "truncated_body",
            Self::InvalidStatus => "invalid_status",
            Self::UnexpectedUpgrade => "unexpected_upgrade",
            Self::InvalidProxyHeader => "invalid_proxy_header",
        }
    }
}
