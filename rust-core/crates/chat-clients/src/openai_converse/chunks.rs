use crate::openai_converse::finish_reason::FinishReason;
use crate::openai_converse::response::completion_id;
use crate::openai_converse::usage::write_usage;
use proofgate_dialect::json::write_all;
use proofgate_dialect::json::write_string;
use proofgate_dialect::{RequestContext, Usage, write_data};

/// Writes the chunks of a completion, and keeps their common prefix.
#[derive(Debug)]
pub(super) struct ChunkWriter {
    model: String,
    created: u64,
    include_usage: bool,
    /// The part of every chunk up to its `choices`; empty before the first event.
    prefix: Vec<u8>,
}

impl ChunkWriter {
    pub(super) fn new(asked: &RequestContext, created: u64) -> Self {
        ChunkWriter {
            model: asked.model.clone(),
            created,
            include_usage: asked.include_usage,
            prefix: Vec::new(),
        }
    }

    /// Returns whether a chunk has been written.
    pub(super) fn has_started(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Writes the first chunk, which names the role. Converse's answers have no id, so the id is a hash of the provider's
    /// first event; two answers with the same start in the same second have the same id.
    pub(super) fn write_start(&mut self, first_event: &[u8], out: &mut Vec<u8>) {
        let head = &mut self.prefix;
        write_all(
            head,
            &[
                r#"{"id":""#,
                &completion_id(self.created, first_event),
                r#"","object":"chat.completion.chunk","created":"#,
                itoa::Buffer::new().format(self.created),
                r#","model":"#,
            ],
        );
        write_string(head, &self.model);
        write_all(head, &[r#","choices":["#]);
        self.write_delta(out, &[r#""role":"assistant","content":"""#]);
    }

    /// Writes a chunk whose `delta` consists of these pieces of fields.
    pub(super) fn write_delta(&self, out: &mut Vec<u8>, fields: &[&str]) {
        self.write_choice(out, fields, None);
    }

    /// Writes the chunk with the finish reason.
    pub(super) fn write_finish(&self, out: &mut Vec<u8>, finish: FinishReason) {
        self.write_choice(out, &[], Some(finish));
    }

    fn write_choice(&self, out: &mut Vec<u8>, fields: &[&str], finish: Option<FinishReason>) {
        write_data(out, |out| {
            out.extend_from_slice(&self.prefix);
            write_all(out, &[r#"{"index":0,"delta":{"#]);
            write_all(out, fields);
            write_all(out, &[r#"},"logprobs":null,"finish_reason":"#]);
            match finish {
                Some(finish) => {
                    write_all(out, &["\"", finish.reason, "\""]);
                    finish.write_native(out);
                }
                None => write_all(out, &["null"]),
            }
            let usage = if self.include_usage {
                r#","usage":null"#
            } else {
                ""
            };
            write_all(out, &["}]", usage, "}"]);
        });
    }

    /// Writes the chunk with the usage, if the client asked for it, and the end of the stream.
    pub(super) fn write_end(&self, out: &mut Vec<u8>, usage: &Usage) {
        if self.include_usage {
            write_data(out, |out| {
                out.extend_from_slice(&self.prefix);
                write_all(out, &[r#"],"usage":"#]);
                write_usage(out, usage);
                out.push(b'}');
            });
        }
        write_data(out, |out| out.extend_from_slice(b"[DONE]"));
    }
}
