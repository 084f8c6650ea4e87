//! Translates a response from its provider's dialect to another dialect.

use proofgate_providers::{Dialect, EXCEPTION_PREFIX, event_parts};
use proofgate_translate::openai_gemini::embeddings;
use proofgate_translate::{
    EventKind, RequestContext, ResponseError, StreamStatus, anthropic_invoke, anthropic_invoke_tokens,
    anthropic_openai, anthropic_raw_predict, chat_custom_tools, openai_anthropic, openai_converse,
    openai_gemini, openai_responses, responses_openai,
};

use super::pair::DialectPair;

/// The version of Anthropic's API for translated requests, which still supports sampling fields.
const ANTHROPIC_VERSION: &[u8] = b"anthropic-version: 2023-06-01\r\n";

/// The translator of a response for one pair.
pub(super) struct Hop {
    pair: DialectPair,
    request_info: RequestContext,
    /// The time at which the response was created, in Unix seconds.
    created: u64,
    /// The estimated number of prompt tokens.
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
    ChatFunctions(chat_custom_tools::Stream),
}

impl Hop {
    pub(super) fn new(pair: DialectPair, asked: RequestContext, created: u64, prompt_tokens: u64) -> Self {
        Hop {
            pair,
            request_info: asked,
            created,
            prompt_tokens,
            stream: None,
        }
    }

    /// Returns the dialect of the provider.
    pub(super) fn upstream_dialect(&self) -> Dialect {
        self.pair.upstream_dialect()
    }

    /// Whether the client requested a stream.
    pub(super) fn is_streamed(&self) -> bool {
        self.request_info.stream
    }

    /// Returns the names of the fields that were dropped from the request.
    pub(super) fn dropped_fields(&self) -> &[&'static str] {
        &self.request_info.dropped_fields
    }

    /// Returns the header lines of the request.
    pub(super) fn header_lines(&self) -> &'static [u8] {
        match self.pair {
            DialectPair::OpenAiAnthropic => ANTHROPIC_VERSION,
            _ => b"",
        }
    }

    /// Writes a whole success response.
    pub(super) fn write_response(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), ResponseError> {
        match self.pair {
            DialectPair::OpenAiAnthropic | DialectPair::OpenAiRawPredict => {
                openai_anthropic::translate_response(body, &self.request_info, self.created, out)
            }
            DialectPair::AnthropicOpenAi => {
                anthropic_openai::translate_response(body, &self.request_info, out)
            }
            DialectPair::OpenAiResponses => {
                openai_responses::translate_response(body, &self.request_info, self.created, out)
            }
            DialectPair::ResponsesOpenAi => {
                responses_openai::translate_response(body, &self.request_info, self.created, out)
            }
            DialectPair::OpenAiGemini => {
                openai_gemini::translate_response(body, &self.request_info, self.created, out)
            }
            DialectPair::OpenAiGeminiEmbeddings => {
                embeddings::translate_response(body, &self.request_info, self.prompt_tokens, out)
            }
            DialectPair::GeminiEmbeddings => {
                out.extend_from_slice(body);
                return Ok(());
            }
            DialectPair::OpenAiConverse => {
                openai_converse::translate_response(body, &self.request_info, self.created, out)
            }
            DialectPair::ChatFunctions => {
                return chat_custom_tools::translate_response(body, &self.request_info, out);
            }
            DialectPair::AnthropicInvoke => return anthropic_invoke::translate_response(body, out),
            DialectPair::AnthropicInvokeTokens => {
                return anthropic_invoke_tokens::translate_response(body, out);
            }
            DialectPair::AnthropicRawPredict => return anthropic_raw_predict::translate_response(body, out),
        }
        .map(|_usage| ())
    }

    /// Writes a failure response of the provider. `kind`: the error type in the response head.
    pub(super) fn write_error(&self, status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
        match self.pair {
            DialectPair::OpenAiAnthropic | DialectPair::OpenAiRawPredict => {
                openai_anthropic::translate_error(status, body, out)
            }
            DialectPair::AnthropicOpenAi => anthropic_openai::translate_error(status, body, out),
            DialectPair::OpenAiResponses => openai_responses::translate_error(status, body, out),
            DialectPair::ResponsesOpenAi => responses_openai::translate_error(status, body, out),
            DialectPair::OpenAiGemini | DialectPair::OpenAiGeminiEmbeddings => {
                openai_gemini::translate_error(status, body, out)
            }
            DialectPair::GeminiEmbeddings | DialectPair::ChatFunctions => out.extend_from_slice(body),
            DialectPair::OpenAiConverse => openai_converse::translate_error(status, kind, body, out),
            DialectPair::AnthropicInvoke | DialectPair::AnthropicInvokeTokens => {
                anthropic_invoke::translate_error(status, kind, body, out);
            }
            DialectPair::AnthropicRawPredict => anthropic_raw_predict::translate_error(status, body, out),
        }
    }

    /// Returns the retry delay in seconds, if the provider sends it in an error body instead of a header.
    pub(super) fn retry_after(&self, body: &[u8]) -> Option<u64> {
        match self.pair {
            DialectPair::OpenAiGemini | DialectPair::OpenAiGeminiEmbeddings => {
                openai_gemini::retry_after(body)
            }
            _ => None,
        }
    }

    /// Translates an event of a stream and writes the resulting events for the client.
    pub(super) fn translate_event(
        &mut self,
        event: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        let (name, data) = event_parts(event);
        if data.is_empty() {
            // The event is only a comment or an event name, which keeps the connection open.
            return Ok(StreamStatus::InProgress);
        }
        let (pair, asked) = (self.pair, &self.request_info);
        let new = || {
            Ok(match pair {
                DialectPair::OpenAiAnthropic | DialectPair::OpenAiRawPredict => {
                    Stream::OpenAiAnthropic(openai_anthropic::Stream::new(asked, self.created))
                }
                DialectPair::AnthropicOpenAi => {
                    Stream::AnthropicOpenAi(anthropic_openai::Stream::new(asked, self.prompt_tokens))
                }
                DialectPair::OpenAiResponses => {
                    Stream::OpenAiResponses(openai_responses::Stream::new(asked, self.created))
                }
                DialectPair::ResponsesOpenAi => {
                    Stream::ResponsesOpenAi(Box::new(responses_openai::Stream::new(asked, self.created)))
                }
                DialectPair::OpenAiGemini => {
                    Stream::OpenAiGemini(openai_gemini::Stream::new(asked, self.created))
                }
                DialectPair::OpenAiConverse => {
                    Stream::OpenAiConverse(openai_converse::Stream::new(asked, self.created))
                }
                DialectPair::ChatFunctions => Stream::ChatFunctions(chat_custom_tools::Stream::new(asked)),
                DialectPair::AnthropicInvoke => Stream::AnthropicInvoke(anthropic_invoke::Stream::new()),
                DialectPair::AnthropicRawPredict => {
                    Stream::AnthropicRawPredict(anthropic_raw_predict::Stream::new())
                }
                DialectPair::OpenAiGeminiEmbeddings
                | DialectPair::GeminiEmbeddings
                | DialectPair::AnthropicInvokeTokens => {
                    return Err(ResponseError::Malformed("it is not a stream"));
                }
            })
        };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(new()?),
        };
        let (kind, of_kind) = match name.strip_prefix(EXCEPTION_PREFIX) {
            Some(exception) => (EventKind::Exception, exception),
            None => (EventKind::Event, name),
        };
        match stream {
            Stream::OpenAiAnthropic(stream) => stream.push_event(name, &data, out),
            Stream::AnthropicOpenAi(stream) => stream.push_event(name, &data, out),
            Stream::OpenAiGemini(stream) => stream.push_event(name, &data, out),
            Stream::OpenAiResponses(stream) => stream.push_event(name, &data, out),
            Stream::ResponsesOpenAi(stream) => stream.push_event(name, &data, out),
            Stream::ChatFunctions(stream) => stream.push_event(&data, out),
            Stream::OpenAiConverse(stream) => stream.push_event(kind, of_kind, &data, out),
            Stream::AnthropicInvoke(stream) => stream.push_event(kind, of_kind, &data, out),
            Stream::AnthropicRawPredict(stream) => stream.push_event(name, &data, out),
        }
    }

    /// Whether the provider's stream events are already in the client's dialect.
    pub(super) fn passes_events_through(&self) -> bool {
        matches!(
            self.pair,
            DialectPair::AnthropicInvoke | DialectPair::AnthropicRawPredict
        )
    }

    /// Handles the regular end of the provider's stream: writes the client's end if the stream
    /// stated its finish reason, even without an end marker, which some providers leave out.
    /// Returns whether the stream stated the reason.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<bool, ResponseError> {
        match &mut self.stream {
            Some(Stream::OpenAiGemini(stream)) => Ok(stream.finish(out)? == StreamStatus::Finished),
            Some(Stream::AnthropicOpenAi(stream)) => {
                Ok(stream.push_event("", b"[DONE]", out)? == StreamStatus::Finished)
            }
            Some(Stream::ResponsesOpenAi(stream)) => {
                Ok(stream.push_event("", b"[DONE]", out)? == StreamStatus::Finished)
            }
            Some(Stream::OpenAiAnthropic(stream)) => {
                let stop = br#"{"type":"message_stop"}"#;
                Ok(stream.push_event("message_stop", stop, out)? == StreamStatus::Finished)
            }
            _ => Ok(false),
        }
    }
}
