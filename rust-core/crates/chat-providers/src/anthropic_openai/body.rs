//! The shape of a Messages request (anthropic-py 2.12.0, `types/message_create_params.py` and the types it names).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{Number, Object, Text, object};

object! {
    /// A whole request.
    Body<'a> {
        "model" => model: Text<'a>,
        "max_tokens" => max_tokens: Number<'a>,
        "messages" => messages: Vec<Message<'a>>,
        "system" => system: Content<'a>,
        "stream" => stream: bool,
        "stop_sequences" => stop_sequences: Vec<Text<'a>>,
        "temperature" => temperature: Number<'a>,
        "top_p" => top_p: Number<'a>,
        "tools" => tools: Vec<Tool<'a>>,
        "tool_choice" => tool_choice: ToolChoice<'a>,
        "output_config" => output_config: OutputConfig<'a>,
        "output_format" => output_format: Format<'a>,
        "thinking" => thinking: Thinking<'a>,
        "metadata" => metadata: Metadata<'a>,
        "service_tier" => service_tier: Text<'a>,
        "speed" => speed: Text<'a>,
        "mcp_servers" => mcp_servers: Vec<IgnoredAny>,
        "container" => container: IgnoredAny,
        "thread" => thread: IgnoredAny,
        "inference_geo" => inference_geo: IgnoredAny,
        "top_k" => top_k: Number<'a>,
        "cache_control" => cache_control: IgnoredAny,
        "context_management" => context_management: &'a RawValue,
        "compaction" => compaction: IgnoredAny,
        "fallbacks" => fallbacks: IgnoredAny,
        "diagnostics" => diagnostics: IgnoredAny,
    }
}

impl Body<'_> {
    /// Returns whether the model has tools to call.
    pub(super) fn has_tools(&self) -> bool {
        self.tools.as_ref().is_some_and(|tools| !tools.is_empty())
    }
}

object! {
    /// A message of the conversation.
    Message<'a> {
        "role" => role: Text<'a>,
        "content" => content: Content<'a>,
    }
}

object! {
    /// A block of content, of any type.
    Block<'a> {
        "type" => kind: Text<'a>,
        "text" => text: Text<'a>,
        "source" => source: Source<'a>,
        "title" => title: Text<'a>,
        "context" => context: Text<'a>,
        "id" => id: Text<'a>,
        "name" => name: Text<'a>,
        "input" => input: Object<'a>,
        "caller" => caller: Caller<'a>,
        "tool_use_id" => tool_use_id: Text<'a>,
        "content" => content: &'a RawValue,
        "is_error" => is_error: bool,
        "citations" => citations: &'a RawValue,
        "cache_control" => cache_control: IgnoredAny,
        "toolset_name" => toolset_name: IgnoredAny,
        "transformations" => transformations: IgnoredAny,
        "thinking" => thinking: &'a RawValue,
        "signature" => signature: &'a RawValue,
        "data" => data: IgnoredAny,
    }
}

object! {
    /// The source of an image or a document.
    Source<'a> {
        "type" => kind: Text<'a>,
        "media_type" => media_type: Text<'a>,
        "data" => data: Text<'a>,
        "url" => url: Text<'a>,
        "content" => content: &'a RawValue,
        "file_id" => file_id: IgnoredAny,
    }
}

object! {
    /// The caller of a tool: the model itself, or code that it wrote.
    Caller<'a> {
        "type" => kind: Text<'a>,
        "tool_id" => tool_id: IgnoredAny,
    }
}

object! {
    /// A tool; tools that Anthropic defines have their own types.
    Tool<'a> {
        "type" => kind: Text<'a>,
        "name" => name: Text<'a>,
        "description" => description: Text<'a>,
        "input_schema" => input_schema: Object<'a>,
        "strict" => strict: bool,
        "input_examples" => input_examples: IgnoredAny,
        "defer_loading" => defer_loading: bool,
        "eager_input_streaming" => eager_input_streaming: bool,
        "allowed_callers" => allowed_callers: IgnoredAny,
        "cache_control" => cache_control: IgnoredAny,
    }
}

object! {
    /// The tool choice.
    ToolChoice<'a> {
        "type" => kind: Text<'a>,
        "name" => name: Text<'a>,
        "disable_parallel_tool_use" => disable_parallel_tool_use: bool,
    }
}

object! {
    /// The effort and the format of an answer.
    OutputConfig<'a> {
        "effort" => effort: Text<'a>,
        "format" => format: Format<'a>,
    }
}

object! {
    /// The format of an answer.
    Format<'a> {
        "type" => kind: Text<'a>,
        "schema" => schema: Object<'a>,
    }
}

object! {
    /// The setting that enables thinking and limits it.
    Thinking<'a> {
        "type" => kind: Text<'a>,
        "budget_tokens" => budget_tokens: Number<'a>,
        "display" => display: Text<'a>,
    }
}

object! {
    /// The user of a request.
    Metadata<'a> {
        "user_id" => user_id: Text<'a>,
    }
}

/// Content: a text, or blocks.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

impl<'a> Deserialize<'a> for Content<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'a> Visitor<'a> for Either {
            type Value = Content<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array")
            }
            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Content<'a>, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Content<'a>, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'a>>(self, mut blocks: A) -> Result<Content<'a>, A::Error> {
                let mut content = Vec::new();
                while let Some(block) = blocks.next_element()? {
                    content.push(block);
                }
                Ok(Content::Blocks(content))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A part of the content.
#[derive(Debug, Clone, Copy)]
pub(super) enum ContentPart<'c, 'a> {
    Text(&'c str),
    Block(&'c Block<'a>),
}

impl<'a> Content<'a> {
    /// Iterates over its parts; a text is a single part.
    pub(super) fn parts(&self) -> impl Iterator<Item = ContentPart<'_, 'a>> {
        let (text, blocks) = match self {
            Content::Text(text) => (Some(ContentPart::Text(text)), &[][..]),
            Content::Blocks(blocks) => (None, &blocks[..]),
        };
        text.into_iter().chain(blocks.iter().map(ContentPart::Block))
    }
}

/// Returns whether a block has this type.
pub(super) fn has_type(block: &Block<'_>, kind: &str) -> bool {
    block.kind.as_ref().is_some_and(|name| name.0 == kind)
}
