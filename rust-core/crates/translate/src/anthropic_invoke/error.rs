use proofgate_dialect::bedrock_error::{BedrockError, ErrorBody};
use proofgate_dialect::json::write_string;

/// Appends Anthropic's error body for an error of Bedrock.
///
/// `kind` is the value of `x-amzn-errortype`, or an exception's type; without either, the body or the status determines it.
pub fn translate_error(status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
    let said = ErrorBody::parse(body);
    let error = BedrockError::from_name(kind.or(said.name()).unwrap_or_default(), status);
    out.extend_from_slice(br#"{"type":"error","error":{"type":""#);
    out.extend_from_slice(error_type(error).as_bytes());
    out.extend_from_slice(br#"","message":"#);
    match said.client_message(error) {
        Some(message) => out.extend_from_slice(message.as_bytes()),
        None => write_string(out, error.default_message()),
    }
    out.extend_from_slice(b"}}");
}

/// Returns the error type of Anthropic's API. Source: Anthropic's API reference, Errors.
fn error_type(error: BedrockError) -> &'static str {
    match error {
        BedrockError::Invalid | BedrockError::Refused => "invalid_request_error",
        BedrockError::UnknownModel => "not_found_error",
        BedrockError::Throttled | BedrockError::NotReady | BedrockError::Quota => "rate_limit_error",
        BedrockError::ModelTimeout => "timeout_error",
        BedrockError::Unavailable => "overloaded_error",
        BedrockError::ModelError | BedrockError::Denied | BedrockError::Other => "api_error",
    }
}
