//! Responses in Gemini's format: <https://ai.google.dev/api/generate-content>.

use super::json_value::JsonValue;
use super::response_reader::{ResponseReader, first_choice, token_log_probability};
use crate::RefusalSignal;

/// Reads a `GenerateContentResponse`: a complete response, or the next part of one.
pub(super) fn read_content(reading: &mut ResponseReader<'_>, value: JsonValue<'_>) {
    let [candidates, feedback] = value.get_all(["candidates", "promptFeedback"]);
    reading.is_response |= candidates.is_some() || feedback.is_some();
    let blocked = feedback.and_then(|feedback| feedback.get("blockReason"));
    if blocked.is_some_and(JsonValue::is_text) {
        reading.set_refusal(RefusalSignal::Filtered);
    }
    let Some(candidate) = first_choice(candidates) else {
        return;
    };
    let [reason, content, told] = candidate.get_all(["finishReason", "content", "logprobsResult"]);
    match reason.and_then(JsonValue::text).as_deref() {
        Some("MAX_TOKENS") => reading.hit_length_limit = true,
        Some("SAFETY" | "PROHIBITED_CONTENT" | "BLOCKLIST" | "SPII" | "RECITATION") => {
            reading.set_refusal(RefusalSignal::Filtered);
        }
        _ => {}
    }
    let parts = content.and_then(|content| content.get("parts"));
    for part in parts.into_iter().flat_map(JsonValue::elements) {
        let [thought, text] = part.get_all(["thought", "text"]);
        if !thought.is_some_and(JsonValue::is_true) {
            reading.push_text(text);
        }
    }
    let [chosen, tops] = told.map_or([None; 2], |told| {
        told.get_all(["chosenCandidates", "topCandidates"])
    });
    let mut chosen = chosen.into_iter().flat_map(JsonValue::elements);
    let mut tops = tops.into_iter().flat_map(JsonValue::elements);
    loop {
        let (one, top) = (chosen.next(), tops.next());
        if one.is_none() && top.is_none() {
            return;
        }
        let others = top.and_then(|top| top.get("candidates"));
        let all = one
            .into_iter()
            .chain(others.into_iter().flat_map(JsonValue::elements));
        let all = all.map(|told| told.get_all(["bytes", "token", "logProbability"]));
        reading.push_token(all.filter_map(token_log_probability));
    }
}
