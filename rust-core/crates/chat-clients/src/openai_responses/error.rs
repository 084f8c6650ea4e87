use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use proofgate_dialect::json::write_member;
use proofgate_dialect::json::write_string;
use proofgate_dialect::json_text::JsonText;

/// An error of OpenAI's API, or an object that contains one: a body, an `error` event or a failed
/// response.
#[derive(Default, Deserialize)]
struct ErrorFields<'b> {
    #[serde(borrow)]
    error: Option<&'b RawValue>,
    #[serde(borrow)]
    response: Option<&'b RawValue>,
    #[serde(borrow)]
    message: Option<&'b RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'b RawValue>,
    #[serde(borrow)]
    param: Option<&'b RawValue>,
    #[serde(borrow)]
    code: Option<&'b RawValue>,
}

/// Writes the provider's error as an error of chat completions.
///
/// Both errors have the same form: message, type and code are kept. `param` is replaced if the
/// field has another name in chat completions, and is `null` if it has no counterpart, such as an
/// item of the input. For a refused key (401) the message is the gateway's own, because the
/// provider's is about the gateway's key. A body that cannot be read becomes a general message for
/// the HTTP `status`.
///
/// Source: OpenAI's API reference, Error codes.
pub fn translate_error(status: u16, body: &[u8], out: &mut Vec<u8>) {
    write_error(Some(status), body, out);
}

/// Writes an error; `status` is `None` in a stream, where the HTTP status was a success.
pub(super) fn write_error(status: Option<u16>, body: &[u8], out: &mut Vec<u8>) {
    let fields: ErrorFields<'_> = serde_json::from_slice(body).unwrap_or_default();
    let inner = |value: Option<&'_ RawValue>| value.map(RawValue::get).map(str::to_owned);
    let response = inner(fields.response).unwrap_or_default();
    let within: ErrorFields<'_> = serde_json::from_str(&response).unwrap_or_default();
    let error = inner(fields.error.or(within.error));
    let error = match &error {
        Some(error) => serde_json::from_str(error).unwrap_or_default(),
        None => fields,
    };
    let text = |value: Option<&'_ RawValue>| {
        let text = value.and_then(|value| JsonText::from_raw(value).map(JsonText::raw));
        text.filter(|text| *text != "\"\"").map(str::to_owned)
    };
    let refused_key = status == Some(401);
    let message = text(error.message).filter(|_| !refused_key);
    let (own_message, own_kind) = default_error(status);
    out.extend_from_slice(b"{\"error\":{\"message\":");
    match message {
        Some(message) => out.extend_from_slice(message.as_bytes()),
        None => write_string(out, own_message),
    }
    // The type of a stream event is its own name.
    let kind = text(error.kind).filter(|kind| kind != "\"error\"" && !kind.starts_with("\"response."));
    let code = text(error.code);
    let kind = kind.unwrap_or_else(|| format!("\"{}\"", error_type(code.as_deref()).unwrap_or(own_kind)));
    write_member(out, "type", Some(&kind));
    out.extend_from_slice(b",\"param\":");
    let param = error
        .param
        .and_then(JsonText::from_raw)
        .and_then(JsonText::decode);
    match param.as_deref().and_then(chat_param) {
        Some(param) => write_string(out, &param),
        None => out.extend_from_slice(b"null"),
    }
    write_member(out, "code", Some(code.as_deref().unwrap_or("null")));
    out.extend_from_slice(b"}}");
}

/// Returns the message if the provider sends none, and its type.
fn default_error(status: Option<u16>) -> (&'static str, &'static str) {
    match status {
        Some(401) => ("The provider refused the key.", INVALID_REQUEST),
        Some(403) => ("The provider does not permit this.", INVALID_REQUEST),
        Some(404) => ("The provider does not know this model.", INVALID_REQUEST),
        Some(429) => ("Too many requests.", "rate_limit_error"),
        Some(400..=499) => ("The provider refused the request.", INVALID_REQUEST),
        _ => ("The provider failed.", "server_error"),
    }
}

const INVALID_REQUEST: &str = "invalid_request_error";

/// Returns the type of an error that has only a code, as in a failed response.
fn error_type(code: Option<&str>) -> Option<&'static str> {
    match code?.trim_matches('"') {
        "rate_limit_exceeded" => Some("rate_limit_error"),
        "insufficient_quota" => Some("insufficient_quota"),
        "server_error" | "vector_store_timeout" => Some("server_error"),
        "invalid_prompt" | "context_length_exceeded" => Some(INVALID_REQUEST),
        _ => None,
    }
}

/// Returns the name of a Responses field in chat completions; `None` if it has no counterpart.
fn chat_param(param: &str) -> Option<Cow<'_, str>> {
    let is_within = |name: &str| {
        let behind = param.strip_prefix(name);
        behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(['.', '[']))
    };
    if param == "input" {
        return Some(Cow::Borrowed("messages"));
    }
    // The indexes of items differ from those of messages.
    if ["input", "include", "instructions", "reasoning.summary"]
        .into_iter()
        .any(is_within)
    {
        return None;
    }
    let names = [
        ("max_output_tokens", "max_completion_tokens"),
        ("reasoning", "reasoning_effort"),
        ("text.verbosity", "verbosity"),
        ("text", "response_format"),
    ];
    let renamed = names.into_iter().find(|(name, _)| is_within(name));
    if let Some((_, name)) = renamed {
        return Some(Cow::Borrowed(name));
    }
    // A function's fields are one level deeper.
    if let Some((tool, field)) = param.split_once("].").filter(|_| param.starts_with("tools["))
        && ["name", "description", "parameters", "strict"]
            .iter()
            .any(|known| field.starts_with(known))
    {
        return Some(Cow::Owned(format!("{tool}].function.{field}")));
    }
    Some(Cow::Borrowed(param))
}
