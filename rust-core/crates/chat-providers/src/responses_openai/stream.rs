//! A streamed chat answer as the events of a Response.

use crate::anthropic_openai::chat::ChatCompletion;
use crate::anthropic_openai::error::ProviderError;
use crate::anthropic_openai::json::inside_quotes;
use crate::anthropic_openai::stop::FinishReason;
use crate::anthropic_openai::usage::usage_of;
use crate::responses_openai::error::failure_code;
use crate::responses_openai::events::OutputItems;
use crate::responses_openai::output::Output;
use crate::responses_openai::response::{ResponseBase, Status, echo};
use crate::responses_openai::tools::write_json;
use proofgate_dialect::ToolMapping;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Usage};

const PROVIDER_ERROR_MESSAGE: &str = "The provider stopped with an error.";

/// What all objects of the answer to a request have in common.
pub(super) fn response_base(asked: &RequestContext, created: u64) -> ResponseBase {
    let response = asked.responses_context.as_ref();
    ResponseBase {
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
/// [`Step::Failed`] or as a [`ResponseError`]: what was written says so to the client already. Nothing is written after it.
#[derive(Debug)]
pub struct Stream {
    base: ResponseBase,
    tools: Vec<ToolMapping>,
    /// There is none before the answer's first chunk, which tells its id.
    output: Option<Output>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    step: StreamStatus,
}

impl Stream {
    /// A stream of which nothing has come, for a request of which `asked` is known. `created` is in seconds since 1970.
    pub fn new(asked: &RequestContext, created: u64) -> Self {
        let tools = asked
            .responses_context
            .as_ref()
            .map(|response| response.tools.clone());
        Stream {
            base: response_base(asked, created),
            tools: tools.unwrap_or_default(),
            output: None,
            finish: None,
            usage: None,
            step: StreamStatus::InProgress,
        }
    }

    /// Takes one event of the provider, its `event:` name if it has one (`""` else) and its data, and appends to `out` what
    /// the client is told.
    ///
    /// # Errors
    /// [`ResponseError`] when the event is malformed, when the answer is at an end that is none, or when it holds too much;
    /// `out` then ends with an event that says so.
    pub fn push_event(
        &mut self,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        if self.step != StreamStatus::InProgress {
            return Ok(self.step);
        }
        let step = match data.trim_ascii() {
            b"" => Ok(StreamStatus::InProgress),
            b"[DONE]" => self.finish_response(out),
            data => self.push_chunk(name, data, out),
        };
        self.record_step(step, out)
    }

    /// The provider's stream is over. It was good if the answer said why it ended, with or without `[DONE]`.
    ///
    /// # Errors
    /// [`ResponseError::Failed`] else; `out` then ends with an event that says so, if none was written.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<StreamStatus, ResponseError> {
        match self.step {
            StreamStatus::Finished => Ok(StreamStatus::Finished),
            StreamStatus::Failed => Err(ResponseError::Failed("ended early")),
            StreamStatus::InProgress => {
                let step = self.finish_response(out);
                self.record_step(step, out)
            }
        }
    }

    /// The usage known so far, the provider's own: an estimate is none.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn record_step(
        &mut self,
        step: Result<StreamStatus, ResponseError>,
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        match &step {
            Ok(step) => self.step = *step,
            Err(error) => {
                self.fail("server_error", &error.to_string(), out);
            }
        }
        step
    }

    fn push_chunk(
        &mut self,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        let chunk = match ChatCompletion::read(data) {
            Ok(chunk) => chunk,
            Err(_) if name == "error" => return Ok(self.write_failure(ProviderError::default(), out)),
            // An event with a name of its own is none of the chat's.
            Err(_) if !matches!(name, "" | "message") => return Ok(StreamStatus::InProgress),
            Err(error) => return Err(error),
        };
        let whole = std::str::from_utf8(data).unwrap_or_default();
        let error = chunk.error(whole).or((name == "error").then_some(whole));
        if let Some(usage) = chunk.usage().as_ref().and_then(usage_of) {
            self.usage = Some(usage);
        }
        if let Some(error) = error {
            return Ok(self.write_failure(ProviderError::parse(error), out));
        }
        let id = inside_quotes(chunk.id);
        // Azure's first chunk, on the prompt's filters, has neither an id nor a choice.
        if self.output.is_none() && (id.is_some() || chunk.choice().is_some()) {
            self.start(id, out);
        }
        let (Some(choice), Some(output)) = (chunk.choice(), &mut self.output) else {
            return Ok(StreamStatus::InProgress);
        };
        // Some answer a stream with one whole message, others repeat the whole behind its pieces.
        let whole = choice.message.as_ref().filter(|_| output.is_empty());
        if let Some(said) = choice.delta.as_ref().or(whole) {
            output.push_message(said, choice.logprobs, out)?;
        }
        match choice.finish_reason().map(FinishReason::parse) {
            Some(FinishReason::Failed) => return Ok(self.write_failure(ProviderError::default(), out)),
            Some(finish) => self.finish = Some(finish),
            None => {}
        }
        Ok(StreamStatus::InProgress)
    }

    fn start(&mut self, id: Option<&str>, out: &mut Vec<u8>) {
        let items = OutputItems::new(id.unwrap_or_default(), self.base.created, true);
        let mut output = Output::new(items, std::mem::take(&mut self.tools));
        for event in ["response.created", "response.in_progress"] {
            self.base
                .write_event(event, Status::InProgress, &mut output.items, None, out);
        }
        self.output = Some(output);
    }

    fn finish_response(&mut self, out: &mut Vec<u8>) -> Result<StreamStatus, ResponseError> {
        let early = ResponseError::Failed("ended early");
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
        self.base
            .write_event(event, status, &mut output.items, Some(&usage), out);
        Ok(StreamStatus::Finished)
    }

    /// Says what the provider says of a failure.
    fn write_failure(&mut self, told: ProviderError<'_>, out: &mut Vec<u8>) -> StreamStatus {
        let (code, is_of_key) = failure_code(&told);
        let message = told
            .message()
            .filter(|_| !is_of_key)
            .unwrap_or(PROVIDER_ERROR_MESSAGE);
        self.fail(code, message, out)
    }

    /// Says that the answer failed; `message` is the inside of a string.
    fn fail(&mut self, code: &str, message: &str, out: &mut Vec<u8>) -> StreamStatus {
        self.step = StreamStatus::Failed;
        match &mut self.output {
            Some(output) => {
                let status = Status::Failed(code, message);
                self.base.write_event(
                    "response.failed",
                    status,
                    &mut output.items,
                    self.usage.as_ref(),
                    out,
                );
            }
            None => {
                let mut items = OutputItems::new("", self.base.created, true);
                items.write_event("error", out, |out| {
                    for piece in [
                        ",\"code\":\"",
                        code,
                        "\",\"message\":\"",
                        message,
                        "\",\"param\":null",
                    ] {
                        write_json(out, piece);
                    }
                });
            }
        }
        StreamStatus::Failed
    }
}

impl ResponseBase {
    /// Writes an event with the whole object.
    fn write_event(
        &self,
        name: &str,
        status: Status<'_>,
        items: &mut OutputItems,
        usage: Option<&Usage>,
        out: &mut Vec<u8>,
    ) {
        let mut response = Vec::new();
        self.write(status, items, usage, &mut response);
        items.write_event(name, out, |out| {
            write_json(out, ",\"response\":");
            out.extend_from_slice(&response);
        });
    }
}
