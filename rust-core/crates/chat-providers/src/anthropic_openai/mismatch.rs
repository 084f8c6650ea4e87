//! Finds the field that makes a request unreadable. A request is read in one pass that does not
//! track positions; only a request that fails is read again, piece by piece.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::block_errors::unsupported_block_error;
use super::body::{
    Block, Body, Content, Format, Message, Metadata, OutputConfig, Source, Thinking, Tool, ToolChoice,
};
use super::dropped_fields::JsonPath;
use super::json::Text;
use proofgate_dialect::UntranslatableRequest;

/// Returns the error for a body that cannot be read.
pub(super) fn find_mismatch(body: &[u8]) -> UntranslatableRequest {
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(body) => BODY.find_mismatch(&JsonPath::Body, body.get()),
        Err(_) => JsonPath::Body.error("The body is not valid JSON."),
    }
}

/// Reads the content in a block.
pub(super) fn read_block_content<'a>(
    place: &JsonPath<'_>,
    content: &'a RawValue,
) -> Result<Content<'a>, UntranslatableRequest> {
    serde_json::from_str(content.get())
        .map_err(|_| NestedShape::Elements(&BLOCK).find_mismatch(place, content.get()))
}

/// An object of a request: a check of its text, the names of its fields, and the shapes of its nested fields.
struct ObjectShape {
    can_parse: fn(&str) -> bool,
    names: &'static [&'static str],
    nested: &'static [(&'static str, NestedShape)],
}

/// The shape of a field's value.
enum NestedShape {
    Single(&'static ObjectShape),
    Elements(&'static ObjectShape),
}

macro_rules! shape {
    ($name:ident: $($field:literal => $within:expr),*) => {
        ObjectShape { can_parse: $name::can_parse, names: $name::NAMES, nested: &[$(($field, $within)),*] }
    };
}

static BODY: ObjectShape = shape!(Body:
    "messages" => NestedShape::Elements(&MESSAGE), "system" => NestedShape::Elements(&BLOCK), "tools" => NestedShape::Elements(&TOOL),
    "tool_choice" => NestedShape::Single(&TOOL_CHOICE), "output_config" => NestedShape::Single(&OUTPUT_CONFIG),
    "output_format" => NestedShape::Single(&FORMAT), "thinking" => NestedShape::Single(&THINKING),
    "metadata" => NestedShape::Single(&METADATA));
static MESSAGE: ObjectShape = shape!(Message: "content" => NestedShape::Elements(&BLOCK));
static BLOCK: ObjectShape = shape!(Block: "source" => NestedShape::Single(&SOURCE));
static SOURCE: ObjectShape = shape!(Source:);
static TOOL: ObjectShape = shape!(Tool:);
static TOOL_CHOICE: ObjectShape = shape!(ToolChoice:);
static OUTPUT_CONFIG: ObjectShape = shape!(OutputConfig: "format" => NestedShape::Single(&FORMAT));
static FORMAT: ObjectShape = shape!(Format:);
static THINKING: ObjectShape = shape!(Thinking:);
static METADATA: ObjectShape = shape!(Metadata:);

impl ObjectShape {
    /// Returns the error for a value that does not have this shape.
    fn find_mismatch(&self, place: &JsonPath<'_>, value: &str) -> UntranslatableRequest {
        let Ok(Fields(fields)) = serde_json::from_str(value) else {
            return place.error("An object is expected here.");
        };
        if let Some(refused) = unsupported_block_error(place, self.kind(&fields)) {
            return refused;
        }
        for (at, (name, value)) in fields.iter().enumerate() {
            let Some(name) = self.names.iter().find(|known| **known == name.0) else {
                continue;
            };
            let place = place.field(name);
            if fields.iter().take(at).any(|(before, _)| before.0 == *name) {
                return place.error("This field is repeated.");
            }
            if !(self.can_parse)(&format!("{{\"{name}\":{value}}}")) {
                let within = self.nested.iter().find(|(field, _)| field == name);
                return within.map_or_else(
                    || wrong_type_error(&place),
                    |(_, within)| within.find_mismatch(&place, value.get()),
                );
            }
        }
        place.error("This object cannot be read.")
    }

    /// Returns the type of a block, if this is one.
    fn kind<'f>(&self, fields: &'f [(Text<'_>, &RawValue)]) -> Option<Text<'f>> {
        let is_block = std::ptr::eq(self, &BLOCK);
        let (_, kind) = fields.iter().find(|(name, _)| is_block && name.0 == "type")?;
        serde_json::from_str(kind.get()).ok()
    }
}

impl NestedShape {
    fn find_mismatch(&self, place: &JsonPath<'_>, value: &str) -> UntranslatableRequest {
        match self {
            NestedShape::Single(shape) => shape.find_mismatch(place, value),
            NestedShape::Elements(shape) => {
                let elements: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
                let bad = elements
                    .iter()
                    .enumerate()
                    .find(|(_, element)| !(shape.can_parse)(element.get()));
                match bad {
                    Some((at, element)) => shape.find_mismatch(&place.element(at), element.get()),
                    None => wrong_type_error(place),
                }
            }
        }
    }
}

fn wrong_type_error(place: &JsonPath<'_>) -> UntranslatableRequest {
    place.error("The value of this field has the wrong type.")
}

/// The raw fields of any object.
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
