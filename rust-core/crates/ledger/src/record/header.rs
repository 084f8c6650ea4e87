//! The first pass over a record: reads its kind and refuses repeated keys.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Result of the first pass over a record without repeated keys: its kind and version.
pub(super) struct RecordHeader<'a> {
    pub(super) version: u8,
    pub(super) kind: Cow<'a, str>,
}

/// A string that borrows from the input if it contains no escape.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for RecordHeader<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = RecordHeader<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RecordHeader<'de>, A::Error> {
                let (mut version, mut kind) = (None, None);
                let mut keys = Vec::with_capacity(16);
                while let Some(Text(key)) = map.next_key()? {
                    match &*key {
                        "v" => version = Some(map.next_value()?),
                        "kind" => kind = Some(map.next_value::<Text<'de>>()?.0),
                        _ => map.next_value_seed(UniqueKeys)?,
                    }
                    keys.push(key);
                }
                keys.sort_unstable();
                if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(A::Error::custom("a key is repeated"));
                }
                let version = version.ok_or_else(|| A::Error::missing_field("v"))?;
                let kind = kind.ok_or_else(|| A::Error::missing_field("kind"))?;
                Ok(RecordHeader { version, kind })
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// A visitor that reads and discards any value, but refuses objects with a repeated key.
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while sequence.next_element_seed(UniqueKeys)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key is repeated"));
            }
            map.next_value_seed(UniqueKeys)?;
        }
        Ok(())
    }
}
