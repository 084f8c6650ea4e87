//! The reader of the chat request that is written for a Messages request, and the reader's
//! additional features.

use super::body::Thinking;
use proofgate_dialect::constraints::{Constraint, effort_levels, has_constraint};

/// The destination of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// A provider of chat completions.
    Chat,
    /// The translation to OpenAI's Responses.
    Responses,
    /// The translation to Gemini.
    Gemini,
    /// The translation to any other API.
    Other,
}

impl Destination {
    /// Returns whether another module reads the written request.
    pub(super) fn is_intermediate(self) -> bool {
        self != Destination::Chat
    }

    /// Returns whether the written request can express the thinking of the request. Providers of chat completions receive an
    /// effort if their model is known to have one.
    pub(super) fn can_express_thinking(self, thinking: &Thinking<'_>, model: &str, has_tools: bool) -> bool {
        match self {
            Destination::Chat => {
                let has_effort = effort_levels(model).is_some() && !self.rejects_effort(model, has_tools);
                has_effort && thinking.budget_tokens.is_some()
            }
            Destination::Responses => true,
            Destination::Gemini => !has_constraint(model, Constraint::NoThinking),
            Destination::Other => thinking.budget_tokens.is_some(),
        }
    }

    /// Returns whether the reader supports `top_k`, which chat completions do not have.
    pub(super) fn supports_top_k(self) -> bool {
        matches!(self, Destination::Gemini | Destination::Other)
    }

    /// Returns whether the model refuses an effort together with tools.
    pub(super) fn rejects_effort(self, model: &str, has_tools: bool) -> bool {
        self == Destination::Chat && has_tools && has_constraint(model, Constraint::ToolsWithoutEffort)
    }
}
