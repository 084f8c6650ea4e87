//! Two dialects between which one module translates.

use proofgate_providers::{Dialect, Family};
use proofgate_translate::openai_gemini::embeddings;
use proofgate_translate::{
    RequestContext, Target, UntranslatableRequest, anthropic_invoke, anthropic_invoke_tokens,
    anthropic_openai, anthropic_raw_predict, chat_customs, openai_anthropic, openai_converse, openai_gemini,
    openai_responses, responses_openai,
};

/// Who speaks what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DialectPair {
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
    /// A client that counts tokens of Anthropic's messages, and Amazon Bedrock's CountTokens.
    AnthropicInvokeTokens,
    /// A client of Anthropic's messages, and a Claude model on Vertex AI.
    AnthropicRawPredict,
    /// A client of chat completions, and a Claude model on Vertex AI.
    OpenAiRawPredict,
    /// A client of chat completions, and OpenAI's Responses.
    OpenAiResponses,
    /// A client of chat completions with custom tools, and the same with functions alone, for another pair to go on with.
    ChatFunctions,
    /// A client of OpenAI's Responses, and chat completions, for another pair to go on with or for a provider that has nothing else.
    ResponsesOpenAi,
}

impl DialectPair {
    /// The pair of a client and a provider that knows the model as `model`, if there is one.
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

    /// The same of a model on Vertex AI, whose publisher says what is spoken there.
    pub(super) fn for_publisher(client: Dialect, model: &str) -> Option<DialectPair> {
        match (client, anthropic_raw_predict::supports_messages(model)) {
            (Dialect::Messages, true) => Some(DialectPair::AnthropicRawPredict),
            (Dialect::Chat, true) => Some(DialectPair::OpenAiRawPredict),
            (Dialect::Chat, false) => Some(DialectPair::OpenAiGemini),
            _ => None,
        }
    }

    /// Whether the provider is told in the body which of Anthropic's betas are used, and not in the head.
    pub(super) fn has_betas_in_body(self) -> bool {
        matches!(
            self,
            DialectPair::AnthropicInvoke
                | DialectPair::AnthropicInvokeTokens
                | DialectPair::AnthropicRawPredict
        )
    }

    /// What the provider speaks.
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

    /// How many bytes a request may have at the provider at most, whose body has `length`: a text may become longer by what is
    /// escaped anew, a message by what frames it, and each of some texts by the name of the model.
    pub(super) fn max_request_bytes(self, length: usize, model: &str) -> usize {
        let most = length.saturating_mul(2).saturating_add(4096);
        match self {
            DialectPair::OpenAiGeminiEmbeddings | DialectPair::GeminiEmbeddings => {
                // The shortest of them take three bytes.
                let texts = embeddings::MAX_TEXTS.min(length / 3 + 1);
                most.saturating_add(texts.saturating_mul(model.len().saturating_add(128)))
            }
            // The shortest custom tools are a seventh of their functions.
            DialectPair::ChatFunctions => most.saturating_mul(4),
            _ => most,
        }
    }

    /// Writes what the provider is sent for a model that the client calls `asked_for`. `betas`: those of Anthropic's that the client uses and may use.
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
            DialectPair::ChatFunctions => chat_customs::translate_request(body, out),
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

    /// The pair that says what a client says in chat completions.
    pub(super) fn to_chat(client: Dialect) -> Option<DialectPair> {
        match client {
            Dialect::Messages => Some(DialectPair::AnthropicOpenAi),
            Dialect::Responses => Some(DialectPair::ResponsesOpenAi),
            _ => None,
        }
    }

    /// Writes the chat request that `far` goes on with.
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
            (DialectPair::AnthropicOpenAi, _) => anthropic_openai::translate_for_others(body, target, out),
            (DialectPair::ResponsesOpenAi, DialectPair::OpenAiGemini) => {
                responses_openai::translate_for_gemini(body, target, out)
            }
            (DialectPair::ResponsesOpenAi, _) => responses_openai::translate_request(body, target, out),
            _ => self.write_request(body, "", target, &[], out),
        }
    }
}
