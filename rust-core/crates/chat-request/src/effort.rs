//! Maps `reasoning_effort` to the thinking settings of a Claude model.

use crate::dropped_fields::DroppedFields;
use crate::request::ChatRequest;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::constraints::{
    Constraint, Effort, MIN_THINKING_BUDGET, effort_for_level, has_constraint,
};
use proofgate_dialect::object::Number;

const NAME: &str = "reasoning_effort";

/// The thinking settings to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingSetting<'b> {
    /// No setting.
    Unspecified,
    /// Thinking is turned off.
    Off,
    /// This effort level.
    Level(&'b str),
    /// A budget of this many tokens.
    Budget(u64),
}

/// Returns the thinking settings for the effort of a request with at most `most` tokens in its
/// response. An effort that the model does not have, or that conflicts with the client's own
/// `thinking`, is dropped and reported.
///
/// # Errors
/// [`UntranslatableRequest`] for an unknown level, if such fields are refused.
pub fn thinking_setting<'b>(
    chat: &ChatRequest<'b>,
    model: &str,
    most: u64,
    has_thinking: bool,
    losses: &mut DroppedFields,
) -> Result<ThinkingSetting<'b>, UntranslatableRequest> {
    let Some(value) = chat.reasoning_effort else {
        return Ok(ThinkingSetting::Unspecified);
    };
    let level = value.inner();
    if level == "none" {
        return Ok(ThinkingSetting::Off);
    }
    let Some(effort) = effort_for_level(model, level) else {
        losses.drop_body_field(NAME, value.raw())?;
        return Ok(ThinkingSetting::Unspecified);
    };
    match effort {
        // The lowest level of all providers other than OpenAI.
        Effort::Level("minimal") => return Ok(ThinkingSetting::Level("low")),
        Effort::Level(said) => {
            if said != level && level != "minimal" {
                losses.record_field(NAME, value.raw());
            }
            return Ok(ThinkingSetting::Level(said));
        }
        Effort::Budget(tokens) if !has_thinking => {
            if let Some(tokens) = chat.budget(tokens, most) {
                return Ok(ThinkingSetting::Budget(tokens));
            }
        }
        Effort::Budget(_) | Effort::Unsupported => {}
    }
    losses.record_field(NAME, value.raw());
    Ok(ThinkingSetting::Unspecified)
}

impl ChatRequest<'_> {
    /// Returns the thinking budget for a request: at most half of its maximum tokens. Returns
    /// `None` where the API refuses thinking (platform.claude.com, Extended thinking): with custom
    /// sampling, with a required tool call, and in a turn with tool calls whose reasoning was not
    /// sent back.
    fn budget(&self, tokens: u64, most: u64) -> Option<u64> {
        let number = |value: Option<Number<'_>>| value.map(Number::value);
        let samples = number(self.temperature).is_some_and(|temperature| temperature != 1.0)
            || number(self.top_p).is_some_and(|top_p| top_p < 0.95)
            || self.top_k.is_some();
        let budget = tokens.min(most / 2);
        let has_room = !samples && !self.requires_tool_call() && !self.has_call_without_reasoning();
        (has_room && budget >= MIN_THINKING_BUDGET).then_some(budget)
    }

    /// Whether the current turn has a tool call whose reasoning was not sent back.
    fn has_call_without_reasoning(&self) -> bool {
        let messages = self.messages.as_deref().unwrap_or_default();
        let at_hand = messages
            .iter()
            .rev()
            .take_while(|message| message.role.as_deref() != Some("user"));
        let mut at_hand = at_hand.filter(|message| message.role.as_deref() == Some("assistant"));
        at_hand.any(|message| message.tool_calls.is_some() && message.reasoning_details.is_none())
    }
}

/// Whether a model thinks only on request.
pub fn thinks_only_on_request(model: &str) -> bool {
    has_constraint(model, Constraint::ThinkingBudget) || has_constraint(model, Constraint::NoThinking)
}
