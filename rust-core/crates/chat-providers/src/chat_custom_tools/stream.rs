use serde::Deserialize;
use serde_json::value::RawValue;

use super::response::is_custom_call;
use crate::anthropic_openai::arguments::ArgumentScanner;
use crate::anthropic_openai::chat::{Arguments, ToolCall};
use crate::custom_tools::custom_input;
use crate::edits::Edits;
use proofgate_dialect::json::{write_all, write_member, write_number, write_string};
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, write_data};

/// Maximum number of bytes of calls that are buffered until they are complete.
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// Maximum number of calls of custom tools in one answer.
const MAX_CALLS: usize = 128;

#[derive(Deserialize)]
struct Chunk<'b> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'b>>,
    #[serde(borrow)]
    error: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct Choice<'b> {
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    delta: Delta<'b>,
}

#[derive(Default, Deserialize)]
struct Delta<'b> {
    #[serde(borrow)]
    tool_calls: Option<Vec<&'b RawValue>>,
}

/// Rewrites the chunks of a streamed chat completion: calls of functions that replace custom tools become calls of these
/// tools.
#[derive(Debug)]
pub struct Stream {
    request: RequestContext,
    calls: Vec<Call>,
    buffered_bytes: usize,
}

/// A call of a custom tool.
#[derive(Debug)]
struct Call {
    choice: u64,
    index: u64,
    /// The arguments so far, JSON-escaped and without quotes.
    arguments: String,
    progress: ArgumentScanner,
}

impl Stream {
    /// Creates a stream.
    #[must_use]
    pub fn new(asked: &RequestContext) -> Self {
        Stream {
            request: asked.clone(),
            calls: Vec::new(),
            buffered_bytes: 0,
        }
    }

    /// Appends an event of chat completions in its rewritten form.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if it is not a chunk, and [`ResponseError::TooLarge`] if a limit of the stream
    /// is exceeded. Nothing is appended then.
    pub fn push_event(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<StreamStatus, ResponseError> {
        if data.trim_ascii() == b"[DONE]" {
            write_data(out, |out| out.extend_from_slice(data));
            return Ok(StreamStatus::Finished);
        }
        let malformed = || ResponseError::Malformed("not a chunk of a chat completion");
        let text = std::str::from_utf8(data).map_err(|_| malformed())?;
        let chunk: Chunk<'_> = serde_json::from_str(text).map_err(|_| malformed())?;
        let mut edits = Edits::default();
        for choice in &chunk.choices {
            for raw in choice.delta.tool_calls.iter().flatten() {
                let fragment: ToolCall<'_> = serde_json::from_str(raw.get()).map_err(|_| malformed())?;
                if let Some(fragment) = self.rewrite_fragment(choice.index, &fragment)? {
                    edits.replace(text, raw, fragment);
                }
            }
        }
        let mut event = Vec::with_capacity(text.len());
        edits.write(text, &mut event).ok_or_else(malformed)?;
        write_data(out, |out| out.extend_from_slice(&event));
        Ok(if chunk.error.is_some() {
            StreamStatus::Failed
        } else {
            StreamStatus::InProgress
        })
    }

    /// Rewrites a fragment of a call; `None` if it is not a call of a custom tool.
    fn rewrite_fragment(
        &mut self,
        choice: u64,
        fragment: &ToolCall<'_>,
    ) -> Result<Option<String>, ResponseError> {
        let index = fragment.index.unwrap_or(0);
        let known = self
            .calls
            .iter()
            .rposition(|call| (call.choice, call.index) == (choice, index));
        let begins = is_custom_call(fragment, &self.request);
        let at = match known {
            _ if begins => {
                if self.calls.len() >= MAX_CALLS {
                    return Err(ResponseError::TooLarge);
                }
                self.calls.push(Call {
                    choice,
                    index,
                    arguments: String::new(),
                    progress: ArgumentScanner::default(),
                });
                self.calls.len() - 1
            }
            Some(at) => at,
            None => return Ok(None),
        };
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(None);
        };
        let before = call.progress.is_complete();
        match fragment.arguments()? {
            Arguments::None => {}
            Arguments::String(text) => call.push_arguments(text),
            Arguments::Object(json) => {
                let quoted = serde_json::to_string(json).unwrap_or_default();
                call.push_arguments(quoted.trim_matches('"'));
            }
        }
        self.buffered_bytes = self.calls.iter().map(|call| call.arguments.len()).sum();
        if self.buffered_bytes > MAX_BUFFERED_BYTES {
            return Err(ResponseError::TooLarge);
        }
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(None);
        };
        let input = match call.progress.is_complete() && !before {
            true => call.take_input()?,
            false => String::new(),
        };
        Ok(Some(custom_call_delta(fragment, index, begins, &input)))
    }
}

impl Call {
    fn push_arguments(&mut self, text: &str) {
        self.progress.push(text);
        self.arguments.push_str(text);
    }

    /// Returns the text of a complete call and frees its buffer.
    fn take_input(&mut self) -> Result<String, ResponseError> {
        let quoted = ["\"", &std::mem::take(&mut self.arguments), "\""].concat();
        let arguments: String = serde_json::from_str(&quoted)
            .map_err(|_| ResponseError::Malformed("the arguments of a tool call are invalid"))?;
        Ok(custom_input(&arguments))
    }
}

fn custom_call_delta(fragment: &ToolCall<'_>, index: u64, begins: bool, input: &str) -> String {
    let mut out = b"{\"index\":".to_vec();
    write_number(&mut out, index);
    if let Some(id) = fragment.id() {
        write_all(&mut out, &[",\"id\":\"", id, "\""]);
    }
    match fragment.name().filter(|_| begins) {
        Some(name) => write_all(
            &mut out,
            &[
                ",\"type\":\"custom\",\"custom\":{\"name\":\"",
                name,
                "\",\"input\":",
            ],
        ),
        None => write_all(&mut out, &[",\"custom\":{\"input\":"]),
    }
    write_string(&mut out, input);
    out.push(b'}');
    write_member(
        &mut out,
        "extra_content",
        fragment.extra_content.map(RawValue::get),
    );
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}
