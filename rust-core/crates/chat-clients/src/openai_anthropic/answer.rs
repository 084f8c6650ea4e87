use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai_anthropic::finish::finish_reason;
use crate::openai_anthropic::tokens::{Tokens, write_usage};
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::Word;
use proofgate_dialect::{AnswerError, Asked, Usage};

#[derive(Deserialize)]
struct Message<'b> {
    #[serde(borrow, rename = "type")]
    kind: Option<Word<'b>>,
    #[serde(borrow)]
    id: Option<JsonText<'b>>,
    #[serde(borrow)]
    content: Option<Vec<Block<'b>>>,
    #[serde(borrow)]
    stop_reason: Option<Word<'b>>,
    #[serde(borrow)]
    stop_details: Option<&'b RawValue>,
    usage: Option<Tokens>,
}

/// A block of content. The types of its members depend on its own, and new ones come without notice.
#[derive(Default, Deserialize)]
pub(super) struct Block<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Word<'b>>,
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

/// A block by what it is to a client.
pub(super) enum Said<'b> {
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
    /// What the provider's own tools did, and what is not known yet.
    Nothing,
}

impl<'b> Block<'b> {
    /// What it is.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`] when it lacks what a block of its type has.
    pub(super) fn said(&self) -> Result<Said<'b>, AnswerError> {
        let text = |value: Option<&'b RawValue>| value.and_then(JsonText::of);
        Ok(match self.kind.as_deref() {
            Some("text") => {
                Said::Text(text(self.text).ok_or(AnswerError::Malformed("a text block without text"))?)
            }
            Some("tool_use") => match (text(self.id), text(self.name)) {
                (Some(id), Some(name)) => Said::Call { id, name },
                _ => return Err(AnswerError::Malformed("a tool_use block without id or name")),
            },
            Some("thinking") => Said::Thinking {
                thinking: text(self.thinking),
                signature: text(self.signature).filter(|signature| !signature.is_empty()),
            },
            Some("redacted_thinking") => {
                let data = text(self.data);
                Said::Redacted(data.ok_or(AnswerError::Malformed("a redacted_thinking block without data"))?)
            }
            _ => Said::Nothing,
        })
    }
}

/// Writes the chat completion that a whole message of Anthropic's is, and tells what it cost.
///
/// `created` is the time of the answer in seconds since 1970: Anthropic tells none. The id is Anthropic's. `out` is as it
/// was when the answer cannot be translated.
///
/// # Errors
/// [`AnswerError::Malformed`] when it is no message, or one without stop reason or usage; [`AnswerError::Failed`] when it is an
/// error.
pub fn answer(body: &[u8], asked: &Asked, created: u64, out: &mut Vec<u8>) -> Result<Usage, AnswerError> {
    let body = std::str::from_utf8(body).map_err(|_| AnswerError::Malformed("not UTF-8"))?;
    let message: Message<'_> =
        serde_json::from_str(body).map_err(|_| AnswerError::Malformed("not a message in JSON"))?;
    if message.kind.as_deref() == Some("error") {
        return Err(AnswerError::Failed("an error instead of a message"));
    }
    let blocks = message.content.ok_or(AnswerError::Malformed("no content"))?;
    let said = blocks
        .iter()
        .map(|block| block.said().map(|said| (said, block.input)));
    let said = said.collect::<Result<Vec<_>, _>>()?;
    let stop_reason = message
        .stop_reason
        .ok_or(AnswerError::Malformed("no stop reason"))?;
    let usage = message.usage.ok_or(AnswerError::Malformed("no usage"))?.usage();
    let has_calls = said.iter().any(|(said, _)| matches!(said, Said::Call { .. }));

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

/// How Anthropic explains that it refused to answer, if it did.
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

type SaidAndInput<'b> = (Said<'b>, Option<&'b RawValue>);

/// The texts in one. There is `null` instead only where something else is said.
fn write_content(said: &[SaidAndInput<'_>], something_else: bool, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(b'"');
    for (said, _) in said {
        if let Said::Text(text) = said {
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

fn write_reasoning(said: &[SaidAndInput<'_>], out: &mut Vec<u8>) {
    let mut thoughts = said.iter().filter_map(|(said, _)| match said {
        Said::Thinking {
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
        if !matches!(said, Said::Thinking { .. } | Said::Redacted(_)) {
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

/// Writes an element of `reasoning_details`, or the fragment of one that is known.
pub(super) fn write_detail(said: &Said<'_>, index: u64, out: &mut Vec<u8>) {
    let mut member = |before: &str, value: &str| {
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(value.as_bytes());
    };
    let mut digits = itoa::Buffer::new();
    let index = digits.format(index);
    match said {
        Said::Thinking { thinking, signature } => {
            member("{\"type\":\"reasoning.text\",\"index\":", index);
            if let Some(thinking) = thinking {
                member(",\"text\":", thinking.raw());
            }
            if let Some(signature) = signature {
                member(",\"signature\":", signature.raw());
            }
        }
        Said::Redacted(data) => {
            member("{\"type\":\"reasoning.encrypted\",\"index\":", index);
            member(",\"data\":", data.raw());
        }
        Said::Text(_) | Said::Call { .. } | Said::Nothing => return,
    }
    out.push(b'}');
}

fn write_calls(said: &[SaidAndInput<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"tool_calls\":[");
    for (said, input) in said {
        let Said::Call { id, name } = said else { continue };
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
