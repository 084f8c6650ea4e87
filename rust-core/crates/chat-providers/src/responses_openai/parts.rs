//! The common state of items with parts: a message and reasoning.

use crate::responses_openai::events::{EventTarget, OutputItems};
use crate::responses_openai::tools::write_json;
use proofgate_dialect::ResponseError;

/// The current item, and its finished parts.
#[derive(Debug)]
pub(super) struct ItemParts {
    index: usize,
    id: String,
    /// The finished parts, separated by commas.
    finished_parts: Vec<u8>,
    pub(super) count: usize,
    /// The member of an event that has the index of the part.
    name: &'static str,
}

impl ItemParts {
    /// Opens an item without parts whose id has this prefix.
    pub(super) fn open(
        prefix: &str,
        name: &'static str,
        items: &mut OutputItems,
    ) -> Result<Self, ResponseError> {
        let index = items.next_index()?;
        Ok(ItemParts {
            index,
            id: items.item_id(prefix, index),
            finished_parts: Vec::new(),
            count: 0,
            name,
        })
    }

    /// Returns the event target for the current part.
    pub(super) fn event_target(&self) -> EventTarget<'_> {
        EventTarget {
            id: &self.id,
            index: self.index,
            part: Some((self.name, self.count)),
        }
    }

    /// Writes the event that reports the end of the current part, and adds the part to the finished
    /// parts.
    pub(super) fn finish_part(
        &mut self,
        kind: &str,
        part: &[u8],
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) {
        items.write_targeted_event(kind, self.event_target(), out, |out| {
            write_json(out, ",\"part\":");
            out.extend_from_slice(part);
        });
        append_elements(part, &mut self.finished_parts);
        self.count = self.count.saturating_add(1);
    }

    /// Writes the event that reports the start of the item.
    pub(super) fn write_added(&self, item: &[u8], items: &mut OutputItems, out: &mut Vec<u8>) {
        items.write_added(self.index, item, out);
    }

    /// Writes the event that reports the end of the item.
    pub(super) fn finish(&self, item: Vec<u8>, items: &mut OutputItems, out: &mut Vec<u8>) {
        items.finish_item(self.index, item, out);
    }

    /// Returns the item up to the end of its parts, which follow `before`.
    pub(super) fn write(&self, kind: &str, status: &str, before: &str) -> Vec<u8> {
        let mut item = Vec::with_capacity(self.finished_parts.len() + 256);
        for piece in [
            "{\"id\":\"",
            &self.id,
            "\",\"type\":\"",
            kind,
            "\",\"status\":\"",
            status,
            "\",",
        ] {
            write_json(&mut item, piece);
        }
        write_json(&mut item, before);
        write_json(&mut item, "[");
        item.extend_from_slice(&self.finished_parts);
        write_json(&mut item, "]");
        item
    }
}

/// Appends one or more elements to a list.
pub(super) fn append_elements(elements: &[u8], list: &mut Vec<u8>) {
    if !list.is_empty() && !elements.is_empty() {
        list.push(b',');
    }
    list.extend_from_slice(elements);
}
