//! Reasoning that a client sends back, as the items from which it was made.

use proofgate_chat_request::{DroppedFields, Message, raw_json};
use proofgate_dialect::json::write_all;
use proofgate_dialect::reasoning_details::{self, ResponseDetail};

/// Writes the reasoning items of a message, each followed by a comma; returns whether there are any.
///
/// Reasoning of other providers and reasoning without encrypted content are left out, because the
/// provider has stored nothing to which an id could refer.
pub(super) fn write(message: &Message<'_>, losses: &mut DroppedFields, out: &mut Vec<u8>) -> bool {
    let (items, lost) = reasoning_details::read_responses(message.reasoning_details);
    if lost {
        let details = raw_json(message.reasoning_details);
        losses.record_field("messages[].reasoning_details", details.unwrap_or_default());
    }
    for item in &items {
        write_item(item, out);
    }
    !items.is_empty()
}

fn write_item(item: &ResponseDetail<'_>, out: &mut Vec<u8>) {
    write_all(out, &["{\"type\":\"reasoning\","]);
    if let Some(id) = item.id {
        write_all(out, &["\"id\":\"", id, "\","]);
    }
    write_all(out, &["\"summary\":["]);
    for (at, fragments) in item.summary.iter().enumerate() {
        let before = if at > 0 { "," } else { "" };
        write_all(out, &[before, "{\"type\":\"summary_text\",\"text\":\""]);
        write_all(out, fragments);
        write_all(out, &["\"}"]);
    }
    write_all(out, &["],\"encrypted_content\":\"", item.data, "\"},"]);
}
