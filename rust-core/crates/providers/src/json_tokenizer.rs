//! Tokenizes a text that may be JSON (RFC 8259) as it arrives, and finds the parts of it that can be replaced.
//!
//! The text may hold one document or several in sequence, as in JSON lines. The text before the
//! first byte that is not valid JSON counts as JSON; the rest does not.

use std::ops::Range;

/// Maximum length of a number, in characters: no number is held back for longer.
const MAX_NUMBER_LEN: usize = 1024;
/// Maximum nesting depth of objects and arrays.
const MAX_DEPTH: usize = 512;

/// A part of JSON that can be replaced, in whole or in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonTokenKind {
    /// The characters of a key, without its quotes.
    Key,
    /// The characters of a string, without its quotes.
    String,
    /// A number.
    Number,
    /// A character of a key or a string that is written as an escape, or as a surrogate pair of escapes. It is
    /// reported before the key or string that contains it.
    Escape,
}

/// The state of tokenizing a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonTokenizer {
    state: State,
    /// One entry for each open object or array: whether it is an object.
    open_containers: Vec<bool>,
    /// Number of bytes read so far.
    length: usize,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    /// Before a document.
    #[default]
    BeforeDocument,
    /// Before a value, or the end of an array that has just begun.
    BeforeValue { or_end: bool },
    /// Before a key, or the end of an object that has just begun.
    BeforeKey { or_end: bool },
    /// After a key.
    BeforeColon,
    /// After a value.
    AfterValue,
    /// In a key or a string that begins at `from`.
    Text {
        is_key: bool,
        from: usize,
        escape: EscapeState,
    },
    /// In a number that begins at `from`.
    Number { from: usize, part: NumberPart },
    /// In `true`, `false` or `null`.
    Literal { rest: &'static [u8] },
    /// After the end of the JSON part, which is at `from`.
    Invalid { from: usize },
}

/// The position within a character of a string. `at`: where its escape begins.
#[derive(Debug, Clone, Copy)]
enum EscapeState {
    None,
    Backslash {
        at: usize,
        high: bool,
    },
    UnicodeEscape {
        at: usize,
        high: bool,
        digits: u8,
        unit: u16,
    },
    /// After the first half of a surrogate pair.
    High {
        at: usize,
    },
}

/// The position within a number (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberPart {
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

impl NumberPart {
    fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Digits, b'0'..=b'9') => Some(Self::Digits),
            (Self::Zero | Self::Digits, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Digits | Self::Fraction, b'e' | b'E') => Some(Self::E),
            (Self::E, b'+' | b'-') => Some(Self::Sign),
            (Self::E | Self::Sign | Self::Exponent, b'0'..=b'9') => Some(Self::Exponent),
            _ => None,
        }
    }

    fn can_end(self) -> bool {
        matches!(self, Self::Zero | Self::Digits | Self::Fraction | Self::Exponent)
    }
}

impl JsonTokenizer {
    /// Reads the next piece, and calls `found` with each token that ends in it.
    pub(crate) fn push(&mut self, piece: &str, mut found: impl FnMut(JsonTokenKind, Range<usize>)) {
        for (place, byte) in piece.bytes().enumerate() {
            if let State::Invalid { .. } = self.state {
                self.length += piece.len() - place;
                return;
            }
            self.state = self.next_state(byte, &mut found);
            self.length += 1;
        }
    }

    /// Ends the text.
    pub(crate) fn finish(&mut self, mut found: impl FnMut(JsonTokenKind, Range<usize>)) {
        if let State::Number { from, part } = self.state {
            self.state = match part.can_end() {
                true => {
                    found(JsonTokenKind::Number, from..self.length);
                    State::AfterValue
                }
                false => State::Invalid { from },
            };
        }
    }

    /// Returns where the JSON part ends, if that is before the end of the input; 0 if no part is JSON.
    pub(crate) fn valid_json_end(&self) -> Option<usize> {
        match self.state {
            State::BeforeDocument => Some(0),
            State::Invalid { from } => Some(from),
            _ => None,
        }
    }

    /// Returns the token that is not complete yet.
    pub(crate) fn unfinished_token(&self) -> Option<(JsonTokenKind, Range<usize>)> {
        match self.state {
            State::Text { is_key, from, .. } => {
                let token = if is_key {
                    JsonTokenKind::Key
                } else {
                    JsonTokenKind::String
                };
                Some((token, from..self.length))
            }
            State::Number { from, part } if part.can_end() => {
                Some((JsonTokenKind::Number, from..self.length))
            }
            _ => None,
        }
    }

    /// Returns where the incomplete number or escape begins, which can only be replaced as a whole.
    pub(crate) fn unfinished_unit_start(&self) -> Option<usize> {
        match self.state {
            State::Number { from, .. } => Some(from),
            State::Text { escape, .. } => match escape {
                EscapeState::None => None,
                EscapeState::Backslash { at, .. }
                | EscapeState::UnicodeEscape { at, .. }
                | EscapeState::High { at } => Some(at),
            },
            _ => None,
        }
    }

    fn next_state(&mut self, byte: u8, found: &mut impl FnMut(JsonTokenKind, Range<usize>)) -> State {
        let at = self.length;
        let broken = State::Invalid { from: at };
        match self.state {
            State::Text { is_key, from, escape } => next_text_state(is_key, from, escape, byte, at, found),
            State::Number { from, part } => match part.next(byte) {
                Some(part) if at - from < MAX_NUMBER_LEN => State::Number { from, part },
                None if part.can_end()
                    && matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}') =>
                {
                    found(JsonTokenKind::Number, from..at);
                    self.state_after_value(byte)
                }
                _ => State::Invalid { from },
            },
            State::Literal { rest } => match rest.split_first() {
                Some((next, [])) if *next == byte => State::AfterValue,
                Some((next, rest)) if *next == byte => State::Literal { rest },
                _ => broken,
            },
            state if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => state,
            State::BeforeDocument if matches!(byte, b'{' | b'[') => self.start_value(byte),
            State::BeforeDocument => State::Invalid { from: 0 },
            State::BeforeValue { or_end } => match byte {
                b'{' | b'[' => self.start_value(byte),
                b']' if or_end => self.state_after_value(byte),
                b'"' => text_state(false, at),
                b'-' => State::Number {
                    from: at,
                    part: NumberPart::Minus,
                },
                b'0' => State::Number {
                    from: at,
                    part: NumberPart::Zero,
                },
                b'1'..=b'9' => State::Number {
                    from: at,
                    part: NumberPart::Digits,
                },
                b't' => State::Literal { rest: b"rue" },
                b'f' => State::Literal { rest: b"alse" },
                b'n' => State::Literal { rest: b"ull" },
                _ => broken,
            },
            State::BeforeKey { or_end } => match byte {
                b'"' => text_state(true, at),
                b'}' if or_end => self.state_after_value(byte),
                _ => broken,
            },
            State::BeforeColon if byte == b':' => State::BeforeValue { or_end: false },
            State::BeforeColon => broken,
            State::AfterValue => self.state_after_value(byte),
            State::Invalid { .. } => self.state,
        }
    }

    fn start_value(&mut self, byte: u8) -> State {
        if self.open_containers.len() == MAX_DEPTH {
            return State::Invalid { from: self.length };
        }
        self.open_containers.push(byte == b'{');
        match byte {
            b'{' => State::BeforeKey { or_end: true },
            _ => State::BeforeValue { or_end: true },
        }
    }

    fn state_after_value(&mut self, byte: u8) -> State {
        match (byte, self.open_containers.last()) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => State::AfterValue,
            (b',', Some(true)) => State::BeforeKey { or_end: false },
            (b',', Some(false)) => State::BeforeValue { or_end: false },
            (b'}', Some(true)) | (b']', Some(false)) => {
                self.open_containers.pop();
                State::AfterValue
            }
            (b'{' | b'[', None) => self.start_value(byte),
            _ => State::Invalid { from: self.length },
        }
    }
}

fn text_state(is_key: bool, quote: usize) -> State {
    State::Text {
        is_key,
        from: quote + 1,
        escape: EscapeState::None,
    }
}

/// Returns the state after a byte of a key or a string.
fn next_text_state(
    is_key: bool,
    from: usize,
    escape: EscapeState,
    byte: u8,
    at: usize,
    found: &mut impl FnMut(JsonTokenKind, Range<usize>),
) -> State {
    let token = if is_key {
        JsonTokenKind::Key
    } else {
        JsonTokenKind::String
    };
    let next = |escape| State::Text { is_key, from, escape };
    match (escape, byte) {
        (EscapeState::High { at }, b'\\') => return next(EscapeState::Backslash { at, high: true }),
        // An unpaired surrogate, which some readers accept.
        (EscapeState::High { at: escaped }, _) => found(JsonTokenKind::Escape, escaped..at),
        (EscapeState::Backslash { at, high }, b'u') => {
            return next(EscapeState::UnicodeEscape {
                at,
                high,
                digits: 0,
                unit: 0,
            });
        }
        (
            EscapeState::Backslash { at: escaped, high },
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
        ) => {
            // A separate escape follows an unpaired surrogate.
            let start = if high { at - 1 } else { escaped };
            if high {
                found(JsonTokenKind::Escape, escaped..start);
            }
            found(JsonTokenKind::Escape, start..at + 1);
            return next(EscapeState::None);
        }
        (
            EscapeState::UnicodeEscape {
                at: escaped,
                high,
                digits,
                unit,
            },
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F',
        ) => {
            let digit = char::from(byte).to_digit(16).unwrap_or_default();
            let unit = unit << 4 | u16::try_from(digit).unwrap_or_default();
            return next(match digits {
                0..3 => EscapeState::UnicodeEscape {
                    at: escaped,
                    high,
                    digits: digits + 1,
                    unit,
                },
                _ => finish_unicode_escape(escaped, high, unit, at + 1, found),
            });
        }
        (EscapeState::Backslash { at: escaped, .. } | EscapeState::UnicodeEscape { at: escaped, .. }, _) => {
            found(token, from..escaped);
            return State::Invalid { from: escaped };
        }
        (EscapeState::None, _) => {}
    }
    match byte {
        b'"' => {
            found(token, from..at);
            if is_key {
                State::BeforeColon
            } else {
                State::AfterValue
            }
        }
        b'\\' => next(EscapeState::Backslash { at, high: false }),
        0..b' ' => {
            found(token, from..at);
            State::Invalid { from: at }
        }
        _ => next(EscapeState::None),
    }
}

/// Returns the state after a `\uXXXX` escape that ends at `end`. The escape, or the surrogate pair
/// that it completes, begins at `escaped`.
fn finish_unicode_escape(
    escaped: usize,
    high: bool,
    unit: u16,
    end: usize,
    found: &mut impl FnMut(JsonTokenKind, Range<usize>),
) -> EscapeState {
    const UNICODE_ESCAPE_LEN: usize = 6;
    let is_low = (0xdc00..0xe000).contains(&unit);
    let mut start = escaped;
    if high && !is_low {
        start = end - UNICODE_ESCAPE_LEN;
        found(JsonTokenKind::Escape, escaped..start);
    }
    if (0xd800..0xdc00).contains(&unit) {
        return EscapeState::High { at: start };
    }
    found(JsonTokenKind::Escape, start..end);
    EscapeState::None
}

#[cfg(test)]
mod tests {
    use super::{JsonTokenKind, JsonTokenizer};

    /// Returns the tokens of a text, and its JSON part.
    fn tokens(text: &str) -> (Vec<(JsonTokenKind, &str)>, &str) {
        let (mut walk, mut ranges) = (JsonTokenizer::default(), Vec::new());
        for character in text.chars() {
            walk.push(character.encode_utf8(&mut [0; 4]), |token, range| {
                ranges.push((token, range))
            });
        }
        walk.finish(|token, range| ranges.push((token, range)));
        let tokens = ranges.into_iter().map(|(token, range)| (token, &text[range]));
        (
            tokens.collect(),
            &text[..walk.valid_json_end().unwrap_or(text.len())],
        )
    }

    #[test]
    fn keys_strings_numbers_and_escapes_are_found() {
        let text = r#" {"a\n": [-1.5e+3, 0, true, null, "\u00e9\ud83d\ude00\ud83dx"], "b": {}} "#;
        let expected = [
            (JsonTokenKind::Escape, r"\n"),
            (JsonTokenKind::Key, r"a\n"),
            (JsonTokenKind::Number, "-1.5e+3"),
            (JsonTokenKind::Number, "0"),
            (JsonTokenKind::Escape, r"\u00e9"),
            (JsonTokenKind::Escape, r"\ud83d\ude00"),
            (JsonTokenKind::Escape, r"\ud83d"),
            (JsonTokenKind::String, r"\u00e9\ud83d\ude00\ud83dx"),
            (JsonTokenKind::Key, "b"),
        ];
        assert_eq!(tokens(text), (expected.to_vec(), text));
    }

    #[test]
    fn a_text_is_json_up_to_the_first_byte_that_cannot_be() {
        for (json, rest) in [
            ("", "Hello {}"),
            ("[", "see below]"),
            ("[1] ", "see below"),
            ("[", "2024-05-15]"),
            ("[", "01]"),
            (r#"{"a": "b"#, "\n\"}"),
            (r#"{"a": "b"#, r#"\x"}"#),
            (r#"{"a""#, "}"),
            ("{\"a\": 1}\n{\"b\": 2}\n", "x"),
            ("[tr", "ee]"),
            ("[", "-"),
        ] {
            let text = format!("{json}{rest}");
            assert_eq!(tokens(&text).1, json, "{text}");
        }
    }

    #[test]
    fn no_number_and_no_depth_is_without_end() {
        assert_eq!(tokens(&format!("[{}", "1".repeat(2000))).1, "[");
        assert_eq!(tokens(&"[".repeat(2000)).1, "[".repeat(512));
    }
}
