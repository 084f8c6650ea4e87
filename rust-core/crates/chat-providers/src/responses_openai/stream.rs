//! Translation of a streamed chat answer to the events of a Response.

use crate::anthropic_openai::chat::ChatCompletion;
use crate::anthropic_openai::error::ProviderError;
use crate::anthropic_openai::finish_reason::FinishReason;
use crate::anthropic_openai::json::unquoted;
use crate::anthropic_openai::usage::usage_of;
use crate::responses_openai::error::failure_code;
use crate::responses_openai::events::OutputItems;
use crate::responses_openai::output::Output;
use crate::responses_openai::response::{ResponseBase, Status, echo};
use crate::responses_openai::tools::write_json;
use proofgate_dialect::ToolMapping;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Usage};

const PROVIDER_ERROR_MESSAGE: &str = "The provider stopped with an error.";

/// Returns the common members of all response objects for a request.
pub(super) fn response_base(asked: &RequestContext, created: u64) -> ResponseBase {
    let response = asked.responses_context.as_ref();
    ResponseBase {
        created,
        model: asked.model.clone(),
        echo: response.map_or_else(|| echo(&[]), |response| response.echo.clone()),
    }
}

/// Translates the chunks of a chat answer to the events of a Response.
///
/// Its end is held back until `[DONE]` or the end of the body, because the usage follows the finish reason. The last event
/// repeats the whole answer, so all of it is kept: at most 8 MiB in 512 items, with at most 128 tool calls. Calls of tools
/// other than functions are sent once they are complete.
///
/// A failure is one event, `response.failed`, or `error` before any other event of the answer, whether it is returned as
/// [`StreamStatus::Failed`] or as a [`ResponseError`]: the output already reports it to the client. Nothing is written after
/// it.
#[derive(Debug)]
pub struct Stream {
    base: ResponseBase,
    tools: Vec<ToolMapping>,
    /// `None` before the answer's first chunk, which has its id.
    output: Option<Output>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    step: StreamStatus,
}

impl Stream {
    /// Creates a stream for a request with the context `asked`. `created` is in seconds since 1970.
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

    /// Appends to `out` the client's events for one event of the provider. `name`: its `event:`
    /// name, `""` if it has none.
    ///
    /// # Errors
    /// Returns [`ResponseError`] if the event is malformed, if the answer ends without a valid end, or if it exceeds a
    /// limit; `out` then ends with an event that reports it.
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

    /// Handles the end of the provider's stream. The answer is valid if it has a finish reason, with or without `[DONE]`.
    ///
    /// # Errors
    /// Returns [`ResponseError::Failed`] otherwise; `out` then ends with an event that reports it, if none was written
    /// before.
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

    /// Returns the usage reported by the provider so far; an estimate does not count.
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
            // An event with its own name is not a chat chunk.
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
        let id = unquoted(chunk.id);
        // Azure's first chunk, about the prompt's filters, has neither an id nor a choice.
        if self.output.is_none() && (id.is_some() || chunk.choice().is_some()) {
            self.start(id, out);
        }
        let (Some(choice), Some(output)) = (chunk.choice(), &mut self.output) else {
            return Ok(StreamStatus::InProgress);
        };
        // Some providers answer a stream with one whole message, others repeat the whole message after its pieces.
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

    /// Writes the provider's error.
    fn write_failure(&mut self, told: ProviderError<'_>, out: &mut Vec<u8>) -> StreamStatus {
        let (code, is_of_key) = failure_code(&told);
        let message = told
            .message()
            .filter(|_| !is_of_key)
            .unwrap_or(PROVIDER_ERROR_MESSAGE);
        self.fail(code, message, out)
    }

    /// Writes the event that reports a failed answer; `message` is JSON-escaped and without quotes.
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
    /// Writes an event with the whole response object.
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
