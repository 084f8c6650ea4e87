//! Why an answer ended.

use proofgate_dialect::AnswerError;

/// Why the provider says that its answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model was done, or called tools.
    Done,
    /// It was at one of the stop sequences (TGI says so; OpenAI does not tell it from `Done`).
    StopSequence,
    /// The limit of tokens.
    Length,
    /// A filter.
    Filtered,
    /// The provider could not go on.
    Failed,
}

impl Finish {
    /// The meaning of a `finish_reason`; one that is not known is an end like any other.
    pub(crate) fn of(reason: &str) -> Self {
        match reason {
            "length" | "model_length" | "max_tokens" => Finish::Length,
            "stop_sequence" => Finish::StopSequence,
            "error" | "insufficient_system_resource" => Finish::Failed,
            _ if reason.starts_with("content_filter") => Finish::Filtered,
            _ => Finish::Done,
        }
    }

    /// Whether the answer was cut off, so that its last call may be a torso.
    pub(crate) fn cuts(self) -> bool {
        matches!(self, Finish::Length | Finish::Filtered)
    }

    /// Anthropic's `stop_reason` for an answer.
    ///
    /// An answer with calls of tools ends with them whatever the provider says, unless a filter stopped it.
    ///
    /// # Errors
    /// [`AnswerError::Failed`] when the end says that the provider could not go on.
    pub(crate) fn stop_reason(self, answer: Held) -> Result<&'static str, AnswerError> {
        match self {
            Finish::Failed => Err(AnswerError::Failed("the provider stopped with an error")),
            Finish::Filtered => Ok("refusal"),
            Finish::Length if answer.torso => Ok("max_tokens"),
            _ if answer.calls => Ok("tool_use"),
            Finish::Length => Ok("max_tokens"),
            _ if answer.refusal => Ok("refusal"),
            Finish::StopSequence => Ok("stop_sequence"),
            Finish::Done => Ok("end_turn"),
        }
    }
}

/// What of an answer decides about its stop reason.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    /// It calls tools.
    pub calls: bool,
    /// The last call has arguments that end in the middle.
    pub torso: bool,
    /// The model declined.
    pub refusal: bool,
}
