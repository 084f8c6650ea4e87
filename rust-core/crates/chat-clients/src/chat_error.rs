//! Error objects of OpenAI's API.

use proofgate_dialect::json::write_string;

/// The message of an error.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ErrorMessage<'m> {
    /// The provider's own message: a JSON string.
    Json(&'m str),
    /// The gateway's message.
    Text(&'m str),
}

/// Appends a whole error object.
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
