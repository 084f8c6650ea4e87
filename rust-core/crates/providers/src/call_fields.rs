//! What is read of a request's body, by the names of its fields.

use proofgate_json::equals_but_for_case;

use crate::bad_request::{BadRequest, Field};
use crate::dialect::Dialect;

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
    Stream,
    StreamOptions,
    MaxTokens(Field),
    Count(Field),
    Tools,
    /// What the provider keeps for all tenants of the gateway alike, or does on its own: not served unless it is `null`,
    /// `false` or an empty array.
    Unserved(&'static str),
    /// Text like any other.
    Text,
}

type Fields = &'static [(&'static str, Read)];

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
    ("web_search_options", Read::Unserved("web_search_options")),
];

const COMPLETIONS: Fields = &[
    ("model", Read::Model),
    ("prompt", Read::TextOrTokens("prompt")),
    ("stream", Read::Stream),
    ("stream_options", Read::StreamOptions),
    ("max_tokens", Read::MaxTokens(Field::MaxTokens)),
    ("n", Read::Count(Field::N)),
    ("best_of", Read::Count(Field::BestOf)),
];

const RESPONSES: Fields = &[
    ("model", Read::Model),
    ("input", Read::TurnsOrText),
    ("instructions", Read::Instructions),
    ("stream", Read::Stream),
    ("max_output_tokens", Read::MaxTokens(Field::MaxOutputTokens)),
    ("tools", Read::Tools),
    ("previous_response_id", Read::Unserved("previous_response_id")),
    ("conversation", Read::Unserved("conversation")),
    ("prompt", Read::Unserved("prompt")),
    ("background", Read::Unserved("background")),
];

const EMBEDDINGS: Fields = &[("model", Read::Model), ("input", Read::TextOrTokens("input"))];

const MODERATIONS: Fields = &[("model", Read::Model)];

const MESSAGES: Fields = &[
    ("model", Read::Model),
    ("messages", Read::Turns),
    ("system", Read::Instructions),
    ("stream", Read::Stream),
    ("max_tokens", Read::MaxTokens(Field::MaxTokens)),
    ("tools", Read::Tools),
    ("mcp_servers", Read::Unserved("mcp_servers")),
    ("container", Read::Unserved("container")),
    ("thread", Read::Unserved("thread")),
    ("fallbacks", Read::Unserved("fallbacks")),
];

impl Dialect {
    fn fields(self) -> Fields {
        match self {
            Dialect::Chat => CHAT,
            Dialect::Completions => COMPLETIONS,
            Dialect::Responses => RESPONSES,
            Dialect::Embeddings => EMBEDDINGS,
            Dialect::Moderations | Dialect::Gemini | Dialect::Converse | Dialect::Invoke => MODERATIONS,
            Dialect::Messages | Dialect::CountTokens => MESSAGES,
        }
    }

    /// What the field `name` at the top of a body is read for.
    ///
    /// # Errors
    /// [`BadRequest::AmbiguousName`] when it is the name of one that is read but for its case.
    pub(crate) fn field(self, name: &str) -> Result<Read, BadRequest> {
        let mut fields = self.fields().iter();
        if let Some((_, read)) = fields.find(|(field, _)| *field == name) {
            return Ok(*read);
        }
        let mut fields = self.fields().iter();
        match fields.find(|(field, _)| equals_but_for_case(name, field)) {
            Some((field, _)) => Err(BadRequest::AmbiguousName(field)),
            None => Ok(Read::Text),
        }
    }

    /// Whether a tool of this type is run by the client, or is one that the client describes. All others are run by the
    /// provider: they reach the network, cost what no token counts, or keep state, and no rule sees what they do.
    pub(crate) fn is_tool_of_the_client(self, kind: &str) -> bool {
        match self {
            Dialect::Responses => matches!(
                kind,
                "function" | "custom" | "local_shell" | "apply_patch" | "computer" | "computer_use_preview"
            ),
            Dialect::Messages | Dialect::CountTokens => {
                const CLIENT: [&str; 5] = ["bash_", "text_editor_", "memory_", "computer_", "browser_"];
                kind == "custom" || CLIENT.iter().any(|begin| kind.starts_with(begin))
            }
            _ => true,
        }
    }

    /// Whether ids of what the provider keeps, such as files and items, are refused in a conversation: whoever knows one
    /// reads what another tenant of the gateway has put there.
    pub(crate) fn refuses_ids(self) -> bool {
        matches!(
            self,
            Dialect::Chat | Dialect::Responses | Dialect::Messages | Dialect::CountTokens
        )
    }
}
