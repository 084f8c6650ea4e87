use serde::Deserialize;
use serde_json::value::RawValue;

use crate::nesting::NestingTracker;
use crate::openai_converse::chunks::ChunkWriter;
use crate::openai_converse::error::{write_exception, write_malformed_output_error};
use crate::openai_converse::finish_reason::FinishReason;
use crate::openai_converse::stream_events::{
    BlockDelta, BlockStart, BlockStop, MessageStop, Metadata, ReasoningDelta,
};
use proofgate_dialect::json_text::unquoted as inner;
use proofgate_dialect::reasoning_details::{ENCRYPTED, TEXT};
use proofgate_dialect::{EventKind, RequestContext, ResponseError, StreamStatus, Usage, write_data};

/// Maximum number of open tool calls in an answer. All other state of a stream consists of numbers.
pub const MAX_OPEN_TOOL_CALLS: usize = 128;

/// Translates a streamed answer of ConverseStream to chunks of a chat completion.
#[derive(Debug)]
pub struct Stream {
    chunks: ChunkWriter,
    open_calls: Vec<OpenCall>,
    /// The number of tool calls and of reasoning blocks so far.
    call_count: usize,
    reasoning_count: usize,
    /// The index of the last reasoning block.
    last_reasoning_block: Option<u64>,
    is_truncated: bool,
    stopped: bool,
    usage: Option<Usage>,
    final_step: Option<StreamStatus>,
}

#[derive(Debug)]
struct OpenCall {
    /// Its index among the blocks of the answer.
    block_index: u64,
    /// Its index among the client's tool calls; `None` for a call that the provider runs itself.
    call_index: Option<usize>,
    arguments: NestingTracker,
}

impl Stream {
    /// Creates a stream at the start of an answer. `created` is in Unix seconds.
    #[must_use]
    pub fn new(asked: &RequestContext, created: u64) -> Self {
        Stream {
            chunks: ChunkWriter::new(asked, created),
            open_calls: Vec::new(),
            call_count: 0,
            reasoning_count: 0,
            last_reasoning_block: None,
            is_truncated: false,
            stopped: false,
            usage: None,
            final_step: None,
        }
    }

    /// Appends the client's events for one frame of the provider, with the frame's name and
    /// payload. Frames after the end are ignored.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] for an event that does not match its type, and [`ResponseError::TooLarge`] for
    /// more than [`MAX_OPEN_TOOL_CALLS`] open calls.
    pub fn push_event(
        &mut self,
        kind: EventKind,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        if let Some(end) = self.final_step {
            return Ok(end);
        }
        let step = match kind {
            EventKind::Event => self.handle_event(name, data, out)?,
            EventKind::Exception => {
                write_data(out, |out| write_exception(out, name, data));
                StreamStatus::Failed
            }
        };
        if step != StreamStatus::InProgress {
            self.final_step = Some(step);
        }
        Ok(step)
    }

    /// Handles the end of the provider's stream.
    ///
    /// # Errors
    /// Returns [`ResponseError::Failed`] unless [`StreamStatus::Finished`] was returned before.
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ResponseError> {
        match self.final_step {
            Some(StreamStatus::Finished) => Ok(()),
            _ => Err(ResponseError::Failed("ended early")),
        }
    }

    /// Returns the usage, once the provider has reported it.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn handle_event(
        &mut self,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        let is_of_the_message = matches!(
            name,
            "messageStart" | "contentBlockStart" | "contentBlockDelta" | "contentBlockStop" | "messageStop"
        );
        if is_of_the_message && self.stopped {
            return Err(ResponseError::Malformed("content after messageStop"));
        }
        if is_of_the_message && !self.chunks.has_started() {
            self.chunks.write_start(data, out);
        }
        match name {
            "contentBlockStart" => self.handle_block_start(&parse(data)?, out)?,
            "contentBlockDelta" => self.handle_block_delta(&parse(data)?, out)?,
            "contentBlockStop" => self.handle_block_stop(&parse(data)?, out),
            "messageStop" => return self.handle_message_stop(&parse(data)?, out),
            "metadata" => return Ok(self.handle_metadata(&parse(data)?, out)),
            _ => {}
        }
        Ok(StreamStatus::InProgress)
    }

    /// Handles the start of a block; only tool calls and images have one.
    fn handle_block_start(&mut self, event: &BlockStart<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let Some(tool) = &event.start.tool_use else {
            return Ok(());
        };
        if self.open_calls.len() >= MAX_OPEN_TOOL_CALLS {
            return Err(ResponseError::TooLarge);
        }
        if self
            .open_calls
            .iter()
            .any(|call| call.block_index == event.content_block_index)
        {
            return Err(ResponseError::Malformed("a tool call starts twice"));
        }
        string_contents(tool.tool_use_id)?;
        string_contents(tool.name)?;
        let call = tool.kind.is_none().then_some(self.call_count);
        if call.is_some() {
            let mut index = itoa::Buffer::new();
            self.chunks.write_delta(
                out,
                &[
                    r#""tool_calls":[{"index":"#,
                    index.format(self.call_count),
                    r#","id":"#,
                    tool.tool_use_id.get(),
                    r#","type":"function","function":{"name":"#,
                    tool.name.get(),
                    r#","arguments":""}}]"#,
                ],
            );
            self.call_count += 1;
        }
        self.open_calls.push(OpenCall {
            block_index: event.content_block_index,
            call_index: call,
            arguments: NestingTracker::default(),
        });
        Ok(())
    }

    fn handle_block_delta(&mut self, event: &BlockDelta<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let delta = &event.delta;
        if let Some(text) = delta.text
            && !string_contents(text)?.is_empty()
        {
            self.chunks.write_delta(out, &[r#""content":"#, text.get()]);
        }
        if let Some(tool) = &delta.tool_use {
            self.handle_arguments(event.content_block_index, tool.input, out)?;
        }
        if let Some(reasoning) = &delta.reasoning_content {
            self.reasoning(event.content_block_index, reasoning, out)?;
        }
        Ok(())
    }

    fn handle_arguments(
        &mut self,
        block: u64,
        fragment: &RawValue,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let text = string_contents(fragment)?;
        let open = self.open_calls.iter_mut().find(|open| open.block_index == block);
        let open = open.ok_or(ResponseError::Malformed(
            "arguments for a tool call that did not start",
        ))?;
        open.arguments.push_escaped(text);
        if let Some(call) = open.call_index
            && !text.is_empty()
        {
            write_arguments(&self.chunks, call, fragment.get(), out);
        }
        Ok(())
    }

    fn reasoning(
        &mut self,
        block: u64,
        delta: &ReasoningDelta<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        if self.last_reasoning_block != Some(block) {
            self.last_reasoning_block = Some(block);
            self.reasoning_count += 1;
        }
        let mut index = itoa::Buffer::new();
        let index = index.format(self.reasoning_count - 1);
        for (kind, field, value) in [
            (TEXT, "text", delta.text),
            (TEXT, "signature", delta.signature),
            (ENCRYPTED, "data", delta.redacted_content),
        ] {
            let Some(value) = value else { continue };
            if string_contents(value)?.is_empty() {
                continue;
            }
            let (name, text, comma) = match field {
                "text" => (r#""reasoning_content":"#, value.get(), ","),
                _ => ("", "", ""),
            };
            self.chunks.write_delta(
                out,
                &[
                    name,
                    text,
                    comma,
                    r#""reasoning_details":[{"type":""#,
                    kind,
                    r#"","index":"#,
                    index,
                    ",\"",
                    field,
                    "\":",
                    value.get(),
                    "}]",
                ],
            );
        }
        Ok(())
    }

    fn handle_block_stop(&mut self, event: &BlockStop, out: &mut Vec<u8>) {
        if let Some(at) = self
            .open_calls
            .iter()
            .position(|call| call.block_index == event.content_block_index)
        {
            let call = self.open_calls.swap_remove(at);
            self.close(&call, out);
        }
    }

    /// Ends a call. A call without arguments gets an empty object as its arguments.
    fn close(&mut self, open: &OpenCall, out: &mut Vec<u8>) {
        let Some(call) = open.call_index else { return };
        if !open.arguments.has_started() {
            write_arguments(&self.chunks, call, r#""{}""#, out);
        }
        self.is_truncated |= open.arguments.is_truncated();
    }

    fn handle_message_stop(
        &mut self,
        event: &MessageStop<'_>,
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        for call in std::mem::take(&mut self.open_calls) {
            self.close(&call, out);
        }
        self.stopped = true;
        let finish = FinishReason::from_stop_reason(string_contents(event.stop_reason)?, self.call_count > 0);
        // Arguments may be truncated only if the whole answer is truncated.
        if self.is_truncated && !matches!(finish.reason, "length" | "content_filter") {
            write_data(out, write_malformed_output_error);
            return Ok(StreamStatus::Failed);
        }
        self.chunks.write_finish(out, finish);
        Ok(StreamStatus::InProgress)
    }

    fn handle_metadata(&mut self, event: &Metadata, out: &mut Vec<u8>) -> StreamStatus {
        let usage = Usage::from(&event.usage);
        self.usage = Some(usage);
        if !self.stopped {
            return StreamStatus::InProgress;
        }
        self.chunks.write_end(out, &usage);
        StreamStatus::Finished
    }
}

fn write_arguments(chunks: &ChunkWriter, call: usize, fragment: &str, out: &mut Vec<u8>) {
    let mut index = itoa::Buffer::new();
    chunks.write_delta(
        out,
        &[
            r#""tool_calls":[{"index":"#,
            index.format(call),
            r#","function":{"arguments":"#,
            fragment,
            "}}]",
        ],
    );
}

fn parse<'b, T: Deserialize<'b>>(data: &'b [u8]) -> Result<T, ResponseError> {
    serde_json::from_slice(data).map_err(|_| ResponseError::Malformed("an event does not match its type"))
}

/// Returns the contents of a string, without its quotes.
fn string_contents(value: &RawValue) -> Result<&str, ResponseError> {
    inner(value).ok_or(ResponseError::Malformed("a value is not a string"))
}
