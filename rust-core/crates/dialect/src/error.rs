use std::borrow::Cow;

/// Why a request cannot be said in the provider's dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UntranslatableRequest {
    /// The field of the request, as a path such as `messages[3].content[0].type`.
    pub param: Cow<'static, str>,
    /// What is wrong with it, as a sentence for the client. It quotes nothing of the request but names of fields and types.
    pub message: Cow<'static, str>,
}

impl UntranslatableRequest {
    /// A field and what is wrong with it.
    pub fn new(param: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        UntranslatableRequest {
            param: param.into(),
            message: message.into(),
        }
    }
}

/// Why an answer, or an event of a streamed one, cannot be said in the client's dialect. It quotes nothing of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// It is no JSON, or lacks what its dialect demands.
    #[error("the provider's answer is malformed: {0}")]
    Malformed(&'static str),
    /// It holds more parts than are kept of one answer.
    #[error("the provider's answer has too many parts")]
    TooLarge,
    /// It is well formed, and means that generation failed.
    #[error("the provider's answer failed: {0}")]
    Failed(&'static str),
}
