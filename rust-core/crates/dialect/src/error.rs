use std::borrow::Cow;

/// The reason why a request cannot be translated to the provider's dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UntranslatableRequest {
    /// The field of the request, as a path such as `messages[3].content[0].type`.
    pub param: Cow<'static, str>,
    /// The error message for the client, as a sentence. It quotes nothing of the request except names of fields and
    /// types.
    pub message: Cow<'static, str>,
}

impl UntranslatableRequest {
    /// Creates an error for a field.
    pub fn new(param: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        UntranslatableRequest {
            param: param.into(),
            message: message.into(),
        }
    }
}

/// The reason why a response, or an event of a streamed response, cannot be translated to the
/// client's dialect. It quotes nothing of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The response is not JSON, or lacks a required field of its dialect.
    #[error("the provider's answer is malformed: {0}")]
    Malformed(&'static str),
    /// The response has more parts than the limit.
    #[error("the provider's answer has too many parts")]
    TooLarge,
    /// The response is valid, and reports that generation failed.
    #[error("the provider's answer failed: {0}")]
    Failed(&'static str),
}
