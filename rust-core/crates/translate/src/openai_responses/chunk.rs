use crate::json::write_member;
use crate::json::{write_number, write_string};
use crate::json_text::JsonText;
use crate::openai_anthropic::tokens::write_usage;
use crate::openai_responses::output::{Annotation, Call, Detail, write_detail};
use crate::{Usage, write_data};

/// Writes the chunks of one streamed chat completion. All of them begin alike.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// A chunk up to its `choices`.
    head: Vec<u8>,
    include_usage: bool,
}

impl Chunks {
    /// Chunks of the answer with this id, which is JSON already.
    pub(super) fn of(id: &str, created: u64, model: &str, include_usage: bool) -> Self {
        let mut head = b"{\"id\":".to_vec();
        head.extend_from_slice(id.as_bytes());
        head.extend_from_slice(b",\"object\":\"chat.completion.chunk\",\"created\":");
        write_number(&mut head, created);
        head.extend_from_slice(b",\"model\":");
        write_string(&mut head, model);
        head.extend_from_slice(b",\"choices\":[");
        Chunks { head, include_usage }
    }

    /// The first chunk, which says who speaks.
    pub(super) fn write_role(&self, out: &mut Vec<u8>) {
        self.write(out, None, None, |out| {
            out.extend_from_slice(b"\"role\":\"assistant\",\"content\":\"\",\"refusal\":null");
        });
    }

    /// Text of the answer; `text` is JSON, and `logprobs` are the elements of a list.
    pub(super) fn write_text(&self, text: &str, logprobs: Option<&str>, out: &mut Vec<u8>) {
        self.write(out, None, logprobs, |out| {
            out.extend_from_slice(b"\"content\":");
            out.extend_from_slice(text.as_bytes());
        });
    }

    /// By which the model declines.
    pub(super) fn write_refusal(&self, refusal: JsonText<'_>, out: &mut Vec<u8>) {
        self.write(out, None, None, |out| {
            out.extend_from_slice(b"\"refusal\":");
            out.extend_from_slice(refusal.raw().as_bytes());
        });
    }

    /// What the text cites, whose indexes count from `before` characters on.
    pub(super) fn write_annotation(&self, annotation: &Annotation<'_>, before: u64, out: &mut Vec<u8>) {
        self.write(out, None, None, |out| {
            out.extend_from_slice(b"\"annotations\":[");
            annotation.write(before, out);
            out.push(b']');
        });
    }

    /// Reasoning, or a fragment of it, for those who read it (`read` is JSON) and for those who send it back.
    pub(super) fn write_reasoning(
        &self,
        read: Option<&str>,
        detail: Option<Detail<'_>>,
        index: u64,
        id: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        self.write(out, None, None, |out| {
            if let Some(read) = read {
                out.extend_from_slice(b"\"reasoning_content\":");
                out.extend_from_slice(read.as_bytes());
            }
            if let Some(detail) = detail {
                out.extend_from_slice(if read.is_some() { b"," } else { b"" });
                out.extend_from_slice(b"\"reasoning_details\":[");
                write_detail(detail, index, id, out);
                out.push(b']');
            }
        });
    }

    /// The begin of a call, counted among the calls.
    pub(super) fn write_call(&self, number: u64, call: &Call<'_>, out: &mut Vec<u8>) {
        let (kind, argument) = names_of(call.is_custom);
        self.write_of_call(number, out, |out| {
            write_member(out, "id", Some(call.id.raw()));
            for piece in [
                ",\"type\":\"",
                kind,
                "\",\"",
                kind,
                "\":{\"name\":",
                call.name.raw(),
                ",\"",
                argument,
                "\":\"\"}",
            ] {
                out.extend_from_slice(piece.as_bytes());
            }
        });
    }

    /// A fragment of a call's arguments or input, which is JSON.
    pub(super) fn write_argument(&self, number: u64, is_custom: bool, fragment: &str, out: &mut Vec<u8>) {
        let (kind, argument) = names_of(is_custom);
        self.write_of_call(number, out, |out| {
            for piece in [",\"", kind, "\":{\"", argument, "\":", fragment, "}"] {
                out.extend_from_slice(piece.as_bytes());
            }
        });
    }

    /// The end: why, what it cost for a client that asked for it, and the mark behind which nothing comes.
    pub(super) fn write_end(&self, reason: &str, usage: &Usage, out: &mut Vec<u8>) {
        self.write(out, Some(reason), None, |_| {});
        if self.include_usage {
            write_data(out, |out| {
                out.extend_from_slice(&self.head);
                out.extend_from_slice(b"],\"usage\":");
                write_usage(usage, out);
                out.push(b'}');
            });
        }
        write_data(out, |out| out.extend_from_slice(b"[DONE]"));
    }

    fn write_of_call(&self, number: u64, out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
        self.write(out, None, None, |out| {
            out.extend_from_slice(b"\"tool_calls\":[{\"index\":");
            write_number(out, number);
            members(out);
            out.extend_from_slice(b"}]");
        });
    }

    fn write(
        &self,
        out: &mut Vec<u8>,
        finish: Option<&str>,
        logprobs: Option<&str>,
        delta: impl FnOnce(&mut Vec<u8>),
    ) {
        write_data(out, |out| {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b"{\"index\":0,\"delta\":{");
            delta(out);
            out.push(b'}');
            if let Some(logprobs) = logprobs {
                for piece in [",\"logprobs\":{\"content\":[", logprobs, "],\"refusal\":null}"] {
                    out.extend_from_slice(piece.as_bytes());
                }
            }
            out.extend_from_slice(b",\"finish_reason\":");
            match finish {
                Some(reason) => write_string(out, reason),
                None => out.extend_from_slice(b"null"),
            }
            // As OpenAI has it: only the chunk behind the last choice tells the usage.
            out.extend_from_slice(match self.include_usage {
                true => b"}],\"usage\":null}",
                false => b"}]}",
            });
        });
    }
}

/// The member that a call has for its type, and the name of what the tool is given there.
fn names_of(is_custom: bool) -> (&'static str, &'static str) {
    match is_custom {
        true => ("custom", "input"),
        false => ("function", "arguments"),
    }
}
