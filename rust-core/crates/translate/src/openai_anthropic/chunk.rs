use crate::json::{write_number, write_string};
use crate::json_text::JsonText;
use crate::openai_anthropic::answer::{Said, write_detail};
use crate::openai_anthropic::tokens::write_usage;
use crate::{Usage, write_data};

/// Writes the chunks of one streamed chat completion. All of them begin alike.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// A chunk up to its `choices`.
    head: Vec<u8>,
    include_usage: bool,
}

impl Chunks {
    /// Chunks of the answer with this id.
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
        self.write(out, None, |out| {
            out.extend_from_slice(b"\"role\":\"assistant\",\"content\":\"\",\"refusal\":null");
        });
    }

    /// Text of the answer, if it is any.
    pub(super) fn write_text(&self, text: JsonText<'_>, out: &mut Vec<u8>) {
        if !text.is_empty() {
            self.write_string("content", text, out);
        }
    }

    /// Why the model refused.
    pub(super) fn write_refusal(&self, explanation: JsonText<'_>, out: &mut Vec<u8>) {
        self.write_string("refusal", explanation, out);
    }

    /// The begin of a call, counted among the calls.
    pub(super) fn write_call(&self, number: u64, id: JsonText<'_>, name: JsonText<'_>, out: &mut Vec<u8>) {
        self.write_of_call(number, out, |out| {
            out.extend_from_slice(b",\"id\":");
            out.extend_from_slice(id.raw().as_bytes());
            out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
            out.extend_from_slice(name.raw().as_bytes());
            out.extend_from_slice(b",\"arguments\":\"\"}");
        });
    }

    /// A fragment of a call's arguments, which is written as a JSON string.
    pub(super) fn write_arguments(
        &self,
        number: u64,
        out: &mut Vec<u8>,
        fragment: impl FnOnce(&mut Vec<u8>),
    ) {
        self.write_of_call(number, out, |out| {
            out.extend_from_slice(b",\"function\":{\"arguments\":");
            fragment(out);
            out.push(b'}');
        });
    }

    /// Reasoning, or a fragment of it, for those who read it and for those who send it back.
    pub(super) fn write_reasoning(&self, said: &Said<'_>, number: u64, out: &mut Vec<u8>) {
        let (text, signature) = match *said {
            Said::Thinking { thinking, signature } => {
                (thinking.filter(|thinking| !thinking.is_empty()), signature)
            }
            _ => (None, None),
        };
        if matches!(said, Said::Thinking { .. }) && text.is_none() && signature.is_none() {
            return;
        }
        self.write(out, None, |out| {
            if let Some(text) = text {
                out.extend_from_slice(b"\"reasoning_content\":");
                out.extend_from_slice(text.raw().as_bytes());
                out.push(b',');
            }
            out.extend_from_slice(b"\"reasoning_details\":[");
            write_detail(said, number, out);
            out.push(b']');
        });
    }

    /// The end: why, what it cost for a client that asked for it, and the mark behind which nothing comes.
    pub(super) fn write_end(&self, reason: &str, usage: Option<&Usage>, out: &mut Vec<u8>) {
        self.write(out, Some(reason), |_| {});
        if let Some(usage) = usage.filter(|_| self.include_usage) {
            write_data(out, |out| {
                out.extend_from_slice(&self.head);
                out.extend_from_slice(b"],\"usage\":");
                write_usage(usage, out);
                out.push(b'}');
            });
        }
        write_data(out, |out| out.extend_from_slice(b"[DONE]"));
    }

    fn write_string(&self, name: &str, value: JsonText<'_>, out: &mut Vec<u8>) {
        self.write(out, None, |out| {
            out.push(b'"');
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(value.raw().as_bytes());
        });
    }

    fn write_of_call(&self, number: u64, out: &mut Vec<u8>, members: impl FnOnce(&mut Vec<u8>)) {
        self.write(out, None, |out| {
            out.extend_from_slice(b"\"tool_calls\":[{\"index\":");
            write_number(out, number);
            members(out);
            out.extend_from_slice(b"}]");
        });
    }

    fn write(&self, out: &mut Vec<u8>, finish: Option<&str>, delta: impl FnOnce(&mut Vec<u8>)) {
        write_data(out, |out| {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b"{\"index\":0,\"delta\":{");
            delta(out);
            out.extend_from_slice(b"},\"finish_reason\":");
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
