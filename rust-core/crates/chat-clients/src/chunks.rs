//! The chunks of a streamed chat completion with one choice.

use crate::openai_anthropic::tokens::write_usage;
use proofgate_dialect::json::{write_all, write_number, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::{Usage, write_data};

/// Writes the chunks of one streamed chat completion. All of them have the same prefix.
#[derive(Debug, Default)]
pub(crate) struct ChunkWriter {
    /// A chunk up to its `choices`.
    prefix: Vec<u8>,
    include_usage: bool,
}

/// The kind of a called tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    Function,
    Custom,
}

impl CallKind {
    /// Returns the kind of a call to a custom tool or to a function.
    pub(crate) fn from_is_custom(is_custom: bool) -> Self {
        if is_custom {
            CallKind::Custom
        } else {
            CallKind::Function
        }
    }

    /// Returns a call's member for its type, and the name of the arguments in that member.
    fn json_names(self) -> (&'static str, &'static str) {
        match self {
            CallKind::Function => ("function", "arguments"),
            CallKind::Custom => ("custom", "input"),
        }
    }
}

impl ChunkWriter {
    /// Creates a writer for the chunks of the answer with this `id`, which is already JSON.
    pub(crate) fn new(id: &str, created: u64, model: &str, include_usage: bool) -> Self {
        let mut head = Vec::with_capacity(id.len() + model.len() + 96);
        write_all(
            &mut head,
            &[
                "{\"id\":",
                id,
                ",\"object\":\"chat.completion.chunk\",\"created\":",
            ],
        );
        write_number(&mut head, created);
        write_all(&mut head, &[",\"model\":"]);
        write_string(&mut head, model);
        write_all(&mut head, &[",\"choices\":["]);
        ChunkWriter {
            prefix: head,
            include_usage,
        }
    }

    /// Writes the first chunk, which names the role.
    pub(crate) fn write_role(&self, out: &mut Vec<u8>) {
        self.write_delta(out, |out| {
            write_all(out, &["\"role\":\"assistant\",\"content\":\"\",\"refusal\":null"]);
        });
    }

    /// Writes text of the answer; `text` is JSON, and `logprobs` are the elements of a list.
    pub(crate) fn write_text(&self, text: &str, logprobs: Option<&str>, out: &mut Vec<u8>) {
        self.write_chunk(out, None, logprobs, |out| write_all(out, &["\"content\":", text]));
    }

    /// Writes a refusal of the model.
    pub(crate) fn write_refusal(&self, refusal: JsonText<'_>, out: &mut Vec<u8>) {
        self.write_delta(out, |out| write_all(out, &["\"refusal\":", refusal.raw()]));
    }

    /// Writes a citation of the text.
    pub(crate) fn write_annotation(&self, out: &mut Vec<u8>, annotation: impl FnOnce(&mut Vec<u8>)) {
        self.write_delta(out, |out| {
            write_all(out, &["\"annotations\":["]);
            annotation(out);
            out.push(b']');
        });
    }

    /// Writes reasoning, or a fragment of it: `reasoning_content` for display (`read` is JSON) and `reasoning_details` to be
    /// sent back.
    pub(crate) fn write_reasoning(
        &self,
        read: Option<&str>,
        out: &mut Vec<u8>,
        detail: Option<impl FnOnce(&mut Vec<u8>)>,
    ) {
        self.write_delta(out, |out| {
            if let Some(read) = read {
                write_all(out, &["\"reasoning_content\":", read]);
            }
            if let Some(detail) = detail {
                let before = if read.is_some() { "," } else { "" };
                write_all(out, &[before, "\"reasoning_details\":["]);
                detail(out);
                out.push(b']');
            }
        });
    }

    /// Writes the start of a call. `number` is its index among the calls.
    pub(crate) fn write_call(
        &self,
        number: u64,
        called: CallKind,
        id: JsonText<'_>,
        name: JsonText<'_>,
        out: &mut Vec<u8>,
    ) {
        let (kind, argument) = called.json_names();
        self.write_call_delta(number, out, |out| {
            write_all(out, &[",\"id\":", id.raw(), ",\"type\":\"", kind, "\",\"", kind]);
            write_all(out, &["\":{\"name\":", name.raw(), ",\"", argument, "\":\"\"}"]);
        });
    }

    /// Writes a fragment of a call's arguments or input, as JSON.
    pub(crate) fn write_argument(
        &self,
        number: u64,
        called: CallKind,
        out: &mut Vec<u8>,
        fragment: impl FnOnce(&mut Vec<u8>),
    ) {
        let (kind, argument) = called.json_names();
        self.write_call_delta(number, out, |out| {
            write_all(out, &[",\"", kind, "\":{\"", argument, "\":"]);
            fragment(out);
            out.push(b'}');
        });
    }

    /// Writes the finish reason, the usage for a client that asked for it, and the final `[DONE]`.
    pub(crate) fn write_end(&self, reason: &str, usage: Option<&Usage>, out: &mut Vec<u8>) {
        self.write_chunk(out, Some(reason), None, |_| {});
        if let Some(usage) = usage.filter(|_| self.include_usage) {
            write_data(out, |out| {
                out.extend_from_slice(&self.prefix);
                write_all(out, &["],\"usage\":"]);
                write_usage(usage, out);
                out.push(b'}');
            });
        }
        write_data(out, |out| write_all(out, &["[DONE]"]));
    }

    fn write_call_delta(&self, number: u64, out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
        self.write_delta(out, |out| {
            write_all(out, &["\"tool_calls\":[{\"index\":"]);
            write_number(out, number);
            members(out);
            write_all(out, &["}]"]);
        });
    }

    fn write_delta(&self, out: &mut Vec<u8>, delta: impl FnOnce(&mut Vec<u8>)) {
        self.write_chunk(out, None, None, delta);
    }

    fn write_chunk(
        &self,
        out: &mut Vec<u8>,
        finish: Option<&str>,
        logprobs: Option<&str>,
        delta: impl FnOnce(&mut Vec<u8>),
    ) {
        write_data(out, |out| {
            out.extend_from_slice(&self.prefix);
            write_all(out, &["{\"index\":0,\"delta\":{"]);
            delta(out);
            out.push(b'}');
            if let Some(logprobs) = logprobs {
                write_all(
                    out,
                    &[",\"logprobs\":{\"content\":[", logprobs, "],\"refusal\":null}"],
                );
            }
            write_all(out, &[",\"finish_reason\":"]);
            match finish {
                Some(reason) => write_string(out, reason),
                None => write_all(out, &["null"]),
            }
            // As in OpenAI's API, only the chunk after the last choice has the usage.
            write_all(
                out,
                &[if self.include_usage {
                    "}],\"usage\":null}"
                } else {
                    "}]}"
                }],
            );
        });
    }
}
