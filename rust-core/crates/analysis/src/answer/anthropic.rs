//! Answers of Anthropic's messages, which tell no probabilities: <https://docs.anthropic.com/en/api/messages>.

use super::Reading;
use crate::Refusal;
use serde_json::Value;

/// A whole message.
pub(super) fn message(reading: &mut Reading<'_>, value: &Value) {
    let Some(content) = value.get("content").and_then(Value::as_array) else {
        return;
    };
    reading.is_answer = true;
    for block in content {
        reading.text(block.get("text"));
    }
    stop(reading, value.get("stop_reason"));
}

/// An event of a stream of one.
pub(super) fn event(reading: &mut Reading<'_>, value: &Value) {
    match value.get("type").and_then(Value::as_str) {
        Some("message_start") => reading.is_answer = true,
        Some("content_block_delta") => reading.text(value.get("delta").and_then(|delta| delta.get("text"))),
        Some("message_delta") => stop(
            reading,
            value.get("delta").and_then(|delta| delta.get("stop_reason")),
        ),
        _ => {}
    }
}

fn stop(reading: &mut Reading<'_>, reason: Option<&Value>) {
    match reason.and_then(Value::as_str) {
        Some("max_tokens") => reading.cut = true,
        Some("refusal") => reading.refuses(Refusal::Filtered),
        _ => {}
    }
}
