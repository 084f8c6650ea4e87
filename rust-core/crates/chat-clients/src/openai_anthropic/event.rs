use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai_anthropic::response::Block;
use crate::openai_anthropic::tokens::Tokens;
use proofgate_dialect::ResponseError;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::UnescapedString;

/// An event of Anthropic's stream. Its members depend on its type.
#[derive(Default, Deserialize)]
pub(super) struct Event<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: UnescapedString<'b>,
    #[serde(borrow)]
    pub(super) message: Option<MessageStart<'b>>,
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) content_block: Option<Block<'b>>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'b>>,
    pub(super) usage: Option<Tokens>,
}

#[derive(Deserialize)]
pub(super) struct MessageStart<'b> {
    #[serde(borrow)]
    pub(super) id: Option<JsonText<'b>>,
    pub(super) usage: Option<Tokens>,
}

/// The next fragment of a block, or the end of the message. A new type of delta may have members of other types.
#[derive(Default, Deserialize)]
pub(super) struct Delta<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<UnescapedString<'b>>,
    #[serde(borrow)]
    text: Option<&'b RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'b RawValue>,
    #[serde(borrow)]
    thinking: Option<&'b RawValue>,
    #[serde(borrow)]
    signature: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<UnescapedString<'b>>,
    #[serde(borrow)]
    pub(super) stop_details: Option<&'b RawValue>,
}

impl<'b> Event<'b> {
    /// Reads the data of an event. Returns `None` for an event of unknown type, which clients do not need.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if it is not JSON, or a known event with the wrong members.
    pub(super) fn read(data: &'b str) -> Result<Option<Self>, ResponseError> {
        #[derive(Deserialize)]
        struct Kind<'b> {
            #[serde(borrow, rename = "type")]
            kind: UnescapedString<'b>,
        }
        match serde_json::from_str::<Event<'b>>(data) {
            Ok(event) => Ok(Some(event)),
            Err(_) => match serde_json::from_str::<Kind<'b>>(data) {
                Ok(Kind { kind }) if KNOWN_EVENTS.contains(&&*kind) => {
                    Err(ResponseError::Malformed("an event does not match its type"))
                }
                // An error fails the answer, whatever its form.
                Ok(Kind { kind }) => Ok((&*kind == "error").then(|| Event {
                    kind,
                    ..Event::default()
                })),
                Err(_) => Err(ResponseError::Malformed("an event is not JSON, or has no type")),
            },
        }
    }
}

const KNOWN_EVENTS: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

/// The content of a block's delta.
pub(super) enum DeltaContent<'b> {
    Text(JsonText<'b>),
    Input(JsonText<'b>),
    Thinking(JsonText<'b>),
    Signature(JsonText<'b>),
    Ignored,
}

impl<'b> Delta<'b> {
    /// Returns the delta's content.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if the delta lacks a member that its type requires.
    pub(super) fn content(&self) -> Result<DeltaContent<'b>, ResponseError> {
        let (piece, value): (fn(JsonText<'b>) -> DeltaContent<'b>, _) = match self.kind.as_deref() {
            Some("text_delta") => (DeltaContent::Text, self.text),
            Some("input_json_delta") => (DeltaContent::Input, self.partial_json),
            Some("thinking_delta") => (DeltaContent::Thinking, self.thinking),
            Some("signature_delta") => (DeltaContent::Signature, self.signature),
            _ => return Ok(DeltaContent::Ignored),
        };
        let value = value
            .and_then(JsonText::from_raw)
            .ok_or(ResponseError::Malformed("a delta lacks its value"))?;
        Ok(if value.is_empty() {
            DeltaContent::Ignored
        } else {
            piece(value)
        })
    }
}
