//! What the model thinks: an item whose summary has a part for each block.

use crate::responses_openai::calls::put_string;
use crate::responses_openai::events::Items;
use crate::responses_openai::keeper::{Fragment, Keeper};
use crate::responses_openai::parts::Parts;
use crate::responses_openai::tools::put;
use proofgate_dialect::AnswerError;

/// Thinking at hand.
#[derive(Debug)]
pub(super) struct Reasoning {
    /// Of the summary.
    parts: Parts,
    /// The inside of a string: the part at hand.
    text: Option<String>,
    pub(super) keeper: Keeper,
}

impl Reasoning {
    pub(super) fn open(items: &mut Items, out: &mut Vec<u8>) -> Result<Self, AnswerError> {
        let reasoning = Reasoning {
            parts: Parts::open("rs", "summary_index", items)?,
            text: None,
            keeper: Keeper::default(),
        };
        let begun = reasoning.write("in_progress");
        reasoning.parts.added(&begun, items, out);
        Ok(reasoning)
    }

    /// Takes a piece of thinking that came in a member of this name.
    pub(super) fn think(
        &mut self,
        text: &str,
        field: Option<&'static str>,
        items: &mut Items,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        self.keeper.field = self.keeper.field.or(field);
        items.keep(text.len())?;
        if self.text.is_none() {
            items.event_of(
                "response.reasoning_summary_part.added",
                self.parts.of(),
                out,
                |out| {
                    put(out, ",\"part\":{\"type\":\"summary_text\",\"text\":\"\"}");
                },
            );
        }
        items.event_of(
            "response.reasoning_summary_text.delta",
            self.parts.of(),
            out,
            |out| {
                put_string("delta", text, out);
            },
        );
        self.text.get_or_insert_default().push_str(text);
        Ok(())
    }

    /// Takes a fragment of a block, each of which is a part of the summary.
    pub(super) fn detail(
        &mut self,
        fragment: &Fragment<'_>,
        items: &mut Items,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        let (begins, kept) = self.keeper.take(fragment);
        items.keep(kept)?;
        if begins {
            self.end_part(items, out);
        }
        if let Some(text) = fragment.text() {
            self.think(text, None, items, out)?;
            self.keeper.has_text_in(self.parts.count);
        }
        Ok(())
    }

    fn end_part(&mut self, items: &mut Items, out: &mut Vec<u8>) {
        let Some(text) = self.text.take() else { return };
        items.event_of(
            "response.reasoning_summary_text.done",
            self.parts.of(),
            out,
            |out| {
                put_string("text", &text, out);
            },
        );
        let mut part = b"{\"type\":\"summary_text\"".to_vec();
        put_string("text", &text, &mut part);
        part.push(b'}');
        self.parts
            .end("response.reasoning_summary_part.done", &part, items, out);
    }

    pub(super) fn end(mut self, status: &str, items: &mut Items, out: &mut Vec<u8>) {
        self.end_part(items, out);
        let item = self.write(status);
        self.parts.finish(item, items, out);
    }

    fn write(&self, status: &str) -> Vec<u8> {
        let mut item = self.parts.write("reasoning", status, "\"summary\":");
        put(&mut item, ",\"encrypted_content\":");
        self.keeper.write(&mut item);
        item.push(b'}');
        item
    }
}
