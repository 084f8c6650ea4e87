//! `reasoning_effort`, as a Claude model is asked for it.

use crate::losses::DroppedFields;
use crate::request::ChatRequest;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::constraints::{Constraint, Effort, MIN_THINKING_BUDGET, effort_for_level, has};
use proofgate_dialect::object::Number;

const NAME: &str = "reasoning_effort";

/// What is said of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingSetting<'b> {
    /// Nothing.
    Unspecified,
    /// That the model is not to think.
    Off,
    /// This level of effort.
    Level(&'b str),
    /// This number of tokens.
    Budget(u64),
}

/// How a model is asked for the effort of a request, whose answer has `most` tokens at most. An effort that it does not have is left
/// out and named, and so is one that cannot stand beside the client's own `thinking`.
///
/// # Errors
/// [`UntranslatableRequest`] for a level that is none, where such fields are refused.
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
        // The lowest of all but OpenAI.
        Effort::Level("minimal") => return Ok(ThinkingSetting::Level("low")),
        Effort::Level(said) => {
            if said != level && level != "minimal" {
                losses.note(NAME, value.raw());
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
    losses.note(NAME, value.raw());
    Ok(ThinkingSetting::Unspecified)
}

impl ChatRequest<'_> {
    /// The tokens of thought that a request has room for: half of its answer at most. `None` where the API refuses thinking
    /// (platform.claude.com, Extended thinking): beside a sampling of the client's own, beside a tool that has to be called, and in
    /// a turn whose calls came without thoughts.
    fn budget(&self, tokens: u64, most: u64) -> Option<u64> {
        let number = |value: Option<Number<'_>>| value.map(Number::value);
        let samples = number(self.temperature).is_some_and(|temperature| temperature != 1.0)
            || number(self.top_p).is_some_and(|top_p| top_p < 0.95)
            || self.top_k.is_some();
        let budget = tokens.min(most / 2);
        let has_room = !samples && !self.requires_tool_call() && !self.has_call_without_reasoning();
        (has_room && budget >= MIN_THINKING_BUDGET).then_some(budget)
    }

    /// Whether the turn at hand has a call whose thoughts did not come back.
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

/// Whether a model thinks only where it is asked to.
pub fn thinks_only_on_request(model: &str) -> bool {
    has(model, Constraint::ThinkingBudget) || has(model, Constraint::NoThinking)
}
