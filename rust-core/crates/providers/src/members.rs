//! The members of a JSON object as written, for copying the object with changes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A member of an object.
pub(crate) struct Member<'b> {
    pub(crate) name: Cow<'b, str>,
    /// The name as written.
    key: &'b RawValue,
    pub(crate) value: &'b RawValue,
}

/// The members of an object in order, including duplicates.
pub(crate) struct Members<'b>(Vec<Member<'b>>);

impl<'b> Members<'b> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member<'b>> {
        self.0.iter()
    }
}

/// Writes an object, member by member.
pub(crate) struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        ObjectWriter { out, is_empty: true }
    }

    /// Whether no member has been written yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Writes a member unchanged.
    pub(crate) fn write_member(&mut self, member: &Member<'_>) {
        self.write_member_with_value(member, member.value.get().as_bytes());
    }

    /// Writes a member with another value.
    pub(crate) fn write_member_with_value(&mut self, member: &Member<'_>, value: &[u8]) {
        self.write_raw_members(&[member.key.get().as_bytes(), b":", value]);
    }

    /// Writes members that are already JSON, in pieces.
    pub(crate) fn write_raw_members(&mut self, pieces: &[&[u8]]) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        pieces.iter().for_each(|piece| self.out.extend_from_slice(piece));
    }

    /// Ends the object.
    pub(crate) fn finish(self) {
        self.out.push(b'}');
    }
}

impl<'b> Deserialize<'b> for Members<'b> {
    fn deserialize<D: Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'b> Visitor<'b> for Object {
            type Value = Members<'b>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    let name: Cow<'b, str> = match serde_json::from_str::<&str>(key.get()) {
                        Ok(name) => name.into(),
                        Err(_) => serde_json::from_str::<String>(key.get())
                            .unwrap_or_default()
                            .into(),
                    };
                    members.push(Member { name, key, value });
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
