use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::stream_events::{EventMeaning, event_data};

/// How far the candidates of a streamed answer of Gemini's are.
///
/// It has no event that is its end. It is whole when its transfer ends and every candidate has said why it finished, or the
/// prompt was not let through to the model; each of that may stand in an event that is not the last.
#[derive(Debug, Default)]
pub struct CandidateProgress {
    /// Which have begun and which have finished, a bit for each index.
    started: u64,
    finished: u64,
    /// Whether one has an index that has no bit.
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
    /// Takes an event, or the JSON without a frame by which Google says that a stream failed. It is a part or a failure; a
    /// good end is what [`are_all_finished`](CandidateProgress::are_all_finished) says at the end of the transfer.
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

    /// Whether the answer is whole, should nothing follow.
    pub fn are_all_finished(&self) -> bool {
        let finished = self.started == self.finished && !self.overflowed;
        finished && (self.started != 0 || self.is_blocked)
    }
}

/// Whether an enumeration has a value other than its default.
fn is_non_default(value: Option<&str>) -> bool {
    value.is_some_and(|value| !value.ends_with("_UNSPECIFIED"))
}
