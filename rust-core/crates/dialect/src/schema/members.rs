use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::Text;

/// Maximum depth to which a schema is inspected. Deeper parts are copied unchanged, which bounds the stack.
pub(super) const MAX_DEPTH: usize = 48;

/// The members of an object in order, with unmodified values.
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Parses the members of an object.
    pub(super) fn parse(value: &'a str) -> Option<Self> {
        serde_json::from_str(value).ok()
    }

    /// Returns the value of a member, as JSON.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value.get())
    }
}

/// Returns the elements of an array.
pub(super) fn elements(value: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Listed;
        impl<'de> Visitor<'de> for Listed {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Listed)
    }
}
