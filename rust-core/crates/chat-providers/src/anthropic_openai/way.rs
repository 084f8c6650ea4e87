//! Who reads the chat request that a Messages request becomes, and what they know besides.

use super::body::Thinking;
use proofgate_dialect::constraints::{Constraint, effort_levels, has};

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// To a provider of chat completions.
    Chat,
    /// On to OpenAI's Responses.
    Responses,
    /// On to Gemini.
    Gemini,
    /// On to any other dialect.
    Other,
}

impl Destination {
    /// Whether another module reads what is written.
    pub(super) fn is_intermediate(self) -> bool {
        self != Destination::Chat
    }

    /// Whether what is written says of thinking what the request does. Providers of chat completions are sent an effort where
    /// their model is known to have one.
    pub(super) fn can_express_thinking(self, thinking: &Thinking<'_>, model: &str, has_tools: bool) -> bool {
        match self {
            Destination::Chat => {
                let has_effort = effort_levels(model).is_some() && !self.rejects_effort(model, has_tools);
                has_effort && thinking.budget_tokens.is_some()
            }
            Destination::Responses => true,
            Destination::Gemini => !has(model, Constraint::NoThinking),
            Destination::Other => thinking.budget_tokens.is_some(),
        }
    }

    /// Whether those who read what is written know `top_k`, which chat completions do not have.
    pub(super) fn supports_top_k(self) -> bool {
        matches!(self, Destination::Gemini | Destination::Other)
    }

    /// Whether the model refuses an effort beside tools.
    pub(super) fn rejects_effort(self, model: &str, has_tools: bool) -> bool {
        self == Destination::Chat && has_tools && has(model, Constraint::ToolsWithoutEffort)
    }
}
