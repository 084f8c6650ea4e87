use crate::responses_context::ResponsesContext;

/// The handling of request fields without a counterpart at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
pub enum UntranslatableFieldPolicy {
    /// The request is refused with an error that names the field.
    #[default]
    Refuse,
    /// The field is dropped and listed in [`RequestContext::dropped_fields`]. Fields that would change the meaning of the
    /// request are still refused.
    Drop,
}

/// The target of a request.
#[derive(Debug, Clone, Copy)]
pub struct Target<'t> {
    /// The model's name at the provider.
    pub model: &'t str,
    /// Maximum tokens of a response if the request sets none and the provider requires one.
    pub max_output_tokens: u64,
    /// The handling of fields without a counterpart at the provider.
    pub untranslatable: UntranslatableFieldPolicy,
}

/// The state of a request that is needed to translate the response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestContext {
    /// The model as named by the client; responses use the same name.
    pub model: String,
    /// Whether the response is streamed.
    pub stream: bool,
    /// Whether the client wants a stream to end with its usage (OpenAI's `stream_options.include_usage`).
    pub include_usage: bool,
    /// Whether the client requested JSON and the provider received a tool for it: the tool's
    /// arguments are the response.
    pub uses_json_tool: bool,
    /// Whether embeddings are returned in base64.
    pub returns_base64: bool,
    /// The names of the dropped fields, in the order of the request.
    pub dropped_fields: Vec<&'static str>,
    /// Whether a client of Anthropic's messages requested thinking, so that it sends back Gemini's signatures of its
    /// calls.
    pub returns_signatures: bool,
    /// The names of custom tools that were sent to the provider as functions (`chat_custom_tools`).
    pub custom_tools: Vec<String>,
    /// Additional state for a client of Responses.
    pub responses_context: Option<Box<ResponsesContext>>,
}
