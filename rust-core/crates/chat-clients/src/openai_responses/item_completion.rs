//! The end of an item of a streamed response.

use crate::chunks::CallKind;
use crate::openai_responses::event::Event;
use crate::openai_responses::items::{
    ItemKind, id_of, next_number, write_reasoning, write_text, write_thought,
};
use crate::openai_responses::output::{Detail, Item, Part};
use crate::openai_responses::stream::{NOT_STARTED, Stream};
use proofgate_dialect::ResponseError;

impl Stream {
    /// Ends an item and writes the content that no delta has sent.
    pub(super) fn close_item(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let Some(at) = self
            .open_items
            .iter()
            .position(|open| Some(open.index) == event.output_index)
        else {
            return Ok(());
        };
        let item = event.item.as_ref();
        if let Some(argument) = item
            .and_then(Item::call)
            .transpose()?
            .and_then(|call| call.argument)
        {
            self.write_full_argument(event, argument, out)?;
        }
        let open = self.open_items.remove(at);
        let chunks = self.chunks.as_ref().ok_or(NOT_STARTED)?;
        match (open.kind, item) {
            (kind @ ItemKind::Call { .. }, _) => self.close_call(&kind, out)?,
            (ItemKind::Message { has_begun: false, .. }, Some(item)) => {
                let mut is_first = true;
                for part in item.parts()? {
                    if let Some(refusal) = part.refusal() {
                        chunks.write_refusal(refusal, out);
                    }
                    if let Some(text) = part.text() {
                        let begins = std::mem::replace(&mut is_first, false);
                        self.text_chars = write_text(chunks, text, None, begins, self.text_chars, out);
                    }
                }
            }
            (ItemKind::Reasoning { id, has_begun, .. }, Some(item)) => {
                let id = id.or_else(|| id_of(item));
                if !has_begun {
                    let summary = item.summary()?;
                    for text in summary.iter().filter_map(Part::text) {
                        let index = next_number(&mut self.detail_count);
                        let said = (text, self.has_reasoning);
                        write_thought(chunks, said, Detail::Summary(text), index, id.as_deref(), out);
                        self.has_reasoning = true;
                    }
                }
                if let Some(encrypted) = item.encrypted_content() {
                    let index = next_number(&mut self.detail_count);
                    let detail = Detail::Encrypted(encrypted);
                    write_reasoning(chunks, (None, detail), index, id.as_deref(), out);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a call. A call without arguments gets an empty object as its arguments.
    pub(super) fn close_call(&mut self, kind: &ItemKind, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        if let ItemKind::Call {
            number,
            is_custom: false,
            nesting,
        } = kind
        {
            self.has_truncated_call |= nesting.is_truncated();
            if !nesting.has_started() {
                let chunks = self.chunks.as_ref().ok_or(NOT_STARTED)?;
                chunks.write_argument(*number, CallKind::Function, out, |out| {
                    out.extend_from_slice(b"\"{}\"");
                });
            }
        }
        Ok(())
    }
}
