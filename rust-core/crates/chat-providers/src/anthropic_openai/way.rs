//! Who reads the chat request that a Messages request becomes, and what they know besides.

use super::body::Thinking;
use proofgate_dialect::constraints::{Constraint, has, levels};

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To a provider of chat completions.
    Chat,
    /// On to OpenAI's Responses.
    Responses,
    /// On to Gemini.
    Gemini,
    /// On to any other dialect.
    Others,
}

impl Way {
    /// Whether another module reads what is written.
    pub(super) fn goes_on(self) -> bool {
        self != Way::Chat
    }

    /// Whether what is written says of thinking what the request does. Providers of chat completions are sent an effort where
    /// their model is known to have one.
    pub(super) fn says(self, thinking: &Thinking<'_>, model: &str, has_tools: bool) -> bool {
        match self {
            Way::Chat => {
                let has_effort = levels(model).is_some() && !self.forbids_effort(model, has_tools);
                has_effort && thinking.budget_tokens.is_some()
            }
            Way::Responses => true,
            Way::Gemini => !has(model, Constraint::NoThinking),
            Way::Others => thinking.budget_tokens.is_some(),
        }
    }

    /// Whether those who read what is written know `top_k`, which chat completions do not have.
    pub(super) fn has_top_k(self) -> bool {
        matches!(self, Way::Gemini | Way::Others)
    }

    /// Whether the model refuses an effort beside tools.
    pub(super) fn forbids_effort(self, model: &str, has_tools: bool) -> bool {
        self == Way::Chat && has_tools && has(model, Constraint::ToolsWithoutEffort)
    }
}
