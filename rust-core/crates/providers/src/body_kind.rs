/// The kind of a response body, by its first bytes. A client that requested a stream parses the
/// body as a stream whatever its `Content-Type` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// Server-sent events: the body begins with one of their fields, or with a comment.
    Events,
    /// The body begins like a JSON object.
    Object,
    /// Any other body.
    Other,
}

/// The byte order mark that may precede a stream of events (WHATWG HTML, 9.2.5) or a document and is not part of it.
pub const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const EVENT_FIELD_PREFIXES: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];

impl BodyKind {
    /// Detects the kind from the beginning of a body; `None` if more bytes are needed.
    pub fn detect(begin: &[u8]) -> Option<BodyKind> {
        let begin = match begin.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => rest,
            None if BYTE_ORDER_MARK.starts_with(begin) => return None,
            None => begin,
        };
        let text = begin.trim_ascii_start();
        if text.is_empty() {
            return None;
        }
        if text.starts_with(b"{") {
            return Some(BodyKind::Object);
        }
        let line_begins =
            begin.len() == text.len() || matches!(begin[begin.len() - text.len() - 1], b'\n' | b'\r');
        if line_begins && EVENT_FIELD_PREFIXES.iter().any(|field| text.starts_with(field)) {
            return Some(BodyKind::Events);
        }
        let undecided = line_begins && EVENT_FIELD_PREFIXES.iter().any(|field| field.starts_with(text));
        (!undecided).then_some(BodyKind::Other)
    }
}
