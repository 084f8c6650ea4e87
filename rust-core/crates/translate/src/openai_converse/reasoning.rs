use crate::Untranslatable;
use crate::chat_place::Place;
use crate::openai_converse::chat::Message;
use crate::openai_converse::content::{Blocks, Conversation};
use crate::openai_converse::text::write_all;
use crate::reasoning_details::{Detail, read};

impl Conversation<'_> {
    /// Writes the reasoning that an assistant's message carries back, byte for byte: a signature covers it. Reasoning without
    /// `reasoning_details` is never made into a block, for its signature is lost.
    pub(super) fn write_reasoning(
        &mut self,
        message: &Message<'_>,
        place: Place,
        blocks: &mut impl Blocks,
    ) -> Result<(), Untranslatable> {
        let details = read(message.reasoning_details);
        let mut lost = details.lost;
        let begin = blocks.length();
        for detail in &details.blocks {
            lost |= !self.write_detail(detail, blocks);
        }
        let name = "messages[].reasoning_details";
        if let Some(value) = message.reasoning_details.filter(|_| lost) {
            self.preferences
                .leave_out(name, value, || place.field("reasoning_details"))?;
        }
        if blocks.length() > begin {
            return Ok(());
        }
        for (value, name, field) in [
            (
                message.reasoning_content,
                "messages[].reasoning_content",
                "reasoning_content",
            ),
            (message.reasoning, "messages[].reasoning", "reasoning"),
        ] {
            if let Some(value) = value {
                self.preferences.leave_out(name, value, || place.field(field))?;
            }
        }
        Ok(())
    }

    /// Writes a block, unless the model would refuse it; whether it did.
    fn write_detail(&self, detail: &Detail<'_>, blocks: &mut impl Blocks) -> bool {
        match detail {
            Detail::Text { signature: None, .. } if self.wants_signatures => return false,
            Detail::Text { fragments, signature } => {
                let out = blocks.next();
                write_all(out, &[r#"{"reasoningContent":{"reasoningText":{"text":""#]);
                write_all(out, fragments);
                if let Some(signature) = signature {
                    write_all(out, &[r#"","signature":""#, signature]);
                }
                write_all(out, &[r#""}}}"#]);
            }
            Detail::Encrypted(data) => {
                let block = [r#"{"reasoningContent":{"redactedContent":""#, data, r#""}}"#];
                write_all(blocks.next(), &block);
            }
        }
        true
    }
}
