//! Translation of a chat provider's error to Anthropic's.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{unquoted, write_json};
use proofgate_dialect::json::write_number;

/// Appends Anthropic's error body for a provider's error to `out`.
///
/// The status determines the type. If the status is not an error (some providers send errors with
/// 200), the error itself determines the type. The message is the provider's `message`, and nothing
/// else of the body. For a refused key the message is the gateway's, because the provider's message
/// is about the gateway's key.
///
/// Source: Anthropic's API reference, Errors; OpenAI's API reference, Error codes.
pub fn translate_error(status: u16, body: &[u8], out: &mut Vec<u8>) {
    let told = std::str::from_utf8(body)
        .map(ProviderError::parse)
        .unwrap_or_default();
    let kind = kind_from_status(status)
        .or_else(|| told.anthropic_type())
        .unwrap_or("api_error");
    match told.message_if_type(kind) {
        Some(message) => write_error(kind, |out| write_json(out, message), out),
        None => write_error(
            kind,
            |out| {
                write_json(out, "The provider answered with status ");
                write_number(out, u64::from(status));
                out.push(b'.');
            },
            out,
        ),
    }
}

/// Writes an error; `message` writes the contents between its quotes.
pub(crate) fn write_error(kind: &str, message: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    write_json(out, "{\"type\":\"error\",\"error\":{\"type\":\"");
    write_json(out, kind);
    write_json(out, "\",\"message\":\"");
    message(out);
    write_json(out, "\"}}");
}

/// A provider's error.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProviderError<'a> {
    /// The message, JSON-escaped and without quotes.
    message: Option<&'a str>,
    kind: Option<&'a str>,
    code: Option<&'a RawValue>,
}

/// An error, or the object that contains one.
#[derive(Debug, Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    error_type: Option<&'a RawValue>,
}

impl<'a> ProviderError<'a> {
    /// Parses an error: `{"error":{…}}` (OpenAI), `{"error":"…"}` (Ollama, TGI), `{"message":…}` (Mistral, vLLM) or the
    /// message itself.
    pub(crate) fn parse(json: &'a str) -> Self {
        if let Ok(text) = serde_json::from_str::<&RawValue>(json)
            && let Some(message) = unquoted(Some(text))
        {
            return ProviderError {
                message: Some(message),
                ..ProviderError::default()
            };
        }
        let Ok(fields) = serde_json::from_str::<Fields<'a>>(json) else {
            return ProviderError::default();
        };
        let kind = unquoted(fields.kind.or(fields.error_type));
        match fields.error {
            Some(error) if error.get().starts_with('"') => ProviderError {
                message: unquoted(Some(error)),
                kind,
                code: fields.code,
            },
            // An error inside an error is not searched further.
            Some(error) => match serde_json::from_str::<Fields<'a>>(error.get()) {
                Ok(inner) => ProviderError {
                    message: unquoted(inner.message),
                    kind: unquoted(inner.kind),
                    code: inner.code,
                },
                Err(_) => ProviderError::default(),
            },
            None => ProviderError {
                message: unquoted(fields.message),
                kind,
                code: fields.code,
            },
        }
    }

    /// Returns its message, JSON-escaped and without quotes.
    pub(crate) fn message(&self) -> Option<&'a str> {
        self.message
    }

    /// Returns its type, JSON-escaped and without quotes.
    pub(crate) fn type_name(&self) -> Option<&'a str> {
        self.kind
    }

    /// Returns its code, a word or a number.
    pub(crate) fn code_name(&self) -> Option<&'a str> {
        let code = self.code.map(RawValue::get)?;
        Some(code.trim_matches('"'))
    }

    /// Returns the message that a client may read, JSON-escaped and without quotes, if its type is
    /// `kind`.
    pub(crate) fn message_if_type(&self, kind: &str) -> Option<&'a str> {
        self.message.filter(|_| kind != "authentication_error")
    }

    /// Returns Anthropic's type for it, from a code that is a status or from the names of OpenAI-compatible providers.
    pub(crate) fn anthropic_type(&self) -> Option<&'static str> {
        let code = self.code.map(RawValue::get).unwrap_or_default();
        let status = code.trim_matches('"').parse().ok().and_then(kind_from_status);
        status.or_else(|| {
            [code.trim_matches('"'), self.kind.unwrap_or_default()]
                .into_iter()
                .find_map(kind_from_name)
        })
    }
}

fn kind_from_name(name: &str) -> Option<&'static str> {
    match name {
        "rate_limit_exceeded" | "insufficient_quota" | "slow_down" | "rate_limit_error" => {
            Some("rate_limit_error")
        }
        "server_is_overloaded" | "overloaded_error" | "overloaded" => Some("overloaded_error"),
        "invalid_request_error" | "BadRequestError" | "context_length_exceeded" => {
            Some("invalid_request_error")
        }
        "invalid_api_key" => Some("authentication_error"),
        _ => None,
    }
}

fn kind_from_status(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("authentication_error"),
        402 => Some("billing_error"),
        403 => Some("permission_error"),
        404 => Some("not_found_error"),
        409 => Some("conflict_error"),
        413 => Some("request_too_large"),
        429 => Some("rate_limit_error"),
        408 | 504 => Some("timeout_error"),
        503 | 529 => Some("overloaded_error"),
        400..500 => Some("invalid_request_error"),
        500..600 => Some("api_error"),
        _ => None,
    }
}
