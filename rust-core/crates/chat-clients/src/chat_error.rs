//! Errors as OpenAI's API says them.

use proofgate_dialect::json::write_string;

/// What an error says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ErrorMessage<'m> {
    /// The provider's own words: a string as JSON.
    Json(&'m str),
    /// Ours.
    Text(&'m str),
}

/// Appends an error object, whole.
pub(crate) fn write_error(out: &mut Vec<u8>, message: ErrorMessage<'_>, kind: &str, code: Option<&str>) {
    out.extend_from_slice(br#"{"error":{"message":"#);
    match message {
        ErrorMessage::Json(message) => out.extend_from_slice(message.as_bytes()),
        ErrorMessage::Text(message) => write_string(out, message),
    }
    out.extend_from_slice(br#","type":"#);
    write_string(out, kind);
    out.extend_from_slice(br#","param":null,"code":"#);
    match code {
        Some(code) => write_string(out, code),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b"}}");
}
