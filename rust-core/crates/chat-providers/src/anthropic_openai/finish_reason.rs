//! The end of an answer.

use proofgate_dialect::ResponseError;

/// The provider's reason for the end of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// The model was done, or called tools.
    Completed,
    /// The model reached a stop sequence (TGI reports this; OpenAI does not distinguish it from
    /// `Completed`).
    StopSequence,
    /// The model reached the token limit.
    Length,
    /// A filter stopped the model.
    Filtered,
    /// The provider could not continue.
    Failed,
}

impl FinishReason {
    /// Parses a `finish_reason`; an unknown one counts as a normal end.
    pub(crate) fn parse(reason: &str) -> Self {
        match reason {
            "length" | "model_length" | "max_tokens" => FinishReason::Length,
            "stop_sequence" => FinishReason::StopSequence,
            "error" | "insufficient_system_resource" => FinishReason::Failed,
            _ if reason.starts_with("content_filter") => FinishReason::Filtered,
            _ => FinishReason::Completed,
        }
    }

    /// Returns whether the answer was truncated, so that its last call may be incomplete.
    pub(crate) fn is_truncated(self) -> bool {
        matches!(self, FinishReason::Length | FinishReason::Filtered)
    }

    /// Returns Anthropic's `stop_reason` for an answer.
    ///
    /// An answer with tool calls ends with `tool_use` whatever the provider reports, unless a filter stopped it.
    ///
    /// # Errors
    /// Returns [`ResponseError::Failed`] if the provider could not continue.
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

/// The properties of an answer that determine its stop reason.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ContentSummary {
    /// Whether the answer has tool calls.
    pub has_calls: bool,
    /// Whether the arguments of the last call are truncated.
    pub has_truncated_call: bool,
    /// Whether the model refused.
    pub has_refusal: bool,
}
