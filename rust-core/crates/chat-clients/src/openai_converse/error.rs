use crate::chat_error::{ErrorMessage, write_error};
use proofgate_dialect::bedrock_error::{BedrockError, ErrorBody};

/// Appends OpenAI's error body for an error of Converse.
///
/// `kind` is the value of `x-amzn-errortype`, if the answer has one. `status` is the provider's, and determines the error if
/// neither the header nor the body does.
pub fn translate_error(status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
    let said = ErrorBody::parse(body);
    let error = BedrockError::from_name(kind.or(said.name()).unwrap_or_default(), status);
    write(out, error, &said);
}

/// Appends OpenAI's error object for an exception in a stream. `name`: its `:exception-type`;
/// `data`: its payload.
pub(super) fn write_exception(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    write(out, BedrockError::from_name(name, 500), &ErrorBody::parse(data));
}

/// Appends OpenAI's error object for model output that the provider could not read.
pub(super) fn write_malformed_output_error(out: &mut Vec<u8>) {
    write(out, BedrockError::ModelError, &ErrorBody::default());
}

/// Returns the error's type and code in OpenAI's API.
fn openai_names(error: BedrockError) -> (&'static str, Option<&'static str>) {
    match error {
        BedrockError::Invalid | BedrockError::Refused => ("invalid_request_error", None),
        BedrockError::UnknownModel => ("invalid_request_error", Some("model_not_found")),
        BedrockError::Throttled => ("rate_limit_error", Some("rate_limit_exceeded")),
        BedrockError::NotReady => ("rate_limit_error", Some("model_not_ready")),
        BedrockError::Quota => ("rate_limit_error", Some("insufficient_quota")),
        BedrockError::ModelTimeout => ("api_error", Some("model_timeout")),
        BedrockError::ModelError => ("api_error", Some("model_error")),
        BedrockError::Unavailable => ("api_error", Some("server_is_overloaded")),
        BedrockError::Denied => ("api_error", Some("provider_denied_access")),
        BedrockError::Other => ("api_error", None),
    }
}

fn write(out: &mut Vec<u8>, error: BedrockError, said: &ErrorBody<'_>) {
    let (kind, code) = openai_names(error);
    let said = said.client_message(error);
    write_error(
        out,
        said.map_or(ErrorMessage::Text(error.default_message()), ErrorMessage::Json),
        kind,
        code,
    );
}
