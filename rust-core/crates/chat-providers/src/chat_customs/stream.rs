use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::is_custom;
use crate::anthropic_openai::arguments::Progress;
use crate::anthropic_openai::chat::{Arguments, ToolCall};
use crate::custom_tools::input_of;
use crate::edits::Edits;
use proofgate_dialect::json::{write_all, write_member, write_number, write_string};
use proofgate_dialect::{AnswerError, Asked, Step, write_data};

/// Bytes of calls that are held until they are whole.
const MOST_HELD: usize = 1 << 20;

/// Calls of custom tools in one answer.
const MOST_CALLS: usize = 128;

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

/// The chunks of a streamed chat completion, calls of the functions that stand for custom tools as calls of these.
#[derive(Debug)]
pub struct Stream {
    asked: Asked,
    calls: Vec<Call>,
    held: usize,
}

/// A call of a custom tool.
#[derive(Debug)]
struct Call {
    choice: u64,
    index: u64,
    /// What has come, as it stands between the quotes of a string.
    arguments: String,
    progress: Progress,
}

impl Stream {
    /// A stream of which nothing has come.
    #[must_use]
    pub fn new(asked: &Asked) -> Self {
        Stream {
            asked: asked.clone(),
            calls: Vec::new(),
            held: 0,
        }
    }

    /// Takes an event of chat completions and appends the one that it becomes.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`] when it is no chunk, [`AnswerError::TooLarge`] at more than is held. Nothing is appended then.
    pub fn event(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        if data.trim_ascii() == b"[DONE]" {
            write_data(out, |out| out.extend_from_slice(data));
            return Ok(Step::Ended);
        }
        let malformed = || AnswerError::Malformed("not a chunk of a chat completion");
        let text = std::str::from_utf8(data).map_err(|_| malformed())?;
        let chunk: Chunk<'_> = serde_json::from_str(text).map_err(|_| malformed())?;
        let mut edits = Edits::default();
        for choice in &chunk.choices {
            for raw in choice.delta.tool_calls.iter().flatten() {
                let fragment: ToolCall<'_> = serde_json::from_str(raw.get()).map_err(|_| malformed())?;
                if let Some(fragment) = self.fragment(choice.index, &fragment)? {
                    edits.put(text, raw, fragment);
                }
            }
        }
        let mut event = Vec::with_capacity(text.len());
        edits.write(text, &mut event).ok_or_else(malformed)?;
        write_data(out, |out| out.extend_from_slice(&event));
        Ok(if chunk.error.is_some() {
            Step::Failed
        } else {
            Step::Continues
        })
    }

    /// What a fragment of a call becomes; `None` where it is of no custom tool.
    fn fragment(&mut self, choice: u64, fragment: &ToolCall<'_>) -> Result<Option<String>, AnswerError> {
        let index = fragment.index.unwrap_or(0);
        let known = self
            .calls
            .iter()
            .rposition(|call| (call.choice, call.index) == (choice, index));
        let begins = is_custom(fragment, &self.asked);
        let at = match known {
            _ if begins => {
                if self.calls.len() >= MOST_CALLS {
                    return Err(AnswerError::TooLarge);
                }
                self.calls.push(Call {
                    choice,
                    index,
                    arguments: String::new(),
                    progress: Progress::default(),
                });
                self.calls.len() - 1
            }
            Some(at) => at,
            None => return Ok(None),
        };
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(None);
        };
        let before = call.progress.is_whole();
        match fragment.arguments()? {
            Arguments::None => {}
            Arguments::String(text) => call.take(text),
            Arguments::Object(json) => {
                let quoted = serde_json::to_string(json).unwrap_or_default();
                call.take(quoted.trim_matches('"'));
            }
        }
        self.held = self.calls.iter().map(|call| call.arguments.len()).sum();
        if self.held > MOST_HELD {
            return Err(AnswerError::TooLarge);
        }
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(None);
        };
        let input = match call.progress.is_whole() && !before {
            true => call.input()?,
            false => String::new(),
        };
        Ok(Some(written(fragment, index, begins, &input)))
    }
}

impl Call {
    fn take(&mut self, text: &str) {
        self.progress.take(text);
        self.arguments.push_str(text);
    }

    /// The text of a call that is whole, of which nothing is held any more.
    fn input(&mut self) -> Result<String, AnswerError> {
        let quoted = ["\"", &std::mem::take(&mut self.arguments), "\""].concat();
        let arguments: String = serde_json::from_str(&quoted)
            .map_err(|_| AnswerError::Malformed("the arguments of a tool call are invalid"))?;
        Ok(input_of(&arguments))
    }
}

fn written(fragment: &ToolCall<'_>, index: u64, begins: bool, input: &str) -> String {
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
