//! Translation of a streamed chat answer to the events of a Message.

use super::blocks::BlockAssembler;
use super::chat::{ChatCompletion, OutputFragment};
use super::error::{ProviderError, write_error};
use super::finish_reason::FinishReason;
use super::json::{unquoted, write_json};
use super::response::FALLBACK_ID;
use super::usage::{usage_of, write_usage};
use proofgate_dialect::json::write_string;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Usage, write_event};

/// The maximum length of an answer's id in bytes.
const MAX_ID_LEN: usize = 1024;

/// Translates the chunks of a chat answer to the events of a Message.
///
/// The message starts with the first chunk of the answer, with an estimate of its input. Its end is held back until
/// `[DONE]`, because some providers repeat their `finish_reason` or their usage in every chunk, and the usage follows the
/// reason anyway. The buffered content of blocks is limited to 1 MiB in 256 blocks, with at most 128 tool calls.
///
/// A failure is one `error` event, whether it is returned as [`StreamStatus::Failed`] or as a [`ResponseError`]: the output
/// already reports it to the client. Nothing is written after it.
#[derive(Debug)]
pub struct Stream {
    model: String,
    estimated_input: u64,
    returns_signatures: bool,
    id: String,
    state: State,
    blocks: BlockAssembler,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Started,
    Finished,
    Failed,
}

impl Stream {
    /// Creates a stream. `estimated_input` is an estimate of the prompt's tokens, which clients show until the provider
    /// reports its count.
    pub fn new(asked: &RequestContext, estimated_input: u64) -> Self {
        Stream {
            model: asked.model.clone(),
            estimated_input,
            returns_signatures: asked.returns_signatures,
            id: String::new(),
            state: State::Waiting,
            blocks: BlockAssembler::default(),
            finish: None,
            usage: None,
        }
    }

    /// Appends to `out` the client's events for one event of the provider. `name`: its `event:`
    /// name, `""` if it has none.
    ///
    /// # Errors
    /// Returns [`ResponseError`] if the event is malformed, if the answer ends without a valid end, or if it exceeds a
    /// limit; `out` then ends with an error event.
    pub fn push_event(
        &mut self,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        match self.state {
            State::Finished => return Ok(StreamStatus::Finished),
            State::Failed => return Ok(StreamStatus::Failed),
            State::Waiting | State::Started => {}
        }
        let step = match data.trim_ascii() {
            b"" => Ok(StreamStatus::InProgress),
            b"[DONE]" => self.finish_message(out),
            data => self.push_chunk(name, data, out),
        };
        step.inspect_err(|error| self.fail(error, out))
    }

    /// Handles the end of the provider's stream.
    ///
    /// # Errors
    /// Returns [`ResponseError::Failed`] unless the answer finished properly; `out` then ends with an error event, if none
    /// was written before.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let early = ResponseError::Failed("ended early");
        match self.state {
            State::Finished => return Ok(()),
            State::Failed => {}
            State::Waiting | State::Started => self.fail(&early, out),
        }
        Err(early)
    }

    /// Returns the usage reported by the provider so far; an estimate does not count.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
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
        if self.state == State::Waiting && (id.is_some() || chunk.choice().is_some()) {
            self.start(id, out)?;
        }
        let written = out.len();
        if let Some(choice) = chunk.choice() {
            // Some providers answer a stream with one whole message, others repeat the whole message after its pieces.
            let whole = choice.message.as_ref().filter(|_| self.blocks.is_empty());
            if let Some(said) = choice.delta.as_ref().or(whole) {
                said.for_each_fragment(|piece| self.blocks.push(piece, out))?;
                for call in said.tool_calls.iter().flatten() {
                    if let Some(sealed) = call.encrypted_reasoning().filter(|_| self.returns_signatures) {
                        self.blocks
                            .push(OutputFragment::EncryptedReasoning(sealed), out)?;
                    }
                    self.blocks.push_call(call, out)?;
                }
            }
            match choice.finish_reason().map(FinishReason::parse) {
                Some(FinishReason::Failed) => return Ok(self.write_failure(ProviderError::default(), out)),
                Some(finish) => self.finish = Some(finish),
                None => {}
            }
        }
        if out.len() == written && self.blocks.has_buffered_output() {
            // The buffered content may be long; this shows the client that generation continues.
            write_event(out, "ping", |out| write_json(out, "{\"type\":\"ping\"}"));
        }
        Ok(StreamStatus::InProgress)
    }

    fn start(&mut self, id: Option<&str>, out: &mut Vec<u8>) -> Result<(), ResponseError> {
        let id = id.unwrap_or(FALLBACK_ID);
        if id.len() > MAX_ID_LEN {
            return Err(ResponseError::TooLarge);
        }
        self.id.push_str(id);
        self.state = State::Started;
        let estimate = Usage {
            input: self.estimated_input,
            ..Usage::default()
        };
        write_event(out, "message_start", |out| {
            write_json(out, "{\"type\":\"message_start\",\"message\":{\"id\":\"");
            write_json(out, id);
            write_json(out, "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
            write_string(out, &self.model);
            write_json(
                out,
                ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":",
            );
            write_usage(&estimate, out);
            write_json(out, "}}");
        });
        Ok(())
    }

    fn finish_message(&mut self, out: &mut Vec<u8>) -> Result<StreamStatus, ResponseError> {
        let finish = self.finish.ok_or(ResponseError::Failed("ended early"))?;
        let held = self.blocks.finish(&self.id, finish.is_truncated(), out)?;
        let reason = finish.stop_reason(held)?;
        let usage = self.usage.unwrap_or(Usage {
            input: self.estimated_input,
            output: self.blocks.estimated_tokens(),
            ..Usage::default()
        });
        write_event(out, "message_delta", |out| {
            write_json(out, "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"");
            write_json(out, reason);
            write_json(out, "\",\"stop_sequence\":null},\"usage\":");
            write_usage(&usage, out);
            out.push(b'}');
        });
        write_event(out, "message_stop", |out| {
            write_json(out, "{\"type\":\"message_stop\"}")
        });
        self.state = State::Finished;
        Ok(StreamStatus::Finished)
    }

    /// Writes the provider's error.
    fn write_failure(&mut self, told: ProviderError<'_>, out: &mut Vec<u8>) -> StreamStatus {
        self.state = State::Failed;
        let kind = told.anthropic_type().unwrap_or("api_error");
        let message = told
            .message_if_type(kind)
            .unwrap_or("The provider stopped with an error.");
        write_event(out, "error", |out| {
            write_error(kind, |out| write_json(out, message), out)
        });
        StreamStatus::Failed
    }

    fn fail(&mut self, error: &ResponseError, out: &mut Vec<u8>) {
        self.state = State::Failed;
        let message = error.to_string();
        write_event(out, "error", |out| {
            write_error("api_error", |out| write_json(out, &message), out)
        });
    }
}
