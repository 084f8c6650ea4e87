//! Translation of a chat provider's error for clients of Responses; both APIs have the same form.

use crate::anthropic_openai::error::ProviderError;
use crate::responses_openai::tools::write_json;
use proofgate_dialect::json::write_number;

/// Appends OpenAI's error body for a provider's error to `out`.
///
/// From the provider's body it copies only the `message`, and the type and the code if they are
/// words. For a refused key the message is the gateway's, because the provider's message is about
/// the gateway's key.
///
/// Source: OpenAI's API reference, Error codes.
pub fn translate_error(status: u16, body: &[u8], out: &mut Vec<u8>) {
    let told = std::str::from_utf8(body)
        .map(ProviderError::parse)
        .unwrap_or_default();
    let is_of_key = status == 401 || failure_code(&told).1;
    write_json(out, "{\"error\":{\"message\":\"");
    match told.message().filter(|_| !is_of_key) {
        Some(message) => write_json(out, message),
        None => {
            write_json(out, "The provider answered with status ");
            write_number(out, u64::from(status));
            out.push(b'.');
        }
    }
    let kind = told
        .type_name()
        .filter(|kind| is_identifier(kind))
        .unwrap_or(match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..500 => "invalid_request_error",
            _ => "server_error",
        });
    for piece in ["\",\"type\":\"", kind, "\",\"param\":null,\"code\":"] {
        write_json(out, piece);
    }
    match told.code_name().filter(|code| is_identifier(code)) {
        Some(code) => {
            for piece in ["\"", code, "\""] {
                write_json(out, piece);
            }
        }
        None => write_json(out, "null"),
    }
    write_json(out, "}}");
}

fn is_identifier(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Returns the code of a failed Response for an error, either a code of OpenAI's or a code that
/// Codex handles, and whether the error is about a key.
pub(super) fn failure_code(told: &ProviderError<'_>) -> (&'static str, bool) {
    let names = [told.code_name(), told.type_name()];
    let code = names.into_iter().flatten().find_map(|name| match name {
        "context_length_exceeded" | "string_above_max_length" => Some("context_length_exceeded"),
        "insufficient_quota" => Some("insufficient_quota"),
        "rate_limit_exceeded" | "rate_limit_error" | "429" => Some("rate_limit_exceeded"),
        "server_is_overloaded" | "overloaded_error" | "overloaded" | "slow_down" | "503" | "529" => {
            Some("server_is_overloaded")
        }
        "invalid_request_error" | "BadRequestError" | "invalid_prompt" | "400" => Some("invalid_prompt"),
        _ => None,
    });
    let is_of_key = names
        .into_iter()
        .flatten()
        .any(|name| matches!(name, "invalid_api_key" | "authentication_error" | "401"));
    (code.unwrap_or("server_error"), is_of_key)
}
