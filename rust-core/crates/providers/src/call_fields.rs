//! What is read of a request's body, by the names of its fields.

use proofgate_json::{Event, equals_but_for_case};

use crate::bad_request::{BadRequest, Field};
use crate::client_ids::{IdField, IdObject};
use crate::dialect::{Dialect, Family};

/// What a field at the top of a body is read for.
#[derive(Clone, Copy)]
pub(crate) enum Read {
    Model,
    /// The messages or items of a conversation, in an array.
    Turns,
    /// The same, or a text alone.
    TurnsOrText,
    /// Texts, each of which may be there as the numbers of its tokens.
    TextOrTokens(&'static str),
    /// What the model takes for its instructions.
    Instructions,
    /// What a user says, in any shape.
    Prompt,
    /// Tools, of which nothing else matters than what they say.
    Descriptions,
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
    Hosted(&'static str),
    /// How often the provider may call the tools that it runs.
    ToolCalls,
    /// An object in which these fields are read.
    Object(Fields, Field),
    /// The model, which the path names already: only `null` may stand there.
    ModelInPath,
    /// What the provider keeps for all tenants of the gateway alike, or does on its own: not served unless it is `null`,
    /// `false` or an empty array.
    Unserved(&'static str),
    /// The id of what the provider keeps: it may go where the account is the tenant's alone.
    Kept(&'static str),
    /// Who sends the request, or in which session: noted, and else text like any other.
    Id(IdField),
    /// An object that says so.
    Ids(IdObject),
    /// Text like any other.
    Text,
}

impl Read {
    /// Whether nothing but what is noted depends on it: a name that is it but for its case is another field then.
    fn is_only_noted(self) -> bool {
        matches!(
            self,
            Read::Id(_) | Read::Ids(_) | Read::Prompt | Read::Descriptions
        )
    }
}

pub(crate) type Fields = &'static [(&'static str, Read)];

const USER: (&str, Read) = ("user", Read::Id(IdField::User));
const SAFETY_IDENTIFIER: (&str, Read) = ("safety_identifier", Read::Id(IdField::SafetyIdentifier));
const CACHE_KEY: (&str, Read) = ("prompt_cache_key", Read::Id(IdField::CacheKey));
const METADATA: (&str, Read) = ("metadata", Read::Ids(IdObject::Metadata));

const CHAT: Fields = &[
    ("model", Read::Model),
    ("messages", Read::Turns),
    ("stream", Read::Stream),
    ("stream_options", Read::StreamOptions),
    ("max_tokens", Read::MaxTokens(Field::MaxTokens)),
    (
        "max_completion_tokens",
        Read::MaxTokens(Field::MaxCompletionTokens),
    ),
    ("n", Read::Count(Field::N)),
    ("service_tier", Read::ServiceTier),
    ("prompt_cache_retention", Read::CacheRetention),
    ("web_search_options", Read::Hosted("web_search_options")),
    ("tools", Read::Descriptions),
    ("functions", Read::Descriptions),
    USER,
    SAFETY_IDENTIFIER,
    CACHE_KEY,
    METADATA,
];

const COMPLETIONS: Fields = &[
    ("model", Read::Model),
    ("prompt", Read::TextOrTokens("prompt")),
    ("stream", Read::Stream),
    ("stream_options", Read::StreamOptions),
    ("max_tokens", Read::MaxTokens(Field::MaxTokens)),
    ("n", Read::Count(Field::N)),
    ("service_tier", Read::ServiceTier),
    ("best_of", Read::Count(Field::BestOf)),
    ("suffix", Read::Prompt),
    USER,
];

const RESPONSES: Fields = &[
    ("model", Read::Model),
    ("input", Read::TurnsOrText),
    ("instructions", Read::Instructions),
    ("stream", Read::Stream),
    ("max_output_tokens", Read::MaxTokens(Field::MaxOutputTokens)),
    ("tools", Read::Tools),
    ("max_tool_calls", Read::ToolCalls),
    ("service_tier", Read::ServiceTier),
    ("prompt_cache_retention", Read::CacheRetention),
    ("previous_response_id", Read::Kept("previous_response_id")),
    ("conversation", Read::Kept("conversation")),
    ("prompt", Read::Unserved("prompt")),
    ("background", Read::Unserved("background")),
    USER,
    SAFETY_IDENTIFIER,
    CACHE_KEY,
    METADATA,
    ("client_metadata", Read::Ids(IdObject::Metadata)),
];

const EMBEDDINGS: Fields = &[
    ("model", Read::Model),
    ("input", Read::TextOrTokens("input")),
    USER,
];

const MODERATIONS: Fields = &[("model", Read::Model), ("input", Read::Prompt)];

const IMAGES: Fields = &[
    ("model", Read::Model),
    ("stream", Read::Stream),
    ("n", Read::Count(Field::N)),
    ("prompt", Read::Prompt),
    USER,
];

const SPEECH: Fields = &[
    ("model", Read::Model),
    ("input", Read::Prompt),
    ("stream_format", Read::StreamFormat),
];

const MESSAGES: Fields = &[
    ("model", Read::Model),
    ("messages", Read::Turns),
    ("system", Read::Instructions),
    ("stream", Read::Stream),
    ("max_tokens", Read::MaxTokens(Field::MaxTokens)),
    ("tools", Read::Tools),
    ("service_tier", Read::ServiceTier),
    ("speed", Read::ServiceTier),
    ("inference_geo", Read::ServiceTier),
    ("mcp_servers", Read::Unserved("mcp_servers")),
    ("container", Read::Unserved("container")),
    ("thread", Read::Unserved("thread")),
    ("fallbacks", Read::Unserved("fallbacks")),
    METADATA,
];

/// Google's parsers take the names of Protocol Buffers as well as those of JSON (Protocol Buffers, "ProtoJSON Format").
const GEMINI: Fields = &[
    ("model", Read::ModelInPath),
    ("contents", Read::TurnsOrText),
    ("systemInstruction", Read::Instructions),
    ("system_instruction", Read::Instructions),
    ("generationConfig", GENERATION_CONFIG),
    ("generation_config", GENERATION_CONFIG),
    ("tools", Read::Tools),
    ("serviceTier", Read::ServiceTier),
    ("service_tier", Read::ServiceTier),
    ("cachedContent", Read::Unserved("cachedContent")),
    ("cached_content", Read::Unserved("cachedContent")),
];

const GENERATION_CONFIG: Read = Read::Object(
    &[
        ("maxOutputTokens", Read::MaxTokens(Field::GeminiMaxOutputTokens)),
        ("max_output_tokens", Read::MaxTokens(Field::GeminiMaxOutputTokens)),
        ("candidateCount", Read::Count(Field::CandidateCount)),
        ("candidate_count", Read::Count(Field::CandidateCount)),
    ],
    Field::GenerationConfig,
);

/// `generateContentRequest` is a request in the request, with a model of its own.
const GEMINI_TOKENS: Fields = &[
    ("model", Read::ModelInPath),
    ("contents", Read::TurnsOrText),
    ("generateContentRequest", Read::Unserved("generateContentRequest")),
    (
        "generate_content_request",
        Read::Unserved("generateContentRequest"),
    ),
];

const GEMINI_EMBEDDING: Fields = &[("model", Read::ModelInPath), ("content", Read::TurnsOrText)];

/// Each of the requests has a model of its own, which has to be that of the path.
const GEMINI_EMBEDDINGS: Fields = &[("model", Read::ModelInPath), ("requests", Read::TurnsOrText)];

impl Dialect {
    pub(crate) fn fields(self) -> Fields {
        match self {
            Dialect::Chat => CHAT,
            Dialect::Completions => COMPLETIONS,
            Dialect::Responses | Dialect::ResponseTokens => RESPONSES,
            Dialect::Embeddings => EMBEDDINGS,
            Dialect::Images => IMAGES,
            Dialect::Speech => SPEECH,
            Dialect::Stored(_) => &[],
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
    pub(crate) fn is_tool_of_the_client(self, kind: &str) -> bool {
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
                const CLIENT: [&str; 6] = [
                    "bash_",
                    "text_editor_",
                    "memory_",
                    "computer_",
                    "browser_",
                    "tool_search_tool_",
                ];
                kind == "custom" || CLIENT.iter().any(|begin| kind.starts_with(begin))
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
    pub(crate) fn kept_by_provider(self, name: &str) -> Option<&'static str> {
        let names: &[&'static str] = match self.family() {
            Family::Google => &["fileUri", "file_uri"],
            _ => &["file_id"],
        };
        names.iter().copied().find(|kept| equals_but_for_case(name, kept))
    }

    /// Whether a field of a conversation holds what a tool was called with, or what it gave: any names may stand there.
    pub(crate) fn is_of_a_tool(self, name: &str) -> bool {
        match self.family() {
            Family::Google => matches!(name, "args" | "response"),
            // Anthropic's `tool_use`.
            _ => name == "input",
        }
    }

    /// Whether ids of what the provider keeps, such as files and items, are refused in a conversation: whoever knows one
    /// reads what another tenant of the gateway has put there.
    pub(crate) fn refuses_ids(self) -> bool {
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
pub(crate) fn field(fields: Fields, name: &str) -> Result<Read, BadRequest> {
    if let Some((_, read)) = fields.iter().find(|(field, _)| *field == name) {
        return Ok(*read);
    }
    let mut alike = fields.iter().filter(|(_, read)| !read.is_only_noted());
    match alike.find(|(field, _)| equals_but_for_case(name, field)) {
        Some((field, _)) => Err(BadRequest::AmbiguousName(field)),
        None => Ok(Read::Text),
    }
}

/// Whether what is written to a cache is kept no longer than at the price of every write: Anthropic's five minutes, OpenAI's
/// half an hour and its memory.
pub(crate) fn is_short(kept: &str) -> bool {
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
