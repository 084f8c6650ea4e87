//! Builds the items of an answer, whole or streamed: both use the same code, so that they have the same content.

use serde_json::value::RawValue;

use crate::anthropic_openai::chat::{ChatMessage, OutputFragment, ToolCall};
use crate::anthropic_openai::finish_reason::FinishReason;
use crate::responses_openai::calls::OutputCalls;
use crate::responses_openai::events::OutputItems;
use crate::responses_openai::images;
use crate::responses_openai::message::{Message, logprobs};
use crate::responses_openai::reasoning::Reasoning;
use crate::responses_openai::reasoning_state::{DetailFragment, ReasoningState};
use crate::responses_openai::response::Status;
use crate::thought_signature::signature;
use proofgate_dialect::ResponseError;
use proofgate_dialect::ToolMapping;

/// The output so far.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) items: OutputItems,
    open_item: OpenItem,
    calls: OutputCalls,
    /// Signatures that belong to no item yet.
    pending_signatures: ReasoningState,
    emitted_bytes: u64,
}

#[derive(Debug, Default)]
enum OpenItem {
    #[default]
    None,
    Message(Message),
    Reasoning(Reasoning),
}

impl Output {
    pub(super) fn new(items: OutputItems, tools: Vec<ToolMapping>) -> Self {
        Output {
            items,
            open_item: OpenItem::None,
            calls: OutputCalls::new(tools),
            pending_signatures: ReasoningState::default(),
            emitted_bytes: 0,
        }
    }

    /// Returns whether there was no output.
    pub(super) fn is_empty(&self) -> bool {
        self.emitted_bytes == 0 && self.calls.is_empty()
    }

    /// Returns an estimate of the tokens so far: one for every four bytes.
    pub(super) fn estimated_tokens(&self) -> u64 {
        self.emitted_bytes.div_ceil(4)
    }

    /// Adds a message, or a piece of one.
    pub(super) fn push_message(
        &mut self,
        said: &ChatMessage<'_>,
        of_tokens: Option<&RawValue>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let details = said
            .reasoning_details
            .map(DetailFragment::read)
            .unwrap_or_default();
        let told = details.iter().any(|detail| detail.text().is_some());
        for detail in &details {
            self.calls.flush_latest(&mut self.items, out)?;
            let reasoning = self.open_item.ensure_reasoning(&mut self.items, out)?;
            reasoning.push_detail(detail, &mut self.items, out)?;
        }
        let field = match (said.reasoning_content, said.reasoning) {
            (Some(_), _) => Some("reasoning_content"),
            (None, Some(_)) => Some("reasoning"),
            (None, None) => None,
        };
        let mut tokens = logprobs(of_tokens);
        said.for_each_fragment_except_details(|piece| {
            self.calls.flush_latest(&mut self.items, out)?;
            let (text, is_refusal) = match piece {
                // A duplicate, as most providers that send blocks also send the text.
                OutputFragment::Thinking(_) if told => return Ok(()),
                OutputFragment::Thinking(text) => {
                    self.emitted_bytes = self.emitted_bytes.saturating_add(text.len() as u64);
                    let reasoning = self.open_item.ensure_reasoning(&mut self.items, out)?;
                    return reasoning.push_thinking(text, field, &mut self.items, out);
                }
                OutputFragment::Text(text) => (text, false),
                OutputFragment::Refusal(text) => (text, true),
                // It is one of the details.
                OutputFragment::EncryptedReasoning(_) => return Ok(()),
            };
            self.emitted_bytes = self.emitted_bytes.saturating_add(text.len() as u64);
            let tokens = if is_refusal {
                Vec::new()
            } else {
                std::mem::take(&mut tokens)
            };
            let message = self.open_item.ensure_message(&mut self.items, out)?;
            message.push(is_refusal, text, &tokens, &mut self.items, out)
        })?;
        if let (Some(annotations), OpenItem::Message(message)) = (said.annotations, &mut self.open_item) {
            message.annotate(annotations, &mut self.items, out)?;
        }
        for picture in said.images.map(images::read).unwrap_or_default() {
            self.emitted_bytes = self.emitted_bytes.saturating_add(1);
            self.calls.flush_latest(&mut self.items, out)?;
            self.open_item.close("completed", &mut self.items, out);
            images::write_image_item(picture, &mut self.items, out)?;
        }
        if let Some(signature) = signature(said.extra_content) {
            self.items.count_retained(signature.len())?;
            self.pending_signatures.signature = Some(signature.to_owned());
        }
        for call in said.tool_calls.iter().flatten() {
            self.push_call(call, out)?;
        }
        Ok(())
    }

    fn push_call(&mut self, fragment: &ToolCall<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let (number, begins) = self.calls.find_or_add(fragment, &mut self.items, out)?;
        if let (Some(signature), Some(id)) = (signature(fragment.extra_content), fragment.id()) {
            self.items
                .count_retained(signature.len().saturating_add(id.len()))?;
            self.pending_signatures
                .calls
                .push((id.to_owned(), signature.to_owned()));
        }
        if begins {
            self.open_item.close("completed", &mut self.items, out);
            // Signatures come before the call, as thinking does.
            self.write_pending_signatures(out)?;
        }
        self.emitted_bytes = self.emitted_bytes.saturating_add(1);
        self.calls.push_fragment(number, fragment, &mut self.items, out)
    }

    /// Writes an item for signatures without an item.
    fn write_pending_signatures(&mut self, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let signed = std::mem::take(&mut self.pending_signatures);
        if signed.signature.is_none() && signed.calls.is_empty() {
            return Ok(());
        }
        let mut reasoning = Reasoning::open(&mut self.items, out)?;
        reasoning.state = signed;
        reasoning.finish("completed", &mut self.items, out);
        Ok(())
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// Returns [`ResponseError`] if the provider could not continue, or if a call is incomplete
    /// although the answer was not truncated.
    pub(super) fn finish(
        &mut self,
        finish: FinishReason,
        out: &mut Vec<u8>,
    ) -> Result<Status<'static>, ResponseError> {
        let status = match finish {
            FinishReason::Failed => return Err(ResponseError::Failed("the provider stopped with an error")),
            FinishReason::Length => Status::Incomplete("max_output_tokens"),
            FinishReason::Filtered => Status::Incomplete("content_filter"),
            FinishReason::Completed | FinishReason::StopSequence => Status::Completed,
        };
        let of_open = if finish.is_truncated() {
            "incomplete"
        } else {
            "completed"
        };
        self.open_item.close(of_open, &mut self.items, out);
        self.calls.finish(finish.is_truncated(), &mut self.items, out)?;
        self.write_pending_signatures(out)?;
        Ok(status)
    }
}

impl OpenItem {
    fn close(&mut self, status: &str, items: &mut OutputItems, out: &mut Vec<u8>) {
        match std::mem::take(self) {
            OpenItem::None => {}
            OpenItem::Message(message) => message.finish(status, items, out),
            OpenItem::Reasoning(reasoning) => reasoning.finish(status, items, out),
        }
    }

    /// Returns the current message, and begins one if there is none.
    fn ensure_message(
        &mut self,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<&mut Message, ResponseError> {
        if !matches!(self, OpenItem::Message(_)) {
            self.close("completed", items, out);
            *self = OpenItem::Message(Message::open(items, out)?);
        }
        match self {
            OpenItem::Message(message) => Ok(message),
            _ => Err(ResponseError::TooLarge),
        }
    }

    /// Returns the current reasoning item, and begins one if there is none.
    fn ensure_reasoning(
        &mut self,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<&mut Reasoning, ResponseError> {
        if !matches!(self, OpenItem::Reasoning(_)) {
            self.close("completed", items, out);
            *self = OpenItem::Reasoning(Reasoning::open(items, out)?);
        }
        match self {
            OpenItem::Reasoning(reasoning) => Ok(reasoning),
            _ => Err(ResponseError::TooLarge),
        }
    }
}
