//! The items of an answer, and their events.

use crate::responses_openai::tools::write_json;
use proofgate_dialect::json::write_number;
use proofgate_dialect::{ResponseError, write_event};

/// Maximum number of bytes of an answer that are kept. The whole answer is kept, because the last
/// event repeats it.
const MAX_RETAINED_BYTES: usize = 8 << 20;
/// Maximum number of items in an answer.
const MAX_ITEMS: usize = 512;

/// The items so far, and their common state.
#[derive(Debug, Default)]
pub(super) struct OutputItems {
    /// The part of the ids that identifies the answer.
    id_stem: String,
    /// The finished items, each at its index.
    finished: Vec<Option<Vec<u8>>>,
    retained_bytes: usize,
    sequence: u64,
    /// Whether events are written: a whole answer has none.
    is_streamed: bool,
}

impl OutputItems {
    /// Creates an empty list for an answer with this id at its provider.
    pub(super) fn new(id: &str, created: u64, is_streamed: bool) -> Self {
        let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        // OpenAI's own ids have at most 64 characters.
        let mut core: Vec<char> = id.chars().rev().filter(is_plain).take(40).collect();
        core.reverse();
        let core: String = core.into_iter().collect();
        OutputItems {
            id_stem: if core.is_empty() {
                created.to_string()
            } else {
                core
            },
            is_streamed,
            ..OutputItems::default()
        }
    }

    pub(super) fn id_stem(&self) -> &str {
        &self.id_stem
    }

    /// Returns the id of the item at an index; `prefix` names its kind.
    pub(super) fn item_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}_{}_{index}", self.id_stem)
    }

    /// Reserves the index of another item.
    pub(super) fn next_index(&mut self) -> Result<usize, ResponseError> {
        if self.finished.len() >= MAX_ITEMS {
            return Err(ResponseError::TooLarge);
        }
        self.finished.push(None);
        Ok(self.finished.len() - 1)
    }

    /// Counts the bytes of an item that are kept.
    ///
    /// # Errors
    /// Returns [`ResponseError::TooLarge`] if the limit is exceeded.
    pub(super) fn count_retained(&mut self, bytes: usize) -> Result<(), ResponseError> {
        self.retained_bytes = self.retained_bytes.saturating_add(bytes);
        if self.retained_bytes > MAX_RETAINED_BYTES {
            return Err(ResponseError::TooLarge);
        }
        Ok(())
    }

    /// Writes an event; `members` writes its members, each with a comma before it.
    pub(super) fn write_event(&mut self, name: &str, out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_streamed {
            return;
        }
        let sequence = self.sequence;
        self.sequence = sequence.saturating_add(1);
        write_event(out, name, |out| {
            for piece in ["{\"type\":\"", name, "\",\"sequence_number\":"] {
                write_json(out, piece);
            }
            write_number(out, sequence);
            members(out);
            out.push(b'}');
        });
    }

    /// Writes an event about one item.
    pub(super) fn write_targeted_event(
        &mut self,
        name: &str,
        of: EventTarget<'_>,
        out: &mut Vec<u8>,
        members: impl FnOnce(&mut Vec<u8>),
    ) {
        self.write_event(name, out, |out| {
            for piece in [",\"item_id\":\"", of.id, "\",\"output_index\":"] {
                write_json(out, piece);
            }
            write_number(out, of.index as u64);
            if let Some((name, number)) = of.part {
                for piece in [",\"", name, "\":"] {
                    write_json(out, piece);
                }
                write_number(out, number as u64);
            }
            members(out);
        });
    }

    /// Writes the event that reports the start of an item.
    pub(super) fn write_added(&mut self, index: usize, item: &[u8], out: &mut Vec<u8>) {
        self.write_item_event("response.output_item.added", index, item, out);
    }

    /// Writes the event that reports the end of an item, and keeps the item.
    pub(super) fn finish_item(&mut self, index: usize, item: Vec<u8>, out: &mut Vec<u8>) {
        self.write_item_event("response.output_item.done", index, &item, out);
        if let Some(place) = self.finished.get_mut(index) {
            *place = Some(item);
        }
    }

    fn write_item_event(&mut self, name: &str, index: usize, item: &[u8], out: &mut Vec<u8>) {
        self.write_event(name, out, |out| {
            write_json(out, ",\"output_index\":");
            write_number(out, index as u64);
            write_json(out, ",\"item\":");
            out.extend_from_slice(item);
        });
    }

    /// Appends the finished items, separated by commas.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut before = "";
        for item in self.finished.iter().flatten() {
            write_json(out, std::mem::replace(&mut before, ","));
            out.extend_from_slice(item);
        }
    }
}

/// The target of an event: an item, and a part of it by the name of its index.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventTarget<'o> {
    pub(super) id: &'o str,
    pub(super) index: usize,
    pub(super) part: Option<(&'static str, usize)>,
}
