use crate::chunks::{Called, Chunks};
use crate::nesting::Nesting;
use crate::openai_responses::error::write_error;
use crate::openai_responses::event::Event;
use crate::openai_responses::items::{Kind, MOST_ID_BYTES, OpenItem, count, think, write_text};
use crate::openai_responses::output::{Detail, Response, characters};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::{AnswerError, Asked, Step, Usage, write_data};

/// Items of a response that may be open at once.
const MOST_OPEN_ITEMS: usize = 128;

pub(super) const NOT_BEGUN: AnswerError = AnswerError::Malformed("an event before response.created");

/// A streamed response as chunks of a chat completion.
///
/// Each event becomes its chunks at once. Kept are what begins every chunk (the client's name of the model, and an id of up to 256
/// bytes), and up to 128 open items with an id of up to 256 bytes each.
#[derive(Debug)]
pub struct Stream {
    pub(super) model: String,
    pub(super) created: u64,
    pub(super) include_usage: bool,
    pub(super) step: Step,
    /// There are none before the response's begin, which tells its id.
    pub(super) chunks: Option<Chunks>,
    pub(super) open: Vec<OpenItem>,
    pub(super) calls: u64,
    pub(super) details: u64,
    /// Characters of text so far.
    pub(super) said: u64,
    pub(super) has_thoughts: bool,
    /// Whether a function's arguments ended before their JSON did.
    pub(super) has_cut_call: bool,
    pub(super) usage: Option<Usage>,
}

impl Stream {
    /// A stream at its start, for a request of which `asked` is known. `created` is in seconds since 1970, for a response that names
    /// no time.
    pub fn new(asked: &Asked, created: u64) -> Self {
        Stream {
            model: asked.model.clone(),
            created,
            include_usage: asked.include_usage,
            step: Step::Continues,
            chunks: None,
            open: Vec::new(),
            calls: 0,
            details: 0,
            said: 0,
            has_thoughts: false,
            has_cut_call: false,
            usage: None,
        }
    }

    /// Takes one event: its `event` name, `""` if it has none, and its data. `out` gets the chunks that it is; they are none for
    /// events of unknown types, and for all that comes behind the end.
    ///
    /// # Errors
    /// [`AnswerError`] when the event makes no sense where it stands or is too much to keep; nothing is written then.
    pub fn event(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        if self.step != Step::Continues || matches!(data.trim_ascii(), b"" | b"[DONE]") {
            return Ok(self.step);
        }
        let start = out.len();
        let step = self.take(name, data, out);
        match step {
            Ok(step) => self.step = step,
            Err(_) => out.truncate(start),
        }
        step
    }

    /// The provider's stream has ended.
    ///
    /// # Errors
    /// [`AnswerError::Failed`] when its good end, `response.completed` or `response.incomplete`, did not come.
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), AnswerError> {
        match self.step {
            Step::Ended => Ok(()),
            Step::Continues | Step::Failed => Err(AnswerError::Failed("ended early")),
        }
    }

    /// What the answer has cost, which the provider says with its end.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn take(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        if name == "error" {
            return Ok(fail(data, out));
        }
        let text = std::str::from_utf8(data).map_err(|_| AnswerError::Malformed("not UTF-8"))?;
        let Some(event) = Event::read(text)? else {
            return Ok(Step::Continues);
        };
        let response = event.response.as_ref();
        if let Some(tokens) = response.and_then(|response| response.usage) {
            self.usage = Some(tokens.usage());
        }
        match &*event.kind {
            "error" | "response.failed" => return Ok(fail(data, out)),
            "response.created" | "response.queued" | "response.in_progress" => {
                self.begin(response.ok_or(AnswerError::Malformed("no response"))?, out)?;
            }
            "response.completed" | "response.incomplete" => {
                let response = response.ok_or(AnswerError::Malformed("no response"))?;
                self.begin(response, out)?;
                return self.end(response, out);
            }
            "response.output_item.added" => self.open_item(&event, out)?,
            "response.output_item.done" => self.close_item(&event, out)?,
            "response.reasoning_summary_part.added" => {
                if let Some((Kind::Reasoning { detail, .. }, _)) = self.of(&event)? {
                    *detail = None;
                }
            }
            "response.function_call_arguments.done" | "response.custom_tool_call_input.done" => {
                if let Some(whole) = event.whole() {
                    self.say_whole_argument(&event, whole, out)?;
                }
            }
            "response.output_text.annotation.added" => self.cite(&event, out)?,
            _ => self.go_on(&event, out)?,
        }
        Ok(Step::Continues)
    }

    fn begin(&mut self, response: &Response<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        if self.chunks.is_some() {
            return Ok(());
        }
        let id = response.id.map_or("\"\"", JsonText::raw);
        if id.len() > MOST_ID_BYTES {
            return Err(AnswerError::TooLarge);
        }
        let created = response.created().unwrap_or(self.created);
        let chunks = Chunks::of(id, created, &self.model, self.include_usage);
        chunks.role(out);
        self.chunks = Some(chunks);
        Ok(())
    }

    /// The open item that an event is about, and what writes chunks.
    fn of(&mut self, event: &Event<'_>) -> Result<Option<(&mut Kind, &Chunks)>, AnswerError> {
        let chunks = self.chunks.as_ref().ok_or(NOT_BEGUN)?;
        let open = self
            .open
            .iter_mut()
            .find(|open| Some(open.index) == event.output_index);
        Ok(open.map(|open| (&mut open.kind, chunks)))
    }

    fn open_item(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let (Some(index), Some(item)) = (event.output_index, &event.item) else {
            return Err(AnswerError::Malformed("output_item.added without an item"));
        };
        let chunks = self.chunks.as_ref().ok_or(NOT_BEGUN)?;
        if self.open.len() >= MOST_OPEN_ITEMS {
            return Err(AnswerError::TooLarge);
        }
        if self.open.iter().any(|open| open.index == index) {
            return Err(AnswerError::Malformed("two open items have the same index"));
        }
        let kind = match item.call().transpose()? {
            Some(call) => {
                let number = count(&mut self.calls);
                chunks.call(number, Called::of(call.is_custom), call.id, call.name, out);
                Kind::Call {
                    number,
                    is_custom: call.is_custom,
                    nesting: Nesting::default(),
                }
            }
            None => Kind::of(item),
        };
        self.open.push(OpenItem { index, kind });
        Ok(())
    }

    /// A delta of an item.
    fn go_on(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let Some(fragment) = event.fragment()? else {
            return Ok(());
        };
        let chunks = self.chunks.as_ref().ok_or(NOT_BEGUN)?;
        let open = self
            .open
            .iter_mut()
            .find(|open| Some(open.index) == event.output_index);
        let open = open.ok_or(AnswerError::Malformed("a delta for an item that is not open"))?;
        match (&*event.kind, &mut open.kind) {
            (
                "response.output_text.delta",
                Kind::Message {
                    has_begun,
                    part,
                    part_start,
                },
            ) => {
                let is_first = !std::mem::replace(has_begun, true);
                self.said = write_text(chunks, fragment, event.logprobs(), is_first, self.said, out);
                if is_first || *part != event.content_index {
                    *part = event.content_index;
                    *part_start = self.said.saturating_sub(characters(fragment));
                }
            }
            ("response.refusal.delta", Kind::Message { has_begun, .. }) => {
                *has_begun = true;
                chunks.refusal(fragment, out);
            }
            (
                "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
                Kind::Call {
                    number,
                    is_custom,
                    nesting,
                },
            ) => {
                if let Some(json) = fragment.decoded() {
                    nesting.push(&json);
                }
                chunks.argument(*number, Called::of(*is_custom), out, |out| {
                    out.extend_from_slice(fragment.raw().as_bytes());
                });
            }
            (
                "response.reasoning_summary_text.delta" | "response.reasoning_text.delta",
                Kind::Reasoning {
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
                let begins = detail.is_none() && self.has_thoughts;
                let index = *detail.get_or_insert_with(|| count(&mut self.details));
                think(chunks, (fragment, begins), of, index, id.as_deref(), out);
                self.has_thoughts = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// The whole of a call's arguments, which is written if nothing of them has come.
    pub(super) fn say_whole_argument(
        &mut self,
        event: &Event<'_>,
        whole: JsonText<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        if let Some((
            Kind::Call {
                number,
                is_custom,
                nesting,
            },
            chunks,
        )) = self.of(event)?
            && !nesting.has_begun()
        {
            if let Some(json) = whole.decoded() {
                nesting.push(&json);
            }
            chunks.argument(*number, Called::of(*is_custom), out, |out| {
                out.extend_from_slice(whole.raw().as_bytes());
            });
        }
        Ok(())
    }

    fn cite(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        if let Some((Kind::Message { part_start, .. }, chunks)) = self.of(event)?
            && let Some(annotation) = event.annotation()
        {
            chunks.annotation(out, |out| annotation.write(*part_start, out));
        }
        Ok(())
    }

    fn end(&mut self, response: &Response<'_>, out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        let reason = response.finish_reason(self.calls > 0);
        if reason == "tool_calls" {
            // A call whose end was not told. Of an answer that was cut it stays as it is: cut.
            for open in std::mem::take(&mut self.open) {
                self.close_call(&open.kind, out)?;
            }
            if self.has_cut_call {
                return Err(AnswerError::Malformed("the arguments of a call are truncated"));
            }
        }
        let chunks = self.chunks.as_ref().ok_or(NOT_BEGUN)?;
        chunks.end(reason, Some(&self.usage.unwrap_or_default()), out);
        Ok(Step::Ended)
    }
}

/// Says that the answer failed.
fn fail(error: &[u8], out: &mut Vec<u8>) -> Step {
    write_data(out, |out| write_error(None, error, out));
    Step::Failed
}
