//! A streamed chat answer as the events of a Response.

use crate::anthropic_openai::chat::Answer;
use crate::anthropic_openai::error::Told;
use crate::anthropic_openai::json::inside_quotes;
use crate::anthropic_openai::stop::Finish;
use crate::anthropic_openai::usage::usage_of;
use crate::responses_openai::error::failure_code;
use crate::responses_openai::events::Items;
use crate::responses_openai::output::Output;
use crate::responses_openai::response::{Head, Status, echo};
use crate::responses_openai::tools::put;
use proofgate_dialect::SentTool;
use proofgate_dialect::{AnswerError, Asked, Step, Usage};

const STOPPED: &str = "The provider stopped with an error.";

/// What all objects of the answer to a request have in common.
pub(super) fn head_of(asked: &Asked, created: u64) -> Head {
    let response = asked.response.as_ref();
    Head {
        created,
        model: asked.model.clone(),
        echo: response.map_or_else(|| echo(&[]), |response| response.echo.clone()),
    }
}

/// Turns the chunks of a chat answer into the events of a Response.
///
/// Its end is held until `[DONE]` or the end of the body, since usage follows on the reason to finish. The last event repeats the
/// whole answer, so that all of it is kept: at most 8 MiB, in 512 items, 128 calls of tools among them. Calls of other tools than
/// functions are told when they are whole.
///
/// A failure is one event, `response.failed`, or `error` before anything was told of the answer, whether it is returned as
/// [`Step::Failed`] or as an [`AnswerError`]: what was written says so to the client already. Nothing is written after it.
#[derive(Debug)]
pub struct Stream {
    head: Head,
    tools: Vec<SentTool>,
    /// There is none before the answer's first chunk, which tells its id.
    output: Option<Output>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    step: Step,
}

impl Stream {
    /// A stream of which nothing has come, for a request of which `asked` is known. `created` is in seconds since 1970.
    pub fn new(asked: &Asked, created: u64) -> Self {
        let tools = asked.response.as_ref().map(|response| response.tools.clone());
        Stream {
            head: head_of(asked, created),
            tools: tools.unwrap_or_default(),
            output: None,
            finish: None,
            usage: None,
            step: Step::Continues,
        }
    }

    /// Takes one event of the provider, its `event:` name if it has one (`""` else) and its data, and appends to `out` what
    /// the client is told.
    ///
    /// # Errors
    /// [`AnswerError`] when the event is malformed, when the answer is at an end that is none, or when it holds too much;
    /// `out` then ends with an event that says so.
    pub fn event(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        if self.step != Step::Continues {
            return Ok(self.step);
        }
        let step = match data.trim_ascii() {
            b"" => Ok(Step::Continues),
            b"[DONE]" => self.done(out),
            data => self.chunk(name, data, out),
        };
        self.settle(step, out)
    }

    /// The provider's stream is over. It was good if the answer said why it ended, with or without `[DONE]`.
    ///
    /// # Errors
    /// [`AnswerError::Failed`] else; `out` then ends with an event that says so, if none was written.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        match self.step {
            Step::Ended => Ok(Step::Ended),
            Step::Failed => Err(AnswerError::Failed("ended early")),
            Step::Continues => {
                let step = self.done(out);
                self.settle(step, out)
            }
        }
    }

    /// The usage known so far, the provider's own: an estimate is none.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn settle(&mut self, step: Result<Step, AnswerError>, out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        match &step {
            Ok(step) => self.step = *step,
            Err(error) => {
                self.fail("server_error", &error.to_string(), out);
            }
        }
        step
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
        if self.output.is_none() && (id.is_some() || chunk.choice().is_some()) {
            self.start(id, out);
        }
        let (Some(choice), Some(output)) = (chunk.choice(), &mut self.output) else {
            return Ok(Step::Continues);
        };
        // Some answer a stream with one whole message, others repeat the whole behind its pieces.
        let whole = choice.message.as_ref().filter(|_| output.is_empty());
        if let Some(said) = choice.delta.as_ref().or(whole) {
            output.take(said, choice.logprobs, out)?;
        }
        match choice.finish_reason().map(Finish::of) {
            Some(Finish::Failed) => return Ok(self.failed(Told::default(), out)),
            Some(finish) => self.finish = Some(finish),
            None => {}
        }
        Ok(Step::Continues)
    }

    fn start(&mut self, id: Option<&str>, out: &mut Vec<u8>) {
        let items = Items::new(id.unwrap_or_default(), self.head.created, true);
        let mut output = Output::new(items, std::mem::take(&mut self.tools));
        for event in ["response.created", "response.in_progress"] {
            self.head
                .event(event, Status::InProgress, &mut output.items, None, out);
        }
        self.output = Some(output);
    }

    fn done(&mut self, out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        let early = AnswerError::Failed("ended early");
        let finish = self.finish.ok_or(early)?;
        let output = self.output.as_mut().ok_or(early)?;
        let status = output.finish(finish, out)?;
        let usage = self.usage.unwrap_or(Usage {
            output: output.estimated_tokens(),
            ..Usage::default()
        });
        let event = match status {
            Status::Incomplete(_) => "response.incomplete",
            _ => "response.completed",
        };
        self.head
            .event(event, status, &mut output.items, Some(&usage), out);
        Ok(Step::Ended)
    }

    /// Says what the provider says of a failure.
    fn failed(&mut self, told: Told<'_>, out: &mut Vec<u8>) -> Step {
        let (code, is_of_key) = failure_code(&told);
        let message = told.message().filter(|_| !is_of_key).unwrap_or(STOPPED);
        self.fail(code, message, out)
    }

    /// Says that the answer failed; `message` is the inside of a string.
    fn fail(&mut self, code: &str, message: &str, out: &mut Vec<u8>) -> Step {
        self.step = Step::Failed;
        match &mut self.output {
            Some(output) => {
                let status = Status::Failed(code, message);
                self.head.event(
                    "response.failed",
                    status,
                    &mut output.items,
                    self.usage.as_ref(),
                    out,
                );
            }
            None => {
                let mut items = Items::new("", self.head.created, true);
                items.event("error", out, |out| {
                    for piece in [
                        ",\"code\":\"",
                        code,
                        "\",\"message\":\"",
                        message,
                        "\",\"param\":null",
                    ] {
                        put(out, piece);
                    }
                });
            }
        }
        Step::Failed
    }
}

impl Head {
    /// Writes an event with the whole object.
    fn event(
        &self,
        name: &str,
        status: Status<'_>,
        items: &mut Items,
        usage: Option<&Usage>,
        out: &mut Vec<u8>,
    ) {
        let mut response = Vec::new();
        self.write(status, items, usage, &mut response);
        items.event(name, out, |out| {
            put(out, ",\"response\":");
            out.extend_from_slice(&response);
        });
    }
}
