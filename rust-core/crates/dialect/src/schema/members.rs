use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::Text;

/// How deep a schema is looked into. What lies deeper passes as it came, and no stack is used up.
pub(super) const MAX_DEPTH: usize = 48;

/// The members of an object in their order, values as they came.
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of a value that is an object.
    pub(super) fn parse(value: &'a str) -> Option<Self> {
        serde_json::from_str(value).ok()
    }

    /// The value of a member, as JSON.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value.get())
    }
}

/// The elements of a value that is an array.
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
