//! The items of a streamed response that are open, and what is written of them.

use crate::chunks::Chunks;
use crate::nesting::Nesting;
use crate::openai_responses::answer::TEXT_SEPARATOR;
use crate::openai_responses::output::{Detail, Item, char_count, write_detail};
use proofgate_dialect::json_text::JsonText;

/// Bytes of an id: that of the response stands in every chunk, that of an item of reasoning in each of its fragments.
pub(super) const MAX_ID_BYTES: usize = 256;

#[derive(Debug)]
pub(super) struct OpenItem {
    /// Its place in the output.
    pub(super) index: u64,
    pub(super) kind: ItemKind,
}

#[derive(Debug)]
pub(super) enum ItemKind {
    /// A call, counted among the calls, and its arguments so far.
    Call {
        number: u64,
        is_custom: bool,
        nesting: Nesting,
    },
    /// A message: whether anything of it has come, and where the part at hand began among the characters of the text.
    Message {
        has_begun: bool,
        part: Option<u64>,
        part_start: u64,
    },
    /// Reasoning: its id as JSON, and the element of `reasoning_details` that is open.
    Reasoning {
        id: Option<Box<str>>,
        detail: Option<u64>,
        has_begun: bool,
    },
    /// What one of the provider's own tools did, or what is not known.
    Other,
}

impl ItemKind {
    /// The kind of an item that is no call.
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

/// Writes text, an empty line before the first of a message that is not the first; returns how many characters have come by now.
pub(super) fn write_text(
    chunks: &Chunks,
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

/// Writes a thought, an empty line before the first fragment of a part that is not the first.
pub(super) fn write_thought(
    chunks: &Chunks,
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

/// Writes reasoning for those who read it, and for those who send it back.
pub(super) fn write_reasoning(
    chunks: &Chunks,
    (read, detail): (Option<&str>, Detail<'_>),
    index: u64,
    id: Option<&str>,
    out: &mut Vec<u8>,
) {
    let detail = |out: &mut Vec<u8>| write_detail(detail, index, id, out);
    chunks.write_reasoning(read, out, Some(detail));
}

/// The next number.
pub(super) fn next_number(next: &mut u64) -> u64 {
    let number = *next;
    *next = number.saturating_add(1);
    number
}

pub(super) fn id_of(item: &Item<'_>) -> Option<Box<str>> {
    let id = item.id().map(JsonText::raw);
    id.filter(|id| id.len() <= MAX_ID_BYTES).map(Box::from)
}
