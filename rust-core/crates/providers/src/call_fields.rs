//! What is read of a request's body, by the names of its fields.

use proofgate_json::{Event, equals_ignore_case};

use crate::bad_request::{BadRequest, Field};
use crate::client_ids::{IdField, IdObject};
use crate::dialect::{Dialect, Family};

/// What a field at the top of a body is read for.
#[derive(Clone, Copy)]
pub(crate) enum FieldPurpose {
    Model,
    /// The messages or items of a conversation, in an array.
    Messages,
    /// The same, or a text alone.
    MessagesOrText,
    /// Texts, each of which may be there as the numbers of its tokens.
    TextOrTokens(&'static str),
    /// What the model takes for its instructions.
    Instructions,
    /// What a user says, in any shape.
    Prompt,
    /// Tools, of which nothing else matters than what they say.
    ToolDescriptions,
    Stream,
    /// How an answer is to come that is no stream of events unless this is `sse`.
    StreamFormat,
    StreamOptions,
    /// How urgently the provider is to answer, or where, which some prices depend on.
    ServiceTier,
    /// How long a cache is to keep what is written to it.
    CacheRetention,
    MaxTokens(Field),
    Count(Field),
    Tools,
    /// A field for which the provider runs a tool: the kind of that.
    HostedTool(&'static str),
    /// How often the provider may call the tools that it runs.
    ToolCalls,
    /// An object in which these fields are read.
    Object(Fields, Field),
    /// The model, which the path names already: only `null` may stand there.
    ModelInPath,
    /// What the provider keeps for all tenants of the gateway alike, or does on its own: not served unless it is `null`,
    /// `false` or an empty array.
    Unsupported(&'static str),
    /// The id of what the provider keeps: it may go where the account is the tenant's alone.
    StoredReference(&'static str),
    /// Who sends the request, or in which session: noted, and else text like any other.
    ClientId(IdField),
    /// An object that says so.
    ClientIdObject(IdObject),
    /// Text like any other.
    Text,
}

impl FieldPurpose {
    /// Whether nothing but what is noted depends on it: a name that is it but for its case is another field then.
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

/// Google's parsers take the names of Protocol Buffers as well as those of JSON (Protocol Buffers, "ProtoJSON Format").
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

/// `generateContentRequest` is a request in the request, with a model of its own.
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

/// Each of the requests has a model of its own, which has to be that of the path.
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
            // Of the others no body is read here: they are forms, or no client speaks them.
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

    /// Whether a tool of this type is run by the client, or is one that the client describes. All others are run by the
    /// provider: they reach the network, cost what no token counts, or keep state, and no rule sees what they do.
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
                    // Searches among the tools of the request, whoever runs it.
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

    /// Whether a tool that stands in this field is run by the client, where a tool's field says which it is.
    pub(crate) fn is_field_of_client_tools(self, name: &str) -> bool {
        match self {
            Dialect::Gemini => matches!(
                name,
                "functionDeclarations" | "function_declarations" | "computerUse" | "computer_use"
            ),
            _ => true,
        }
    }

    /// The name of a field that holds the id or the address of what the provider keeps, also to parsers that ignore case.
    pub(crate) fn stored_field_name(self, name: &str) -> Option<&'static str> {
        let names: &[&'static str] = match self.family() {
            Family::Google => &["fileUri", "file_uri"],
            _ => &["file_id"],
        };
        names.iter().copied().find(|kept| equals_ignore_case(name, kept))
    }

    /// Whether a field of a conversation holds what a tool was called with, or what it gave: any names may stand there.
    pub(crate) fn is_tool_data_field(self, name: &str) -> bool {
        match self.family() {
            Family::Google => matches!(name, "args" | "response"),
            // Anthropic's `tool_use`.
            _ => name == "input",
        }
    }

    /// Whether ids of what the provider keeps, such as files and items, are refused in a conversation: whoever knows one
    /// reads what another tenant of the gateway has put there.
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

/// What the field `name` is read for, of an object in which `fields` are read.
///
/// # Errors
/// [`BadRequest::AmbiguousName`] when it is the name of one that is read but for its case.
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

/// Whether what is written to a cache is kept no longer than at the price of every write: Anthropic's five minutes, OpenAI's
/// half an hour and its memory.
pub(crate) fn is_short_retention(kept: &str) -> bool {
    matches!(kept, "5m" | "30m" | "in_memory" | "in-memory")
}

/// The value of a field that is true or not.
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

/// The value of a field that is a number; `None` when it is `null`.
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
