use proofgate_json::JsonError;

use crate::body_text::MAX_STRINGS;

/// A field of the request body whose type is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `messages`, an array
    Messages,
    /// `stream`, a boolean
    Stream,
    /// `stream_format`, a string
    StreamFormat,
    /// `stream_options`, an object
    StreamOptions,
    /// `stream_options.include_usage`, a boolean
    IncludeUsage,
    /// `max_tokens`, an integer from 0
    MaxTokens,
    /// `max_completion_tokens`, an integer from 0
    MaxCompletionTokens,
    /// `max_output_tokens`, an integer from 0
    MaxOutputTokens,
    /// `n`, an integer from 1
    N,
    /// `best_of`, an integer from 1
    BestOf,
    /// `generationConfig`, an object
    GenerationConfig,
    /// `generationConfig.maxOutputTokens`, an integer from 0
    GeminiMaxOutputTokens,
    /// `generationConfig.candidateCount`, an integer from 1
    CandidateCount,
    /// `max_tool_calls`, an integer from 0
    MaxToolCalls,
    /// `max_uses` of a tool, an integer from 0
    MaxUses,
}

impl Field {
    /// Returns the field's name, for the `param` of an error.
    pub fn name(self) -> &'static str {
        match self {
            Field::Messages => "messages",
            Field::Stream => "stream",
            Field::StreamFormat => "stream_format",
            Field::StreamOptions => "stream_options",
            Field::IncludeUsage => "stream_options.include_usage",
            Field::MaxTokens => "max_tokens",
            Field::MaxCompletionTokens => "max_completion_tokens",
            Field::MaxOutputTokens => "max_output_tokens",
            Field::N => "n",
            Field::BestOf => "best_of",
            Field::GenerationConfig => "generationConfig",
            Field::GeminiMaxOutputTokens => "generationConfig.maxOutputTokens",
            Field::CandidateCount => "generationConfig.candidateCount",
            Field::MaxToolCalls => "max_tool_calls",
            Field::MaxUses => "tools.max_uses",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Field::Messages => "an array",
            Field::StreamFormat => "a string",
            Field::StreamOptions | Field::GenerationConfig => "an object",
            Field::Stream | Field::IncludeUsage => "true or false",
            Field::MaxTokens
            | Field::MaxCompletionTokens
            | Field::MaxOutputTokens
            | Field::GeminiMaxOutputTokens
            | Field::MaxToolCalls
            | Field::MaxUses => "an integer of at least 0",
            Field::N | Field::BestOf | Field::CandidateCount => "an integer from 1 to 4294967295",
        }
    }
}

/// The reason why a request body is invalid or not supported. No variant repeats content of the
/// body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// The body is not one JSON document in UTF-8, or an object of it repeats a key.
    #[error("The request body is not valid JSON: {0}.")]
    InvalidJson(JsonError),
    /// The body is JSON, but not an object.
    #[error("The request body must be a JSON object.")]
    NotAnObject,
    /// `model` is absent, empty or not a string.
    #[error("The request body needs \"model\", a non-empty string.")]
    MissingModel,
    /// A field has an invalid value.
    #[error("\"{}\" must be {}.", .0.name(), .0.expected())]
    InvalidField(Field),
    /// A field name differs only in case from a field that is read. Parsers that ignore case (Go's
    /// `encoding/json`, ASP.NET's web defaults) read it as that field.
    #[error("A field name differs from \"{0}\" only in case. Write the name exactly like this.")]
    AmbiguousName(&'static str),
    /// The body names a model although the path already does.
    #[error("The path names the model. Remove \"model\" from the request body.")]
    ModelInBody,
    /// The body names a different model than the path.
    #[error("The model in the path differs from \"model\" in the request body.")]
    ModelMismatch,
    /// A field refers to content that the provider stores, or to work that it does on its own.
    #[error(
        "\"{0}\" is not served here: it refers to content that all tenants share at the provider, or to work of the provider that no rule can inspect. Send the content itself."
    )]
    UnsupportedField(&'static str),
    /// A field refers to content stored at the provider, and the provider account is not exclusive to the tenant.
    #[error(
        "\"{0}\" refers to content that the provider stores for all tenants of this gateway. Send the content itself, as clients do with \"store\": false, or ask the gateway administrator for a separate account (objectsOf)."
    )]
    ProviderStoredReference(&'static str),
    /// One tool object defines both a client tool and a hosted tool, or there are too many hosted tools.
    #[error(
        "An object in \"tools\" defines both a client tool and a hosted tool, or there are more than 128 hosted tools. Send each tool in its own object."
    )]
    UnsupportedTool,
    /// A stream is requested for several images, but the stream's final event ends a single image.
    #[error("\"n\" must be 1 when \"stream\" is true.")]
    MultipleImagesInStream,
    /// The body has more strings than the limit.
    #[error("The request body has more than {MAX_STRINGS} strings.")]
    TooManyStrings,
}

impl BadRequest {
    /// Returns the stable machine code.
    pub fn code(self) -> &'static str {
        match self {
            BadRequest::InvalidJson(_) | BadRequest::NotAnObject => "invalid_json",
            BadRequest::MissingModel => "missing_model",
            BadRequest::InvalidField(_) | BadRequest::MultipleImagesInStream => "invalid_value",
            BadRequest::AmbiguousName(_) => "ambiguous_name",
            BadRequest::ModelInBody | BadRequest::ModelMismatch => "ambiguous_model",
            BadRequest::UnsupportedField(_) | BadRequest::ProviderStoredReference(_) => "unserved_field",
            BadRequest::UnsupportedTool => "unserved_tool",
            BadRequest::TooManyStrings => "too_many_strings",
        }
    }

    /// Returns the name of the invalid field, if the error is about one.
    pub fn param(self) -> Option<&'static str> {
        match self {
            BadRequest::InvalidJson(_) | BadRequest::NotAnObject | BadRequest::TooManyStrings => None,
            BadRequest::MissingModel | BadRequest::ModelInBody | BadRequest::ModelMismatch => Some("model"),
            BadRequest::InvalidField(field) => Some(field.name()),
            BadRequest::AmbiguousName(name)
            | BadRequest::UnsupportedField(name)
            | BadRequest::ProviderStoredReference(name) => Some(name),
            BadRequest::UnsupportedTool => Some("tools"),
            BadRequest::MultipleImagesInStream => Some("n"),
        }
    }
}

impl From<JsonError> for BadRequest {
    fn from(error: JsonError) -> Self {
        BadRequest::InvalidJson(error)
    }
}
