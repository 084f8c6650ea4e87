use crate::openai_gemini::candidate_content::{
    CallIds, CandidateContent, write_joined, write_logprobs, write_usage,
};
use crate::openai_gemini::error::write_stream_error;
use crate::openai_gemini::generate_content_response::{Candidate, FinishReason, UsageMetadata};
use crate::openai_gemini::response::{parse, response_id, write_head};
use proofgate_dialect::json::write_number;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Usage, write_data};

/// Maximum number of candidates in one answer. Gemini generates at most eight.
const MAX_CHOICES: usize = 16;

/// Translates a streamed answer of `streamGenerateContent?alt=sse` to chunks of a chat completion.
///
/// It keeps the id of at most 256 bytes, the usage, and the progress of at most sixteen candidates.
#[derive(Debug)]
pub struct Stream {
    model: String,
    include_usage: bool,
    created: u64,
    /// The prefix of every chunk, and the answer's id, from which ids of calls are derived. Empty before the first event.
    prefix: Vec<u8>,
    id: String,
    choices: Vec<Choice>,
    is_blocked: bool,
    usage: UsageMetadata,
    state: State,
}

#[derive(Debug)]
struct Choice {
    index: u32,
    has_started: bool,
    call_count: u32,
    finish_reason: Option<FinishReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Finished,
    Failed,
}

impl Stream {
    /// Creates a stream; `created` is the time in seconds since 1970.
    pub fn new(asked: &RequestContext, created: u64) -> Self {
        Stream {
            model: asked.model.clone(),
            include_usage: asked.include_usage,
            created,
            prefix: Vec::new(),
            id: String::new(),
            choices: Vec::new(),
            is_blocked: false,
            usage: UsageMetadata::default(),
            state: State::Open,
        }
    }

    /// Appends the chunks for one event; Gemini's events have no names. An error object of the
    /// provider counts as an event, however it was framed.
    ///
    /// It never returns [`StreamStatus::Finished`], because an event with a finish reason may not be the last one: only the
    /// end of the provider's stream is the end. With [`StreamStatus::Failed`] an event with the error was appended, and
    /// later events are ignored.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if it is not an event of Gemini's, and [`ResponseError::TooLarge`] for too many
    /// candidates. Nothing is appended then, and the stream can no longer finish properly.
    pub fn push_event(
        &mut self,
        _name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        match self.state {
            State::Open => {}
            State::Failed => return Ok(StreamStatus::Failed),
            State::Finished => return Err(ResponseError::Malformed("an event came after the end")),
        }
        let start = out.len();
        let step = self.handle_event(data, out);
        if !matches!(step, Ok(StreamStatus::InProgress)) {
            self.state = State::Failed;
        }
        step.inspect_err(|_| out.truncate(start))
    }

    fn handle_event(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<StreamStatus, ResponseError> {
        if write_reported_if_array(data, out) {
            return Ok(StreamStatus::Failed);
        }
        let generated = parse(data)?;
        if generated.error.is_some() {
            write_data(out, |out| write_stream_error(data, out));
            return Ok(StreamStatus::Failed);
        }
        if self.prefix.is_empty() {
            self.id = response_id(&generated, self.created);
            write_head(
                &self.id,
                "chat.completion.chunk",
                self.created,
                &self.model,
                &mut self.prefix,
            );
        }
        if let Some(later) = &generated.usage_metadata {
            self.usage.update(later);
        }
        self.is_blocked |= generated.is_blocked();
        for candidate in generated.candidates.as_deref().unwrap_or_default() {
            self.handle_candidate(candidate, out)?;
        }
        Ok(StreamStatus::InProgress)
    }

    fn handle_candidate(
        &mut self,
        candidate: &Candidate<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let index = candidate.index.unwrap_or(0);
        let finish = candidate.parse_finish_reason()?;
        let said = CandidateContent::read(candidate)?;
        let place = match self.choices.iter().position(|choice| choice.index == index) {
            Some(place) => place,
            None if self.choices.len() == MAX_CHOICES => return Err(ResponseError::TooLarge),
            None => {
                self.choices.push(Choice {
                    index,
                    has_started: false,
                    call_count: 0,
                    finish_reason: None,
                });
                self.choices.len() - 1
            }
        };
        let Some(choice) = self.choices.get_mut(place) else {
            return Ok(());
        };
        choice.finish_reason = finish.or(choice.finish_reason);
        if said.is_empty() && candidate.logprobs_result.is_none() {
            return Ok(());
        }
        let (first, begins) = (choice.call_count, !choice.has_started);
        choice.has_started = true;
        choice.call_count = choice
            .call_count
            .saturating_add(u32::try_from(said.calls.len()).unwrap_or(u32::MAX));
        let ids = CallIds {
            response_id: &self.id,
            choice: index,
        };
        self.write_chunk(index, None, out, |out| {
            write_delta_start(begins, &said.text, out);
            said.write_optional_members(ids, first, true, out);
            out.extend_from_slice(br#"},"logprobs":"#);
            write_logprobs(candidate.logprobs_result.as_ref(), out);
        });
        Ok(())
    }

    /// Handles the end of the provider's stream. It appends a chunk with the finish reason of each
    /// choice, the usage if it was requested and is known, and `[DONE]`. Nothing is appended after
    /// a failure, or in a second call.
    ///
    /// # Errors
    /// Returns [`ResponseError::Failed`] if a candidate has no finish reason, or there is no candidate. Nothing is appended
    /// then.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<StreamStatus, ResponseError> {
        match self.state {
            State::Open => {}
            State::Failed => return Ok(StreamStatus::Failed),
            State::Finished => return Ok(StreamStatus::Finished),
        }
        if self.is_blocked {
            self.finish_blocked();
        }
        if self.choices.is_empty() || self.choices.iter().any(|choice| choice.finish_reason.is_none()) {
            self.state = State::Failed;
            return Err(ResponseError::Failed("ended early"));
        }
        for choice in &self.choices {
            let end = choice.finish_reason.map(|finish| (finish, choice.call_count > 0));
            self.write_chunk(choice.index, end, out, |out| {
                if !choice.has_started {
                    out.extend_from_slice(br#""role":"assistant","content":"""#);
                }
                out.extend_from_slice(br#"},"logprobs":null"#);
            });
        }
        if let Some(usage) = self.usage().filter(|_| self.include_usage) {
            write_data(out, |out| {
                out.extend_from_slice(&self.prefix);
                out.extend_from_slice(br#"],"usage":"#);
                write_usage(&usage, out);
                out.push(b'}');
            });
        }
        write_data(out, |out| out.extend_from_slice(b"[DONE]"));
        self.state = State::Finished;
        Ok(StreamStatus::Finished)
    }

    /// Finishes the answer to a blocked prompt, which has no candidate: it gets one empty choice.
    fn finish_blocked(&mut self) {
        if self.choices.is_empty() {
            self.choices.push(Choice {
                index: 0,
                has_started: false,
                call_count: 0,
                finish_reason: None,
            });
        }
        for choice in &mut self.choices {
            choice.finish_reason = choice.finish_reason.or(Some(FinishReason::Filtered));
        }
    }

    /// Appends a chunk of one choice. `write` writes the members of the delta, its closing brace and the logprobs.
    fn write_chunk(
        &self,
        index: u32,
        end: Option<(FinishReason, bool)>,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        write_data(out, |out| {
            out.extend_from_slice(&self.prefix);
            out.extend_from_slice(br#"{"index":"#);
            write_number(out, u64::from(index));
            out.extend_from_slice(br#","delta":{"#);
            write(out);
            match end {
                Some((finish, has_calls)) => {
                    finish.write(has_calls, out);
                    out.extend_from_slice(b"}]");
                }
                None => out.extend_from_slice(br#","finish_reason":null}]"#),
            }
            if self.include_usage {
                out.extend_from_slice(br#","usage":null"#);
            }
            out.push(b'}');
        });
    }

    /// Returns the usage reported so far: the usage in the last event that has one.
    pub fn usage(&self) -> Option<Usage> {
        self.usage.usage()
    }
}

/// Appends the first members of a delta: its text, and the role in a choice's first delta.
fn write_delta_start(begins: bool, text: &[&str], out: &mut Vec<u8>) {
    if begins {
        out.extend_from_slice(br#""role":"assistant","#);
    }
    out.extend_from_slice(br#""content":"#);
    if text.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        write_joined(text, out);
    }
}

/// Appends the error of a provider that reports it as an array; returns whether it did.
fn write_reported_if_array(data: &[u8], out: &mut Vec<u8>) -> bool {
    let is_array = data.trim_ascii_start().starts_with(b"[");
    if is_array {
        write_data(out, |out| write_stream_error(data, out));
    }
    is_array
}
