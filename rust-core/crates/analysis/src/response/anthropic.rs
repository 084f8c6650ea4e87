//! Responses in Anthropic's Messages format, which have no token probabilities:
//! <https://docs.anthropic.com/en/api/messages>.

use super::json_value::JsonValue;
use super::response_reader::ResponseReader;
use crate::RefusalSignal;

/// Reads a complete message.
pub(super) fn read_message(reading: &mut ResponseReader<'_>, value: JsonValue<'_>) {
    let [content, reason] = value.get_all(["content", "stop_reason"]);
    let Some(content) = content.filter(|content| content.is_list()) else {
        return;
    };
    reading.is_response = true;
    for block in content.elements() {
        reading.push_text(block.get("text"));
    }
    read_stop_reason(reading, reason);
}

/// Reads an event of a message stream.
pub(super) fn read_event(reading: &mut ResponseReader<'_>, value: JsonValue<'_>) {
    let [kind, delta] = value.get_all(["type", "delta"]);
    match kind.and_then(JsonValue::text).as_deref() {
        Some("message_start") => reading.is_response = true,
        Some("content_block_delta") => reading.push_text(delta.and_then(|delta| delta.get("text"))),
        Some("message_delta") => read_stop_reason(reading, delta.and_then(|delta| delta.get("stop_reason"))),
        _ => {}
    }
}

fn read_stop_reason(reading: &mut ResponseReader<'_>, reason: Option<JsonValue<'_>>) {
    match reason.and_then(JsonValue::text).as_deref() {
        Some("max_tokens") => reading.hit_length_limit = true,
        Some("refusal") => reading.set_refusal(RefusalSignal::Filtered),
        _ => {}
    }
}
