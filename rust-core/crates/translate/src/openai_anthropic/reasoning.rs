use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::openai_anthropic::json_text::JsonText;
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::object::{Word, object};

object! {
    /// An element of `reasoning_details`, or a fragment of one as it is streamed.
    Detail {
        kind("type"): Word<'b>,
        index: u64,
        thinking: JsonText<'b>,
        signature: JsonText<'b>,
        data: JsonText<'b>,
    }
}

/// A block of reasoning that returns to the provider.
pub(super) enum Reasoning<'b> {
    /// Thinking, in the fragments that it came in, and its signature.
    Thinking(Vec<JsonText<'b>>, JsonText<'b>),
    /// Thinking that only the provider can read.
    Redacted(JsonText<'b>),
}

/// The blocks of reasoning that an assistant's message brings back in `reasoning_details`.
///
/// They are bound to the conversation and signed: each returns as it came, or not at all. A client that only collects the
/// fragments of a stream is understood too: fragments of one `index` are one block.
pub(super) fn details<'b>(
    value: Option<&'b RawValue>,
    place: Place,
    left_out: &mut LeftOut,
) -> Result<Vec<Reasoning<'b>>, Untranslatable> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let Ok(details) = serde_json::from_str::<Vec<Detail<'b>>>(value.get()) else {
        leave(place, left_out)?;
        return Ok(Vec::new());
    };
    let mut blocks = Vec::new();
    let mut open: Option<(Option<u64>, Vec<JsonText<'b>>)> = None;
    for detail in details {
        match (detail.kind.as_deref(), detail.data) {
            (Some("redacted_thinking"), Some(data)) => blocks.push(Reasoning::Redacted(data)),
            (Some("thinking"), _) => {
                let (index, mut thinking) = open.take().unwrap_or((detail.index, Vec::new()));
                if index != detail.index || (index.is_none() && !thinking.is_empty()) {
                    // What came before lacks its signature.
                    leave(place, left_out)?;
                    thinking.clear();
                }
                thinking.extend(detail.thinking);
                match detail.signature.filter(|signature| !signature.is_empty()) {
                    Some(signature) => blocks.push(Reasoning::Thinking(thinking, signature)),
                    None => open = Some((detail.index, thinking)),
                }
            }
            _ => leave(place, left_out)?,
        }
    }
    if open.is_some() {
        leave(place, left_out)?;
    }
    Ok(blocks)
}

fn leave(place: Place, left_out: &mut LeftOut) -> Result<(), Untranslatable> {
    left_out.leave("messages[].reasoning_details", || {
        place.field("reasoning_details")
    })
}

impl Reasoning<'_> {
    /// Writes it as a block, and a comma behind it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Reasoning::Thinking(fragments, signature) => {
                out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"");
                for fragment in fragments {
                    out.extend_from_slice(fragment.inner().as_bytes());
                }
                out.extend_from_slice(b"\",\"signature\":");
                out.extend_from_slice(signature.raw().as_bytes());
            }
            Reasoning::Redacted(data) => {
                out.extend_from_slice(b"{\"type\":\"redacted_thinking\",\"data\":");
                out.extend_from_slice(data.raw().as_bytes());
            }
        }
        out.extend_from_slice(b"},");
    }
}
