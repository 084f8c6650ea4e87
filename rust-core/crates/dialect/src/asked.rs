use crate::asked_response::ResponsesContext;

/// What becomes of a field of a request that the provider has no counterpart for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UntranslatableFieldPolicy {
    /// The request is refused, and the field named.
    #[default]
    Refuse,
    /// It is left out and named in [`RequestContext::dropped`]; what would change the meaning of the request is refused still.
    Drop,
}

/// Where a request goes.
#[derive(Debug, Clone, Copy)]
pub struct Target<'t> {
    /// The model's name at the provider.
    pub model: &'t str,
    /// Tokens that an answer may have when the request names no maximum and the provider demands one.
    pub max_output_tokens: u64,
    /// What becomes of fields without a counterpart.
    pub untranslatable: UntranslatableFieldPolicy,
}

/// What the way back has to know of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestContext {
    /// The model as the client named it; answers name it likewise.
    pub model: String,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether the client wants a stream to end with its usage (OpenAI's `stream_options.include_usage`).
    pub include_usage: bool,
    /// Whether the answer was to be JSON and the provider was given a tool to that end: the tool's arguments are the answer.
    pub uses_json_tool: bool,
    /// Whether the numbers of embeddings are to come in base64.
    pub base64: bool,
    /// The names of the fields that were left out, in the order of the request.
    pub dropped: Vec<&'static str>,
    /// Whether a client of Anthropic's messages has asked for thinking, so that it brings back what Gemini signs of its calls.
    pub returns_signatures: bool,
    /// The names of custom tools that the provider was given as functions (`chat_customs`).
    pub custom_tools: Vec<String>,
    /// What the way back to a client of Responses has to know besides.
    pub responses_context: Option<Box<ResponsesContext>>,
}
