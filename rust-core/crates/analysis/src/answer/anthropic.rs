//! Answers of Anthropic's messages, which tell no probabilities: <https://docs.anthropic.com/en/api/messages>.

use super::part::Part;
use super::reading::Reading;
use crate::Refusal;

/// A whole message.
pub(super) fn message(reading: &mut Reading<'_>, value: Part<'_>) {
    let [content, reason] = value.named(["content", "stop_reason"]);
    let Some(content) = content.filter(|content| content.is_list()) else {
        return;
    };
    reading.is_answer = true;
    for block in content.elements() {
        reading.text(block.get("text"));
    }
    stop(reading, reason);
}

/// An event of a stream of one.
pub(super) fn event(reading: &mut Reading<'_>, value: Part<'_>) {
    let [kind, delta] = value.named(["type", "delta"]);
    match kind.and_then(Part::text).as_deref() {
        Some("message_start") => reading.is_answer = true,
        Some("content_block_delta") => reading.text(delta.and_then(|delta| delta.get("text"))),
        Some("message_delta") => stop(reading, delta.and_then(|delta| delta.get("stop_reason"))),
        _ => {}
    }
}

fn stop(reading: &mut Reading<'_>, reason: Option<Part<'_>>) {
    match reason.and_then(Part::text).as_deref() {
        Some("max_tokens") => reading.cut = true,
        Some("refusal") => reading.refuses(Refusal::Filtered),
        _ => {}
    }
}
