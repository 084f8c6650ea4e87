//! Two dialects between which one module translates.

use proofgate_providers::{Dialect, Family};
use proofgate_translate::openai_gemini::embeddings;
use proofgate_translate::{
    Asked, Target, Untranslatable, anthropic_invoke, anthropic_invoke_tokens, anthropic_openai,
    anthropic_raw_predict, chat_customs, openai_anthropic, openai_converse, openai_gemini, openai_responses,
    responses_openai,
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

impl Pair {
    /// The pair of a client and a provider that knows the model as `model`, if there is one.
    pub(super) fn between(client: Dialect, provider: Family, model: &str) -> Option<Pair> {
        match (client, provider) {
            (Dialect::Chat, Family::Anthropic) => Some(Pair::OpenAiAnthropic),
            (Dialect::Messages, Family::OpenAi) => Some(Pair::AnthropicOpenAi),
            (Dialect::Responses, Family::OpenAi) => Some(Pair::ResponsesOpenAi),
            (Dialect::Chat, Family::Google) => Some(Pair::OpenAiGemini),
            (Dialect::Embeddings, Family::Google) => Some(Pair::OpenAiGeminiEmbeddings),
            (Dialect::GeminiEmbeddings, Family::Google) => Some(Pair::GeminiEmbeddings),
            (Dialect::Chat, Family::Amazon) => Some(Pair::OpenAiConverse),
            (Dialect::Messages, Family::Amazon) => {
                anthropic_invoke::takes_messages(model).then_some(Pair::AnthropicInvoke)
            }
            (Dialect::CountTokens, Family::Amazon) => {
                anthropic_invoke_tokens::model(model).map(|_| Pair::AnthropicInvokeTokens)
            }
            _ => None,
        }
    }

    /// The same of a model on Vertex AI, whose publisher says what is spoken there.
    pub(super) fn at_publisher(client: Dialect, model: &str) -> Option<Pair> {
        match (client, anthropic_raw_predict::takes_messages(model)) {
            (Dialect::Messages, true) => Some(Pair::AnthropicRawPredict),
            (Dialect::Chat, true) => Some(Pair::OpenAiRawPredict),
            (Dialect::Chat, false) => Some(Pair::OpenAiGemini),
            _ => None,
        }
    }

    /// Whether the provider is told in the body which of Anthropic's betas are used, and not in the head.
    pub(super) fn has_betas_in_body(self) -> bool {
        matches!(
            self,
            Pair::AnthropicInvoke | Pair::AnthropicInvokeTokens | Pair::AnthropicRawPredict
        )
    }

    /// What the provider speaks.
    pub(super) fn upstream(self) -> Dialect {
        match self {
            Pair::OpenAiAnthropic | Pair::AnthropicRawPredict | Pair::OpenAiRawPredict => Dialect::Messages,
            Pair::AnthropicOpenAi | Pair::ResponsesOpenAi | Pair::ChatFunctions => Dialect::Chat,
            Pair::OpenAiResponses => Dialect::Responses,
            Pair::OpenAiGemini => Dialect::Gemini,
            Pair::OpenAiGeminiEmbeddings | Pair::GeminiEmbeddings => Dialect::GeminiEmbeddings,
            Pair::OpenAiConverse => Dialect::Converse,
            Pair::AnthropicInvoke => Dialect::Invoke,
            Pair::AnthropicInvokeTokens => Dialect::InvokeTokens,
        }
    }

    /// How many bytes a request may have at the provider at most, whose body has `length`: a text may become longer by what is
    /// escaped anew, a message by what frames it, and each of some texts by the name of the model.
    pub(super) fn most_bytes(self, length: usize, model: &str) -> usize {
        let most = length.saturating_mul(2).saturating_add(4096);
        match self {
            Pair::OpenAiGeminiEmbeddings | Pair::GeminiEmbeddings => {
                // The shortest of them take three bytes.
                let texts = embeddings::MOST_TEXTS.min(length / 3 + 1);
                most.saturating_add(texts.saturating_mul(model.len().saturating_add(128)))
            }
            // The shortest custom tools are a seventh of their functions.
            Pair::ChatFunctions => most.saturating_mul(4),
            _ => most,
        }
    }

    /// Writes what the provider is sent for a model that the client calls `asked_for`. `betas`: those of Anthropic's that the client uses and may use.
    pub(super) fn request(
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
            Pair::OpenAiResponses => openai_responses::request(body, target, out),
            Pair::ChatFunctions => chat_customs::request(body, out),
            Pair::ResponsesOpenAi => responses_openai::request_to_chat(body, target, out),
            Pair::OpenAiGemini => openai_gemini::request(body, target, out),
            Pair::OpenAiGeminiEmbeddings => embeddings::request(body, target, out),
            Pair::GeminiEmbeddings => embeddings::renamed(body, asked_for, target, out),
            Pair::OpenAiConverse => openai_converse::request(body, target, out),
            Pair::AnthropicInvoke => anthropic_invoke::request(body, target, betas, out),
            Pair::AnthropicInvokeTokens => anthropic_invoke_tokens::request(body, betas, out),
            Pair::AnthropicRawPredict => anthropic_raw_predict::request(body, betas, out),
            Pair::OpenAiRawPredict => anthropic_raw_predict::chat_request(body, target, out),
        }
    }

    /// The pair that says what a client says in chat completions.
    pub(super) fn to_chat(client: Dialect) -> Option<Pair> {
        match client {
            Dialect::Messages => Some(Pair::AnthropicOpenAi),
            Dialect::Responses => Some(Pair::ResponsesOpenAi),
            _ => None,
        }
    }

    /// Writes the chat request that `far` goes on with.
    pub(super) fn request_for(
        self,
        far: Pair,
        body: &[u8],
        target: &Target<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Asked, Untranslatable> {
        match (self, far) {
            (Pair::AnthropicOpenAi, Pair::OpenAiResponses) => {
                anthropic_openai::request_for_responses(body, target, out)
            }
            (Pair::AnthropicOpenAi, Pair::OpenAiGemini) => {
                anthropic_openai::request_for_gemini(body, target, out)
            }
            (Pair::AnthropicOpenAi, _) => anthropic_openai::request_for_others(body, target, out),
            (Pair::ResponsesOpenAi, Pair::OpenAiGemini) => {
                responses_openai::request_for_gemini(body, target, out)
            }
            (Pair::ResponsesOpenAi, _) => responses_openai::request(body, target, out),
            _ => self.request(body, "", target, &[], out),
        }
    }
}
