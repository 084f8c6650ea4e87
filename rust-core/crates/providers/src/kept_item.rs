//! Items of a conversation of OpenAI's Responses that stand for what the provider keeps.

use proofgate_json::{Event, equals_ignore_case};

/// What an item is that has nothing but the id of another one. Its type may be absent (openai-python 2,
/// `types/responses/response_input_item_param.py`: `ItemReference`).
const ITEM_REFERENCE_TYPE: &str = "item_reference";
/// An image that was made before; without it, the item stands for the one of its id (OpenAI, "Image generation", multi-turn).
const IMAGE_GENERATION_TYPE: &str = "image_generation_call";

/// A member of an item that tells what it stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Type,
    Id,
    /// What a message says.
    Content,
    /// The image of a call.
    Result,
    Other,
}

impl Member {
    /// The member of this name, also to parsers that ignore case.
    pub(crate) fn from_name(name: &str) -> Self {
        const NAMES: [(&str, Member); 4] = [
            ("type", Member::Type),
            ("id", Member::Id),
            ("content", Member::Content),
            ("result", Member::Result),
        ];
        let mut names = NAMES.into_iter();
        let found = names.find(|(known, _)| equals_ignore_case(name, known));
        found.map_or(Member::Other, |(_, member)| member)
    }
}

/// What is known of an item.
#[derive(Default)]
pub(crate) struct ItemSummary {
    kind: Kind,
    has_id: bool,
    has_content: bool,
    has_result: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It says none.
    #[default]
    Unspecified,
    Reference,
    Image,
    Other,
}

impl ItemSummary {
    /// Notes a member and the value that begins. `room`: for a text that has to be unescaped.
    pub(crate) fn note(&mut self, member: Member, value: Event<'_>, room: &mut String) {
        let is_told = value != Event::Null;
        match (member, value) {
            (Member::Type, Event::String(word)) => {
                self.kind = match word.decode(room) {
                    ITEM_REFERENCE_TYPE => Kind::Reference,
                    IMAGE_GENERATION_TYPE => Kind::Image,
                    _ => Kind::Other,
                };
            }
            (Member::Id, _) => self.has_id |= is_told,
            (Member::Content, _) => self.has_content |= is_told,
            (Member::Result, _) => self.has_result |= is_told,
            (Member::Type | Member::Other, _) => {}
        }
    }

    /// What it names of what the provider keeps.
    pub(crate) fn stored_reference(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Reference => Some(ITEM_REFERENCE_TYPE),
            Kind::Unspecified if self.has_id && !self.has_content => Some(ITEM_REFERENCE_TYPE),
            Kind::Image if self.has_id && !self.has_result => Some(IMAGE_GENERATION_TYPE),
            Kind::Unspecified | Kind::Image | Kind::Other => None,
        }
    }
}
