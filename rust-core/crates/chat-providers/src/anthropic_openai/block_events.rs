//! Events for a block of a streamed Message.

use super::json::write_json;
use super::response::write_call_id;
use proofgate_dialect::json::write_number;
use proofgate_dialect::write_event;

/// Opens a block.
pub(super) fn write_block_start(index: u64, out: &mut Vec<u8>, block: impl FnOnce(&mut Vec<u8>)) {
    write_event(out, "content_block_start", |out| {
        write_json(out, "{\"type\":\"content_block_start\",\"index\":");
        write_number(out, index);
        write_json(out, ",\"content_block\":");
        block(out);
        out.push(b'}');
    });
}

/// Writes the start of a call's block. An empty `id` is replaced by one derived from the answer's id.
pub(super) fn write_call_start([id, name]: [&str; 2], answer: &str, number: usize, out: &mut Vec<u8>) {
    write_json(out, "{\"type\":\"tool_use\",\"id\":\"");
    write_call_id((!id.is_empty()).then_some(id), answer, number as u64, out);
    write_json(out, "\",\"name\":\"");
    write_json(out, name);
    write_json(out, "\",\"input\":{}}");
}

/// Writes a delta: its type, the field that it extends, and the text, JSON-escaped and without
/// quotes.
pub(super) fn write_delta(index: u64, [kind, field, text]: [&str; 3], out: &mut Vec<u8>) {
    write_event(out, "content_block_delta", |out| {
        write_json(out, "{\"type\":\"content_block_delta\",\"index\":");
        write_number(out, index);
        for piece in [
            ",\"delta\":{\"type\":\"",
            kind,
            "\",\"",
            field,
            "\":\"",
            text,
            "\"}}",
        ] {
            write_json(out, piece);
        }
    });
}

/// Closes a block.
pub(super) fn write_block_stop(index: u64, out: &mut Vec<u8>) {
    write_event(out, "content_block_stop", |out| {
        write_json(out, "{\"type\":\"content_block_stop\",\"index\":");
        write_number(out, index);
        out.push(b'}');
    });
}
