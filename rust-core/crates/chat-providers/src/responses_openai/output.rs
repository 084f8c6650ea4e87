//! An answer as its items, whole or as it comes: both are put together here, so that they say the same.

use serde_json::value::RawValue;

use crate::anthropic_openai::chat::{Said, Spoken, ToolCall};
use crate::anthropic_openai::stop::Finish;
use crate::responses_openai::calls::Calls;
use crate::responses_openai::events::Items;
use crate::responses_openai::keeper::{Fragment, Keeper};
use crate::responses_openai::message::{Message, logprobs};
use crate::responses_openai::pictures;
use crate::responses_openai::reasoning::Reasoning;
use crate::responses_openai::response::Status;
use crate::thought_signature::signature;
use proofgate_dialect::AnswerError;
use proofgate_dialect::SentTool;

/// What has come of an answer.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) items: Items,
    open: Open,
    calls: Calls,
    /// Signatures that stand in no item yet.
    signed: Keeper,
    said: u64,
}

#[derive(Debug, Default)]
enum Open {
    #[default]
    Nothing,
    Message(Message),
    Reasoning(Reasoning),
}

impl Output {
    pub(super) fn new(items: Items, tools: Vec<SentTool>) -> Self {
        Output {
            items,
            open: Open::Nothing,
            calls: Calls::new(tools),
            signed: Keeper::default(),
            said: 0,
        }
    }

    /// Whether nothing has come.
    pub(super) fn is_empty(&self) -> bool {
        self.said == 0 && self.calls.is_empty()
    }

    /// About how many tokens have come: one for every four bytes.
    pub(super) fn estimated_tokens(&self) -> u64 {
        self.said.div_ceil(4)
    }

    /// Takes a message, or a piece of one.
    pub(super) fn take(
        &mut self,
        said: &Said<'_>,
        of_tokens: Option<&RawValue>,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        let details = said.reasoning_details.map(Fragment::read).unwrap_or_default();
        let told = details.iter().any(|detail| detail.text().is_some());
        for detail in &details {
            self.calls.settle(&mut self.items, out)?;
            let reasoning = self.open.reasoning(&mut self.items, out)?;
            reasoning.detail(detail, &mut self.items, out)?;
        }
        let field = match (said.reasoning_content, said.reasoning) {
            (Some(_), _) => Some("reasoning_content"),
            (None, Some(_)) => Some("reasoning"),
            (None, None) => None,
        };
        let mut tokens = logprobs(of_tokens);
        said.each_but_details(|piece| {
            self.calls.settle(&mut self.items, out)?;
            let (text, is_refusal) = match piece {
                // The same again, as most providers of blocks have it.
                Spoken::Thinking(_) if told => return Ok(()),
                Spoken::Thinking(text) => {
                    self.said = self.said.saturating_add(text.len() as u64);
                    let reasoning = self.open.reasoning(&mut self.items, out)?;
                    return reasoning.think(text, field, &mut self.items, out);
                }
                Spoken::Text(text) => (text, false),
                Spoken::Refusal(text) => (text, true),
                // It is one of the details.
                Spoken::Sealed(_) => return Ok(()),
            };
            self.said = self.said.saturating_add(text.len() as u64);
            let tokens = if is_refusal {
                Vec::new()
            } else {
                std::mem::take(&mut tokens)
            };
            let message = self.open.message(&mut self.items, out)?;
            message.push(is_refusal, text, &tokens, &mut self.items, out)
        })?;
        if let (Some(annotations), Open::Message(message)) = (said.annotations, &mut self.open) {
            message.annotate(annotations, &mut self.items, out)?;
        }
        for picture in said.images.map(pictures::read).unwrap_or_default() {
            self.said = self.said.saturating_add(1);
            self.calls.settle(&mut self.items, out)?;
            self.open.end("completed", &mut self.items, out);
            pictures::tell(picture, &mut self.items, out)?;
        }
        if let Some(signature) = signature(said.extra_content) {
            self.items.keep(signature.len())?;
            self.signed.signature = Some(signature.to_owned());
        }
        for call in said.tool_calls.iter().flatten() {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn call(&mut self, fragment: &ToolCall<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let (number, begins) = self.calls.number_of(fragment, &mut self.items, out)?;
        if let (Some(signature), Some(id)) = (signature(fragment.extra_content), fragment.id()) {
            self.items.keep(signature.len().saturating_add(id.len()))?;
            self.signed.calls.push((id.to_owned(), signature.to_owned()));
        }
        if begins {
            self.open.end("completed", &mut self.items, out);
            // What is signed stands before the call, as thinking does.
            self.write_signed(out)?;
        }
        self.said = self.said.saturating_add(1);
        self.calls.take(number, fragment, &mut self.items, out)
    }

    /// Writes an item for signatures that have none.
    fn write_signed(&mut self, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let signed = std::mem::take(&mut self.signed);
        if signed.signature.is_none() && signed.calls.is_empty() {
            return Ok(());
        }
        let mut reasoning = Reasoning::open(&mut self.items, out)?;
        reasoning.keeper = signed;
        reasoning.end("completed", &mut self.items, out);
        Ok(())
    }

    /// The answer is over.
    ///
    /// # Errors
    /// [`AnswerError`] when the provider could not go on, or a call is a torso although nothing cut it.
    pub(super) fn finish(
        &mut self,
        finish: Finish,
        out: &mut Vec<u8>,
    ) -> Result<Status<'static>, AnswerError> {
        let status = match finish {
            Finish::Failed => return Err(AnswerError::Failed("the provider stopped with an error")),
            Finish::Length => Status::Incomplete("max_output_tokens"),
            Finish::Filtered => Status::Incomplete("content_filter"),
            Finish::Done | Finish::StopSequence => Status::Completed,
        };
        let of_open = if finish.cuts() { "incomplete" } else { "completed" };
        self.open.end(of_open, &mut self.items, out);
        self.calls.finish(finish.cuts(), &mut self.items, out)?;
        self.write_signed(out)?;
        Ok(status)
    }
}

impl Open {
    fn end(&mut self, status: &str, items: &mut Items, out: &mut Vec<u8>) {
        match std::mem::take(self) {
            Open::Nothing => {}
            Open::Message(message) => message.end(status, items, out),
            Open::Reasoning(reasoning) => reasoning.end(status, items, out),
        }
    }

    /// The message at hand, which begins if there is none.
    fn message(&mut self, items: &mut Items, out: &mut Vec<u8>) -> Result<&mut Message, AnswerError> {
        if !matches!(self, Open::Message(_)) {
            self.end("completed", items, out);
            *self = Open::Message(Message::open(items, out)?);
        }
        match self {
            Open::Message(message) => Ok(message),
            _ => Err(AnswerError::TooLarge),
        }
    }

    /// The thinking at hand, which begins if there is none.
    fn reasoning(&mut self, items: &mut Items, out: &mut Vec<u8>) -> Result<&mut Reasoning, AnswerError> {
        if !matches!(self, Open::Reasoning(_)) {
            self.end("completed", items, out);
            *self = Open::Reasoning(Reasoning::open(items, out)?);
        }
        match self {
            Open::Reasoning(reasoning) => Ok(reasoning),
            _ => Err(AnswerError::TooLarge),
        }
    }
}
