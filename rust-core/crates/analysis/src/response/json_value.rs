//! Parts of a response's JSON, read in place: parts that are not requested are skipped without being stored.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// A valid JSON value, without surrounding white space.
#[derive(Clone, Copy)]
pub(super) struct JsonValue<'a>(&'a str);

impl<'a> JsonValue<'a> {
    /// Parses a complete document; `None` if it is not JSON.
    pub(super) fn parse(document: &'a [u8]) -> Option<Self> {
        let raw: &RawValue = serde_json::from_slice(document).ok()?;
        Some(JsonValue(raw.get()))
    }

    pub(super) fn is_list(self) -> bool {
        self.0.starts_with('[')
    }

    pub(super) fn is_text(self) -> bool {
        self.0.starts_with('"')
    }

    pub(super) fn is_true(self) -> bool {
        self.0 == "true"
    }

    /// Returns the elements of a list; empty for any other value.
    pub(super) fn elements(self) -> impl Iterator<Item = JsonValue<'a>> {
        let mut rest = JsonCursor(self.0.strip_prefix('[').unwrap_or_default());
        std::iter::from_fn(move || rest.next_value())
    }

    /// Returns the members of an object, with their names; empty for any other value.
    pub(super) fn members(self) -> impl Iterator<Item = (Cow<'a, str>, JsonValue<'a>)> {
        let mut rest = JsonCursor(self.0.strip_prefix('{').unwrap_or_default());
        std::iter::from_fn(move || {
            let name = rest.next_value()?.text()?;
            Some((name, rest.next_value()?))
        })
    }

    /// Returns the members of an object with these names; the last one of several members with the
    /// same name.
    pub(super) fn get_all<const N: usize>(self, names: [&str; N]) -> [Option<JsonValue<'a>>; N] {
        let mut found = [None; N];
        for (name, part) in self.members() {
            if let Some(at) = names.iter().position(|wanted| *wanted == name) {
                found[at] = Some(part);
            }
        }
        found
    }

    /// Returns the member of an object with this name.
    pub(super) fn get(self, name: &str) -> Option<JsonValue<'a>> {
        let [part] = self.get_all([name]);
        part
    }

    /// Returns the value of a string.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        let plain = self.0.strip_prefix('"')?.strip_suffix('"')?;
        match plain.contains('\\') {
            false => Some(Cow::Borrowed(plain)),
            true => serde_json::from_str(self.0).ok().map(Cow::Owned),
        }
    }

    /// Returns the value of an unsigned integer.
    pub(super) fn as_u64(self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Returns the value of a finite number.
    pub(super) fn as_f64(self) -> Option<f64> {
        self.0.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

/// The unread part of a list or an object that is known to be valid JSON.
struct JsonCursor<'a>(&'a str);

impl<'a> JsonCursor<'a> {
    /// Returns the next value or name; `None` at the end.
    fn next_value(&mut self) -> Option<JsonValue<'a>> {
        let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
        let start = self.0.bytes().position(|byte| !is_between(&byte))?;
        let rest = self.0.get(start..)?;
        let length = value_length(rest.as_bytes());
        self.0 = rest.get(length..)?;
        (length > 0).then(|| JsonValue(&rest[..length]))
    }
}

/// Returns the length of the value at the beginning; 0 at the end of a list or an object.
fn value_length(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0u32);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at += string_length(&bytes[at..]),
            b'[' | b'{' => (at, depth) = (at + 1, depth + 1),
            b']' | b'}' if depth == 0 => return at,
            b']' | b'}' => (at, depth) = (at + 1, depth - 1),
            b' ' | b'\t' | b'\n' | b'\r' | b',' if depth == 0 => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

/// Returns the length of a string, including its quotes.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> JsonValue<'_> {
        JsonValue::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn lists_and_objects_are_walked_through_whatever_stands_in_them() {
        let list = part(r#" [ 1 ,-2.5e3,"a,]\"" , [ ],{"b":[{}]},true,null,"é" ] "#);
        let elements: Vec<&str> = list.elements().map(|part| part.0).collect();
        assert_eq!(
            elements,
            [
                "1",
                "-2.5e3",
                r#""a,]\"""#,
                "[ ]",
                r#"{"b":[{}]}"#,
                "true",
                "null",
                r#""é""#
            ]
        );
        let object = part(r#"{ "a" : 1 ,"\u0062":{"a":2},"a:,}":[3], "c":"" , "a":4}"#);
        let members: Vec<_> = object
            .members()
            .map(|(name, part)| (name.into_owned(), part.0))
            .collect();
        let members: Vec<_> = members.iter().map(|(name, part)| (&**name, *part)).collect();
        assert_eq!(
            members,
            [
                ("a", "1"),
                ("b", r#"{"a":2}"#),
                ("a:,}", "[3]"),
                ("c", r#""""#),
                ("a", "4")
            ]
        );
        let [b, a, none] = object
            .get_all(["b", "a", "d"])
            .map(|part| part.map(|part| part.0));
        assert_eq!((a, b, none), (Some("4"), Some(r#"{"a":2}"#), None));
        for nothing in ["[]", "{ }", "1", "\"[1]\"", "null"] {
            let nothing = part(nothing);
            assert_eq!(nothing.elements().count() + nothing.members().count(), 0);
        }
    }

    #[test]
    fn values_are_read_as_what_they_are_and_as_nothing_else() {
        assert_eq!(part(r#""a\n\u00e9""#).text().as_deref(), Some("a\né"));
        assert_eq!(part(r#""\ud800""#).text(), None);
        assert_eq!((part("7").as_u64(), part("7").as_f64()), (Some(7), Some(7.0)));
        assert_eq!((part("-0.5").as_u64(), part("-0.5").as_f64()), (None, Some(-0.5)));
        assert_eq!(part("1e999").as_f64(), None);
        for other in ["\"7\"", "null", "[7]", "true"] {
            let other = part(other);
            assert_eq!((other.as_u64(), other.as_f64()), (None, None));
        }
        assert!(part("true").is_true() && !part("\"true\"").is_true() && part("\"\"").is_text());
        for broken in ["", "[1", "{\"a\"}", "[1] 2", "\"\u{1}\""] {
            assert!(JsonValue::parse(broken.as_bytes()).is_none(), "{broken}");
        }
    }
}
