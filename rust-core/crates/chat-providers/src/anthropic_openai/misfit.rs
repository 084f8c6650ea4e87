//! Which field of a request that cannot be read is to blame. A request is read in one pass that does not note where it is;
//! only one that fails is walked again, piece by piece.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::body::{
    Block, Body, Content, Format, Message, Metadata, OutputConfig, Source, Thinking, Tool, ToolChoice,
};
use super::json::Text;
use super::left_out::Place;
use super::refused_blocks::blocks_elsewhere;
use proofgate_dialect::Untranslatable;

/// Why a body cannot be read.
pub(super) fn misfit(body: &[u8]) -> Untranslatable {
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(body) => BODY.misfit(&Place::Body, body.get()),
        Err(_) => Place::Body.refused("The body is not valid JSON."),
    }
}

/// Reads the content in a block.
pub(super) fn content_within<'a>(
    place: &Place<'_>,
    content: &'a RawValue,
) -> Result<Content<'a>, Untranslatable> {
    serde_json::from_str(content.get()).map_err(|_| Within::Each(&BLOCK).misfit(place, content.get()))
}

/// An object of a request: whether a text is one, the names of its fields, and the shapes of those that have one.
struct Shape {
    reads: fn(&str) -> bool,
    names: &'static [&'static str],
    within: &'static [(&'static str, Within)],
}

/// What a field holds.
enum Within {
    One(&'static Shape),
    Each(&'static Shape),
}

macro_rules! shape {
    ($name:ident: $($field:literal => $within:expr),*) => {
        Shape { reads: $name::reads, names: $name::NAMES, within: &[$(($field, $within)),*] }
    };
}

static BODY: Shape = shape!(Body:
    "messages" => Within::Each(&MESSAGE), "system" => Within::Each(&BLOCK), "tools" => Within::Each(&TOOL),
    "tool_choice" => Within::One(&TOOL_CHOICE), "output_config" => Within::One(&OUTPUT_CONFIG),
    "output_format" => Within::One(&FORMAT), "thinking" => Within::One(&THINKING),
    "metadata" => Within::One(&METADATA));
static MESSAGE: Shape = shape!(Message: "content" => Within::Each(&BLOCK));
static BLOCK: Shape = shape!(Block: "source" => Within::One(&SOURCE));
static SOURCE: Shape = shape!(Source:);
static TOOL: Shape = shape!(Tool:);
static TOOL_CHOICE: Shape = shape!(ToolChoice:);
static OUTPUT_CONFIG: Shape = shape!(OutputConfig: "format" => Within::One(&FORMAT));
static FORMAT: Shape = shape!(Format:);
static THINKING: Shape = shape!(Thinking:);
static METADATA: Shape = shape!(Metadata:);

impl Shape {
    /// What is wrong with a value that is not of this shape.
    fn misfit(&self, place: &Place<'_>, value: &str) -> Untranslatable {
        let Ok(Fields(fields)) = serde_json::from_str(value) else {
            return place.refused("An object is expected here.");
        };
        if let Some(refused) = blocks_elsewhere(place, self.kind(&fields)) {
            return refused;
        }
        for (at, (name, value)) in fields.iter().enumerate() {
            let Some(name) = self.names.iter().find(|known| **known == name.0) else {
                continue;
            };
            let place = place.field(name);
            if fields.iter().take(at).any(|(before, _)| before.0 == *name) {
                return place.refused("This field is repeated.");
            }
            if !(self.reads)(&format!("{{\"{name}\":{value}}}")) {
                let within = self.within.iter().find(|(field, _)| field == name);
                return within.map_or_else(
                    || wrong_type(&place),
                    |(_, within)| within.misfit(&place, value.get()),
                );
            }
        }
        place.refused("This object cannot be read.")
    }

    /// The type of a block, if this is one.
    fn kind<'f>(&self, fields: &'f [(Text<'_>, &RawValue)]) -> Option<Text<'f>> {
        let is_block = std::ptr::eq(self, &BLOCK);
        let (_, kind) = fields.iter().find(|(name, _)| is_block && name.0 == "type")?;
        serde_json::from_str(kind.get()).ok()
    }
}

impl Within {
    fn misfit(&self, place: &Place<'_>, value: &str) -> Untranslatable {
        match self {
            Within::One(shape) => shape.misfit(place, value),
            Within::Each(shape) => {
                let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
                let bad = elements
                    .iter()
                    .enumerate()
                    .find(|(_, element)| !(shape.reads)(element.get()));
                match bad {
                    Some((at, element)) => shape.misfit(&place.item(at), element.get()),
                    None => wrong_type(place),
                }
            }
        }
    }
}

fn wrong_type(place: &Place<'_>) -> Untranslatable {
    place.refused("The value of this field has the wrong type.")
}

/// The fields of any object, as they came.
struct Fields<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'a> Deserialize<'a> for Fields<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'a> Visitor<'a> for Any {
            type Value = Fields<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Fields<'a>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Any)
    }
}
