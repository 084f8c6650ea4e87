//! Reasoning that a client sends back, as the items that it came from.

use serde_json::value::RawValue;

use crate::openai_anthropic::left_out::LeftOut;
use crate::reasoning_details::{self, ResponseDetail};

/// Writes the items of the reasoning of a message, a comma behind each; whether there are any.
///
/// Those of other providers are left out, as is what came without its encrypted content: the provider has kept nothing that an id
/// could refer to.
pub(super) fn write(value: Option<&RawValue>, left_out: &mut LeftOut, out: &mut Vec<u8>) -> bool {
    let (items, lost) = reasoning_details::read_responses(value);
    if lost {
        left_out.note("messages[].reasoning_details");
    }
    for item in &items {
        write_item(item, out);
    }
    !items.is_empty()
}

fn write_item(item: &ResponseDetail<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"reasoning\",");
    if let Some(id) = item.id {
        for piece in ["\"id\":\"", id, "\","] {
            out.extend_from_slice(piece.as_bytes());
        }
    }
    out.extend_from_slice(b"\"summary\":[");
    for (at, fragments) in item.summary.iter().enumerate() {
        let before: &[u8] = if at > 0 { b"," } else { b"" };
        out.extend_from_slice(before);
        out.extend_from_slice(b"{\"type\":\"summary_text\",\"text\":\"");
        for fragment in fragments {
            out.extend_from_slice(fragment.as_bytes());
        }
        out.extend_from_slice(b"\"}");
    }
    out.extend_from_slice(b"],\"encrypted_content\":\"");
    out.extend_from_slice(item.data.as_bytes());
    out.extend_from_slice(b"\"},");
}
