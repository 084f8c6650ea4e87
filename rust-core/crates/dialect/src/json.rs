//! Reads JSON strings and writes JSON.

use std::borrow::Cow;
use std::fmt::Formatter;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Appends a string, quoted and escaped.
#[inline]
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    // Writing to memory cannot fail, and a string is always valid JSON.
    let _ = serde_json::to_writer(out, text);
}

/// Appends an integer.
#[inline]
pub fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// An unescaped JSON string, borrowed if it has no escapes.
pub struct Text<'b>(pub Cow<'b, str>);

impl Deref for Text<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'b> Deserialize<'b> for Text<'b> {
    fn deserialize<D: Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;

        impl<'b> Visitor<'b> for Borrowing {
            type Value = Text<'b>;

            fn expecting(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
                out.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'b str) -> Result<Text<'b>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'b>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Borrowing)
    }
}

/// Appends pieces that are already JSON.
#[inline]
pub fn write_all(out: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// Appends a member of an object, preceded by a comma, if it has a value. The value must already be JSON.
#[inline]
pub fn write_member(out: &mut Vec<u8>, name: &str, json: Option<&str>) {
    if let Some(json) = json {
        write_all(out, &[",\"", name, "\":", json]);
    }
}

/// Returns a boolean as JSON.
#[inline]
pub fn bool_literal(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
