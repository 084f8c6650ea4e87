//! Why an answer ended.

use proofgate_dialect::ResponseError;

/// Why the provider says that its answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// The model was done, or called tools.
    Completed,
    /// It was at one of the stop sequences (TGI says so; OpenAI does not tell it from `Completed`).
    StopSequence,
    /// The limit of tokens.
    Length,
    /// A filter.
    Filtered,
    /// The provider could not go on.
    Failed,
}

impl FinishReason {
    /// The meaning of a `finish_reason`; one that is not known is an end like any other.
    pub(crate) fn parse(reason: &str) -> Self {
        match reason {
            "length" | "model_length" | "max_tokens" => FinishReason::Length,
            "stop_sequence" => FinishReason::StopSequence,
            "error" | "insufficient_system_resource" => FinishReason::Failed,
            _ if reason.starts_with("content_filter") => FinishReason::Filtered,
            _ => FinishReason::Completed,
        }
    }

    /// Whether the answer was cut off, so that its last call may be a torso.
    pub(crate) fn is_truncated(self) -> bool {
        matches!(self, FinishReason::Length | FinishReason::Filtered)
    }

    /// Anthropic's `stop_reason` for an answer.
    ///
    /// An answer with calls of tools ends with them whatever the provider says, unless a filter stopped it.
    ///
    /// # Errors
    /// [`ResponseError::Failed`] when the end says that the provider could not go on.
    pub(crate) fn stop_reason(self, answer: ContentSummary) -> Result<&'static str, ResponseError> {
        match self {
            FinishReason::Failed => Err(ResponseError::Failed("the provider stopped with an error")),
            FinishReason::Filtered => Ok("refusal"),
            FinishReason::Length if answer.has_truncated_call => Ok("max_tokens"),
            _ if answer.has_calls => Ok("tool_use"),
            FinishReason::Length => Ok("max_tokens"),
            _ if answer.has_refusal => Ok("refusal"),
            FinishReason::StopSequence => Ok("stop_sequence"),
            FinishReason::Completed => Ok("end_turn"),
        }
    }
}

/// What of an answer decides about its stop reason.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ContentSummary {
    /// It calls tools.
    pub has_calls: bool,
    /// The last call has arguments that end in the middle.
    pub has_truncated_call: bool,
    /// The model declined.
    pub has_refusal: bool,
}
