use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::stream_events::{EventMeaning, event_data};

/// Progress of the candidates of a streamed Gemini response.
///
/// The stream has no final event. It is complete when the transfer ends and every candidate has a
/// finish reason, or the prompt was blocked. The event that shows this may not be the last event.
#[derive(Debug, Default)]
pub struct CandidateProgress {
    /// The candidates that have started and finished, one bit for each index.
    started: u64,
    finished: u64,
    /// Whether a candidate's index exceeds the number of bits.
    overflowed: bool,
    is_blocked: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Generated<'d> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'d>>>,
    #[serde(borrow)]
    prompt_feedback: Option<PromptFeedback<'d>>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'d> {
    index: Option<u32>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'d, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'d> {
    #[serde(borrow)]
    block_reason: Option<Cow<'d, str>>,
}

impl CandidateProgress {
    /// Reads an event, or the unframed JSON by which Google reports that a stream failed. Returns a part or a
    /// failure; [`are_all_finished`](CandidateProgress::are_all_finished) reports a successful end once the transfer
    /// has ended.
    pub fn read_event(&mut self, event: &[u8]) -> EventMeaning {
        let data = event_data(event);
        let data = if data.is_empty() { event } else { &data };
        let Ok(generated) = serde_json::from_slice::<Generated<'_>>(data) else {
            return EventMeaning::Part;
        };
        if generated.error.is_some() {
            return EventMeaning::Failure;
        }
        let feedback = generated
            .prompt_feedback
            .and_then(|feedback| feedback.block_reason);
        self.is_blocked |= is_non_default(feedback.as_deref());
        for candidate in generated.candidates.unwrap_or_default() {
            let Some(bit) = 1u64.checked_shl(candidate.index.unwrap_or(0)) else {
                self.overflowed = true;
                continue;
            };
            self.started |= bit;
            if is_non_default(candidate.finish_reason.as_deref()) {
                self.finished |= bit;
            }
        }
        EventMeaning::Part
    }

    /// Whether the response is complete if nothing follows.
    pub fn are_all_finished(&self) -> bool {
        let finished = self.started == self.finished && !self.overflowed;
        finished && (self.started != 0 || self.is_blocked)
    }
}

/// Whether an enum field has a value other than its default.
fn is_non_default(value: Option<&str>) -> bool {
    value.is_some_and(|value| !value.ends_with("_UNSPECIFIED"))
}
