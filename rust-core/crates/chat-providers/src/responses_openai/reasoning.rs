//! The model's reasoning: an item whose summary has a part for each block.

use crate::responses_openai::calls::write_string_member;
use crate::responses_openai::events::OutputItems;
use crate::responses_openai::parts::ItemParts;
use crate::responses_openai::reasoning_state::{DetailFragment, ReasoningState};
use crate::responses_openai::tools::write_json;
use proofgate_dialect::ResponseError;

/// The current reasoning.
#[derive(Debug)]
pub(super) struct Reasoning {
    /// The parts of the summary.
    parts: ItemParts,
    /// The text of the current part, JSON-escaped and without quotes.
    text: Option<String>,
    pub(super) state: ReasoningState,
}

impl Reasoning {
    pub(super) fn open(items: &mut OutputItems, out: &mut Vec<u8>) -> Result<Self, ResponseError> {
        let reasoning = Reasoning {
            parts: ItemParts::open("rs", "summary_index", items)?,
            text: None,
            state: ReasoningState::default(),
        };
        let begun = reasoning.write("in_progress");
        reasoning.parts.write_added(&begun, items, out);
        Ok(reasoning)
    }

    /// Adds a piece of thinking from a member with this name.
    pub(super) fn push_thinking(
        &mut self,
        text: &str,
        field: Option<&'static str>,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        self.state.text_member = self.state.text_member.or(field);
        items.count_retained(text.len())?;
        if self.text.is_none() {
            items.write_targeted_event(
                "response.reasoning_summary_part.added",
                self.parts.event_target(),
                out,
                |out| {
                    write_json(out, ",\"part\":{\"type\":\"summary_text\",\"text\":\"\"}");
                },
            );
        }
        items.write_targeted_event(
            "response.reasoning_summary_text.delta",
            self.parts.event_target(),
            out,
            |out| {
                write_string_member("delta", text, out);
            },
        );
        self.text.get_or_insert_default().push_str(text);
        Ok(())
    }

    /// Adds a fragment of a block; each block is a part of the summary.
    pub(super) fn push_detail(
        &mut self,
        fragment: &DetailFragment<'_>,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let (begins, kept) = self.state.push(fragment);
        items.count_retained(kept)?;
        if begins {
            self.finish_part(items, out);
        }
        if let Some(text) = fragment.text() {
            self.push_thinking(text, None, items, out)?;
            self.state.set_summary_part(self.parts.count);
        }
        Ok(())
    }

    fn finish_part(&mut self, items: &mut OutputItems, out: &mut Vec<u8>) {
        let Some(text) = self.text.take() else { return };
        items.write_targeted_event(
            "response.reasoning_summary_text.done",
            self.parts.event_target(),
            out,
            |out| {
                write_string_member("text", &text, out);
            },
        );
        let mut part = b"{\"type\":\"summary_text\"".to_vec();
        write_string_member("text", &text, &mut part);
        part.push(b'}');
        self.parts
            .finish_part("response.reasoning_summary_part.done", &part, items, out);
    }

    pub(super) fn finish(mut self, status: &str, items: &mut OutputItems, out: &mut Vec<u8>) {
        self.finish_part(items, out);
        let item = self.write(status);
        self.parts.finish(item, items, out);
    }

    fn write(&self, status: &str) -> Vec<u8> {
        let mut item = self.parts.write("reasoning", status, "\"summary\":");
        write_json(&mut item, ",\"encrypted_content\":");
        self.state.write(&mut item);
        item.push(b'}');
        item
    }
}
