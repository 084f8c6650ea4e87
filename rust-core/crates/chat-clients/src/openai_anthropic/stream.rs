use crate::chunks::{Called, Chunks};
use crate::nesting::Nesting;
use crate::openai_anthropic::answer::{Block, Said, refusal, write_detail};
use crate::openai_anthropic::error::write_error;
use crate::openai_anthropic::event::{Event, Piece};
use crate::openai_anthropic::finish::finish_reason;
use crate::openai_anthropic::tokens::Tokens;
use proofgate_dialect::json::write_string;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::{AnswerError, Asked, Step, Usage, write_data};

/// Blocks of an answer that may be open at once; Anthropic has one.
const MOST_OPEN_BLOCKS: usize = 64;
/// Bytes of an answer's id, which stands in every chunk.
const MOST_ID_BYTES: usize = 256;
/// Bytes of a call's input that is told with the call's begin, which are kept until it is seen whether fragments follow.
const MOST_INPUT_BYTES: usize = 65_536;

const NOT_BEGUN: AnswerError = AnswerError::Malformed("an event before message_start");

/// A streamed answer of Anthropic's as chunks of a chat completion.
///
/// Each event becomes its chunks at once. Kept are: what begins every chunk (the client's name of the model, and an id of up
/// to 256 bytes), up to 64 open blocks, and up to 64 KiB of input for each open call whose input came with its begin.
#[derive(Debug)]
pub struct Stream {
    model: String,
    created: u64,
    include_usage: bool,
    step: Step,
    /// There are none before the answer's begin, which tells its id.
    chunks: Option<Chunks>,
    open: Vec<OpenBlock>,
    calls: u64,
    details: u64,
    /// Whether a call's input ended before its JSON did.
    has_cut_call: bool,
    finish_reason: Option<&'static str>,
    tokens: Option<Tokens>,
}

#[derive(Debug)]
struct OpenBlock {
    /// Anthropic's index of it.
    index: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A call, counted among the calls; its input so far, and input that came with its begin.
    Call {
        number: u64,
        nesting: Nesting,
        input: Option<Box<str>>,
    },
    /// An element of `reasoning_details`, counted among these.
    Reasoning { number: u64 },
    /// Anything else: text needs no account.
    Other,
}

impl Stream {
    /// A stream at its start, for a request of which `asked` is known. `created` is in seconds since 1970.
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
            has_cut_call: false,
            finish_reason: None,
            tokens: None,
        }
    }

    /// Takes one event: its `event` name, `""` if it has none, and its data. `out` gets the chunks that it is; they are none
    /// for a ping, for events of unknown types, and for all that comes behind the end.
    ///
    /// # Errors
    /// [`AnswerError`] when the event makes no sense where it stands or is too much to keep; nothing is written then.
    pub fn event(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        if self.step != Step::Continues || name == "ping" {
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
    /// [`AnswerError::Failed`] when its good end did not come.
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), AnswerError> {
        match self.step {
            Step::Ended => Ok(()),
            Step::Continues | Step::Failed => Err(AnswerError::Failed("ended early")),
        }
    }

    /// What the answer has cost as far as the provider has said. Before the end that is the prompt, and little of the answer.
    pub fn usage(&self) -> Option<Usage> {
        self.tokens.map(|tokens| tokens.usage())
    }

    fn take(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        if name == "error" {
            return Ok(fail(data, out));
        }
        let data = std::str::from_utf8(data).map_err(|_| AnswerError::Malformed("not UTF-8"))?;
        let Some(event) = Event::read(data)? else {
            return Ok(Step::Continues);
        };
        match &*event.kind {
            "message_start" => self.begin(&event, out)?,
            "content_block_start" => self.open_block(&event, out)?,
            "content_block_delta" => self.go_on(&event, out)?,
            "content_block_stop" => {
                let is_meant = |block: &OpenBlock| Some(block.index) == event.index;
                if let Some(at) = self.open.iter().position(is_meant) {
                    let block = self.open.remove(at);
                    self.close(block, out)?;
                }
            }
            "message_delta" => self.take_delta(&event, out)?,
            "message_stop" => return self.end(out),
            "error" => return Ok(fail(data.as_bytes(), out)),
            _ => {}
        }
        Ok(Step::Continues)
    }

    fn begin(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        if self.chunks.is_some() {
            return Err(AnswerError::Malformed("a second message_start"));
        }
        let message = event.message.as_ref();
        let message = message.ok_or(AnswerError::Malformed("message_start without a message"))?;
        let id = message.id.map_or("\"\"", JsonText::raw);
        if id.len() > MOST_ID_BYTES {
            return Err(AnswerError::TooLarge);
        }
        self.tokens = message.usage;
        let chunks = Chunks::of(id, self.created, &self.model, self.include_usage);
        chunks.role(out);
        self.chunks = Some(chunks);
        Ok(())
    }

    fn chunks(&self) -> Result<&Chunks, AnswerError> {
        let chunks = self.chunks.as_ref();
        chunks.ok_or(NOT_BEGUN)
    }

    fn open_block(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let (Some(index), Some(block)) = (event.index, &event.content_block) else {
            return Err(AnswerError::Malformed("content_block_start without a block"));
        };
        if self.open.len() >= MOST_OPEN_BLOCKS {
            return Err(AnswerError::TooLarge);
        }
        if self.open.iter().any(|open| open.index == index) {
            return Err(AnswerError::Malformed("two open blocks have the same index"));
        }
        let chunks = self.chunks()?;
        let said = block.said()?;
        let kind = match said {
            Said::Text(text) => {
                write_text(chunks, text, out);
                Kind::Other
            }
            Said::Call { id, name } => {
                let (number, nesting, input) = (self.calls, Nesting::default(), input_of(block)?);
                chunks.call(number, Called::Function, id, name, out);
                self.calls = number.saturating_add(1);
                Kind::Call {
                    number,
                    nesting,
                    input,
                }
            }
            Said::Thinking { .. } | Said::Redacted(_) => {
                let number = self.details;
                write_reasoning(chunks, &said, number, out);
                self.details = number.saturating_add(1);
                Kind::Reasoning { number }
            }
            Said::Nothing => Kind::Other,
        };
        self.open.push(OpenBlock { index, kind });
        Ok(())
    }

    fn go_on(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let delta = event.delta.as_ref();
        let delta = delta.ok_or(AnswerError::Malformed("content_block_delta without a delta"))?;
        let chunks = self.chunks.as_ref();
        let chunks = chunks.ok_or(NOT_BEGUN)?;
        let block = self
            .open
            .iter_mut()
            .find(|block| Some(block.index) == event.index);
        let block = block.ok_or(AnswerError::Malformed("a delta for a block that is not open"))?;
        match (delta.piece()?, &mut block.kind) {
            (Piece::Text(text), _) => write_text(chunks, text, out),
            (Piece::Input(fragment), Kind::Call { number, nesting, .. }) => {
                if let Some(json) = fragment.decoded() {
                    nesting.push(&json);
                }
                chunks.argument(*number, Called::Function, out, |out| {
                    out.extend_from_slice(fragment.raw().as_bytes())
                });
            }
            (Piece::Thinking(thinking), Kind::Reasoning { number }) => {
                let said = Said::Thinking {
                    thinking: Some(thinking),
                    signature: None,
                };
                write_reasoning(chunks, &said, *number, out);
            }
            (Piece::Signature(signature), Kind::Reasoning { number }) => {
                let said = Said::Thinking {
                    thinking: None,
                    signature: Some(signature),
                };
                write_reasoning(chunks, &said, *number, out);
            }
            // The input of one of the provider's own tools, or what is not known.
            _ => {}
        }
        Ok(())
    }

    /// A block has ended. A call without arguments has an empty object of them.
    fn close(&mut self, block: OpenBlock, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        if let Kind::Call {
            number,
            nesting,
            input,
        } = block.kind
        {
            self.has_cut_call |= nesting.is_cut();
            if !nesting.has_begun() {
                let input = input.as_deref().unwrap_or("{}");
                self.chunks()?
                    .argument(number, Called::Function, out, |out| write_string(out, input));
            }
        }
        Ok(())
    }

    fn take_delta(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        if let Some(later) = event.usage {
            self.tokens.get_or_insert_default().replace(later);
        }
        let Some((delta, stop_reason)) = event
            .delta
            .as_ref()
            .and_then(|delta| Some((delta, delta.stop_reason.as_deref()?)))
        else {
            return Ok(());
        };
        self.finish_reason = Some(finish_reason(stop_reason, self.calls > 0));
        if let Some(explanation) = refusal(stop_reason, delta.stop_details) {
            self.chunks()?.refusal(explanation, out);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        let reason = self
            .finish_reason
            .ok_or(AnswerError::Malformed("message_stop without a stop reason"))?;
        if reason == "tool_calls" {
            // A call whose end was not told. Of an answer that was cut it stays as it is: cut.
            for block in std::mem::take(&mut self.open) {
                self.close(block, out)?;
            }
            if self.has_cut_call {
                return Err(AnswerError::Malformed("the arguments of a call are truncated"));
            }
        }
        self.chunks()?.end(reason, self.usage().as_ref(), out);
        Ok(Step::Ended)
    }
}

/// Text of the answer, if it is any.
fn write_text(chunks: &Chunks, text: JsonText<'_>, out: &mut Vec<u8>) {
    if !text.is_empty() {
        chunks.text(text.raw(), None, out);
    }
}

/// Reasoning, or a fragment of it.
fn write_reasoning(chunks: &Chunks, said: &Said<'_>, number: u64, out: &mut Vec<u8>) {
    let read = match *said {
        Said::Thinking { thinking, signature } => {
            let thinking = thinking.filter(|thinking| !thinking.is_empty());
            if thinking.is_none() && signature.is_none() {
                return;
            }
            thinking.map(JsonText::raw)
        }
        _ => None,
    };
    chunks.reasoning(
        read,
        out,
        Some(|out: &mut Vec<u8>| write_detail(said, number, out)),
    );
}

/// Says that the answer failed.
fn fail(error: &[u8], out: &mut Vec<u8>) -> Step {
    write_data(out, |out| write_error(None, error, out));
    Step::Failed
}

/// The input that a call's begin tells, which at Anthropic is always an empty object with the input in fragments behind it.
fn input_of(block: &Block<'_>) -> Result<Option<Box<str>>, AnswerError> {
    match block.input.map(|input| input.get()) {
        None | Some("{}") => Ok(None),
        Some(input) if input.len() > MOST_INPUT_BYTES => Err(AnswerError::TooLarge),
        Some(input) => Ok(Some(input.into())),
    }
}
