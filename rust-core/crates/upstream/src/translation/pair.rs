//! Pairs of dialects, each translated by one module.

use proofgate_providers::{Dialect, Family};
use proofgate_translate::openai_gemini::embeddings;
use proofgate_translate::{
    RequestContext, Target, UntranslatableRequest, anthropic_invoke, anthropic_invoke_tokens,
    anthropic_openai, anthropic_raw_predict, chat_custom_tools, openai_anthropic, openai_converse,
    openai_gemini, openai_responses, responses_openai,
};

/// A client's dialect and a provider's dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DialectPair {
    /// Chat completions to Anthropic Messages.
    OpenAiAnthropic,
    /// Anthropic Messages to chat completions.
    AnthropicOpenAi,
    /// Chat completions to Google's Gemini.
    OpenAiGemini,
    /// OpenAI's embeddings to Google's.
    OpenAiGeminiEmbeddings,
    /// Google's embeddings to Google's embeddings, because the body names the model, too.
    GeminiEmbeddings,
    /// Chat completions to Amazon Bedrock's Converse.
    OpenAiConverse,
    /// Anthropic Messages to a Claude model invoked on Amazon Bedrock.
    AnthropicInvoke,
    /// Token counting of Anthropic Messages to Amazon Bedrock's CountTokens.
    AnthropicInvokeTokens,
    /// Anthropic Messages to a Claude model on Vertex AI.
    AnthropicRawPredict,
    /// Chat completions to a Claude model on Vertex AI.
    OpenAiRawPredict,
    /// Chat completions to OpenAI's Responses.
    OpenAiResponses,
    /// Chat completions with custom tools to chat completions with functions only, as input of another pair.
    ChatFunctions,
    /// OpenAI's Responses to chat completions, as input of another pair or for a provider that
    /// supports only chat completions.
    ResponsesOpenAi,
}

impl DialectPair {
    /// Returns the pair of a client and a provider that knows the model as `model`, if there is one.
    pub(super) fn between(client: Dialect, provider: Family, model: &str) -> Option<DialectPair> {
        match (client, provider) {
            (Dialect::Chat, Family::Anthropic) => Some(DialectPair::OpenAiAnthropic),
            (Dialect::Messages, Family::OpenAi) => Some(DialectPair::AnthropicOpenAi),
            (Dialect::Responses, Family::OpenAi) => Some(DialectPair::ResponsesOpenAi),
            (Dialect::Chat, Family::Google) => Some(DialectPair::OpenAiGemini),
            (Dialect::Embeddings, Family::Google) => Some(DialectPair::OpenAiGeminiEmbeddings),
            (Dialect::GeminiEmbeddings, Family::Google) => Some(DialectPair::GeminiEmbeddings),
            (Dialect::Chat, Family::Amazon) => Some(DialectPair::OpenAiConverse),
            (Dialect::Messages, Family::Amazon) => {
                anthropic_invoke::supports_messages(model).then_some(DialectPair::AnthropicInvoke)
            }
            (Dialect::CountTokens, Family::Amazon) => {
                anthropic_invoke_tokens::counting_model_id(model).map(|_| DialectPair::AnthropicInvokeTokens)
            }
            _ => None,
        }
    }

    /// Returns the pair for a model on Vertex AI, whose publisher determines the dialect.
    pub(super) fn for_publisher(client: Dialect, model: &str) -> Option<DialectPair> {
        match (client, anthropic_raw_predict::supports_messages(model)) {
            (Dialect::Messages, true) => Some(DialectPair::AnthropicRawPredict),
            (Dialect::Chat, true) => Some(DialectPair::OpenAiRawPredict),
            (Dialect::Chat, false) => Some(DialectPair::OpenAiGemini),
            _ => None,
        }
    }

    /// Whether Anthropic's betas are sent to the provider in the body instead of the head.
    pub(super) fn has_betas_in_body(self) -> bool {
        matches!(
            self,
            DialectPair::AnthropicInvoke
                | DialectPair::AnthropicInvokeTokens
                | DialectPair::AnthropicRawPredict
        )
    }

    /// Returns the dialect of the provider.
    pub(super) fn upstream_dialect(self) -> Dialect {
        match self {
            DialectPair::OpenAiAnthropic
            | DialectPair::AnthropicRawPredict
            | DialectPair::OpenAiRawPredict => Dialect::Messages,
            DialectPair::AnthropicOpenAi | DialectPair::ResponsesOpenAi | DialectPair::ChatFunctions => {
                Dialect::Chat
            }
            DialectPair::OpenAiResponses => Dialect::Responses,
            DialectPair::OpenAiGemini => Dialect::Gemini,
            DialectPair::OpenAiGeminiEmbeddings | DialectPair::GeminiEmbeddings => Dialect::GeminiEmbeddings,
            DialectPair::OpenAiConverse => Dialect::Converse,
            DialectPair::AnthropicInvoke => Dialect::Invoke,
            DialectPair::AnthropicInvokeTokens => Dialect::InvokeTokens,
        }
    }

    /// Returns the maximum bytes of the translated request for a body of `length` bytes. Escaping
    /// may lengthen a text, framing may lengthen a message, and the model's name is added to each
    /// text of a batch.
    pub(super) fn max_request_bytes(self, length: usize, model: &str) -> usize {
        let most = length.saturating_mul(2).saturating_add(4096);
        match self {
            DialectPair::OpenAiGeminiEmbeddings | DialectPair::GeminiEmbeddings => {
                // The shortest text in a batch takes three bytes.
                let texts = embeddings::MAX_TEXTS.min(length / 3 + 1);
                most.saturating_add(texts.saturating_mul(model.len().saturating_add(128)))
            }
            // The shortest custom tool is a seventh as long as its function.
            DialectPair::ChatFunctions => most.saturating_mul(4),
            _ => most,
        }
    }

    /// Writes the request for the provider, for a model that the client calls `asked_for`. `betas`: Anthropic's betas that
    /// the client uses and may use.
    pub(super) fn write_request(
        self,
        body: &[u8],
        asked_for: &str,
        target: &Target<'_>,
        betas: &[&str],
        out: &mut Vec<u8>,
    ) -> Result<RequestContext, UntranslatableRequest> {
        match self {
            DialectPair::OpenAiAnthropic => openai_anthropic::translate_request(body, target, out),
            DialectPair::AnthropicOpenAi => anthropic_openai::translate_request(body, target, out),
            DialectPair::OpenAiResponses => openai_responses::translate_request(body, target, out),
            DialectPair::ChatFunctions => chat_custom_tools::translate_request(body, out),
            DialectPair::ResponsesOpenAi => responses_openai::translate_for_chat(body, target, out),
            DialectPair::OpenAiGemini => openai_gemini::translate_request(body, target, out),
            DialectPair::OpenAiGeminiEmbeddings => embeddings::translate_request(body, target, out),
            DialectPair::GeminiEmbeddings => embeddings::rename_model(body, asked_for, target, out),
            DialectPair::OpenAiConverse => openai_converse::translate_request(body, target, out),
            DialectPair::AnthropicInvoke => anthropic_invoke::translate_request(body, target, betas, out),
            DialectPair::AnthropicInvokeTokens => {
                anthropic_invoke_tokens::translate_request(body, betas, out)
            }
            DialectPair::AnthropicRawPredict => anthropic_raw_predict::translate_request(body, betas, out),
            DialectPair::OpenAiRawPredict => anthropic_raw_predict::translate_chat_request(body, target, out),
        }
    }

    /// Returns the pair that translates a client's dialect to chat completions.
    pub(super) fn to_chat(client: Dialect) -> Option<DialectPair> {
        match client {
            Dialect::Messages => Some(DialectPair::AnthropicOpenAi),
            Dialect::Responses => Some(DialectPair::ResponsesOpenAi),
            _ => None,
        }
    }

    /// Writes the chat request that is the input of `far`.
    pub(super) fn write_chat_request(
        self,
        far: DialectPair,
        body: &[u8],
        target: &Target<'_>,
        out: &mut Vec<u8>,
    ) -> Result<RequestContext, UntranslatableRequest> {
        match (self, far) {
            (DialectPair::AnthropicOpenAi, DialectPair::OpenAiResponses) => {
                anthropic_openai::translate_for_responses(body, target, out)
            }
            (DialectPair::AnthropicOpenAi, DialectPair::OpenAiGemini) => {
                anthropic_openai::translate_for_gemini(body, target, out)
            }
            (DialectPair::AnthropicOpenAi, _) => {
                anthropic_openai::translate_for_other_apis(body, target, out)
            }
            (DialectPair::ResponsesOpenAi, DialectPair::OpenAiGemini) => {
                responses_openai::translate_for_gemini(body, target, out)
            }
            (DialectPair::ResponsesOpenAi, _) => responses_openai::translate_request(body, target, out),
            _ => self.write_request(body, "", target, &[], out),
        }
    }
}
