//! `reasoning_effort`, as the model at hand is asked for it.

use crate::Untranslatable;
use crate::constraints::{Constraint, Effort, LEAST_BUDGET, effort, has};
use crate::openai_converse::chat::{Chat, Message};
use crate::openai_converse::preferences::Preferences;
use crate::openai_converse::text::{inner, write_all};

const NAME: &str = "reasoning_effort";

/// Writes a budget of thought as `additionalModelRequestFields`, a comma before it, for a model that takes that; returns the
/// effort of a model that takes one.
///
/// The budget is half of `max_tokens` at most. Sampling, a tool that has to be called, and calls that came without thoughts
/// exclude it (platform.claude.com, Extended thinking): the effort is left out then, and named.
pub(super) fn write<'b>(
    out: &mut Vec<u8>,
    chat: &Chat<'b>,
    messages: &[Message<'_>],
    model: &str,
    preferences: &mut Preferences,
) -> Result<Option<&'b str>, Untranslatable> {
    let Some(value) = chat.reasoning_effort else {
        return Ok(None);
    };
    let level = inner(value).unwrap_or_default();
    let thinks_if_asked = has(model, Constraint::ThinkingBudget) || has(model, Constraint::NoThinking);
    if level == "none" && thinks_if_asked {
        return Ok(None);
    }
    match effort(model, level) {
        // Converse's lowest.
        Some(Effort::Level("minimal")) => return Ok(Some("low")),
        Some(Effort::Level(said)) => {
            if said != level && level != "minimal" {
                preferences.note(NAME, value);
            }
            return Ok(Some(said));
        }
        Some(Effort::Budget(tokens)) => {
            if let Some(tokens) = budget(chat, messages, tokens) {
                let tokens = itoa::Buffer::new().format(tokens).to_owned();
                write_all(
                    out,
                    &[
                        r#","additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":"#,
                        &tokens,
                        "}}",
                    ],
                );
                return Ok(None);
            }
        }
        Some(Effort::Nothing) | None => {}
    }
    if level == "none" {
        preferences.leave_out(NAME, value, || NAME.to_owned())?;
    } else {
        preferences.note(NAME, value);
    }
    Ok(None)
}

fn budget(chat: &Chat<'_>, messages: &[Message<'_>], tokens: u64) -> Option<u64> {
    // Without a limit of the client's the model has its own, which is above every budget.
    let most = chat.max_completion_tokens.or(chat.max_tokens);
    let most = most.map_or(Some(u64::MAX), |most| most.get().parse().ok())?;
    let samples = chat
        .temperature
        .is_some_and(|value| value.get().parse() != Ok(1.0))
        || chat.top_p.is_some();
    let forces = chat
        .tool_choice
        .is_some_and(|choice| !matches!(inner(choice), Some("auto" | "none")));
    let budget = tokens.min(most / 2);
    (!samples && !forces && !calls_without_thoughts(messages) && budget >= LEAST_BUDGET).then_some(budget)
}

/// Whether the turn at hand has a call whose thoughts did not come back.
fn calls_without_thoughts(messages: &[Message<'_>]) -> bool {
    let mut at_hand = messages
        .iter()
        .rev()
        .take_while(|message| message.role.as_deref() != Some("user"));
    at_hand.any(|message| message.tool_calls.is_some() && message.reasoning_details.is_none())
}
