use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai_anthropic::finish_reason::finish_reason;
use crate::openai_anthropic::tokens::{Tokens, write_usage};
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::UnescapedString;
use proofgate_dialect::{RequestContext, ResponseError, Usage};

#[derive(Deserialize)]
struct Message<'b> {
    #[serde(borrow, rename = "type")]
    kind: Option<UnescapedString<'b>>,
    #[serde(borrow)]
    id: Option<JsonText<'b>>,
    #[serde(borrow)]
    content: Option<Vec<Block<'b>>>,
    #[serde(borrow)]
    stop_reason: Option<UnescapedString<'b>>,
    #[serde(borrow)]
    stop_details: Option<&'b RawValue>,
    usage: Option<Tokens>,
}

/// A block of content. The types of its members depend on the block's type, and new types appear without notice.
#[derive(Default, Deserialize)]
pub(super) struct Block<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<UnescapedString<'b>>,
    #[serde(borrow)]
    text: Option<&'b RawValue>,
    #[serde(borrow)]
    id: Option<&'b RawValue>,
    #[serde(borrow)]
    name: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) input: Option<&'b RawValue>,
    #[serde(borrow)]
    thinking: Option<&'b RawValue>,
    #[serde(borrow)]
    signature: Option<&'b RawValue>,
    #[serde(borrow)]
    data: Option<&'b RawValue>,
}

/// The content of a block, by its meaning for a client.
pub(super) enum BlockContent<'b> {
    Text(JsonText<'b>),
    Call {
        id: JsonText<'b>,
        name: JsonText<'b>,
    },
    Thinking {
        thinking: Option<JsonText<'b>>,
        signature: Option<JsonText<'b>>,
    },
    Redacted(JsonText<'b>),
    /// Results of the provider's own tools, and unknown blocks.
    Ignored,
}

impl<'b> Block<'b> {
    /// Returns the block's content.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if the block lacks a member that its type requires.
    pub(super) fn content(&self) -> Result<BlockContent<'b>, ResponseError> {
        let text = |value: Option<&'b RawValue>| value.and_then(JsonText::from_raw);
        Ok(match self.kind.as_deref() {
            Some("text") => BlockContent::Text(
                text(self.text).ok_or(ResponseError::Malformed("a text block without text"))?,
            ),
            Some("tool_use") => match (text(self.id), text(self.name)) {
                (Some(id), Some(name)) => BlockContent::Call { id, name },
                _ => return Err(ResponseError::Malformed("a tool_use block without id or name")),
            },
            Some("thinking") => BlockContent::Thinking {
                thinking: text(self.thinking),
                signature: text(self.signature).filter(|signature| !signature.is_empty()),
            },
            Some("redacted_thinking") => {
                let data = text(self.data);
                BlockContent::Redacted(
                    data.ok_or(ResponseError::Malformed("a redacted_thinking block without data"))?,
                )
            }
            _ => BlockContent::Ignored,
        })
    }
}

/// Writes the chat completion for a whole message of Anthropic's API, and returns its usage.
///
/// `created` is the time of the answer in seconds since 1970, because Anthropic reports none. The
/// completion has Anthropic's id. `out` is unchanged if the answer cannot be translated.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it is not a message, or has no stop reason or usage, and
/// [`ResponseError::Failed`] if it is an error.
pub fn translate_response(
    body: &[u8],
    asked: &RequestContext,
    created: u64,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let body = std::str::from_utf8(body).map_err(|_| ResponseError::Malformed("not UTF-8"))?;
    let message: Message<'_> =
        serde_json::from_str(body).map_err(|_| ResponseError::Malformed("not a message in JSON"))?;
    if message.kind.as_deref() == Some("error") {
        return Err(ResponseError::Failed("an error instead of a message"));
    }
    let blocks = message.content.ok_or(ResponseError::Malformed("no content"))?;
    let said = blocks
        .iter()
        .map(|block| block.content().map(|said| (said, block.input)));
    let said = said.collect::<Result<Vec<_>, _>>()?;
    let stop_reason = message
        .stop_reason
        .ok_or(ResponseError::Malformed("no stop reason"))?;
    let usage = message.usage.ok_or(ResponseError::Malformed("no usage"))?.usage();
    let has_calls = said
        .iter()
        .any(|(said, _)| matches!(said, BlockContent::Call { .. }));

    out.reserve(body.len() + 512);
    out.extend_from_slice(b"{\"id\":");
    out.extend_from_slice(message.id.map_or("\"\"", JsonText::raw).as_bytes());
    out.extend_from_slice(b",\"object\":\"chat.completion\",\"created\":");
    write_number(out, created);
    out.extend_from_slice(b",\"model\":");
    write_string(out, &asked.model);
    out.extend_from_slice(b",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    let refusal = refusal(&stop_reason, message.stop_details);
    write_content(&said, refusal.is_some() || has_calls, out);
    out.extend_from_slice(b",\"refusal\":");
    out.extend_from_slice(refusal.map_or("null", JsonText::raw).as_bytes());
    write_reasoning(&said, out);
    if has_calls {
        write_calls(&said, out);
    }
    out.extend_from_slice(b"},\"logprobs\":null,\"finish_reason\":");
    write_string(out, finish_reason(&stop_reason, has_calls));
    out.extend_from_slice(b"}],\"usage\":");
    write_usage(&usage, out);
    out.push(b'}');
    Ok(usage)
}

/// Returns Anthropic's explanation of a refusal, if the model refused to answer.
pub(super) fn refusal<'b>(stop_reason: &str, stop_details: Option<&'b RawValue>) -> Option<JsonText<'b>> {
    #[derive(Deserialize)]
    struct Details<'b> {
        #[serde(borrow)]
        explanation: Option<JsonText<'b>>,
    }
    if stop_reason != "refusal" {
        return None;
    }
    let details: Details<'_> = serde_json::from_str(stop_details?.get()).ok()?;
    details.explanation.filter(|explanation| !explanation.is_empty())
}

type ContentAndInput<'b> = (BlockContent<'b>, Option<&'b RawValue>);

/// Writes the texts as one string. Without text, writes `null` if there is other content, and
/// otherwise an empty string.
fn write_content(said: &[ContentAndInput<'_>], something_else: bool, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(b'"');
    for (said, _) in said {
        if let BlockContent::Text(text) = said {
            out.extend_from_slice(text.inner().as_bytes());
        }
    }
    if something_else && out.len() == start + 1 {
        out.truncate(start);
        out.extend_from_slice(b"null");
        return;
    }
    out.push(b'"');
}

fn write_reasoning(said: &[ContentAndInput<'_>], out: &mut Vec<u8>) {
    let mut thoughts = said.iter().filter_map(|(said, _)| match said {
        BlockContent::Thinking {
            thinking: Some(thinking),
            ..
        } if !thinking.is_empty() => Some(thinking),
        _ => None,
    });
    if let Some(first) = thoughts.next() {
        out.extend_from_slice(b",\"reasoning_content\":\"");
        out.extend_from_slice(first.inner().as_bytes());
        for thinking in thoughts {
            out.extend_from_slice(thinking.inner().as_bytes());
        }
        out.push(b'"');
    }
    let mut index = 0;
    for (said, _) in said {
        if !matches!(said, BlockContent::Thinking { .. } | BlockContent::Redacted(_)) {
            continue;
        }
        out.extend_from_slice(if index == 0 {
            b",\"reasoning_details\":["
        } else {
            b","
        });
        write_detail(said, index, out);
        index += 1;
    }
    if index > 0 {
        out.push(b']');
    }
}

/// Writes an element of `reasoning_details`, or a fragment of a known one.
pub(super) fn write_detail(said: &BlockContent<'_>, index: u64, out: &mut Vec<u8>) {
    let mut member = |before: &str, value: &str| {
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(value.as_bytes());
    };
    let mut digits = itoa::Buffer::new();
    let index = digits.format(index);
    match said {
        BlockContent::Thinking { thinking, signature } => {
            member("{\"type\":\"reasoning.text\",\"index\":", index);
            if let Some(thinking) = thinking {
                member(",\"text\":", thinking.raw());
            }
            if let Some(signature) = signature {
                member(",\"signature\":", signature.raw());
            }
        }
        BlockContent::Redacted(data) => {
            member("{\"type\":\"reasoning.encrypted\",\"index\":", index);
            member(",\"data\":", data.raw());
        }
        BlockContent::Text(_) | BlockContent::Call { .. } | BlockContent::Ignored => return,
    }
    out.push(b'}');
}

fn write_calls(said: &[ContentAndInput<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"tool_calls\":[");
    for (said, input) in said {
        let BlockContent::Call { id, name } = said else {
            continue;
        };
        out.extend_from_slice(b"{\"id\":");
        out.extend_from_slice(id.raw().as_bytes());
        out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        out.extend_from_slice(name.raw().as_bytes());
        out.extend_from_slice(b",\"arguments\":");
        write_string(out, input.map_or("{}", RawValue::get));
        out.extend_from_slice(b"}},");
    }
    out.pop();
    out.push(b']');
}
