//! The purposes of a request body's fields, by field name.

use proofgate_json::{Event, equals_ignore_case};

use crate::bad_request::{BadRequest, Field};
use crate::client_ids::{IdField, IdObject};
use crate::dialect::{Dialect, Family};

/// The purpose of a top-level field of a body.
#[derive(Clone, Copy)]
pub(crate) enum FieldPurpose {
    Model,
    /// The messages or items of a conversation, in an array.
    Messages,
    /// The messages or items of a conversation in an array, or a single text.
    MessagesOrText,
    /// Texts, each of which may be sent as token ids.
    TextOrTokens(&'static str),
    /// Instructions for the model.
    Instructions,
    /// User text, in any shape.
    Prompt,
    /// Tools from which only the text is read.
    ToolDescriptions,
    Stream,
    /// The format of a streamed response; it is a stream of events only if this is `sse`.
    StreamFormat,
    StreamOptions,
    /// The requested urgency or location of processing, which some prices depend on.
    ServiceTier,
    /// The time for which a cache keeps new entries.
    CacheRetention,
    MaxTokens(Field),
    Count(Field),
    Tools,
    /// A field that makes the provider run a hosted tool, with the kind of the tool.
    HostedTool(&'static str),
    /// Maximum number of hosted tool calls.
    ToolCalls,
    /// An object in which these fields are read.
    Object(Fields, Field),
    /// The model, which the path already names: only `null` is accepted.
    ModelInPath,
    /// A field for content that the provider stores for all tenants of the gateway, or for work
    /// that the provider does on its own. The field is refused unless it is `null`, `false` or an
    /// empty array.
    Unsupported(&'static str),
    /// The id of content stored at the provider. The request may go only to an account that is exclusive to the
    /// tenant.
    StoredReference(&'static str),
    /// The end user or session of the request: recorded, and also scanned like any other text.
    ClientId(IdField),
    /// An object with ids of end users or sessions.
    ClientIdObject(IdObject),
    /// Plain text.
    Text,
}

impl FieldPurpose {
    /// Whether it affects only the collected text and ids. A name that differs from it only in case is then a different
    /// field.
    fn is_advisory(self) -> bool {
        matches!(
            self,
            FieldPurpose::ClientId(_)
                | FieldPurpose::ClientIdObject(_)
                | FieldPurpose::Prompt
                | FieldPurpose::ToolDescriptions
        )
    }
}

pub(crate) type Fields = &'static [(&'static str, FieldPurpose)];

const USER: (&str, FieldPurpose) = ("user", FieldPurpose::ClientId(IdField::User));
const SAFETY_IDENTIFIER: (&str, FieldPurpose) = (
    "safety_identifier",
    FieldPurpose::ClientId(IdField::SafetyIdentifier),
);
const CACHE_KEY: (&str, FieldPurpose) = ("prompt_cache_key", FieldPurpose::ClientId(IdField::CacheKey));
const METADATA: (&str, FieldPurpose) = ("metadata", FieldPurpose::ClientIdObject(IdObject::Metadata));

const CHAT: Fields = &[
    ("model", FieldPurpose::Model),
    ("messages", FieldPurpose::Messages),
    ("stream", FieldPurpose::Stream),
    ("stream_options", FieldPurpose::StreamOptions),
    ("max_tokens", FieldPurpose::MaxTokens(Field::MaxTokens)),
    (
        "max_completion_tokens",
        FieldPurpose::MaxTokens(Field::MaxCompletionTokens),
    ),
    ("n", FieldPurpose::Count(Field::N)),
    ("service_tier", FieldPurpose::ServiceTier),
    ("prompt_cache_retention", FieldPurpose::CacheRetention),
    (
        "web_search_options",
        FieldPurpose::HostedTool("web_search_options"),
    ),
    ("tools", FieldPurpose::ToolDescriptions),
    ("functions", FieldPurpose::ToolDescriptions),
    USER,
    SAFETY_IDENTIFIER,
    CACHE_KEY,
    METADATA,
];

const COMPLETIONS: Fields = &[
    ("model", FieldPurpose::Model),
    ("prompt", FieldPurpose::TextOrTokens("prompt")),
    ("stream", FieldPurpose::Stream),
    ("stream_options", FieldPurpose::StreamOptions),
    ("max_tokens", FieldPurpose::MaxTokens(Field::MaxTokens)),
    ("n", FieldPurpose::Count(Field::N)),
    ("service_tier", FieldPurpose::ServiceTier),
    ("best_of", FieldPurpose::Count(Field::BestOf)),
    ("suffix", FieldPurpose::Prompt),
    USER,
];

const RESPONSES: Fields = &[
    ("model", FieldPurpose::Model),
    ("input", FieldPurpose::MessagesOrText),
    ("instructions", FieldPurpose::Instructions),
    ("stream", FieldPurpose::Stream),
    (
        "max_output_tokens",
        FieldPurpose::MaxTokens(Field::MaxOutputTokens),
    ),
    ("tools", FieldPurpose::Tools),
    ("max_tool_calls", FieldPurpose::ToolCalls),
    ("service_tier", FieldPurpose::ServiceTier),
    ("prompt_cache_retention", FieldPurpose::CacheRetention),
    (
        "previous_response_id",
        FieldPurpose::StoredReference("previous_response_id"),
    ),
    ("conversation", FieldPurpose::StoredReference("conversation")),
    ("prompt", FieldPurpose::Unsupported("prompt")),
    ("background", FieldPurpose::Unsupported("background")),
    USER,
    SAFETY_IDENTIFIER,
    CACHE_KEY,
    METADATA,
    (
        "client_metadata",
        FieldPurpose::ClientIdObject(IdObject::Metadata),
    ),
];

const EMBEDDINGS: Fields = &[
    ("model", FieldPurpose::Model),
    ("input", FieldPurpose::TextOrTokens("input")),
    USER,
];

const MODERATIONS: Fields = &[("model", FieldPurpose::Model), ("input", FieldPurpose::Prompt)];

const IMAGES: Fields = &[
    ("model", FieldPurpose::Model),
    ("stream", FieldPurpose::Stream),
    ("n", FieldPurpose::Count(Field::N)),
    ("prompt", FieldPurpose::Prompt),
    USER,
];

const SPEECH: Fields = &[
    ("model", FieldPurpose::Model),
    ("input", FieldPurpose::Prompt),
    ("stream_format", FieldPurpose::StreamFormat),
];

const MESSAGES: Fields = &[
    ("model", FieldPurpose::Model),
    ("messages", FieldPurpose::Messages),
    ("system", FieldPurpose::Instructions),
    ("stream", FieldPurpose::Stream),
    ("max_tokens", FieldPurpose::MaxTokens(Field::MaxTokens)),
    ("tools", FieldPurpose::Tools),
    ("service_tier", FieldPurpose::ServiceTier),
    ("speed", FieldPurpose::ServiceTier),
    ("inference_geo", FieldPurpose::ServiceTier),
    ("mcp_servers", FieldPurpose::Unsupported("mcp_servers")),
    ("container", FieldPurpose::Unsupported("container")),
    ("thread", FieldPurpose::Unsupported("thread")),
    ("fallbacks", FieldPurpose::Unsupported("fallbacks")),
    METADATA,
];

/// Google's parsers accept both the Protocol Buffers names and the JSON names (Protocol Buffers, "ProtoJSON Format").
const GEMINI: Fields = &[
    ("model", FieldPurpose::ModelInPath),
    ("contents", FieldPurpose::MessagesOrText),
    ("systemInstruction", FieldPurpose::Instructions),
    ("system_instruction", FieldPurpose::Instructions),
    ("generationConfig", GENERATION_CONFIG),
    ("generation_config", GENERATION_CONFIG),
    ("tools", FieldPurpose::Tools),
    ("serviceTier", FieldPurpose::ServiceTier),
    ("service_tier", FieldPurpose::ServiceTier),
    ("cachedContent", FieldPurpose::Unsupported("cachedContent")),
    ("cached_content", FieldPurpose::Unsupported("cachedContent")),
];

const GENERATION_CONFIG: FieldPurpose = FieldPurpose::Object(
    &[
        (
            "maxOutputTokens",
            FieldPurpose::MaxTokens(Field::GeminiMaxOutputTokens),
        ),
        (
            "max_output_tokens",
            FieldPurpose::MaxTokens(Field::GeminiMaxOutputTokens),
        ),
        ("candidateCount", FieldPurpose::Count(Field::CandidateCount)),
        ("candidate_count", FieldPurpose::Count(Field::CandidateCount)),
    ],
    Field::GenerationConfig,
);

/// `generateContentRequest` is a nested request with its own model.
const GEMINI_TOKENS: Fields = &[
    ("model", FieldPurpose::ModelInPath),
    ("contents", FieldPurpose::MessagesOrText),
    (
        "generateContentRequest",
        FieldPurpose::Unsupported("generateContentRequest"),
    ),
    (
        "generate_content_request",
        FieldPurpose::Unsupported("generateContentRequest"),
    ),
];

const GEMINI_EMBEDDING: Fields = &[
    ("model", FieldPurpose::ModelInPath),
    ("content", FieldPurpose::MessagesOrText),
];

/// Each of the requests has its own model, which must equal the model of the path.
const GEMINI_EMBEDDINGS: Fields = &[
    ("model", FieldPurpose::ModelInPath),
    ("requests", FieldPurpose::MessagesOrText),
];

impl Dialect {
    pub(crate) fn fields(self) -> Fields {
        match self {
            Dialect::Chat => CHAT,
            Dialect::Completions => COMPLETIONS,
            Dialect::Responses | Dialect::ResponseTokens => RESPONSES,
            Dialect::Embeddings => EMBEDDINGS,
            Dialect::Images => IMAGES,
            Dialect::Speech => SPEECH,
            Dialect::Storage(_) => &[],
            // The bodies of the other dialects are not read here: they are forms, or no client uses
            // the dialect.
            Dialect::Moderations
            | Dialect::Transcriptions
            | Dialect::Translations
            | Dialect::ImageEdits
            | Dialect::ImageVariations
            | Dialect::Converse
            | Dialect::Invoke
            | Dialect::InvokeTokens => MODERATIONS,
            Dialect::Messages | Dialect::CountTokens => MESSAGES,
            Dialect::Gemini => GEMINI,
            Dialect::GeminiTokens => GEMINI_TOKENS,
            Dialect::GeminiEmbedding => GEMINI_EMBEDDING,
            Dialect::GeminiEmbeddings => GEMINI_EMBEDDINGS,
        }
    }

    /// Whether a tool of this type is run or described by the client. The provider runs all others:
    /// they reach the network, cost something that is not counted in tokens, or keep state, and no
    /// rule sees their actions.
    pub(crate) fn is_client_tool(self, kind: &str) -> bool {
        match self {
            Dialect::Responses | Dialect::ResponseTokens => matches!(
                kind,
                "function"
                    | "custom"
                    | "local_shell"
                    | "apply_patch"
                    | "computer"
                    | "computer_use_preview"
                    // Searches the tools of the request, and either side may run it.
                    | "tool_search"
            ),
            Dialect::Messages | Dialect::CountTokens => {
                const CLIENT_TOOLS: [&str; 6] = [
                    "bash_",
                    "text_editor_",
                    "memory_",
                    "computer_",
                    "browser_",
                    "tool_search_tool_",
                ];
                kind == "custom" || CLIENT_TOOLS.iter().any(|begin| kind.starts_with(begin))
            }
            _ => true,
        }
    }

    /// Whether a tool in this field is run by the client, for dialects where the field of the tool decides this.
    pub(crate) fn is_field_of_client_tools(self, name: &str) -> bool {
        match self {
            Dialect::Gemini => matches!(
                name,
                "functionDeclarations" | "function_declarations" | "computerUse" | "computer_use"
            ),
            _ => true,
        }
    }

    /// Returns the name of a field that holds the id or the address of content stored at the provider, case ignored.
    pub(crate) fn stored_field_name(self, name: &str) -> Option<&'static str> {
        let names: &[&'static str] = match self.family() {
            Family::Google => &["fileUri", "file_uri"],
            _ => &["file_id"],
        };
        names.iter().copied().find(|kept| equals_ignore_case(name, kept))
    }

    /// Whether a field of a conversation holds the arguments or the result of a tool: it may contain any names.
    pub(crate) fn is_tool_data_field(self, name: &str) -> bool {
        match self.family() {
            Family::Google => matches!(name, "args" | "response"),
            // Anthropic's `tool_use`.
            _ => name == "input",
        }
    }

    /// Whether ids of content stored at the provider, such as files and items, are refused in a conversation: anyone
    /// who knows such an id could read content of another tenant of the gateway.
    pub(crate) fn refuses_stored_ids(self) -> bool {
        matches!(
            self,
            Dialect::Chat
                | Dialect::Responses
                | Dialect::ResponseTokens
                | Dialect::Messages
                | Dialect::CountTokens
                | Dialect::Gemini
                | Dialect::GeminiTokens
                | Dialect::GeminiEmbedding
                | Dialect::GeminiEmbeddings
        )
    }
}

/// Returns how the field `name` is read in an object with these `fields`.
///
/// # Errors
/// [`BadRequest::AmbiguousName`] when it differs from a field that is read only in case.
pub(crate) fn field_purpose(fields: Fields, name: &str) -> Result<FieldPurpose, BadRequest> {
    if let Some((_, read)) = fields.iter().find(|(field, _)| *field == name) {
        return Ok(*read);
    }
    let mut alike = fields.iter().filter(|(_, read)| !read.is_advisory());
    match alike.find(|(field, _)| equals_ignore_case(name, field)) {
        Some((field, _)) => Err(BadRequest::AmbiguousName(field)),
        None => Ok(FieldPurpose::Text),
    }
}

/// Whether cache entries are kept no longer than the standard write price covers: Anthropic's five minutes, OpenAI's half
/// an hour and its in-memory cache.
pub(crate) fn is_short_retention(kept: &str) -> bool {
    matches!(kept, "5m" | "30m" | "in_memory" | "in-memory")
}

/// Returns the value of a boolean field.
///
/// # Errors
/// [`BadRequest::InvalidField`].
pub(crate) fn boolean(event: Event<'_>, field: Field) -> Result<bool, BadRequest> {
    match event {
        Event::Bool(value) => Ok(value),
        Event::Null => Ok(false),
        _ => Err(BadRequest::InvalidField(field)),
    }
}

/// Returns the value of an integer field; `None` when it is `null`.
///
/// # Errors
/// [`BadRequest::InvalidField`].
pub(crate) fn integer(event: Event<'_>, field: Field) -> Result<Option<u64>, BadRequest> {
    match event {
        Event::Null => Ok(None),
        Event::Number(number) => number
            .parse()
            .map(Some)
            .map_err(|_| BadRequest::InvalidField(field)),
        _ => Err(BadRequest::InvalidField(field)),
    }
}
