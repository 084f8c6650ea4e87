use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A JSON string as written in a body, quotes and escapes included, so that a string that is only forwarded is not
/// unescaped and escaped again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'b>(&'b str);

impl<'b> JsonText<'b> {
    /// Returns a value as a string, if it is one.
    #[inline]
    pub fn from_raw(value: &'b RawValue) -> Option<Self> {
        let raw = value.get();
        (raw.len() >= 2 && raw.starts_with('"')).then_some(JsonText(raw))
    }

    /// Returns it with its quotes.
    #[inline]
    pub fn raw(self) -> &'b str {
        self.0
    }

    /// Returns it without its quotes, still escaped.
    #[inline]
    pub fn inner(self) -> &'b str {
        self.0.get(1..self.0.len().saturating_sub(1)).unwrap_or_default()
    }

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.inner().is_empty()
    }

    /// Whether it contains only white space, which Anthropic refuses as a text.
    pub fn is_blank(self) -> bool {
        match self.inner().bytes().next() {
            None => true,
            Some(b'\\') => self.decode().is_some_and(|text| text.trim().is_empty()),
            Some(byte) if byte.is_ascii_whitespace() || !byte.is_ascii() => {
                self.decode().is_some_and(|text| text.trim().is_empty())
            }
            Some(_) => false,
        }
    }

    /// Returns the unescaped string; `None` if it contains an unpaired surrogate.
    pub fn decode(self) -> Option<Cow<'b, str>> {
        if self.inner().contains('\\') {
            return serde_json::from_str(self.0).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(self.inner()))
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for JsonText<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        JsonText::from_raw(value).ok_or_else(|| serde::de::Error::custom("not a string"))
    }
}

/// Returns the part of a string between its quotes, still escaped.
#[inline]
pub fn unquoted(value: &RawValue) -> Option<&str> {
    JsonText::from_raw(value).map(JsonText::inner)
}
