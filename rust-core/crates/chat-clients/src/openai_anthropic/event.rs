use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai_anthropic::answer::Block;
use crate::openai_anthropic::tokens::Tokens;
use proofgate_dialect::AnswerError;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::Word;

/// An event of Anthropic's stream. The members that stand in it depend on its type.
#[derive(Default, Deserialize)]
pub(super) struct Event<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Word<'b>,
    #[serde(borrow)]
    pub(super) message: Option<Begin<'b>>,
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) content_block: Option<Block<'b>>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'b>>,
    pub(super) usage: Option<Tokens>,
}

#[derive(Deserialize)]
pub(super) struct Begin<'b> {
    #[serde(borrow)]
    pub(super) id: Option<JsonText<'b>>,
    pub(super) usage: Option<Tokens>,
}

/// What a block goes on with, or how the message ends. A new type of delta may have members of other types.
#[derive(Default, Deserialize)]
pub(super) struct Delta<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Word<'b>>,
    #[serde(borrow)]
    text: Option<&'b RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'b RawValue>,
    #[serde(borrow)]
    thinking: Option<&'b RawValue>,
    #[serde(borrow)]
    signature: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Word<'b>>,
    #[serde(borrow)]
    pub(super) stop_details: Option<&'b RawValue>,
}

impl<'b> Event<'b> {
    /// Reads the data of an event. `None` is an event of a type that is not known, which says nothing to a client.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`] when it is no JSON, or an event of a known type that is not made as that type is.
    pub(super) fn read(data: &'b str) -> Result<Option<Self>, AnswerError> {
        #[derive(Deserialize)]
        struct Kind<'b> {
            #[serde(borrow, rename = "type")]
            kind: Word<'b>,
        }
        match serde_json::from_str::<Event<'b>>(data) {
            Ok(event) => Ok(Some(event)),
            Err(_) => match serde_json::from_str::<Kind<'b>>(data) {
                Ok(Kind { kind }) if KNOWN.contains(&&*kind) => {
                    Err(AnswerError::Malformed("an event does not match its type"))
                }
                // An error fails the answer, however it is made.
                Ok(Kind { kind }) => Ok((&*kind == "error").then(|| Event {
                    kind,
                    ..Event::default()
                })),
                Err(_) => Err(AnswerError::Malformed("an event is not JSON, or has no type")),
            },
        }
    }
}

const KNOWN: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

/// A delta of a block by what it is.
pub(super) enum Piece<'b> {
    Text(JsonText<'b>),
    Input(JsonText<'b>),
    Thinking(JsonText<'b>),
    Signature(JsonText<'b>),
    Nothing,
}

impl<'b> Delta<'b> {
    /// What it is.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`] when it lacks what a delta of its type has.
    pub(super) fn piece(&self) -> Result<Piece<'b>, AnswerError> {
        let (piece, value): (fn(JsonText<'b>) -> Piece<'b>, _) = match self.kind.as_deref() {
            Some("text_delta") => (Piece::Text, self.text),
            Some("input_json_delta") => (Piece::Input, self.partial_json),
            Some("thinking_delta") => (Piece::Thinking, self.thinking),
            Some("signature_delta") => (Piece::Signature, self.signature),
            _ => return Ok(Piece::Nothing),
        };
        let value = value
            .and_then(JsonText::of)
            .ok_or(AnswerError::Malformed("a delta lacks its value"))?;
        Ok(if value.is_empty() {
            Piece::Nothing
        } else {
            piece(value)
        })
    }
}
