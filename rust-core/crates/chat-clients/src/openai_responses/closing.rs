//! The end of an item of a streamed response.

use crate::chunks::Called;
use crate::openai_responses::event::Event;
use crate::openai_responses::items::{Kind, count, id_of, think, write_reasoning, write_text};
use crate::openai_responses::output::{Detail, Item, Part};
use crate::openai_responses::stream::{NOT_BEGUN, Stream};
use proofgate_dialect::AnswerError;

impl Stream {
    /// An item has ended. What no delta brought is written now.
    pub(super) fn close_item(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let Some(at) = self
            .open
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
            self.say_whole_argument(event, argument, out)?;
        }
        let open = self.open.remove(at);
        let chunks = self.chunks.as_ref().ok_or(NOT_BEGUN)?;
        match (open.kind, item) {
            (kind @ Kind::Call { .. }, _) => self.close_call(&kind, out)?,
            (Kind::Message { has_begun: false, .. }, Some(item)) => {
                let mut is_first = true;
                for part in item.parts()? {
                    if let Some(refusal) = part.refusal() {
                        chunks.refusal(refusal, out);
                    }
                    if let Some(text) = part.text() {
                        let begins = std::mem::replace(&mut is_first, false);
                        self.said = write_text(chunks, text, None, begins, self.said, out);
                    }
                }
            }
            (Kind::Reasoning { id, has_begun, .. }, Some(item)) => {
                let id = id.or_else(|| id_of(item));
                if !has_begun {
                    let summary = item.summary()?;
                    for text in summary.iter().filter_map(Part::text) {
                        let index = count(&mut self.details);
                        let said = (text, self.has_thoughts);
                        think(chunks, said, Detail::Summary(text), index, id.as_deref(), out);
                        self.has_thoughts = true;
                    }
                }
                if let Some(encrypted) = item.encrypted_content() {
                    let index = count(&mut self.details);
                    let detail = Detail::Encrypted(encrypted);
                    write_reasoning(chunks, (None, detail), index, id.as_deref(), out);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A call without arguments has an empty object of them.
    pub(super) fn close_call(&mut self, kind: &Kind, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        if let Kind::Call {
            number,
            is_custom: false,
            nesting,
        } = kind
        {
            self.has_cut_call |= nesting.is_cut();
            if !nesting.has_begun() {
                let chunks = self.chunks.as_ref().ok_or(NOT_BEGUN)?;
                chunks.argument(*number, Called::Function, out, |out| {
                    out.extend_from_slice(b"\"{}\"");
                });
            }
        }
        Ok(())
    }
}
