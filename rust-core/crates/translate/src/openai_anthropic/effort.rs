//! `reasoning_effort`, as the model at hand is asked for it.

use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::constraints::{Constraint, Effort, LEAST_BUDGET, effort, has};
use crate::json::write_number;
use crate::openai_anthropic::body::Body;
use crate::openai_anthropic::json_text::is_object;
use crate::openai_anthropic::left_out::LeftOut;

const NAME: &str = "reasoning_effort";

/// Writes the member `thinking`, a comma before it, where one says what the request says; returns the `effort` that does.
/// Below the lowest effort there is only not to think.
pub(super) fn write<'b>(
    body: &'b Body<'_>,
    model: &str,
    max_tokens: u64,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<Option<&'b str>, Untranslatable> {
    if let Some(thinking) = body.thinking {
        if !is_object(thinking) {
            return Err(Untranslatable::new("thinking", "thinking has to be an object"));
        }
        out.extend_from_slice(b",\"thinking\":");
        out.extend_from_slice(thinking.get().as_bytes());
    }
    let Some(level) = body.reasoning_effort.as_deref() else {
        return Ok(None);
    };
    if level == "none" {
        if body.thinking.is_some() {
            let message = "reasoning_effort and thinking say different things";
            return Err(Untranslatable::new(NAME, message));
        }
        if !has(model, Constraint::NoThinking) {
            out.extend_from_slice(b",\"thinking\":{\"type\":\"disabled\"}");
        }
        return Ok(None);
    }
    let unknown = || Untranslatable::new(NAME, "the provider has no such reasoning_effort");
    match effort(model, level).ok_or_else(unknown)? {
        // Anthropic's lowest.
        Effort::Level("minimal") => Ok(Some("low")),
        Effort::Level(said) => {
            if said != level && level != "minimal" {
                left_out.note(NAME);
            }
            Ok(Some(said))
        }
        // What the client itself says of thinking counts.
        Effort::Budget(_) if body.thinking.is_some() => {
            left_out.note(NAME);
            Ok(None)
        }
        Effort::Budget(tokens) => {
            match budget(body, tokens, max_tokens) {
                Some(tokens) => {
                    out.extend_from_slice(b",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":");
                    write_number(out, tokens);
                    out.push(b'}');
                }
                None => left_out.note(NAME),
            }
            Ok(None)
        }
        Effort::Nothing => {
            left_out.note(NAME);
            Ok(None)
        }
    }
}

/// The tokens of thought that a request has room for: half of its answer at most. `None` where the API refuses thinking
/// (platform.claude.com, Extended thinking): beside a sampling of the client's own, beside a tool that has to be called, and in
/// a turn whose calls came without thoughts.
fn budget(body: &Body<'_>, tokens: u64, max_tokens: u64) -> Option<u64> {
    let number = |value: Option<&RawValue>| value.and_then(|value| value.get().parse::<f64>().ok());
    let samples = number(body.temperature).is_some_and(|temperature| temperature != 1.0)
        || number(body.top_p).is_some_and(|top_p| top_p < 0.95)
        || body.top_k.is_some();
    let forces = body
        .tool_choice
        .is_some_and(|choice| !matches!(choice.get(), "\"auto\"" | "\"none\""));
    let budget = tokens.min(max_tokens / 2);
    (!samples && !forces && !calls_without_thoughts(body) && budget >= LEAST_BUDGET).then_some(budget)
}

/// Whether the turn at hand has a call whose thoughts did not come back.
fn calls_without_thoughts(body: &Body<'_>) -> bool {
    let messages = body.messages.as_deref().unwrap_or_default();
    let at_hand = messages
        .iter()
        .rev()
        .take_while(|message| message.role.as_deref() != Some("user"));
    let mut at_hand = at_hand.filter(|message| message.role.as_deref() == Some("assistant"));
    at_hand.any(|message| message.tool_calls.is_some() && message.reasoning_details.is_none())
}
