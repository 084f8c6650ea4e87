use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat_error::{self, ErrorMessage};
use proofgate_dialect::json_text::JsonText;

/// An error of Anthropic's API, as a whole body or as the data of an `error` event.
#[derive(Default, Deserialize)]
struct ErrorBody<'b> {
    #[serde(borrow)]
    error: Option<&'b RawValue>,
    /// The message in errors of clouds that host Anthropic's models.
    #[serde(borrow)]
    message: Option<&'b RawValue>,
}

#[derive(Default, Deserialize)]
struct ErrorObject<'b> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'b RawValue>,
    #[serde(borrow)]
    message: Option<&'b RawValue>,
    #[serde(borrow)]
    details: Option<&'b RawValue>,
}

#[derive(Default, Deserialize)]
struct ErrorDetails<'b> {
    #[serde(borrow)]
    error_code: Option<&'b RawValue>,
}

/// Writes an error of Anthropic's API as OpenAI's error body.
///
/// Its `message` is kept. The type and the code are OpenAI's counterparts of Anthropic's type, or
/// of the HTTP `status` if the type is unknown. A body that cannot be read becomes a general
/// message.
pub fn translate_error(status: u16, body: &[u8], out: &mut Vec<u8>) {
    write_error(Some(status), body, out);
}

/// Writes an error; `status` is `None` in a stream, where the HTTP status was a success.
pub(super) fn write_error(status: Option<u16>, body: &[u8], out: &mut Vec<u8>) {
    let body: ErrorBody<'_> = serde_json::from_slice(body).unwrap_or_default();
    let object = body
        .error
        .and_then(|error| serde_json::from_str(error.get()).ok());
    let ErrorObject {
        kind,
        message,
        details,
    } = object.unwrap_or_default();
    let message = message.or(body.message).and_then(JsonText::from_raw);
    let is_word = |value: &Option<&RawValue>, word: &str| {
        value
            .and_then(JsonText::from_raw)
            .is_some_and(|text| text.inner() == word)
    };
    let known = KINDS.iter().find(|known| is_word(&kind, known.anthropic));
    let by_status = || KINDS.iter().find(|known| Some(known.status) == status);
    let general = if status.is_some_and(|status| (400..500).contains(&status)) {
        &KINDS[0]
    } else {
        &SERVER_ERROR
    };
    let found = known.or_else(by_status).unwrap_or(general);
    let details: ErrorDetails<'_> = details
        .and_then(|details| serde_json::from_str(details.get()).ok())
        .unwrap_or_default();
    let spent = SPENDING_LIMITS
        .iter()
        .any(|code| is_word(&details.error_code, code));
    let (kind, code) = match spent {
        true => (INSUFFICIENT_QUOTA, Some(INSUFFICIENT_QUOTA)),
        false => (found.kind, found.code),
    };

    let message = message.filter(|message| !message.is_empty());
    let message = message.map_or(ErrorMessage::Text(found.message), |message| {
        ErrorMessage::Json(message.raw())
    });
    chat_error::write_error(out, message, kind, code);
}

/// A kind of error in both APIs.
struct ErrorKind {
    status: u16,
    anthropic: &'static str,
    kind: &'static str,
    code: Option<&'static str>,
    /// The message if the provider sends none.
    message: &'static str,
}

const INVALID_REQUEST: &str = "invalid_request_error";
const INSUFFICIENT_QUOTA: &str = "insufficient_quota";

/// Spending limits that are reported as 429 and that a retry cannot pass.
const SPENDING_LIMITS: [&str; 3] = [
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
    "linked_organization_spend_limit_reached",
];

const SERVER_ERROR: ErrorKind = error_kind(500, "api_error", "server_error", None, "the provider failed");

/// Anthropic's types and their statuses (platform.claude.com, errors). The first one is the general client error.
const KINDS: [ErrorKind; 11] = [
    error_kind(
        400,
        "invalid_request_error",
        INVALID_REQUEST,
        None,
        "the provider refused the request",
    ),
    error_kind(
        401,
        "authentication_error",
        INVALID_REQUEST,
        Some("invalid_api_key"),
        "the provider refused the key",
    ),
    error_kind(
        402,
        "billing_error",
        INSUFFICIENT_QUOTA,
        Some(INSUFFICIENT_QUOTA),
        "the provider's account has no credit left",
    ),
    error_kind(
        403,
        "permission_error",
        INVALID_REQUEST,
        Some("permission_denied"),
        "the provider does not permit this",
    ),
    error_kind(
        404,
        "not_found_error",
        INVALID_REQUEST,
        Some("model_not_found"),
        "the provider does not know this model",
    ),
    error_kind(
        409,
        "conflict_error",
        INVALID_REQUEST,
        Some("conflict"),
        "the request conflicts with another request",
    ),
    error_kind(
        413,
        "request_too_large",
        INVALID_REQUEST,
        Some("request_too_large"),
        "the request is too large",
    ),
    error_kind(
        429,
        "rate_limit_error",
        "rate_limit_error",
        Some("rate_limit_exceeded"),
        "too many requests",
    ),
    SERVER_ERROR,
    error_kind(
        504,
        "timeout_error",
        "server_error",
        Some("timeout"),
        "the provider took too long",
    ),
    error_kind(
        529,
        "overloaded_error",
        "server_error",
        Some("server_is_overloaded"),
        "the provider is overloaded",
    ),
];

const fn error_kind(
    status: u16,
    anthropic: &'static str,
    kind: &'static str,
    code: Option<&'static str>,
    message: &'static str,
) -> ErrorKind {
    ErrorKind {
        status,
        anthropic,
        kind,
        code,
        message,
    }
}
