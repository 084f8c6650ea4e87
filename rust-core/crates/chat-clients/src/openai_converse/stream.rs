use serde::Deserialize;
use serde_json::value::RawValue;

use crate::nesting::Nesting;
use crate::openai_converse::chunks::Chunks;
use crate::openai_converse::error::{write_exception, write_malformed};
use crate::openai_converse::finish::Finish;
use crate::openai_converse::stream_events::{
    BlockDelta, BlockStart, BlockStop, MessageStop, Metadata, ReasoningDelta,
};
use proofgate_dialect::json_text::inside as inner;
use proofgate_dialect::reasoning_details::{ENCRYPTED, TEXT};
use proofgate_dialect::{AnswerError, Asked, EventKind, Step, Usage, write_data};

/// Tool calls of an answer that may be open at the same time. Nothing else is kept of a stream but numbers.
pub const MOST_OPEN_TOOL_CALLS: usize = 128;

/// A streamed answer of ConverseStream in the chunks of a chat completion.
#[derive(Debug)]
pub struct Stream {
    chunks: Chunks,
    open: Vec<OpenCall>,
    /// How many tool calls and how many blocks of reasoning there were.
    calls: usize,
    reasonings: usize,
    /// The index of the block of reasoning that came last.
    reasoning: Option<u64>,
    cut_short: bool,
    stopped: bool,
    usage: Option<Usage>,
    end: Option<Step>,
}

#[derive(Debug)]
struct OpenCall {
    /// Its index among the blocks of the answer.
    block: u64,
    /// Its index among the client's tool calls; `None` of a call that the provider runs itself.
    call: Option<usize>,
    arguments: Nesting,
}

impl Stream {
    /// The begin of an answer. `created` is in Unix seconds.
    #[must_use]
    pub fn new(asked: &Asked, created: u64) -> Self {
        Stream {
            chunks: Chunks::new(asked, created),
            open: Vec::new(),
            calls: 0,
            reasonings: 0,
            reasoning: None,
            cut_short: false,
            stopped: false,
            usage: None,
            end: None,
        }
    }

    /// Takes one frame of the provider, its name and payload, and appends the events that the client expects. What comes behind
    /// the end says nothing.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`] for an event that is not of its type, [`AnswerError::TooLarge`] for more than
    /// [`MOST_OPEN_TOOL_CALLS`].
    pub fn event(
        &mut self,
        kind: EventKind,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, AnswerError> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let step = match kind {
            EventKind::Event => self.ordinary_event(name, data, out)?,
            EventKind::Exception => {
                write_data(out, |out| write_exception(out, name, data));
                Step::Failed
            }
        };
        if step != Step::Continues {
            self.end = Some(step);
        }
        Ok(step)
    }

    /// The provider's stream has ended.
    ///
    /// # Errors
    /// [`AnswerError::Failed`] unless [`Step::Ended`] was returned before.
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), AnswerError> {
        match self.end {
            Some(Step::Ended) => Ok(()),
            _ => Err(AnswerError::Failed("ended early")),
        }
    }

    /// The usage, once the provider has told it.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn ordinary_event(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        let is_of_the_message = matches!(
            name,
            "messageStart" | "contentBlockStart" | "contentBlockDelta" | "contentBlockStop" | "messageStop"
        );
        if is_of_the_message && self.stopped {
            return Err(AnswerError::Malformed("content after messageStop"));
        }
        if is_of_the_message && !self.chunks.begun() {
            self.chunks.begin(data, out);
        }
        match name {
            "contentBlockStart" => self.block_start(&parse(data)?, out)?,
            "contentBlockDelta" => self.block_delta(&parse(data)?, out)?,
            "contentBlockStop" => self.block_stop(&parse(data)?, out),
            "messageStop" => return self.message_stop(&parse(data)?, out),
            "metadata" => return Ok(self.metadata(&parse(data)?, out)),
            _ => {}
        }
        Ok(Step::Continues)
    }

    /// Only tool calls and images have a start.
    fn block_start(&mut self, event: &BlockStart<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let Some(tool) = &event.start.tool_use else {
            return Ok(());
        };
        if self.open.len() >= MOST_OPEN_TOOL_CALLS {
            return Err(AnswerError::TooLarge);
        }
        if self
            .open
            .iter()
            .any(|call| call.block == event.content_block_index)
        {
            return Err(AnswerError::Malformed("a tool call starts twice"));
        }
        string(tool.tool_use_id)?;
        string(tool.name)?;
        let call = tool.kind.is_none().then_some(self.calls);
        if call.is_some() {
            let mut index = itoa::Buffer::new();
            self.chunks.delta(
                out,
                &[
                    r#""tool_calls":[{"index":"#,
                    index.format(self.calls),
                    r#","id":"#,
                    tool.tool_use_id.get(),
                    r#","type":"function","function":{"name":"#,
                    tool.name.get(),
                    r#","arguments":""}}]"#,
                ],
            );
            self.calls += 1;
        }
        self.open.push(OpenCall {
            block: event.content_block_index,
            call,
            arguments: Nesting::default(),
        });
        Ok(())
    }

    fn block_delta(&mut self, event: &BlockDelta<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let delta = &event.delta;
        if let Some(text) = delta.text
            && !string(text)?.is_empty()
        {
            self.chunks.delta(out, &[r#""content":"#, text.get()]);
        }
        if let Some(tool) = &delta.tool_use {
            self.arguments(event.content_block_index, tool.input, out)?;
        }
        if let Some(reasoning) = &delta.reasoning_content {
            self.reasoning(event.content_block_index, reasoning, out)?;
        }
        Ok(())
    }

    fn arguments(&mut self, block: u64, fragment: &RawValue, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let text = string(fragment)?;
        let open = self.open.iter_mut().find(|open| open.block == block);
        let open = open.ok_or(AnswerError::Malformed(
            "arguments for a tool call that did not start",
        ))?;
        open.arguments.push_inside(text);
        if let Some(call) = open.call
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
    ) -> Result<(), AnswerError> {
        if self.reasoning != Some(block) {
            self.reasoning = Some(block);
            self.reasonings += 1;
        }
        let mut index = itoa::Buffer::new();
        let index = index.format(self.reasonings - 1);
        for (kind, field, value) in [
            (TEXT, "text", delta.text),
            (TEXT, "signature", delta.signature),
            (ENCRYPTED, "data", delta.redacted_content),
        ] {
            let Some(value) = value else { continue };
            if string(value)?.is_empty() {
                continue;
            }
            let (name, text, comma) = match field {
                "text" => (r#""reasoning_content":"#, value.get(), ","),
                _ => ("", "", ""),
            };
            self.chunks.delta(
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

    fn block_stop(&mut self, event: &BlockStop, out: &mut Vec<u8>) {
        if let Some(at) = self
            .open
            .iter()
            .position(|call| call.block == event.content_block_index)
        {
            let call = self.open.swap_remove(at);
            self.close(&call, out);
        }
    }

    /// A call without arguments has an empty object of them.
    fn close(&mut self, open: &OpenCall, out: &mut Vec<u8>) {
        let Some(call) = open.call else { return };
        if !open.arguments.has_begun() {
            write_arguments(&self.chunks, call, r#""{}""#, out);
        }
        self.cut_short |= open.arguments.is_cut();
    }

    fn message_stop(&mut self, event: &MessageStop<'_>, out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        for call in std::mem::take(&mut self.open) {
            self.close(&call, out);
        }
        self.stopped = true;
        let finish = Finish::of(string(event.stop_reason)?, self.calls > 0);
        // Arguments may be cut short where the whole answer is, and nowhere else.
        if self.cut_short && !matches!(finish.reason, "length" | "content_filter") {
            write_data(out, write_malformed);
            return Ok(Step::Failed);
        }
        self.chunks.finish(out, finish);
        Ok(Step::Continues)
    }

    fn metadata(&mut self, event: &Metadata, out: &mut Vec<u8>) -> Step {
        let usage = Usage::from(&event.usage);
        self.usage = Some(usage);
        if !self.stopped {
            return Step::Continues;
        }
        self.chunks.end(out, &usage);
        Step::Ended
    }
}

fn write_arguments(chunks: &Chunks, call: usize, fragment: &str, out: &mut Vec<u8>) {
    let mut index = itoa::Buffer::new();
    chunks.delta(
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

fn parse<'b, T: Deserialize<'b>>(data: &'b [u8]) -> Result<T, AnswerError> {
    serde_json::from_slice(data).map_err(|_| AnswerError::Malformed("an event does not match its type"))
}

/// What stands between the quotes of a string.
fn string(value: &RawValue) -> Result<&str, AnswerError> {
    inner(value).ok_or(AnswerError::Malformed("a value is not a string"))
}
