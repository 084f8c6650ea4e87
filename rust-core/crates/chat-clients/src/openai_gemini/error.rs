use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat_error::{ErrorMessage, write_error};
use crate::openai_gemini::generate_content_response::string_contents;

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// A body that reports an error.
#[derive(Deserialize)]
struct ErrorReport<'b> {
    #[serde(borrow)]
    error: Status<'b>,
}

/// Google's error (google.rpc.Status as JSON, AIP-193).
#[derive(Deserialize)]
struct Status<'b> {
    #[serde(borrow)]
    code: Option<&'b RawValue>,
    #[serde(borrow)]
    message: Option<&'b RawValue>,
    #[serde(borrow)]
    details: Option<&'b RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail<'b> {
    #[serde(rename = "@type", borrow)]
    kind: Option<&'b RawValue>,
    #[serde(borrow)]
    retry_delay: Option<&'b RawValue>,
}

/// Appends the provider's error as an error of OpenAI's API.
///
/// Its `message` is the provider's. If the body is not Google's error, the message is derived from
/// the HTTP `status`.
pub fn translate_error(status: u16, body: &[u8], out: &mut Vec<u8>) {
    let report = read(body);
    write(status, report.and_then(|report| report.message), out);
}

/// Returns the number of seconds to wait before a retry, rounded up; `None` if the provider names
/// none. Google sends the number in the body instead of in a header.
pub fn retry_after(body: &[u8]) -> Option<u64> {
    let details: Vec<Detail<'_>> = serde_json::from_str(read(body)?.details?.get()).ok()?;
    let is_retry = |detail: &&Detail<'_>| {
        detail
            .kind
            .is_some_and(|kind| string_contents(kind) == Ok(RETRY_INFO))
    };
    let delay = details.iter().find(is_retry)?.retry_delay?;
    parse_seconds(string_contents(delay).ok()?)
}

/// Parses a duration in protobuf's JSON: seconds with at most nine decimals, and an `s`.
fn parse_seconds(duration: &str) -> Option<u64> {
    let number = duration.strip_suffix('s')?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if !are_digits(whole) || !are_digits(decimals) {
        return None;
    }
    let part = u64::from(decimals.bytes().any(|digit| digit != b'0'));
    whole.parse::<u64>().ok()?.checked_add(part)
}

/// Appends an error reported in the middle of a stream, by the status in the report.
pub(super) fn write_stream_error(body: &[u8], out: &mut Vec<u8>) {
    let report = read(body);
    let code = report.as_ref().and_then(|report| report.code);
    let status = code.and_then(|code| code.get().parse().ok());
    write(
        status.unwrap_or(500),
        report.and_then(|report| report.message),
        out,
    );
}

fn write(status: u16, message: Option<&RawValue>, out: &mut Vec<u8>) {
    let (kind, code, default) = match status {
        401 => (
            "authentication_error",
            Some("invalid_api_key"),
            "The provider refused the key.",
        ),
        403 => ("permission_error", None, "The provider denied access."),
        404 => (
            "invalid_request_error",
            Some("model_not_found"),
            "The provider does not know the model.",
        ),
        429 => (
            "rate_limit_error",
            Some("rate_limit_exceeded"),
            "The provider's rate limit is exceeded.",
        ),
        400..=499 => ("invalid_request_error", None, "The provider refused the request."),
        503 => (
            "api_error",
            Some("server_is_overloaded"),
            "The provider is overloaded.",
        ),
        _ => ("api_error", None, "The provider failed."),
    };
    let message = message
        .map(RawValue::get)
        .filter(|message| message.starts_with('"'));
    let message = message.map_or(ErrorMessage::Text(default), ErrorMessage::Json);
    write_error(out, message, kind, code);
}

/// Reads the error in a body: an object or, from Google's endpoint for OpenAI's clients, an array of one.
fn read(body: &[u8]) -> Option<Status<'_>> {
    let text = std::str::from_utf8(body).ok()?;
    let report = if text.trim_start().starts_with('[') {
        let reports: Vec<ErrorReport<'_>> = serde_json::from_str(text).ok()?;
        reports.into_iter().next()?
    } else {
        serde_json::from_str(text).ok()?
    };
    Some(report.error)
}
