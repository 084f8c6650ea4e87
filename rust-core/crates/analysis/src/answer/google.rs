//! Answers of Gemini's: <https://ai.google.dev/api/generate-content>.

use super::{Reading, first, token_of};
use crate::{Refusal, TokenId};
use serde_json::Value;

/// A `GenerateContentResponse`: a whole answer, or the next part of one.
pub(super) fn content(reading: &mut Reading<'_>, value: &Value) {
    reading.is_answer |= value.get("candidates").is_some() || value.get("promptFeedback").is_some();
    let blocked = value
        .get("promptFeedback")
        .and_then(|feedback| feedback.get("blockReason"));
    if blocked.is_some_and(Value::is_string) {
        reading.refuses(Refusal::Filtered);
    }
    let Some(candidate) = first(value, "candidates") else {
        return;
    };
    match candidate.get("finishReason").and_then(Value::as_str) {
        Some("MAX_TOKENS") => reading.cut = true,
        Some("SAFETY" | "PROHIBITED_CONTENT" | "BLOCKLIST" | "SPII" | "RECITATION") => {
            reading.refuses(Refusal::Filtered);
        }
        _ => {}
    }
    let parts = candidate
        .get("content")
        .and_then(|content| content.get("parts")?.as_array());
    let is_thought = |part: &&Value| part.get("thought").and_then(Value::as_bool) == Some(true);
    for part in parts.into_iter().flatten().filter(|part| !is_thought(part)) {
        reading.text(part.get("text"));
    }
    let told = candidate.get("logprobsResult");
    let list = |name: &str| told.and_then(|told| told.get(name)?.as_array());
    let (chosen, tops) = (list("chosenCandidates"), list("topCandidates"));
    let count = chosen.map_or(0, Vec::len).max(tops.map_or(0, Vec::len));
    for at in 0..count {
        let chosen = chosen.and_then(|chosen| chosen.get(at));
        let others = tops.and_then(|tops| tops.get(at)?.get("candidates")?.as_array());
        let all = chosen.into_iter().chain(others.into_iter().flatten());
        reading.token(all.filter_map(outcome));
    }
}

fn outcome(told: &Value) -> Option<(TokenId, f64)> {
    Some((token_of(told)?, told.get("logProbability")?.as_f64()?))
}
