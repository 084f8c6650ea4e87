//! A streamed chat answer as the events of a Message.

use super::answer::NO_ID;
use super::blocks::Blocks;
use super::chat::{Answer, Spoken};
use super::error::{Told, put_error};
use super::json::{inside_quotes, put};
use super::stop::Finish;
use super::usage::{put_usage, usage_of};
use proofgate_dialect::json::write_string;
use proofgate_dialect::{AnswerError, Asked, Step, Usage, write_event};

/// The longest id of an answer that is kept, in bytes.
const LONGEST_ID: usize = 1024;

/// Turns the chunks of a chat answer into the events of a Message.
///
/// The message starts with the first chunk of the answer, with an estimate of its input. Its end is held until `[DONE]`, since some
/// providers repeat their `finish_reason` or their usage in every chunk, and usage follows on the reason anyway. What is
/// held of blocks is bounded: 1 MiB, in 256 of them, 128 calls of tools in all.
///
/// A failure is one `error` event, whether it is returned as [`Step::Failed`] or as an [`AnswerError`]: what was written
/// says so to the client already. Nothing is written after it.
#[derive(Debug)]
pub struct Stream {
    model: String,
    estimated_input: u64,
    keeps_signatures: bool,
    id: String,
    state: State,
    blocks: Blocks,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Begun,
    Ended,
    Failed,
}

impl Stream {
    /// A stream of which nothing has come. `estimated_input` is about how many tokens the prompt has: clients show it until
    /// the provider's count is there.
    pub fn new(asked: &Asked, estimated_input: u64) -> Self {
        Stream {
            model: asked.model.clone(),
            estimated_input,
            keeps_signatures: asked.keeps_signatures,
            id: String::new(),
            state: State::Waiting,
            blocks: Blocks::default(),
            finish: None,
            usage: None,
        }
    }

    /// Takes one event of the provider, its `event:` name if it has one (`""` else) and its data, and appends to `out` what
    /// the client is told.
    ///
    /// # Errors
    /// [`AnswerError`] when the event is malformed, when the answer is at an end that is none, or when it holds too much;
    /// `out` then ends with an error event.
    pub fn event(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        match self.state {
            State::Ended => return Ok(Step::Ended),
            State::Failed => return Ok(Step::Failed),
            State::Waiting | State::Begun => {}
        }
        let step = match data.trim_ascii() {
            b"" => Ok(Step::Continues),
            b"[DONE]" => self.done(out),
            data => self.chunk(name, data, out),
        };
        step.inspect_err(|error| self.fail(error, out))
    }

    /// The provider's stream is over.
    ///
    /// # Errors
    /// [`AnswerError::Failed`] unless its good end came before; `out` then ends with an error event, if none was written.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let early = AnswerError::Failed("ended early");
        match self.state {
            State::Ended => return Ok(()),
            State::Failed => {}
            State::Waiting | State::Begun => self.fail(&early, out),
        }
        Err(early)
    }

    /// The usage known so far, the provider's own: an estimate is none.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn chunk(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        let chunk = match Answer::read(data) {
            Ok(chunk) => chunk,
            Err(_) if name == "error" => return Ok(self.failed(Told::default(), out)),
            // An event with a name of its own is none of the chat's.
            Err(_) if !matches!(name, "" | "message") => return Ok(Step::Continues),
            Err(error) => return Err(error),
        };
        let whole = std::str::from_utf8(data).unwrap_or_default();
        let error = chunk.error(whole).or((name == "error").then_some(whole));
        if let Some(usage) = chunk.usage().as_ref().and_then(usage_of) {
            self.usage = Some(usage);
        }
        if let Some(error) = error {
            return Ok(self.failed(Told::of(error), out));
        }
        let id = inside_quotes(chunk.id);
        // Azure's first chunk, on the prompt's filters, has neither an id nor a choice.
        if self.state == State::Waiting && (id.is_some() || chunk.choice().is_some()) {
            self.start(id, out)?;
        }
        let written = out.len();
        if let Some(choice) = chunk.choice() {
            // Some answer a stream with one whole message, others repeat the whole behind its pieces.
            let whole = choice.message.as_ref().filter(|_| self.blocks.is_empty());
            if let Some(said) = choice.delta.as_ref().or(whole) {
                said.each(|piece| self.blocks.push(piece, out))?;
                for call in said.tool_calls.iter().flatten() {
                    if let Some(sealed) = call.sealed().filter(|_| self.keeps_signatures) {
                        self.blocks.push(Spoken::Sealed(sealed), out)?;
                    }
                    self.blocks.call(call, out)?;
                }
            }
            match choice.finish_reason().map(Finish::of) {
                Some(Finish::Failed) => return Ok(self.failed(Told::default(), out)),
                Some(finish) => self.finish = Some(finish),
                None => {}
            }
        }
        if out.len() == written && self.blocks.holds() {
            // What is held may be long; the client sees that it is being generated.
            write_event(out, "ping", |out| put(out, "{\"type\":\"ping\"}"));
        }
        Ok(Step::Continues)
    }

    fn start(&mut self, id: Option<&str>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let id = id.unwrap_or(NO_ID);
        if id.len() > LONGEST_ID {
            return Err(AnswerError::TooLarge);
        }
        self.id.push_str(id);
        self.state = State::Begun;
        let estimate = Usage {
            input: self.estimated_input,
            ..Usage::default()
        };
        write_event(out, "message_start", |out| {
            put(out, "{\"type\":\"message_start\",\"message\":{\"id\":\"");
            put(out, id);
            put(out, "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
            write_string(out, &self.model);
            put(
                out,
                ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":",
            );
            put_usage(&estimate, out);
            put(out, "}}");
        });
        Ok(())
    }

    fn done(&mut self, out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        let finish = self.finish.ok_or(AnswerError::Failed("ended early"))?;
        let held = self.blocks.finish(&self.id, finish.cuts(), out)?;
        let reason = finish.stop_reason(held)?;
        let usage = self.usage.unwrap_or(Usage {
            input: self.estimated_input,
            output: self.blocks.estimated_tokens(),
            ..Usage::default()
        });
        write_event(out, "message_delta", |out| {
            put(out, "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"");
            put(out, reason);
            put(out, "\",\"stop_sequence\":null},\"usage\":");
            put_usage(&usage, out);
            out.push(b'}');
        });
        write_event(out, "message_stop", |out| put(out, "{\"type\":\"message_stop\"}"));
        self.state = State::Ended;
        Ok(Step::Ended)
    }

    /// Says what the provider says of a failure.
    fn failed(&mut self, told: Told<'_>, out: &mut Vec<u8>) -> Step {
        self.state = State::Failed;
        let kind = told.kind().unwrap_or("api_error");
        let message = told
            .message_under(kind)
            .unwrap_or("The provider stopped with an error.");
        write_event(out, "error", |out| put_error(kind, |out| put(out, message), out));
        Step::Failed
    }

    fn fail(&mut self, error: &AnswerError, out: &mut Vec<u8>) {
        self.state = State::Failed;
        let message = error.to_string();
        write_event(out, "error", |out| {
            put_error("api_error", |out| put(out, &message), out)
        });
    }
}
