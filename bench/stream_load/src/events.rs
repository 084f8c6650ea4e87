//! The events of a stream of tokens, as OpenAI's chat completions and Anthropic's messages write them, each one chunk.

/// Whose events an upstream writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// Chunks of a chat completion, ended by `[DONE]`.
    OpenAi,
    /// Events of a message, ended by `message_stop`.
    Anthropic,
}

/// How a stream ends that has ended well, as its lines begin.
pub const GOOD_ENDS: [&[u8]; 3] = [b"data: [DONE]", b"data:[DONE]", b"event: message_stop"];

impl Events {
    /// Reads the name of one.
    ///
    /// # Errors
    /// It is no such name.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "openai" => Ok(Self::OpenAi),
            "anthropic" => Ok(Self::Anthropic),
            _ => Err(format!("--events: {name} is neither openai nor anthropic")),
        }
    }

    /// What comes before the first token.
    pub fn begin(self, output: &mut Vec<u8>) {
        match self {
            Self::OpenAi => delta(output, r#"{"role":"assistant","content":""}"#, "null"),
            Self::Anthropic => {
                event(
                    output,
                    "message_start",
                    concat!(
                        r#","message":{"id":"msg_bench","type":"message","role":"assistant","model":"claude-bench","#,
                        r#""content":[],"stop_reason":null,"stop_sequence":null,"#,
                        r#""usage":{"input_tokens":57,"output_tokens":1}}"#
                    ),
                );
                event(
                    output,
                    "content_block_start",
                    r#","index":0,"content_block":{"type":"text","text":""}"#,
                );
            }
        }
    }

    /// A token, which is `text`.
    pub fn token(self, output: &mut Vec<u8>, text: &str) {
        match self {
            Self::OpenAi => delta(output, &format!(r#"{{"content":"{text}"}}"#), "null"),
            Self::Anthropic => event(
                output,
                "content_block_delta",
                &format!(r#","index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#),
            ),
        }
    }

    /// What comes behind the last token, with the end of the body.
    pub fn end(self, output: &mut Vec<u8>) {
        match self {
            Self::OpenAi => {
                delta(output, "{}", r#""stop""#);
                chunk(output, &["data: [DONE]\n\n"]);
            }
            Self::Anthropic => {
                event(output, "content_block_stop", r#","index":0"#);
                let usage = r#","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":200}"#;
                event(output, "message_delta", usage);
                event(output, "message_stop", "");
            }
        }
        output.extend_from_slice(b"0\r\n\r\n");
    }
}

/// Appends an event of a chat completion.
fn delta(output: &mut Vec<u8>, delta: &str, finish: &str) {
    const HEAD: &str = concat!(
        r#"data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"#,
        r#""model":"gpt-4o-mini","choices":[{"index":0,"delta":"#
    );
    chunk(output, &[HEAD, delta, r#","finish_reason":"#, finish, "}]}\n\n"]);
}

/// Appends an event of a message; `rest` is what its object holds behind its type.
fn event(output: &mut Vec<u8>, name: &str, rest: &str) {
    chunk(
        output,
        &["event: ", name, "\ndata: {\"type\":\"", name, "\"", rest, "}\n\n"],
    );
}

fn chunk(output: &mut Vec<u8>, parts: &[&str]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    output.extend_from_slice(format!("{length:x}\r\n").as_bytes());
    for part in parts.iter().chain(&["\r\n"]) {
        output.extend_from_slice(part.as_bytes());
    }
}
