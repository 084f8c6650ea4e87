//! The events of a block of a streamed Message.

use super::answer::put_call_id;
use super::json::put;
use proofgate_dialect::json::write_number;
use proofgate_dialect::write_event;

/// Opens a block.
pub(super) fn put_start(index: u64, out: &mut Vec<u8>, block: impl FnOnce(&mut Vec<u8>)) {
    write_event(out, "content_block_start", |out| {
        put(out, "{\"type\":\"content_block_start\",\"index\":");
        write_number(out, index);
        put(out, ",\"content_block\":");
        block(out);
        out.push(b'}');
    });
}

/// A call's block at its start. An empty `id` is made of the answer's.
pub(super) fn put_call([id, name]: [&str; 2], answer: &str, number: usize, out: &mut Vec<u8>) {
    put(out, "{\"type\":\"tool_use\",\"id\":\"");
    put_call_id((!id.is_empty()).then_some(id), answer, number as u64, out);
    put(out, "\",\"name\":\"");
    put(out, name);
    put(out, "\",\"input\":{}}");
}

/// Writes a delta: its type, the field that it extends, and the text, as it stands between quotes.
pub(super) fn put_delta(index: u64, [kind, field, text]: [&str; 3], out: &mut Vec<u8>) {
    write_event(out, "content_block_delta", |out| {
        put(out, "{\"type\":\"content_block_delta\",\"index\":");
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
            put(out, piece);
        }
    });
}

/// Closes a block.
pub(super) fn put_stop(index: u64, out: &mut Vec<u8>) {
    write_event(out, "content_block_stop", |out| {
        put(out, "{\"type\":\"content_block_stop\",\"index\":");
        write_number(out, index);
        out.push(b'}');
    });
}
