//! The open items of a streamed response, and writers for their content.

use crate::chunks::ChunkWriter;
use crate::nesting::NestingTracker;
use crate::openai_responses::output::{Detail, Item, char_count, write_detail};
use crate::openai_responses::response::TEXT_SEPARATOR;
use proofgate_dialect::json_text::JsonText;

/// Maximum length of an id in bytes: every chunk has the response's id, every fragment of reasoning its item's id.
pub(super) const MAX_ID_BYTES: usize = 256;

#[derive(Debug)]
pub(super) struct OpenItem {
    /// Its index in the output.
    pub(super) index: u64,
    pub(super) kind: ItemKind,
}

#[derive(Debug)]
pub(super) enum ItemKind {
    /// A call: its index among the calls, and its arguments so far.
    Call {
        number: u64,
        is_custom: bool,
        nesting: NestingTracker,
    },
    /// A message: whether any of it was sent, and the offset of the current part in characters of the text.
    Message {
        has_begun: bool,
        part: Option<u64>,
        part_start: u64,
    },
    /// Reasoning: its id as JSON, and the open element of `reasoning_details`.
    Reasoning {
        id: Option<Box<str>>,
        detail: Option<u64>,
        has_begun: bool,
    },
    /// A result of one of the provider's own tools, or an unknown item.
    Other,
}

impl ItemKind {
    /// Returns the kind of an item that is not a call.
    pub(super) fn from_item(item: &Item<'_>) -> Self {
        match item.kind.as_deref() {
            Some("message") => ItemKind::Message {
                has_begun: false,
                part: None,
                part_start: 0,
            },
            Some("reasoning") => ItemKind::Reasoning {
                id: id_of(item),
                detail: None,
                has_begun: false,
            },
            _ => ItemKind::Other,
        }
    }
}

/// Writes text, after an empty line if it is the first of a later message; returns the number of characters so far.
pub(super) fn write_text(
    chunks: &ChunkWriter,
    text: JsonText<'_>,
    logprobs: Option<&str>,
    begins: bool,
    said: u64,
    out: &mut Vec<u8>,
) -> u64 {
    let is_apart = begins && said > 0;
    match is_apart {
        true => chunks.write_text(&format!("\"{TEXT_SEPARATOR}{}\"", text.inner()), logprobs, out),
        false => chunks.write_text(text.raw(), logprobs, out),
    }
    said.saturating_add(char_count(text))
        .saturating_add(if is_apart { 2 } else { 0 })
}

/// Writes a thought, after an empty line if it is the first fragment of a later part.
pub(super) fn write_thought(
    chunks: &ChunkWriter,
    (text, is_apart): (JsonText<'_>, bool),
    detail: Detail<'_>,
    index: u64,
    id: Option<&str>,
    out: &mut Vec<u8>,
) {
    match is_apart {
        true => {
            let read = format!("\"{TEXT_SEPARATOR}{}\"", text.inner());
            write_reasoning(chunks, (Some(&read), detail), index, id, out);
        }
        false => write_reasoning(chunks, (Some(text.raw()), detail), index, id, out),
    }
}

/// Writes reasoning for display, and to be sent back.
pub(super) fn write_reasoning(
    chunks: &ChunkWriter,
    (read, detail): (Option<&str>, Detail<'_>),
    index: u64,
    id: Option<&str>,
    out: &mut Vec<u8>,
) {
    let detail = |out: &mut Vec<u8>| write_detail(detail, index, id, out);
    chunks.write_reasoning(read, out, Some(detail));
}

/// Returns the next number.
pub(super) fn next_number(next: &mut u64) -> u64 {
    let number = *next;
    *next = number.saturating_add(1);
    number
}

pub(super) fn id_of(item: &Item<'_>) -> Option<Box<str>> {
    let id = item.id().map(JsonText::raw);
    id.filter(|id| id.len() <= MAX_ID_BYTES).map(Box::from)
}
