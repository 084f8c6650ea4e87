//! Reading JSON without copying it, and writing it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::value::RawValue;

use proofgate_dialect::json::write_string;

/// A string that borrows from the body unless it has escapes.
#[derive(Debug)]
pub(super) struct Text<'a>(pub Cow<'a, str>);

impl<'a> Deserialize<'a> for Text<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'a> Visitor<'a> for Borrowing {
            type Value = Text<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowing)
    }
}

/// A number with its original digits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number<'a>(pub &'a str);

impl<'a> Deserialize<'a> for Number<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        match raw.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => Ok(Number(raw)),
            _ => Err(Error::custom("expected a number")),
        }
    }
}

/// An object as raw JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'a>(pub &'a str);

impl<'a> Object<'a> {
    /// Parses a text that is a single object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl<'a> Deserialize<'a> for Object<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        match raw.as_bytes().first() {
            Some(b'{') => Ok(Object(raw)),
            _ => Err(Error::custom("expected an object")),
        }
    }
}

/// Declares an object whose fields may all be absent or `null`, and which notes unknown fields.
///
/// Besides its fields it has `unknown`, the first unknown name. `present_fields` returns the fields
/// that are present; a duplicate field is an error.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident<$life:lifetime> { $($key:literal => $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name<$life> {
            $(pub(super) $field: Option<$type>,)*
            pub(super) unknown: Option<std::borrow::Cow<$life, str>>,
        }

        impl $name<'_> {
            /// The names of its fields.
            #[allow(dead_code)]
            pub(super) const NAMES: &'static [&'static str] = &[$($key),*];

            /// Iterates over the fields that are present, in the order of the declaration.
            #[allow(dead_code)]
            pub(super) fn present_fields(&self) -> impl Iterator<Item = &'static str> {
                [$((self.$field.is_some(), $key)),*].into_iter().filter(|field| field.0).map(|field| field.1)
            }

            /// Returns whether a text is such an object.
            #[allow(dead_code)]
            pub(super) fn can_parse(text: &str) -> bool {
                serde_json::from_str::<$name<'_>>(text).is_ok()
            }
        }

        impl<$life> serde::de::Deserialize<$life> for $name<$life> {
            fn deserialize<D: serde::de::Deserializer<$life>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Default)]
                struct Seen { $($field: bool,)* }
                struct Fields;
                impl<$life> serde::de::Visitor<$life> for Fields {
                    type Value = $name<$life>;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A>(self, mut map: A) -> Result<Self::Value, A::Error>
                    where
                        A: serde::de::MapAccess<$life>,
                    {
                        let mut object = $name::default();
                        let mut seen = Seen::default();
                        while let Some(key) = map.next_key::<crate::anthropic_openai::json::Text<'_>>()? {
                            match &*key.0 {
                                $($key => {
                                    if std::mem::replace(&mut seen.$field, true) {
                                        return Err(serde::de::Error::duplicate_field($key));
                                    }
                                    object.$field = map.next_value()?;
                                })*
                                _ => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                    object.unknown.get_or_insert(key.0);
                                }
                            }
                        }
                        Ok(object)
                    }
                }
                deserializer.deserialize_map(Fields)
            }
        }
    };
}
pub(super) use object;

/// Appends text that is JSON already.
pub(super) fn write_json(out: &mut Vec<u8>, json: &str) {
    out.extend_from_slice(json.as_bytes());
}

/// Appends text to a string that has begun: `before` replaces its opening quote.
pub(super) fn write_string_continuation(out: &mut Vec<u8>, before: u8, text: &str) {
    let quote = out.len();
    write_string(out, text);
    if let Some(quote) = out.get_mut(quote) {
        *quote = before;
    }
}

/// Returns the contents of a JSON string without its quotes, with escapes unchanged; `None` for any other value and for
/// `""`.
pub(crate) fn unquoted(value: Option<&RawValue>) -> Option<&str> {
    let inside = value?.get().strip_prefix('"')?.strip_suffix('"')?;
    (!inside.is_empty()).then_some(inside)
}

/// Writes a field whose value is JSON already.
pub(super) fn write_field(name: &str, json: Option<&str>, out: &mut Vec<u8>) {
    if let Some(json) = json {
        write_json(out, ",\"");
        write_json(out, name);
        write_json(out, "\":");
        write_json(out, json);
    }
}
