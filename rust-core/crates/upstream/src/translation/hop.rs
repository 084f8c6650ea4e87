//! An answer in its provider's dialect, as it is said in another one.

use proofgate_providers::{Dialect, EXCEPTION, event_parts};
use proofgate_translate::openai_gemini::embeddings;
use proofgate_translate::{
    AnswerError, Asked, EventKind, Step, anthropic_invoke, anthropic_invoke_tokens, anthropic_openai,
    anthropic_raw_predict, chat_customs, openai_anthropic, openai_converse, openai_gemini, openai_responses,
    responses_openai,
};

use super::pair::Pair;

/// The version of Anthropic's API that translated requests are written in: it still knows sampling fields.
const ANTHROPIC_VERSION: &[u8] = b"anthropic-version: 2023-06-01\r\n";

/// The way back over one pair.
pub(super) struct Hop {
    pair: Pair,
    asked: Asked,
    /// When the answer was made, in unix seconds.
    created: u64,
    /// Tokens of the prompt, about.
    prompt_tokens: u64,
    stream: Option<Stream>,
}

enum Stream {
    OpenAiAnthropic(openai_anthropic::Stream),
    AnthropicOpenAi(anthropic_openai::Stream),
    OpenAiGemini(openai_gemini::Stream),
    OpenAiConverse(openai_converse::Stream),
    AnthropicInvoke(anthropic_invoke::Stream),
    AnthropicRawPredict(anthropic_raw_predict::Stream),
    OpenAiResponses(openai_responses::Stream),
    ResponsesOpenAi(Box<responses_openai::Stream>),
    ChatFunctions(chat_customs::Stream),
}

impl Hop {
    pub(super) fn new(pair: Pair, asked: Asked, created: u64, prompt_tokens: u64) -> Self {
        Hop {
            pair,
            asked,
            created,
            prompt_tokens,
            stream: None,
        }
    }

    /// What the provider speaks.
    pub(super) fn upstream(&self) -> Dialect {
        self.pair.upstream()
    }

    /// Whether the client wants a stream.
    pub(super) fn is_streamed(&self) -> bool {
        self.asked.stream
    }

    /// The names of the fields that the request lost.
    pub(super) fn dropped(&self) -> &[&'static str] {
        &self.asked.dropped
    }

    /// Header lines of the request.
    pub(super) fn fields(&self) -> &'static [u8] {
        match self.pair {
            Pair::OpenAiAnthropic => ANTHROPIC_VERSION,
            _ => b"",
        }
    }

    /// Writes a whole answer of success.
    pub(super) fn answer(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), AnswerError> {
        match self.pair {
            Pair::OpenAiAnthropic | Pair::OpenAiRawPredict => {
                openai_anthropic::answer(body, &self.asked, self.created, out)
            }
            Pair::AnthropicOpenAi => anthropic_openai::answer(body, &self.asked, out),
            Pair::OpenAiResponses => openai_responses::answer(body, &self.asked, self.created, out),
            Pair::ResponsesOpenAi => responses_openai::answer(body, &self.asked, self.created, out),
            Pair::OpenAiGemini => openai_gemini::answer(body, &self.asked, self.created, out),
            Pair::OpenAiGeminiEmbeddings => embeddings::answer(body, &self.asked, self.prompt_tokens, out),
            Pair::GeminiEmbeddings => {
                out.extend_from_slice(body);
                return Ok(());
            }
            Pair::OpenAiConverse => openai_converse::answer(body, &self.asked, self.created, out),
            Pair::ChatFunctions => return chat_customs::answer(body, &self.asked, out),
            Pair::AnthropicInvoke => return anthropic_invoke::answer(body, out),
            Pair::AnthropicInvokeTokens => return anthropic_invoke_tokens::answer(body, out),
            Pair::AnthropicRawPredict => return anthropic_raw_predict::answer(body, out),
        }
        .map(|_usage| ())
    }

    /// Writes what the provider says of a failure. `kind`: how a field of the answer's head names it.
    pub(super) fn error(&self, status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
        match self.pair {
            Pair::OpenAiAnthropic | Pair::OpenAiRawPredict => openai_anthropic::error(status, body, out),
            Pair::AnthropicOpenAi => anthropic_openai::error(status, body, out),
            Pair::OpenAiResponses => openai_responses::error(status, body, out),
            Pair::ResponsesOpenAi => responses_openai::error(status, body, out),
            Pair::OpenAiGemini | Pair::OpenAiGeminiEmbeddings => openai_gemini::error(status, body, out),
            Pair::GeminiEmbeddings | Pair::ChatFunctions => out.extend_from_slice(body),
            Pair::OpenAiConverse => openai_converse::error(status, kind, body, out),
            Pair::AnthropicInvoke | Pair::AnthropicInvokeTokens => {
                anthropic_invoke::error(status, kind, body, out);
            }
            Pair::AnthropicRawPredict => anthropic_raw_predict::error(status, body, out),
        }
    }

    /// For how many seconds the provider wants no further request, where it says so in an error's body and not in a header.
    pub(super) fn retry_after(&self, body: &[u8]) -> Option<u64> {
        match self.pair {
            Pair::OpenAiGemini | Pair::OpenAiGeminiEmbeddings => openai_gemini::retry_after(body),
            _ => None,
        }
    }

    /// Takes an event of a stream and writes those that the client gets for it.
    pub(super) fn event(&mut self, event: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
        let (name, data) = event_parts(event);
        if data.is_empty() {
            // A comment, or a name alone: what keeps the connection busy.
            return Ok(Step::Continues);
        }
        let (pair, asked) = (self.pair, &self.asked);
        let new = || {
            Ok(match pair {
                Pair::OpenAiAnthropic | Pair::OpenAiRawPredict => {
                    Stream::OpenAiAnthropic(openai_anthropic::Stream::new(asked, self.created))
                }
                Pair::AnthropicOpenAi => {
                    Stream::AnthropicOpenAi(anthropic_openai::Stream::new(asked, self.prompt_tokens))
                }
                Pair::OpenAiResponses => {
                    Stream::OpenAiResponses(openai_responses::Stream::new(asked, self.created))
                }
                Pair::ResponsesOpenAi => {
                    Stream::ResponsesOpenAi(Box::new(responses_openai::Stream::new(asked, self.created)))
                }
                Pair::OpenAiGemini => Stream::OpenAiGemini(openai_gemini::Stream::new(asked, self.created)),
                Pair::OpenAiConverse => {
                    Stream::OpenAiConverse(openai_converse::Stream::new(asked, self.created))
                }
                Pair::ChatFunctions => Stream::ChatFunctions(chat_customs::Stream::new(asked)),
                Pair::AnthropicInvoke => Stream::AnthropicInvoke(anthropic_invoke::Stream::new()),
                Pair::AnthropicRawPredict => {
                    Stream::AnthropicRawPredict(anthropic_raw_predict::Stream::new())
                }
                Pair::OpenAiGeminiEmbeddings | Pair::GeminiEmbeddings | Pair::AnthropicInvokeTokens => {
                    return Err(AnswerError::Malformed("it is not a stream"));
                }
            })
        };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(new()?),
        };
        let (kind, of_kind) = match name.strip_prefix(EXCEPTION) {
            Some(exception) => (EventKind::Exception, exception),
            None => (EventKind::Event, name),
        };
        match stream {
            Stream::OpenAiAnthropic(stream) => stream.event(name, &data, out),
            Stream::AnthropicOpenAi(stream) => stream.event(name, &data, out),
            Stream::OpenAiGemini(stream) => stream.event(name, &data, out),
            Stream::OpenAiResponses(stream) => stream.event(name, &data, out),
            Stream::ResponsesOpenAi(stream) => stream.event(name, &data, out),
            Stream::ChatFunctions(stream) => stream.event(&data, out),
            Stream::OpenAiConverse(stream) => stream.event(kind, of_kind, &data, out),
            Stream::AnthropicInvoke(stream) => stream.event(kind, of_kind, &data, out),
            Stream::AnthropicRawPredict(stream) => stream.event(name, &data, out),
        }
    }

    /// Whether events of a stream are the client's already.
    pub(super) fn passes_events(&self) -> bool {
        matches!(self.pair, Pair::AnthropicInvoke | Pair::AnthropicRawPredict)
    }

    /// The body of the provider's stream has ended well: writes the client's end, if the stream has told why it finished. Returns
    /// whether it has; some providers leave out the mark that follows.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, AnswerError> {
        match &mut self.stream {
            Some(Stream::OpenAiGemini(stream)) => Ok(stream.finish(out)? == Step::Ended),
            Some(Stream::AnthropicOpenAi(stream)) => Ok(stream.event("", b"[DONE]", out)? == Step::Ended),
            Some(Stream::ResponsesOpenAi(stream)) => Ok(stream.event("", b"[DONE]", out)? == Step::Ended),
            Some(Stream::OpenAiAnthropic(stream)) => {
                let stop = br#"{"type":"message_stop"}"#;
                Ok(stream.event("message_stop", stop, out)? == Step::Ended)
            }
            _ => Ok(false),
        }
    }
}
