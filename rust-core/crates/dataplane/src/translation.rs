//! A client and a provider that do not speak the same dialect.

use proofgate_providers::{Dialect, EXCEPTION, Family, event_parts};
use proofgate_translate::openai_gemini::embeddings;
use proofgate_translate::{
    AnswerError, Asked, EventKind, Step, Target, Untranslatable, anthropic_invoke, anthropic_openai,
    anthropic_raw_predict, openai_anthropic, openai_converse, openai_gemini,
};

/// Who speaks what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    /// A client of chat completions, and Anthropic's messages.
    OpenAiAnthropic,
    /// A client of Anthropic's messages, and chat completions.
    AnthropicOpenAi,
    /// A client of chat completions, and Google's Gemini.
    OpenAiGemini,
    /// A client of OpenAI's embeddings, and Google's.
    OpenAiGeminiEmbeddings,
    /// A client of Google's embeddings: the body names the model besides the path.
    GeminiEmbeddings,
    /// A client of chat completions, and Amazon Bedrock's Converse.
    OpenAiConverse,
    /// A client of Anthropic's messages, and a Claude model that Amazon Bedrock invokes.
    AnthropicInvoke,
    /// A client of Anthropic's messages, and a Claude model on Vertex AI.
    AnthropicRawPredict,
    /// A client of chat completions, and a Claude model on Vertex AI.
    OpenAiRawPredict,
}

/// The version of Anthropic's API that translated requests are written in: it still knows sampling fields.
const ANTHROPIC_VERSION: &[u8] = b"anthropic-version: 2023-06-01\r\n";

impl Pair {
    /// What lies between a client and a provider that knows the model as `model`; `None` when nothing can.
    pub(crate) fn between(client: Dialect, provider: Family, model: &str) -> Option<Pair> {
        match (client, provider) {
            (Dialect::Chat, Family::Anthropic) => Some(Pair::OpenAiAnthropic),
            (Dialect::Messages, Family::OpenAi) => Some(Pair::AnthropicOpenAi),
            (Dialect::Chat, Family::Google) => Some(Pair::OpenAiGemini),
            (Dialect::Embeddings, Family::Google) => Some(Pair::OpenAiGeminiEmbeddings),
            (Dialect::GeminiEmbeddings, Family::Google) => Some(Pair::GeminiEmbeddings),
            (Dialect::Chat, Family::Amazon) => Some(Pair::OpenAiConverse),
            (Dialect::Messages, Family::Amazon) => {
                anthropic_invoke::takes_messages(model).then_some(Pair::AnthropicInvoke)
            }
            _ => None,
        }
    }

    /// The same of a model on Vertex AI, whose publisher says what is spoken there.
    pub(crate) fn at_publisher(client: Dialect, model: &str) -> Option<Pair> {
        match (client, anthropic_raw_predict::takes_messages(model)) {
            (Dialect::Messages, true) => Some(Pair::AnthropicRawPredict),
            (Dialect::Chat, true) => Some(Pair::OpenAiRawPredict),
            (Dialect::Chat, false) => Some(Pair::OpenAiGemini),
            _ => None,
        }
    }

    /// Whether the provider is told in the body which of Anthropic's betas are used, and not in the head.
    pub(crate) fn has_betas_in_body(self) -> bool {
        matches!(self, Pair::AnthropicInvoke | Pair::AnthropicRawPredict)
    }

    /// What the provider speaks.
    pub(crate) fn upstream(self) -> Dialect {
        match self {
            Pair::OpenAiAnthropic | Pair::AnthropicRawPredict | Pair::OpenAiRawPredict => Dialect::Messages,
            Pair::AnthropicOpenAi => Dialect::Chat,
            Pair::OpenAiGemini => Dialect::Gemini,
            Pair::OpenAiGeminiEmbeddings | Pair::GeminiEmbeddings => Dialect::GeminiEmbeddings,
            Pair::OpenAiConverse => Dialect::Converse,
            Pair::AnthropicInvoke => Dialect::Invoke,
        }
    }

    /// How many bytes a request may have at the provider at most, whose body has `length`: a text may become longer by what is
    /// escaped anew, a message by what frames it, and each of some texts by the name of the model.
    pub(crate) fn most_bytes(self, length: usize, model: &str) -> usize {
        let most = length.saturating_mul(2).saturating_add(4096);
        match self {
            Pair::OpenAiGeminiEmbeddings | Pair::GeminiEmbeddings => {
                // The shortest of them take three bytes.
                let texts = embeddings::MOST_TEXTS.min(length / 3 + 1);
                most.saturating_add(texts.saturating_mul(model.len().saturating_add(128)))
            }
            _ => most,
        }
    }

    /// Writes what the provider is sent for a model that the client calls `asked_for`. `betas`: those of Anthropic's that the client uses and may use.
    pub(crate) fn request(
        self,
        body: &[u8],
        asked_for: &str,
        target: &Target<'_>,
        betas: &[&str],
        out: &mut Vec<u8>,
    ) -> Result<Asked, Untranslatable> {
        match self {
            Pair::OpenAiAnthropic => openai_anthropic::request(body, target, out),
            Pair::AnthropicOpenAi => anthropic_openai::request(body, target, out),
            Pair::OpenAiGemini => openai_gemini::request(body, target, out),
            Pair::OpenAiGeminiEmbeddings => embeddings::request(body, target, out),
            Pair::GeminiEmbeddings => embeddings::renamed(body, asked_for, target, out),
            Pair::OpenAiConverse => openai_converse::request(body, target, out),
            Pair::AnthropicInvoke => anthropic_invoke::request(body, target, betas, out),
            Pair::AnthropicRawPredict => anthropic_raw_predict::request(body, betas, out),
            Pair::OpenAiRawPredict => anthropic_raw_predict::chat_request(body, target, out),
        }
    }
}

/// The way back of one exchange.
pub(crate) struct Translation {
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
}

impl Translation {
    pub(crate) fn new(pair: Pair, asked: Asked, created: u64, prompt_tokens: u64) -> Self {
        Translation {
            pair,
            asked,
            created,
            prompt_tokens,
            stream: None,
        }
    }

    /// What the provider speaks.
    pub(crate) fn upstream(&self) -> Dialect {
        self.pair.upstream()
    }

    /// Whether the client wants a stream.
    pub(crate) fn is_streamed(&self) -> bool {
        self.asked.stream
    }

    /// The names of the fields that the request lost.
    pub(crate) fn dropped(&self) -> &[&'static str] {
        &self.asked.dropped
    }

    /// Header lines of the request.
    pub(crate) fn fields(&self) -> &'static [u8] {
        match self.pair {
            Pair::OpenAiAnthropic => ANTHROPIC_VERSION,
            _ => b"",
        }
    }

    /// Writes a whole answer of success.
    pub(crate) fn answer(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), AnswerError> {
        match self.pair {
            Pair::OpenAiAnthropic | Pair::OpenAiRawPredict => {
                openai_anthropic::answer(body, &self.asked, self.created, out)
            }
            Pair::AnthropicOpenAi => anthropic_openai::answer(body, &self.asked, out),
            Pair::OpenAiGemini => openai_gemini::answer(body, &self.asked, self.created, out),
            Pair::OpenAiGeminiEmbeddings => embeddings::answer(body, &self.asked, self.prompt_tokens, out),
            Pair::GeminiEmbeddings => {
                out.extend_from_slice(body);
                return Ok(());
            }
            Pair::OpenAiConverse => openai_converse::answer(body, &self.asked, self.created, out),
            Pair::AnthropicInvoke => return anthropic_invoke::answer(body, out),
            Pair::AnthropicRawPredict => return anthropic_raw_predict::answer(body, out),
        }
        .map(|_usage| ())
    }

    /// Writes what the provider says of a failure. `kind`: how a field of the answer's head names it.
    pub(crate) fn error(&self, status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
        match self.pair {
            Pair::OpenAiAnthropic | Pair::OpenAiRawPredict => openai_anthropic::error(status, body, out),
            Pair::AnthropicOpenAi => anthropic_openai::error(status, body, out),
            Pair::OpenAiGemini | Pair::OpenAiGeminiEmbeddings => openai_gemini::error(status, body, out),
            Pair::GeminiEmbeddings => out.extend_from_slice(body),
            Pair::OpenAiConverse => openai_converse::error(status, kind, body, out),
            Pair::AnthropicInvoke => anthropic_invoke::error(status, kind, body, out),
            Pair::AnthropicRawPredict => anthropic_raw_predict::error(status, body, out),
        }
    }

    /// For how many seconds the provider wants no further request, where it says so in an error's body and not in a header.
    pub(crate) fn retry_after(&self, body: &[u8]) -> Option<u64> {
        match self.pair {
            Pair::OpenAiGemini | Pair::OpenAiGeminiEmbeddings => openai_gemini::retry_after(body),
            _ => None,
        }
    }

    /// Takes an event of a stream and writes those that the client gets for it.
    pub(crate) fn event(&mut self, event: &[u8], out: &mut Vec<u8>) -> Result<Step, AnswerError> {
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
                Pair::OpenAiGemini => Stream::OpenAiGemini(openai_gemini::Stream::new(asked, self.created)),
                Pair::OpenAiConverse => {
                    Stream::OpenAiConverse(openai_converse::Stream::new(asked, self.created))
                }
                Pair::AnthropicInvoke => Stream::AnthropicInvoke(anthropic_invoke::Stream::new()),
                Pair::AnthropicRawPredict => {
                    Stream::AnthropicRawPredict(anthropic_raw_predict::Stream::new())
                }
                Pair::OpenAiGeminiEmbeddings | Pair::GeminiEmbeddings => {
                    return Err(AnswerError::Malformed("embeddings are no stream"));
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
            Stream::OpenAiConverse(stream) => stream.event(kind, of_kind, &data, out),
            Stream::AnthropicInvoke(stream) => stream.event(kind, of_kind, &data, out),
            Stream::AnthropicRawPredict(stream) => stream.event(name, &data, out),
        }
    }

    /// Whether events of a stream are the client's already.
    pub(crate) fn passes_events(&self) -> bool {
        matches!(self.pair, Pair::AnthropicInvoke | Pair::AnthropicRawPredict)
    }

    /// The body of the provider's stream has ended well: writes the client's end, if the stream has told why it finished. Returns
    /// whether it has; some providers leave out the mark that follows.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, AnswerError> {
        match &mut self.stream {
            Some(Stream::OpenAiGemini(stream)) => Ok(stream.finish(out)? == Step::Ended),
            Some(Stream::AnthropicOpenAi(stream)) => Ok(stream.event("", b"[DONE]", out)? == Step::Ended),
            Some(Stream::OpenAiAnthropic(stream)) => {
                let stop = br#"{"type":"message_stop"}"#;
                Ok(stream.event("message_stop", stop, out)? == Step::Ended)
            }
            _ => Ok(false),
        }
    }
}
