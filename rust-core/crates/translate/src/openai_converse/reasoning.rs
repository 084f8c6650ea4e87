use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::openai_converse::chat::{Message, ReasoningDetail};
use crate::openai_converse::content::{Blocks, Conversation, missing};
use crate::openai_converse::text::{inner, parse_list, write_all, wrong_type};

/// What OpenRouter calls, in `reasoning_details`, reasoning that can be read.
pub(super) const TEXT: &str = "reasoning.text";
/// And reasoning that cannot.
pub(super) const ENCRYPTED: &str = "reasoning.encrypted";

impl Conversation<'_> {
    /// Writes the reasoning that an assistant's message carries back, byte for byte: a signature covers it. Reasoning without
    /// `reasoning_details` is never made into a block, for its signature is lost.
    pub(super) fn write_reasoning(
        &mut self,
        message: &Message<'_>,
        place: Place,
        blocks: &mut impl Blocks,
    ) -> Result<(), Untranslatable> {
        let details: Vec<ReasoningDetail<'_>> = match message.reasoning_details {
            Some(details) => parse_list(details, || place.field("reasoning_details"))?,
            None => Vec::new(),
        };
        if details.is_empty() {
            let unsigned = [
                (
                    message.reasoning_content,
                    "messages[].reasoning_content",
                    "reasoning_content",
                ),
                (message.reasoning, "messages[].reasoning", "reasoning"),
            ];
            for (value, name, field) in unsigned {
                if let Some(value) = value.filter(|value| inner(value) != Some("")) {
                    self.preferences.leave_out(name, value, || place.field(field))?;
                }
            }
        }
        for (number, detail) in details.iter().enumerate() {
            let param = |field: &str| place.field(&format!("reasoning_details[{number}]{field}"));
            self.preferences.unknown(detail.unknown.as_ref(), || param(""))?;
            match detail.kind.as_deref() {
                Some(TEXT) => {
                    let text = string(detail.text, || param(".text"))?;
                    let out = blocks.next();
                    write_all(out, &[r#"{"reasoningContent":{"reasoningText":{"text":"#, text]);
                    if detail.signature.is_some() {
                        let signature = string(detail.signature, || param(".signature"))?;
                        write_all(out, &[r#","signature":"#, signature]);
                    }
                    write_all(out, &["}}}"]);
                }
                Some(ENCRYPTED) => {
                    let data = string(detail.data, || param(".data"))?;
                    write_all(
                        blocks.next(),
                        &[r#"{"reasoningContent":{"redactedContent":"#, data, "}}"],
                    );
                }
                _ => {
                    if let Some(details) = message.reasoning_details {
                        let name = "messages[].reasoning_details";
                        self.preferences.leave_out(name, details, || param(".type"))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn string(value: Option<&RawValue>, param: impl Fn() -> String) -> Result<&str, Untranslatable> {
    let value = value.ok_or_else(|| missing(param()))?;
    inner(value)
        .map(|_| value.get())
        .ok_or_else(|| wrong_type(param()))
}
