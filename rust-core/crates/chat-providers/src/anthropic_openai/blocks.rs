//! The blocks of a streamed Message. One block is open at a time, and the indexes have no gaps. A
//! chat stream may interleave the content of several blocks, so all blocks except the open one are
//! buffered.

use std::collections::VecDeque;

use super::arguments::ArgumentScanner;
use super::block_events::{write_block_start, write_block_stop, write_call_start, write_delta};
use super::chat::{Arguments, OutputFragment, ToolCall};
use super::encrypted_reasoning::EncryptedReasoning;
use super::finish_reason::ContentSummary;
use super::json::write_json;
use crate::call_name::append_name;
use proofgate_dialect::ResponseError;
use proofgate_dialect::json::write_string;

/// Maximum number of bytes buffered for a stream: names and ids of its calls, and content that waits for a block to close.
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// Maximum number of tool calls in one answer.
const MAX_CALLS: usize = 128;

/// Maximum number of blocks that wait for others to close.
const MAX_PENDING_BLOCKS: usize = 256;

/// Assembles the blocks of an answer, and tracks the written content.
#[derive(Debug, Default)]
pub(super) struct BlockAssembler {
    /// The blocks that are not closed, in order; the first may be open.
    pending: VecDeque<Block>,
    calls: Vec<Call>,
    /// Index of the open block, or of the next one.
    index: u64,
    buffered_bytes: usize,
    buffered_name_bytes: usize,
    emitted_bytes: u64,
    has_truncated_call: bool,
    has_refusal: bool,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    open: bool,
    /// Content not yet written, JSON-escaped and without quotes.
    buffered: String,
    /// The signature of completed thinking.
    signature: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
    /// A call, by its number.
    Call(usize),
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    progress: ArgumentScanner,
    closed: bool,
}

impl Call {
    /// Returns whether the name is complete: the arguments come after it.
    fn has_complete_name(&self) -> bool {
        !self.name.is_empty() && !self.progress.is_empty()
    }
}

impl BlockAssembler {
    /// Adds a piece of thinking or text.
    pub(super) fn push(&mut self, piece: OutputFragment<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let (kind, text) = match piece {
            OutputFragment::Thinking(text) => (Kind::Thinking, text),
            OutputFragment::Text(text) => (Kind::Text, text),
            OutputFragment::Refusal(text) => {
                self.has_refusal = true;
                (Kind::Text, text)
            }
            OutputFragment::EncryptedReasoning(sealed) => return self.push_encrypted_reasoning(sealed, out),
        };
        let is_over = |last: &Block| last.kind != kind || last.signature.is_some();
        if self.pending.back().is_none_or(is_over) {
            self.enqueue_block(kind);
        }
        if let Some(block) = self.pending.back_mut() {
            block.buffered.push_str(text);
            self.buffer_text(text);
        }
        self.write_available(out)
    }

    /// Adds a fragment of a call.
    pub(super) fn push_call(
        &mut self,
        fragment: &ToolCall<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let arguments = fragment.arguments()?;
        let number = self.find_or_add_call(fragment, arguments)?;
        let Some(call) = self.calls.get_mut(number) else {
            return Ok(());
        };
        if let Some(id) = fragment.id().filter(|_| call.id.is_empty() && !call.closed) {
            call.id.push_str(id);
            self.buffered_name_bytes = self.buffered_name_bytes.saturating_add(id.len());
        }
        if let Some(name) = fragment.name().filter(|_| !call.has_complete_name()) {
            append_name(&mut call.name, name);
            self.buffered_name_bytes = self.buffered_name_bytes.saturating_add(name.len());
        }
        match arguments {
            Arguments::None => {}
            Arguments::String(text) => self.extend_arguments(number, text)?,
            Arguments::Object(json) => {
                let mut quoted = Vec::with_capacity(json.len().saturating_mul(2));
                write_string(&mut quoted, json);
                let quoted = String::from_utf8(quoted).unwrap_or_default();
                self.extend_arguments(number, quoted.trim_matches('"'))?;
            }
        }
        self.write_available(out)
    }

    /// Returns the call of a fragment. Most fragments have an index; some providers give all calls
    /// the same index, or none.
    fn find_or_add_call(
        &mut self,
        fragment: &ToolCall<'_>,
        arguments: Arguments<'_>,
    ) -> Result<usize, ResponseError> {
        let latest = match (fragment.index, fragment.id()) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        if let Some(number) = latest
            && let Some(call) = self.calls.get(number)
            && !starts_new_call(call, fragment, arguments)
        {
            return Ok(number);
        }
        if self.calls.len() >= MAX_CALLS {
            return Err(ResponseError::TooLarge);
        }
        let number = self.calls.len();
        self.calls.push(Call {
            index: fragment.index,
            ..Call::default()
        });
        self.enqueue_block(Kind::Call(number));
        Ok(number)
    }

    /// Adds a fragment of arguments.
    fn extend_arguments(&mut self, number: usize, text: &str) -> Result<(), ResponseError> {
        let Some(call) = self.calls.get_mut(number) else {
            return Ok(());
        };
        if call.progress.is_empty() && text == "null" {
            return Ok(());
        }
        call.progress.push(text);
        if call.progress.is_invalid() {
            return Err(ResponseError::Malformed(
                "the arguments of a tool call are invalid",
            ));
        }
        // Only white space can follow for a closed call.
        if let Some(block) = self
            .pending
            .iter_mut()
            .find(|block| block.kind == Kind::Call(number))
        {
            block.buffered.push_str(text);
            self.buffer_text(text);
        }
        Ok(())
    }

    fn buffer_text(&mut self, text: &str) {
        self.buffered_bytes = self.buffered_bytes.saturating_add(text.len());
        self.emitted_bytes = self.emitted_bytes.saturating_add(text.len() as u64);
    }

    fn enqueue_block(&mut self, kind: Kind) {
        self.pending.push_back(Block {
            kind,
            open: false,
            buffered: String::new(),
            signature: None,
        });
    }

    /// Adds the encrypted reasoning for the preceding thinking, which completes that block.
    fn push_encrypted_reasoning(
        &mut self,
        sealed: EncryptedReasoning<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let is_open = |last: &Block| last.kind == Kind::Thinking && last.signature.is_none();
        if !self.pending.back().is_some_and(is_open) {
            self.enqueue_block(Kind::Thinking);
        }
        let signature = sealed.signature();
        self.buffered_bytes = self.buffered_bytes.saturating_add(signature.len());
        if let Some(block) = self.pending.back_mut() {
            block.signature = Some(signature);
        }
        self.write_available(out)
    }

    /// Writes all content that can be written now.
    fn write_available(&mut self, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        while let Some(block) = self.pending.front() {
            let (ready, over) = match block.kind {
                Kind::Thinking | Kind::Text => (true, true),
                Kind::Call(number) => self.calls.get(number).map_or((true, true), |call| {
                    (
                        !call.id.is_empty() && call.has_complete_name(),
                        call.progress.is_complete(),
                    )
                }),
            };
            if !ready {
                break;
            }
            self.write_first_block("", out)?;
            if self.pending.len() == 1 || !over {
                break;
            }
            self.close_first_block(out);
        }
        if self.buffered_bytes.saturating_add(self.buffered_name_bytes) > MAX_BUFFERED_BYTES
            || self.pending.len() > MAX_PENDING_BLOCKS
        {
            return Err(ResponseError::TooLarge);
        }
        Ok(())
    }

    /// Writes the remaining content at the end of the answer with the id `answer`. `cut` is whether
    /// the last call may be truncated.
    pub(super) fn finish(
        &mut self,
        answer: &str,
        cut: bool,
        out: &mut Vec<u8>,
    ) -> Result<ContentSummary, ResponseError> {
        while let Some(block) = self.pending.front() {
            if let Kind::Call(number) = block.kind
                && let Some(call) = self.calls.get(number)
                && !call.progress.is_complete()
            {
                if !cut && !call.progress.is_empty() {
                    return Err(ResponseError::Malformed(
                        "the arguments of a tool call are invalid",
                    ));
                }
                // The last call may have been truncated before its first argument.
                self.has_truncated_call |= cut && (!call.progress.is_empty() || self.pending.len() == 1);
            }
            self.write_first_block(answer, out)?;
            self.close_first_block(out);
        }
        Ok(ContentSummary {
            has_calls: !self.calls.is_empty(),
            has_truncated_call: self.has_truncated_call,
            has_refusal: self.has_refusal,
        })
    }

    /// Opens the first block, if necessary, and writes its buffered content.
    fn write_first_block(&mut self, answer: &str, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let index = self.index;
        let Some(block) = self.pending.front_mut() else {
            return Ok(());
        };
        if !std::mem::replace(&mut block.open, true) {
            match block.kind {
                Kind::Thinking => write_block_start(index, out, |out| {
                    write_json(
                        out,
                        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}",
                    );
                }),
                Kind::Text => write_block_start(index, out, |out| {
                    write_json(out, "{\"type\":\"text\",\"text\":\"\"}")
                }),
                Kind::Call(number) => {
                    let call = self.calls.get(number).filter(|call| !call.name.is_empty());
                    let call = call.ok_or(ResponseError::Malformed("a tool call without a name"))?;
                    write_block_start(index, out, |out| {
                        write_call_start([&call.id, &call.name], answer, number, out)
                    });
                }
            }
        }
        if !block.buffered.is_empty() {
            let (kind, field) = match block.kind {
                Kind::Thinking => ("thinking_delta", "thinking"),
                Kind::Text => ("text_delta", "text"),
                Kind::Call(_) => ("input_json_delta", "partial_json"),
            };
            write_delta(index, [kind, field, &block.buffered], out);
            self.buffered_bytes = self.buffered_bytes.saturating_sub(block.buffered.len());
            block.buffered.clear();
        }
        Ok(())
    }

    fn close_first_block(&mut self, out: &mut Vec<u8>) {
        if let Some(block) = self.pending.pop_front() {
            if let Kind::Call(number) = block.kind
                && let Some(call) = self.calls.get_mut(number)
            {
                call.closed = true;
            }
            if let Some(signature) = &block.signature {
                write_delta(self.index, ["signature_delta", "signature", signature], out);
                self.buffered_bytes = self.buffered_bytes.saturating_sub(signature.len());
            }
            write_block_stop(self.index, out);
            self.index = self.index.saturating_add(1);
        }
    }

    /// Returns an estimate of the tokens so far: one for every four bytes.
    pub(super) fn estimated_tokens(&self) -> u64 {
        self.emitted_bytes.div_ceil(4)
    }

    /// Returns whether there was no content.
    pub(super) fn is_empty(&self) -> bool {
        self.emitted_bytes == 0 && self.calls.is_empty()
    }

    /// Returns whether any content waits for a block to close.
    pub(super) fn has_buffered_output(&self) -> bool {
        self.buffered_bytes > 0
    }
}

/// Returns whether a fragment begins another call than the latest one with its index: it has
/// another id, or has arguments although the latest call's arguments are complete.
fn starts_new_call(call: &Call, fragment: &ToolCall<'_>, arguments: Arguments<'_>) -> bool {
    if fragment.name().is_none() {
        return false;
    }
    match fragment.id() {
        Some(id) if !call.id.is_empty() => id != call.id,
        _ => call.progress.is_complete() && !matches!(arguments, Arguments::None),
    }
}
