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

/// What a token of an answer is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What the model thinks before it answers.
    Thinking,
    /// The answer's text.
    Text,
    /// The arguments of a tool's call, which are JSON.
    Arguments,
}

/// A stream of tokens: of text alone, or, to a request with tools, of thinking, text and a tool's call.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    events: Events,
    with_tools: bool,
    tokens: u32,
    sent: u32,
}

impl Stream {
    /// A stream of `tokens` tokens of which none has been sent.
    #[must_use]
    pub fn new(events: Events, with_tools: bool, tokens: u32) -> Self {
        Self {
            events,
            with_tools,
            tokens,
            sent: 0,
        }
    }

    /// Whether every token has been sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.sent >= self.tokens
    }

    /// What comes before the first token.
    pub fn begin(&self, output: &mut Vec<u8>) {
        match self.events {
            Events::OpenAi => delta(output, r#"{"role":"assistant","content":""}"#, "null"),
            Events::Anthropic => event(
                output,
                "message_start",
                concat!(
                    r#","message":{"id":"msg_bench","type":"message","role":"assistant","model":"claude-bench","#,
                    r#""content":[],"stop_reason":null,"stop_sequence":null,"#,
                    r#""usage":{"input_tokens":57,"output_tokens":1}}"#
                ),
            ),
        }
        self.begin_part(self.part(0), output);
    }

    /// The next token, which is `text`; behind the last one, the end of the stream and of the body.
    pub fn token(&mut self, output: &mut Vec<u8>, text: &str) {
        let part = self.part(self.sent);
        if self.sent > 0 && part != self.part(self.sent - 1) {
            self.end_part(self.part(self.sent - 1), output);
            self.begin_part(part, output);
        }
        self.delta_of(part, text, output);
        self.sent += 1;
        if self.is_over() {
            self.end_part(part, output);
            self.end(part, output);
        }
    }

    /// Of an answer with a tool's call a third is thinking and a third text.
    fn part(&self, token: u32) -> Part {
        let third = self.tokens.div_ceil(3);
        match token {
            _ if !self.with_tools => Part::Text,
            _ if token < third => Part::Thinking,
            _ if token < 2 * third => Part::Text,
            _ => Part::Arguments,
        }
    }

    /// The place of a part among the blocks of a message.
    fn index(&self, part: Part) -> u8 {
        match part {
            _ if !self.with_tools => 0,
            Part::Thinking => 0,
            Part::Text => 1,
            Part::Arguments => 2,
        }
    }

    fn begin_part(&self, part: Part, output: &mut Vec<u8>) {
        match (self.events, part) {
            (Events::OpenAi, Part::Arguments) => {
                let call = concat!(
                    r#"{"tool_calls":[{"index":0,"id":"call_bench","type":"function","#,
                    r#""function":{"name":"write_file","arguments":""}}]}"#
                );
                delta(output, call, "null");
            }
            (Events::OpenAi, _) => {}
            (Events::Anthropic, part) => {
                let block = match part {
                    Part::Thinking => r#"{"type":"thinking","thinking":"","signature":""}"#,
                    Part::Text => r#"{"type":"text","text":""}"#,
                    Part::Arguments => {
                        r#"{"type":"tool_use","id":"toolu_bench","name":"write_file","input":{}}"#
                    }
                };
                let index = self.index(part);
                let rest = format!(r#","index":{index},"content_block":{block}"#);
                event(output, "content_block_start", &rest);
            }
        }
        if part == Part::Arguments {
            self.delta_of(part, r#"{\"content\":\""#, output);
        }
    }

    fn end_part(&self, part: Part, output: &mut Vec<u8>) {
        if part == Part::Arguments {
            self.delta_of(part, r#"\"}"#, output);
        }
        if self.events == Events::Anthropic {
            let index = self.index(part);
            event(output, "content_block_stop", &format!(r#","index":{index}"#));
        }
    }

    /// A piece of a part; `text` as it stands in a JSON string.
    fn delta_of(&self, part: Part, text: &str, output: &mut Vec<u8>) {
        match self.events {
            Events::OpenAi => {
                let said = match part {
                    Part::Thinking => format!(r#"{{"reasoning_content":"{text}"}}"#),
                    Part::Text => format!(r#"{{"content":"{text}"}}"#),
                    Part::Arguments => {
                        format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]}}"#)
                    }
                };
                delta(output, &said, "null");
            }
            Events::Anthropic => {
                let (kind, field) = match part {
                    Part::Thinking => ("thinking_delta", "thinking"),
                    Part::Text => ("text_delta", "text"),
                    Part::Arguments => ("input_json_delta", "partial_json"),
                };
                let index = self.index(part);
                let rest = format!(r#","index":{index},"delta":{{"type":"{kind}","{field}":"{text}"}}"#);
                event(output, "content_block_delta", &rest);
            }
        }
    }

    fn end(&self, last: Part, output: &mut Vec<u8>) {
        let calls = last == Part::Arguments;
        match self.events {
            Events::OpenAi => {
                delta(output, "{}", if calls { r#""tool_calls""# } else { r#""stop""# });
                chunk(output, &["data: [DONE]\n\n"]);
            }
            Events::Anthropic => {
                let reason = if calls { "tool_use" } else { "end_turn" };
                let usage = format!(
                    r#","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":200}}"#
                );
                event(output, "message_delta", &usage);
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
