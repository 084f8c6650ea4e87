use proofgate_dialect::bedrock_error::{BedrockError, Said};
use proofgate_dialect::json::write_string;

/// Appends Anthropic's error body for one of Bedrock.
///
/// `kind` is the value of `x-amzn-errortype`, or an exception's type; without either the body tells it, or the status does.
pub fn error(status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
    let said = Said::of(body);
    let error = BedrockError::of(kind.or(said.name()).unwrap_or_default(), status);
    out.extend_from_slice(br#"{"type":"error","error":{"type":""#);
    out.extend_from_slice(name(error).as_bytes());
    out.extend_from_slice(br#"","message":"#);
    match said.message_on(error) {
        Some(message) => out.extend_from_slice(message.as_bytes()),
        None => write_string(out, error.message()),
    }
    out.extend_from_slice(b"}}");
}

/// What Anthropic's API calls it. Source: Anthropic's API reference, Errors.
fn name(error: BedrockError) -> &'static str {
    match error {
        BedrockError::Invalid | BedrockError::Refused => "invalid_request_error",
        BedrockError::UnknownModel => "not_found_error",
        BedrockError::Throttled | BedrockError::NotReady | BedrockError::Quota => "rate_limit_error",
        BedrockError::ModelTimeout => "timeout_error",
        BedrockError::Unavailable => "overloaded_error",
        BedrockError::Model | BedrockError::Denied | BedrockError::Failed => "api_error",
    }
}
