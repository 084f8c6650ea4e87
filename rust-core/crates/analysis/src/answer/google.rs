//! Answers of Gemini's: <https://ai.google.dev/api/generate-content>.

use super::part::Part;
use super::reading::{Reading, first, outcome};
use crate::Refusal;

/// A `GenerateContentResponse`: a whole answer, or the next part of one.
pub(super) fn content(reading: &mut Reading<'_>, value: Part<'_>) {
    let [candidates, feedback] = value.named(["candidates", "promptFeedback"]);
    reading.is_answer |= candidates.is_some() || feedback.is_some();
    let blocked = feedback.and_then(|feedback| feedback.get("blockReason"));
    if blocked.is_some_and(Part::is_text) {
        reading.refuses(Refusal::Filtered);
    }
    let Some(candidate) = first(candidates) else {
        return;
    };
    let [reason, content, told] = candidate.named(["finishReason", "content", "logprobsResult"]);
    match reason.and_then(Part::text).as_deref() {
        Some("MAX_TOKENS") => reading.cut = true,
        Some("SAFETY" | "PROHIBITED_CONTENT" | "BLOCKLIST" | "SPII" | "RECITATION") => {
            reading.refuses(Refusal::Filtered);
        }
        _ => {}
    }
    let parts = content.and_then(|content| content.get("parts"));
    for part in parts.into_iter().flat_map(Part::elements) {
        let [thought, text] = part.named(["thought", "text"]);
        if !thought.is_some_and(Part::is_true) {
            reading.text(text);
        }
    }
    let [chosen, tops] = told.map_or([None; 2], |told| {
        told.named(["chosenCandidates", "topCandidates"])
    });
    let mut chosen = chosen.into_iter().flat_map(Part::elements);
    let mut tops = tops.into_iter().flat_map(Part::elements);
    loop {
        let (one, top) = (chosen.next(), tops.next());
        if one.is_none() && top.is_none() {
            return;
        }
        let others = top.and_then(|top| top.get("candidates"));
        let all = one.into_iter().chain(others.into_iter().flat_map(Part::elements));
        let all = all.map(|told| told.named(["bytes", "token", "logProbability"]));
        reading.token(all.filter_map(outcome));
    }
}
