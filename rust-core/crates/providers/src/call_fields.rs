//! What is read of a request's body, by the names of its fields.

use crate::bad_request::Field;
use crate::dialect::Dialect;

/// What a field at the top of a body is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Dialect {
    /// What the field `name` is read for.
    pub(crate) fn field(self, name: &str) -> Read {
        match self {
            Dialect::Chat => match name {
                "model" => Read::Model,
                "messages" => Read::Turns,
                "stream" => Read::Stream,
                "stream_options" => Read::StreamOptions,
                "max_tokens" => Read::MaxTokens(Field::MaxTokens),
                "max_completion_tokens" => Read::MaxTokens(Field::MaxCompletionTokens),
                "n" => Read::Count(Field::N),
                "web_search_options" => Read::Unserved("web_search_options"),
                _ => Read::Text,
            },
            Dialect::Completions => match name {
                "model" => Read::Model,
                "prompt" => Read::TextOrTokens("prompt"),
                "stream" => Read::Stream,
                "stream_options" => Read::StreamOptions,
                "max_tokens" => Read::MaxTokens(Field::MaxTokens),
                "n" => Read::Count(Field::N),
                "best_of" => Read::Count(Field::BestOf),
                _ => Read::Text,
            },
            Dialect::Responses => match name {
                "model" => Read::Model,
                "input" => Read::TurnsOrText,
                "instructions" => Read::Instructions,
                "stream" => Read::Stream,
                "max_output_tokens" => Read::MaxTokens(Field::MaxOutputTokens),
                "tools" => Read::Tools,
                "previous_response_id" => Read::Unserved("previous_response_id"),
                "conversation" => Read::Unserved("conversation"),
                "prompt" => Read::Unserved("prompt"),
                "background" => Read::Unserved("background"),
                _ => Read::Text,
            },
            Dialect::Embeddings => match name {
                "model" => Read::Model,
                "input" => Read::TextOrTokens("input"),
                _ => Read::Text,
            },
            Dialect::Moderations | Dialect::Gemini => match name {
                "model" => Read::Model,
                _ => Read::Text,
            },
            Dialect::Messages | Dialect::CountTokens => match name {
                "model" => Read::Model,
                "messages" => Read::Turns,
                "system" => Read::Instructions,
                "stream" => Read::Stream,
                "max_tokens" => Read::MaxTokens(Field::MaxTokens),
                "tools" => Read::Tools,
                "mcp_servers" => Read::Unserved("mcp_servers"),
                "container" => Read::Unserved("container"),
                "thread" => Read::Unserved("thread"),
                "fallbacks" => Read::Unserved("fallbacks"),
                _ => Read::Text,
            },
        }
    }

    /// The names of all fields that are read, apart from texts.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Dialect::Chat => &[
                "model",
                "messages",
                "stream",
                "stream_options",
                "max_tokens",
                "max_completion_tokens",
                "n",
                "web_search_options",
            ],
            Dialect::Completions => &[
                "model",
                "prompt",
                "stream",
                "stream_options",
                "max_tokens",
                "n",
                "best_of",
            ],
            Dialect::Responses => &[
                "model",
                "input",
                "instructions",
                "stream",
                "max_output_tokens",
                "tools",
                "previous_response_id",
                "conversation",
                "prompt",
                "background",
            ],
            Dialect::Embeddings => &["model", "input"],
            Dialect::Moderations | Dialect::Gemini => &["model"],
            Dialect::Messages | Dialect::CountTokens => &[
                "model",
                "messages",
                "system",
                "stream",
                "max_tokens",
                "tools",
                "mcp_servers",
                "container",
                "thread",
                "fallbacks",
            ],
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

#[cfg(test)]
mod tests {
    use super::Read;
    use crate::dialect::Dialect;

    #[test]
    fn the_names_that_are_read_are_those_of_the_fields() {
        for dialect in Dialect::ALL {
            for name in dialect.names() {
                assert_ne!(dialect.field(name), Read::Text, "{dialect:?} {name}");
            }
            let others = Dialect::ALL.into_iter().flat_map(Dialect::names);
            for name in others.filter(|name| !dialect.names().contains(name)) {
                assert_eq!(dialect.field(name), Read::Text, "{dialect:?} {name}");
            }
        }
    }
}
