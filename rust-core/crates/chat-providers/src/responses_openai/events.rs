//! The items of an answer, and the events that tell of them.

use crate::responses_openai::tools::put;
use proofgate_dialect::json::write_number;
use proofgate_dialect::{AnswerError, write_event};

/// Bytes that are kept of an answer. All of it is kept, since the last event repeats it.
const MOST_KEPT: usize = 8 << 20;
/// Items of an answer.
const MOST_ITEMS: usize = 512;

/// The items so far, and what they have in common.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// Tells the answer from others; ids of items are made of it.
    core: String,
    /// Those that are done, each at its index.
    done: Vec<Option<Vec<u8>>>,
    kept: usize,
    sequence: u64,
    /// Whether events are written: a whole answer has none.
    is_streamed: bool,
}

impl Items {
    /// None yet, of an answer with this id at its provider.
    pub(super) fn new(id: &str, created: u64, is_streamed: bool) -> Self {
        let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        // OpenAI's own ids have 64 characters at most.
        let mut core: Vec<char> = id.chars().rev().filter(is_plain).take(40).collect();
        core.reverse();
        let core: String = core.into_iter().collect();
        Items {
            core: if core.is_empty() {
                created.to_string()
            } else {
                core
            },
            is_streamed,
            ..Items::default()
        }
    }

    pub(super) fn core(&self) -> &str {
        &self.core
    }

    /// The id of the item of an index; `prefix` says what it is.
    pub(super) fn id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}_{}_{index}", self.core)
    }

    /// The index of another item.
    pub(super) fn open(&mut self) -> Result<usize, AnswerError> {
        if self.done.len() >= MOST_ITEMS {
            return Err(AnswerError::TooLarge);
        }
        self.done.push(None);
        Ok(self.done.len() - 1)
    }

    /// Counts what is kept of an item.
    ///
    /// # Errors
    /// [`AnswerError::TooLarge`] when it is too much.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<(), AnswerError> {
        self.kept = self.kept.saturating_add(bytes);
        if self.kept > MOST_KEPT {
            return Err(AnswerError::TooLarge);
        }
        Ok(())
    }

    /// Writes an event; `members` have a comma before each.
    pub(super) fn event(&mut self, name: &str, out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_streamed {
            return;
        }
        let sequence = self.sequence;
        self.sequence = sequence.saturating_add(1);
        write_event(out, name, |out| {
            for piece in ["{\"type\":\"", name, "\",\"sequence_number\":"] {
                put(out, piece);
            }
            write_number(out, sequence);
            members(out);
            out.push(b'}');
        });
    }

    /// Writes an event of one item.
    pub(super) fn event_of(
        &mut self,
        name: &str,
        of: Of<'_>,
        out: &mut Vec<u8>,
        members: impl FnOnce(&mut Vec<u8>),
    ) {
        self.event(name, out, |out| {
            for piece in [",\"item_id\":\"", of.id, "\",\"output_index\":"] {
                put(out, piece);
            }
            write_number(out, of.index as u64);
            if let Some((name, number)) = of.part {
                for piece in [",\"", name, "\":"] {
                    put(out, piece);
                }
                write_number(out, number as u64);
            }
            members(out);
        });
    }

    /// Says that an item has begun.
    pub(super) fn added(&mut self, index: usize, item: &[u8], out: &mut Vec<u8>) {
        self.item_event("response.output_item.added", index, item, out);
    }

    /// Says that an item is done, and keeps it.
    pub(super) fn finish(&mut self, index: usize, item: Vec<u8>, out: &mut Vec<u8>) {
        self.item_event("response.output_item.done", index, &item, out);
        if let Some(place) = self.done.get_mut(index) {
            *place = Some(item);
        }
    }

    fn item_event(&mut self, name: &str, index: usize, item: &[u8], out: &mut Vec<u8>) {
        self.event(name, out, |out| {
            put(out, ",\"output_index\":");
            write_number(out, index as u64);
            put(out, ",\"item\":");
            out.extend_from_slice(item);
        });
    }

    /// Appends the items that are done, commas between.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut before = "";
        for item in self.done.iter().flatten() {
            put(out, std::mem::replace(&mut before, ","));
            out.extend_from_slice(item);
        }
    }
}

/// What an event is about: an item, and a part of it by the name of its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<'o> {
    pub(super) id: &'o str,
    pub(super) index: usize,
    pub(super) part: Option<(&'static str, usize)>,
}
