use crate::chunks::{CallKind, ChunkWriter};
use crate::nesting::NestingTracker;
use crate::openai_anthropic::error::write_error;
use crate::openai_anthropic::event::{DeltaContent, Event};
use crate::openai_anthropic::finish_reason::finish_reason;
use crate::openai_anthropic::response::{Block, BlockContent, refusal, write_detail};
use crate::openai_anthropic::tokens::Tokens;
use proofgate_dialect::json::write_string;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Usage, write_data};

/// Maximum number of open blocks in an answer; Anthropic has one at a time.
const MAX_OPEN_BLOCKS: usize = 64;
/// Maximum length of an answer's id in bytes; every chunk has the id.
const MAX_ID_BYTES: usize = 256;
/// Maximum length in bytes of a call's input that is sent with the call's start. It is kept until it is known whether
/// fragments follow.
const MAX_INPUT_BYTES: usize = 65_536;

const NOT_STARTED: ResponseError = ResponseError::Malformed("an event before message_start");

/// Translates a streamed answer of Anthropic's API to chunks of a chat completion.
///
/// Each event is translated immediately. The stream keeps the prefix of every chunk (the client's
/// model name, and an id of up to 256 bytes), up to 64 open blocks, and up to 64 KiB of input for
/// each open call whose input came with its start.
#[derive(Debug)]
pub struct Stream {
    model: String,
    created: u64,
    include_usage: bool,
    step: StreamStatus,
    /// `None` before the start of the answer, which has its id.
    chunks: Option<ChunkWriter>,
    open_blocks: Vec<OpenBlock>,
    call_count: u64,
    detail_count: u64,
    /// Whether a call's input ended before its JSON was complete.
    has_truncated_call: bool,
    finish_reason: Option<&'static str>,
    tokens: Option<Tokens>,
}

#[derive(Debug)]
struct OpenBlock {
    /// Anthropic's index of the block.
    index: u64,
    kind: BlockKind,
}

#[derive(Debug)]
enum BlockKind {
    /// A call: its index among the calls, its input so far, and the input that came with its start.
    Call {
        number: u64,
        nesting: NestingTracker,
        input: Option<Box<str>>,
    },
    /// An element of `reasoning_details`, with its index in that list.
    Reasoning { number: u64 },
    /// Anything else; text needs no state.
    Other,
}

impl Stream {
    /// Creates a stream for a request with the context `asked`. `created` is in seconds since 1970.
    pub fn new(asked: &RequestContext, created: u64) -> Self {
        Stream {
            model: asked.model.clone(),
            created,
            include_usage: asked.include_usage,
            step: StreamStatus::InProgress,
            chunks: None,
            open_blocks: Vec::new(),
            call_count: 0,
            detail_count: 0,
            has_truncated_call: false,
            finish_reason: None,
            tokens: None,
        }
    }

    /// Appends to `out` the chunks for one event. `name`: its `event` name, `""` if it has none. A
    /// ping, events of unknown types and all events after the end have no chunks.
    ///
    /// # Errors
    /// Returns [`ResponseError`] if the event is not valid at its position or exceeds a limit of the stream; nothing is
    /// written then.
    pub fn push_event(
        &mut self,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        if self.step != StreamStatus::InProgress || name == "ping" {
            return Ok(self.step);
        }
        let start = out.len();
        let step = self.handle_event(name, data, out);
        match step {
            Ok(step) => self.step = step,
            Err(_) => out.truncate(start),
        }
        step
    }

    /// Handles the end of the provider's stream.
    ///
    /// # Errors
    /// Returns [`ResponseError::Failed`] if the answer has not finished properly.
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ResponseError> {
        match self.step {
            StreamStatus::Finished => Ok(()),
            StreamStatus::InProgress | StreamStatus::Failed => Err(ResponseError::Failed("ended early")),
        }
    }

    /// Returns the usage reported so far. Before the end it covers the prompt, but only a small
    /// part of the answer.
    pub fn usage(&self) -> Option<Usage> {
        self.tokens.map(|tokens| tokens.usage())
    }

    fn handle_event(
        &mut self,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        if name == "error" {
            return Ok(write_failure(data, out));
        }
        let data = std::str::from_utf8(data).map_err(|_| ResponseError::Malformed("not UTF-8"))?;
        let Some(event) = Event::read(data)? else {
            return Ok(StreamStatus::InProgress);
        };
        match &*event.kind {
            "message_start" => self.start(&event, out)?,
            "content_block_start" => self.open_block(&event, out)?,
            "content_block_delta" => self.handle_block_delta(&event, out)?,
            "content_block_stop" => {
                let is_meant = |block: &OpenBlock| Some(block.index) == event.index;
                if let Some(at) = self.open_blocks.iter().position(is_meant) {
                    let block = self.open_blocks.remove(at);
                    self.close(block, out)?;
                }
            }
            "message_delta" => self.handle_message_delta(&event, out)?,
            "message_stop" => return self.finish_message(out),
            "error" => return Ok(write_failure(data.as_bytes(), out)),
            _ => {}
        }
        Ok(StreamStatus::InProgress)
    }

    fn start(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        if self.chunks.is_some() {
            return Err(ResponseError::Malformed("a second message_start"));
        }
        let message = event.message.as_ref();
        let message = message.ok_or(ResponseError::Malformed("message_start without a message"))?;
        let id = message.id.map_or("\"\"", JsonText::raw);
        if id.len() > MAX_ID_BYTES {
            return Err(ResponseError::TooLarge);
        }
        self.tokens = message.usage;
        let chunks = ChunkWriter::new(id, self.created, &self.model, self.include_usage);
        chunks.write_role(out);
        self.chunks = Some(chunks);
        Ok(())
    }

    fn chunks(&self) -> Result<&ChunkWriter, ResponseError> {
        let chunks = self.chunks.as_ref();
        chunks.ok_or(NOT_STARTED)
    }

    fn open_block(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let (Some(index), Some(block)) = (event.index, &event.content_block) else {
            return Err(ResponseError::Malformed("content_block_start without a block"));
        };
        if self.open_blocks.len() >= MAX_OPEN_BLOCKS {
            return Err(ResponseError::TooLarge);
        }
        if self.open_blocks.iter().any(|open| open.index == index) {
            return Err(ResponseError::Malformed("two open blocks have the same index"));
        }
        let chunks = self.chunks()?;
        let said = block.content()?;
        let kind = match said {
            BlockContent::Text(text) => {
                write_text(chunks, text, out);
                BlockKind::Other
            }
            BlockContent::Call { id, name } => {
                let (number, nesting, input) =
                    (self.call_count, NestingTracker::default(), initial_input(block)?);
                chunks.write_call(number, CallKind::Function, id, name, out);
                self.call_count = number.saturating_add(1);
                BlockKind::Call {
                    number,
                    nesting,
                    input,
                }
            }
            BlockContent::Thinking { .. } | BlockContent::Redacted(_) => {
                let number = self.detail_count;
                write_reasoning(chunks, &said, number, out);
                self.detail_count = number.saturating_add(1);
                BlockKind::Reasoning { number }
            }
            BlockContent::Ignored => BlockKind::Other,
        };
        self.open_blocks.push(OpenBlock { index, kind });
        Ok(())
    }

    fn handle_block_delta(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let delta = event.delta.as_ref();
        let delta = delta.ok_or(ResponseError::Malformed("content_block_delta without a delta"))?;
        let chunks = self.chunks.as_ref();
        let chunks = chunks.ok_or(NOT_STARTED)?;
        let block = self
            .open_blocks
            .iter_mut()
            .find(|block| Some(block.index) == event.index);
        let block = block.ok_or(ResponseError::Malformed("a delta for a block that is not open"))?;
        match (delta.content()?, &mut block.kind) {
            (DeltaContent::Text(text), _) => write_text(chunks, text, out),
            (DeltaContent::Input(fragment), BlockKind::Call { number, nesting, .. }) => {
                if let Some(json) = fragment.decode() {
                    nesting.push(&json);
                }
                chunks.write_argument(*number, CallKind::Function, out, |out| {
                    out.extend_from_slice(fragment.raw().as_bytes())
                });
            }
            (DeltaContent::Thinking(thinking), BlockKind::Reasoning { number }) => {
                let said = BlockContent::Thinking {
                    thinking: Some(thinking),
                    signature: None,
                };
                write_reasoning(chunks, &said, *number, out);
            }
            (DeltaContent::Signature(signature), BlockKind::Reasoning { number }) => {
                let said = BlockContent::Thinking {
                    thinking: None,
                    signature: Some(signature),
                };
                write_reasoning(chunks, &said, *number, out);
            }
            // The input of one of the provider's own tools, or an unknown delta.
            _ => {}
        }
        Ok(())
    }

    /// Ends a block. A call without arguments gets an empty object as its arguments.
    fn close(&mut self, block: OpenBlock, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        if let BlockKind::Call {
            number,
            nesting,
            input,
        } = block.kind
        {
            self.has_truncated_call |= nesting.is_truncated();
            if !nesting.has_started() {
                let input = input.as_deref().unwrap_or("{}");
                self.chunks()?
                    .write_argument(number, CallKind::Function, out, |out| write_string(out, input));
            }
        }
        Ok(())
    }

    fn handle_message_delta(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        if let Some(later) = event.usage {
            self.tokens.get_or_insert_default().update(later);
        }
        let Some((delta, stop_reason)) = event
            .delta
            .as_ref()
            .and_then(|delta| Some((delta, delta.stop_reason.as_deref()?)))
        else {
            return Ok(());
        };
        self.finish_reason = Some(finish_reason(stop_reason, self.call_count > 0));
        if let Some(explanation) = refusal(stop_reason, delta.stop_details) {
            self.chunks()?.write_refusal(explanation, out);
        }
        Ok(())
    }

    fn finish_message(&mut self, out: &mut Vec<u8>) -> Result<StreamStatus, ResponseError> {
        let reason = self
            .finish_reason
            .ok_or(ResponseError::Malformed("message_stop without a stop reason"))?;
        if reason == "tool_calls" {
            // Close the calls whose end was not sent. In a truncated answer they stay truncated.
            for block in std::mem::take(&mut self.open_blocks) {
                self.close(block, out)?;
            }
            if self.has_truncated_call {
                return Err(ResponseError::Malformed("the arguments of a call are truncated"));
            }
        }
        self.chunks()?.write_end(reason, self.usage().as_ref(), out);
        Ok(StreamStatus::Finished)
    }
}

/// Writes text of the answer unless it is empty.
fn write_text(chunks: &ChunkWriter, text: JsonText<'_>, out: &mut Vec<u8>) {
    if !text.is_empty() {
        chunks.write_text(text.raw(), None, out);
    }
}

/// Writes reasoning, or a fragment of it.
fn write_reasoning(chunks: &ChunkWriter, said: &BlockContent<'_>, number: u64, out: &mut Vec<u8>) {
    let read = match *said {
        BlockContent::Thinking { thinking, signature } => {
            let thinking = thinking.filter(|thinking| !thinking.is_empty());
            if thinking.is_none() && signature.is_none() {
                return;
            }
            thinking.map(JsonText::raw)
        }
        _ => None,
    };
    chunks.write_reasoning(
        read,
        out,
        Some(|out: &mut Vec<u8>| write_detail(said, number, out)),
    );
}

/// Writes the error that ends the stream.
fn write_failure(error: &[u8], out: &mut Vec<u8>) -> StreamStatus {
    write_data(out, |out| write_error(None, error, out));
    StreamStatus::Failed
}

/// Returns the input sent with a call's start. At Anthropic it is always an empty object, followed by the input in
/// fragments.
fn initial_input(block: &Block<'_>) -> Result<Option<Box<str>>, ResponseError> {
    match block.input.map(|input| input.get()) {
        None | Some("{}") => Ok(None),
        Some(input) if input.len() > MAX_INPUT_BYTES => Err(ResponseError::TooLarge),
        Some(input) => Ok(Some(input.into())),
    }
}
