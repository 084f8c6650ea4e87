//! Items of an OpenAI Responses conversation that refer to content stored at the provider.

use proofgate_json::{Event, equals_ignore_case};

/// Type of an item that has only the id of another item. The type may be absent (openai-python 2,
/// `types/responses/response_input_item_param.py`: `ItemReference`).
const ITEM_REFERENCE_TYPE: &str = "item_reference";
/// An image generated earlier; without its data, the item refers to the stored image with its id
/// (OpenAI, "Image generation", multi-turn).
const IMAGE_GENERATION_TYPE: &str = "image_generation_call";

/// A member of an item that shows what the item refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemMember {
    Type,
    Id,
    /// The content of a message.
    Content,
    /// The image of a call.
    Result,
    Other,
}

impl ItemMember {
    /// Returns the member with this name, case ignored.
    pub(crate) fn from_name(name: &str) -> Self {
        const NAMES: [(&str, ItemMember); 4] = [
            ("type", ItemMember::Type),
            ("id", ItemMember::Id),
            ("content", ItemMember::Content),
            ("result", ItemMember::Result),
        ];
        let mut names = NAMES.into_iter();
        let found = names.find(|(known, _)| equals_ignore_case(name, known));
        found.map_or(ItemMember::Other, |(_, member)| member)
    }
}

/// The parts of an item that have been read.
#[derive(Default)]
pub(crate) struct ItemSummary {
    kind: Kind,
    has_id: bool,
    has_content: bool,
    has_result: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The type is absent.
    #[default]
    Unspecified,
    Reference,
    Image,
    Other,
}

impl ItemSummary {
    /// Records a member and the event that starts its value. `room`: a buffer for unescaping.
    pub(crate) fn note(&mut self, member: ItemMember, value: Event<'_>, room: &mut String) {
        let is_told = value != Event::Null;
        match (member, value) {
            (ItemMember::Type, Event::String(word)) => {
                self.kind = match word.decode(room) {
                    ITEM_REFERENCE_TYPE => Kind::Reference,
                    IMAGE_GENERATION_TYPE => Kind::Image,
                    _ => Kind::Other,
                };
            }
            (ItemMember::Id, _) => self.has_id |= is_told,
            (ItemMember::Content, _) => self.has_content |= is_told,
            (ItemMember::Result, _) => self.has_result |= is_told,
            (ItemMember::Type | ItemMember::Other, _) => {}
        }
    }

    /// Returns the type of stored content that the item refers to, if any.
    pub(crate) fn stored_reference(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Reference => Some(ITEM_REFERENCE_TYPE),
            Kind::Unspecified if self.has_id && !self.has_content => Some(ITEM_REFERENCE_TYPE),
            Kind::Image if self.has_id && !self.has_result => Some(IMAGE_GENERATION_TYPE),
            Kind::Unspecified | Kind::Image | Kind::Other => None,
        }
    }
}
