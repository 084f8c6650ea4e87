//! What items that consist of parts have in common: a message, and reasoning.

use crate::responses_openai::events::{Items, Of};
use crate::responses_openai::tools::put;
use proofgate_dialect::AnswerError;

/// An item at hand, and its parts that are done.
#[derive(Debug)]
pub(super) struct Parts {
    index: usize,
    id: String,
    /// Commas between them.
    done: Vec<u8>,
    pub(super) count: usize,
    /// The member of an event that says which part it is about.
    name: &'static str,
}

impl Parts {
    /// An item whose id has this prefix, without parts.
    pub(super) fn open(prefix: &str, name: &'static str, items: &mut Items) -> Result<Self, AnswerError> {
        let index = items.open()?;
        Ok(Parts {
            index,
            id: items.id(prefix, index),
            done: Vec::new(),
            count: 0,
            name,
        })
    }

    /// The place of the part at hand.
    pub(super) fn of(&self) -> Of<'_> {
        Of {
            id: &self.id,
            index: self.index,
            part: Some((self.name, self.count)),
        }
    }

    /// Tells that the part at hand is done, and takes it to the others.
    pub(super) fn end(&mut self, kind: &str, part: &[u8], items: &mut Items, out: &mut Vec<u8>) {
        items.event_of(kind, self.of(), out, |out| {
            put(out, ",\"part\":");
            out.extend_from_slice(part);
        });
        join(part, &mut self.done);
        self.count = self.count.saturating_add(1);
    }

    /// Tells that the item has begun.
    pub(super) fn added(&self, item: &[u8], items: &mut Items, out: &mut Vec<u8>) {
        items.added(self.index, item, out);
    }

    /// Tells that the item is done.
    pub(super) fn finish(&self, item: Vec<u8>, items: &mut Items, out: &mut Vec<u8>) {
        items.finish(self.index, item, out);
    }

    /// The item up to the end of its parts, which follow on `before`.
    pub(super) fn write(&self, kind: &str, status: &str, before: &str) -> Vec<u8> {
        let mut item = Vec::with_capacity(self.done.len() + 256);
        for piece in [
            "{\"id\":\"",
            &self.id,
            "\",\"type\":\"",
            kind,
            "\",\"status\":\"",
            status,
            "\",",
        ] {
            put(&mut item, piece);
        }
        put(&mut item, before);
        put(&mut item, "[");
        item.extend_from_slice(&self.done);
        put(&mut item, "]");
        item
    }
}

/// Appends an element, or several, to those of a list.
pub(super) fn join(elements: &[u8], list: &mut Vec<u8>) {
    if !list.is_empty() && !elements.is_empty() {
        list.push(b',');
    }
    list.extend_from_slice(elements);
}
