use crate::chunks::{CallKind, ChunkWriter};
use crate::nesting::NestingTracker;
use crate::openai_responses::error::write_error;
use crate::openai_responses::event::Event;
use crate::openai_responses::items::{
    ItemKind, MAX_ID_BYTES, OpenItem, next_number, write_text, write_thought,
};
use crate::openai_responses::output::{Detail, Response, char_count};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Usage, write_data};

/// Maximum number of open items in a response.
const MAX_OPEN_ITEMS: usize = 128;

pub(super) const NOT_STARTED: ResponseError = ResponseError::Malformed("an event before response.created");

/// Translates a streamed response to chunks of a chat completion.
///
/// Each event is translated immediately. The stream keeps the prefix of every chunk (the client's
/// model name, and an id of up to 256 bytes), and up to 128 open items with an id of up to 256
/// bytes each.
#[derive(Debug)]
pub struct Stream {
    pub(super) model: String,
    pub(super) created: u64,
    pub(super) include_usage: bool,
    pub(super) step: StreamStatus,
    /// `None` before the start of the response, which has its id.
    pub(super) chunks: Option<ChunkWriter>,
    pub(super) open_items: Vec<OpenItem>,
    pub(super) call_count: u64,
    pub(super) detail_count: u64,
    /// Number of text characters so far.
    pub(super) text_chars: u64,
    pub(super) has_reasoning: bool,
    /// Whether a function's arguments ended before their JSON was complete.
    pub(super) has_truncated_call: bool,
    pub(super) usage: Option<Usage>,
}

impl Stream {
    /// Creates a stream for a request with the context `asked`. `created` is in seconds since 1970, used if the response has
    /// no time.
    pub fn new(asked: &RequestContext, created: u64) -> Self {
        Stream {
            model: asked.model.clone(),
            created,
            include_usage: asked.include_usage,
            step: StreamStatus::InProgress,
            chunks: None,
            open_items: Vec::new(),
            call_count: 0,
            detail_count: 0,
            text_chars: 0,
            has_reasoning: false,
            has_truncated_call: false,
            usage: None,
        }
    }

    /// Appends to `out` the chunks for one event. `name`: its `event` name, `""` if it has none.
    /// Events of unknown types and all events after the end have no chunks.
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
        if self.step != StreamStatus::InProgress || matches!(data.trim_ascii(), b"" | b"[DONE]") {
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
    /// Returns [`ResponseError::Failed`] if neither `response.completed` nor `response.incomplete` was received.
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ResponseError> {
        match self.step {
            StreamStatus::Finished => Ok(()),
            StreamStatus::InProgress | StreamStatus::Failed => Err(ResponseError::Failed("ended early")),
        }
    }

    /// Returns the usage, which the provider reports at the end.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
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
        let text = std::str::from_utf8(data).map_err(|_| ResponseError::Malformed("not UTF-8"))?;
        let Some(event) = Event::read(text)? else {
            return Ok(StreamStatus::InProgress);
        };
        let response = event.response.as_ref();
        if let Some(tokens) = response.and_then(|response| response.usage) {
            self.usage = Some(tokens.usage());
        }
        match &*event.kind {
            "error" | "response.failed" => return Ok(write_failure(data, out)),
            "response.created" | "response.queued" | "response.in_progress" => {
                self.start(response.ok_or(ResponseError::Malformed("no response"))?, out)?;
            }
            "response.completed" | "response.incomplete" => {
                let response = response.ok_or(ResponseError::Malformed("no response"))?;
                self.start(response, out)?;
                return self.finish_response(response, out);
            }
            "response.output_item.added" => self.open_item(&event, out)?,
            "response.output_item.done" => self.close_item(&event, out)?,
            "response.reasoning_summary_part.added" => {
                if let Some((ItemKind::Reasoning { detail, .. }, _)) = self.open_item_for(&event)? {
                    *detail = None;
                }
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                if let Some(whole) = event.full_argument() {
                    self.write_full_argument(&event, whole, out)?;
                }
            }
            "response.output_text.annotation.added" => self.write_annotation(&event, out)?,
            _ => self.handle_delta(&event, out)?,
        }
        Ok(StreamStatus::InProgress)
    }

    fn start(&mut self, response: &Response<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        if self.chunks.is_some() {
            return Ok(());
        }
        let id = response.id.map_or("\"\"", JsonText::raw);
        if id.len() > MAX_ID_BYTES {
            return Err(ResponseError::TooLarge);
        }
        let created = response.created().unwrap_or(self.created);
        let chunks = ChunkWriter::new(id, created, &self.model, self.include_usage);
        chunks.write_role(out);
        self.chunks = Some(chunks);
        Ok(())
    }

    /// Returns the open item of an event, and the writer of chunks.
    fn open_item_for(
        &mut self,
        event: &Event<'_>,
    ) -> Result<Option<(&mut ItemKind, &ChunkWriter)>, ResponseError> {
        let chunks = self.chunks.as_ref().ok_or(NOT_STARTED)?;
        let open = self
            .open_items
            .iter_mut()
            .find(|open| Some(open.index) == event.output_index);
        Ok(open.map(|open| (&mut open.kind, chunks)))
    }

    fn open_item(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let (Some(index), Some(item)) = (event.output_index, &event.item) else {
            return Err(ResponseError::Malformed("output_item.added without an item"));
        };
        let chunks = self.chunks.as_ref().ok_or(NOT_STARTED)?;
        if self.open_items.len() >= MAX_OPEN_ITEMS {
            return Err(ResponseError::TooLarge);
        }
        if self.open_items.iter().any(|open| open.index == index) {
            return Err(ResponseError::Malformed("two open items have the same index"));
        }
        let kind = match item.call().transpose()? {
            Some(call) => {
                let number = next_number(&mut self.call_count);
                chunks.write_call(
                    number,
                    CallKind::from_is_custom(call.is_custom),
                    call.id,
                    call.name,
                    out,
                );
                ItemKind::Call {
                    number,
                    is_custom: call.is_custom,
                    nesting: NestingTracker::default(),
                }
            }
            None => ItemKind::from_item(item),
        };
        self.open_items.push(OpenItem { index, kind });
        Ok(())
    }

    /// Handles a delta of an item.
    fn handle_delta(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let Some(fragment) = event.fragment()? else {
            return Ok(());
        };
        let chunks = self.chunks.as_ref().ok_or(NOT_STARTED)?;
        let open = self
            .open_items
            .iter_mut()
            .find(|open| Some(open.index) == event.output_index);
        let open = open.ok_or(ResponseError::Malformed("a delta for an item that is not open"))?;
        match (&*event.kind, &mut open.kind) {
            (
                "response.output_text.delta",
                ItemKind::Message {
                    has_begun,
                    part,
                    part_start,
                },
            ) => {
                let is_first = !std::mem::replace(has_begun, true);
                self.text_chars =
                    write_text(chunks, fragment, event.logprobs(), is_first, self.text_chars, out);
                if is_first || *part != event.content_index {
                    *part = event.content_index;
                    *part_start = self.text_chars.saturating_sub(char_count(fragment));
                }
            }
            ("response.refusal.delta", ItemKind::Message { has_begun, .. }) => {
                *has_begun = true;
                chunks.write_refusal(fragment, out);
            }
            (
                "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
                ItemKind::Call {
                    number,
                    is_custom,
                    nesting,
                },
            ) => {
                if let Some(json) = fragment.decode() {
                    nesting.push(&json);
                }
                chunks.write_argument(*number, CallKind::from_is_custom(*is_custom), out, |out| {
                    out.extend_from_slice(fragment.raw().as_bytes());
                });
            }
            (
                "response.reasoning_summary_text.delta" | "response.reasoning_text.delta",
                ItemKind::Reasoning {
                    id,
                    detail,
                    has_begun,
                },
            ) => {
                *has_begun = true;
                let of = match &*event.kind {
                    "response.reasoning_text.delta" => Detail::Text(fragment),
                    _ => Detail::Summary(fragment),
                };
                let begins = detail.is_none() && self.has_reasoning;
                let index = *detail.get_or_insert_with(|| next_number(&mut self.detail_count));
                write_thought(chunks, (fragment, begins), of, index, id.as_deref(), out);
                self.has_reasoning = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the whole arguments of a call if none of them were written before.
    pub(super) fn write_full_argument(
        &mut self,
        event: &Event<'_>,
        whole: JsonText<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        if let Some((
            ItemKind::Call {
                number,
                is_custom,
                nesting,
            },
            chunks,
        )) = self.open_item_for(event)?
            && !nesting.has_started()
        {
            if let Some(json) = whole.decode() {
                nesting.push(&json);
            }
            chunks.write_argument(*number, CallKind::from_is_custom(*is_custom), out, |out| {
                out.extend_from_slice(whole.raw().as_bytes());
            });
        }
        Ok(())
    }

    fn write_annotation(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        if let Some((ItemKind::Message { part_start, .. }, chunks)) = self.open_item_for(event)?
            && let Some(annotation) = event.annotation()
        {
            chunks.write_annotation(out, |out| annotation.write(*part_start, out));
        }
        Ok(())
    }

    fn finish_response(
        &mut self,
        response: &Response<'_>,
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        let reason = response.finish_reason(self.call_count > 0);
        if reason == "tool_calls" {
            // Close the calls whose end was not sent. In a truncated answer they stay truncated.
            for open in std::mem::take(&mut self.open_items) {
                self.close_call(&open.kind, out)?;
            }
            if self.has_truncated_call {
                return Err(ResponseError::Malformed("the arguments of a call are truncated"));
            }
        }
        let chunks = self.chunks.as_ref().ok_or(NOT_STARTED)?;
        chunks.write_end(reason, Some(&self.usage.unwrap_or_default()), out);
        Ok(StreamStatus::Finished)
    }
}

/// Writes the error that ends the stream.
fn write_failure(error: &[u8], out: &mut Vec<u8>) -> StreamStatus {
    write_data(out, |out| write_error(None, error, out));
    StreamStatus::Failed
}
