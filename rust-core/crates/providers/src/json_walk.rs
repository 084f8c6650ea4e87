//! Reads a text that may be JSON as it arrives, as far as it is JSON (RFC 8259), and finds what of it can be replaced.
//!
//! One document or several behind each other, as in JSON lines. What follows the first byte that no JSON can have there is
//! no JSON any more, and what came before it still is.

use std::ops::Range;

/// Characters of the longest number that is taken for one: no number is held back for longer.
const LONGEST_NUMBER: usize = 1024;
/// Objects and arrays within each other.
const DEEPEST: usize = 512;

/// What of JSON can be replaced in whole or in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// The characters of a key, without its quotes.
    Key,
    /// Those of a string.
    String,
    /// A number.
    Number,
    /// A character of a key or a string that is written as an escape, or as those of a surrogate pair. It comes before what it
    /// stands in.
    Escape,
}

/// How far a text is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonWalk {
    state: State,
    /// For each object or array that is open, whether it is an object.
    open: Vec<bool>,
    /// Bytes so far.
    length: usize,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    /// Before a document.
    #[default]
    Begin,
    /// Before a value, or the end of an array that has just begun.
    Value { or_end: bool },
    /// Before a key, or the end of an object that has just begun.
    Key { or_end: bool },
    /// Behind a key.
    Colon,
    /// Behind a value.
    Behind,
    /// In a key or a string that begins at `from`.
    Text {
        is_key: bool,
        from: usize,
        escape: Escape,
    },
    /// In a number that begins at `from`.
    Number { from: usize, part: Part },
    /// In `true`, `false` or `null`.
    Word { rest: &'static [u8] },
    /// Behind what is JSON, which ends at `from`.
    Broken { from: usize },
}

/// Where in a character of a string. `at`: where its escape begins.
#[derive(Debug, Clone, Copy)]
enum Escape {
    None,
    Backslash {
        at: usize,
        high: bool,
    },
    Unit {
        at: usize,
        high: bool,
        digits: u8,
        unit: u16,
    },
    /// Behind the first half of a surrogate pair.
    High {
        at: usize,
    },
}

/// Where in a number (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

impl Part {
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

impl JsonWalk {
    /// Reads the next piece, and calls `found` with each token that ends in it.
    pub(crate) fn push(&mut self, piece: &str, mut found: impl FnMut(Token, Range<usize>)) {
        for (place, byte) in piece.bytes().enumerate() {
            if let State::Broken { .. } = self.state {
                self.length += piece.len() - place;
                return;
            }
            self.state = self.after(byte, &mut found);
            self.length += 1;
        }
    }

    /// Ends the text.
    pub(crate) fn end(&mut self, mut found: impl FnMut(Token, Range<usize>)) {
        if let State::Number { from, part } = self.state {
            self.state = match part.can_end() {
                true => {
                    found(Token::Number, from..self.length);
                    State::Behind
                }
                false => State::Broken { from },
            };
        }
    }

    /// Where what is JSON ends, if that is before the end of what was read; 0 if nothing of it is.
    pub(crate) fn json_end(&self) -> Option<usize> {
        match self.state {
            State::Begin => Some(0),
            State::Broken { from } => Some(from),
            _ => None,
        }
    }

    /// The token that is not over yet.
    pub(crate) fn unended(&self) -> Option<(Token, Range<usize>)> {
        match self.state {
            State::Text { is_key, from, .. } => {
                let token = if is_key { Token::Key } else { Token::String };
                Some((token, from..self.length))
            }
            State::Number { from, part } if part.can_end() => Some((Token::Number, from..self.length)),
            _ => None,
        }
    }

    /// Where the number or the escape begins that is not over yet: it can only be replaced as a whole.
    pub(crate) fn unended_unit(&self) -> Option<usize> {
        match self.state {
            State::Number { from, .. } => Some(from),
            State::Text { escape, .. } => match escape {
                Escape::None => None,
                Escape::Backslash { at, .. } | Escape::Unit { at, .. } | Escape::High { at } => Some(at),
            },
            _ => None,
        }
    }

    fn after(&mut self, byte: u8, found: &mut impl FnMut(Token, Range<usize>)) -> State {
        let at = self.length;
        let broken = State::Broken { from: at };
        match self.state {
            State::Text { is_key, from, escape } => in_text(is_key, from, escape, byte, at, found),
            State::Number { from, part } => match part.next(byte) {
                Some(part) if at - from < LONGEST_NUMBER => State::Number { from, part },
                None if part.can_end()
                    && matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}') =>
                {
                    found(Token::Number, from..at);
                    self.behind(byte)
                }
                _ => State::Broken { from },
            },
            State::Word { rest } => match rest.split_first() {
                Some((next, [])) if *next == byte => State::Behind,
                Some((next, rest)) if *next == byte => State::Word { rest },
                _ => broken,
            },
            state if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => state,
            State::Begin if matches!(byte, b'{' | b'[') => self.begin(byte),
            State::Begin => State::Broken { from: 0 },
            State::Value { or_end } => match byte {
                b'{' | b'[' => self.begin(byte),
                b']' if or_end => self.behind(byte),
                b'"' => text(false, at),
                b'-' => State::Number {
                    from: at,
                    part: Part::Minus,
                },
                b'0' => State::Number {
                    from: at,
                    part: Part::Zero,
                },
                b'1'..=b'9' => State::Number {
                    from: at,
                    part: Part::Digits,
                },
                b't' => State::Word { rest: b"rue" },
                b'f' => State::Word { rest: b"alse" },
                b'n' => State::Word { rest: b"ull" },
                _ => broken,
            },
            State::Key { or_end } => match byte {
                b'"' => text(true, at),
                b'}' if or_end => self.behind(byte),
                _ => broken,
            },
            State::Colon if byte == b':' => State::Value { or_end: false },
            State::Colon => broken,
            State::Behind => self.behind(byte),
            State::Broken { .. } => self.state,
        }
    }

    fn begin(&mut self, byte: u8) -> State {
        if self.open.len() == DEEPEST {
            return State::Broken { from: self.length };
        }
        self.open.push(byte == b'{');
        match byte {
            b'{' => State::Key { or_end: true },
            _ => State::Value { or_end: true },
        }
    }

    fn behind(&mut self, byte: u8) -> State {
        match (byte, self.open.last()) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => State::Behind,
            (b',', Some(true)) => State::Key { or_end: false },
            (b',', Some(false)) => State::Value { or_end: false },
            (b'}', Some(true)) | (b']', Some(false)) => {
                self.open.pop();
                State::Behind
            }
            (b'{' | b'[', None) => self.begin(byte),
            _ => State::Broken { from: self.length },
        }
    }
}

fn text(is_key: bool, quote: usize) -> State {
    State::Text {
        is_key,
        from: quote + 1,
        escape: Escape::None,
    }
}

/// What a byte of a key or a string leads to.
fn in_text(
    is_key: bool,
    from: usize,
    escape: Escape,
    byte: u8,
    at: usize,
    found: &mut impl FnMut(Token, Range<usize>),
) -> State {
    let token = if is_key { Token::Key } else { Token::String };
    let next = |escape| State::Text { is_key, from, escape };
    match (escape, byte) {
        (Escape::High { at }, b'\\') => return next(Escape::Backslash { at, high: true }),
        // Half a character, which some readers take.
        (Escape::High { at: escaped }, _) => found(Token::Escape, escaped..at),
        (Escape::Backslash { at, high }, b'u') => {
            return next(Escape::Unit {
                at,
                high,
                digits: 0,
                unit: 0,
            });
        }
        (Escape::Backslash { at: escaped, high }, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
            // Behind half a character stands one of its own.
            let start = if high { at - 1 } else { escaped };
            if high {
                found(Token::Escape, escaped..start);
            }
            found(Token::Escape, start..at + 1);
            return next(Escape::None);
        }
        (
            Escape::Unit {
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
                0..3 => Escape::Unit {
                    at: escaped,
                    high,
                    digits: digits + 1,
                    unit,
                },
                _ => unit_ended(escaped, high, unit, at + 1, found),
            });
        }
        (Escape::Backslash { at: escaped, .. } | Escape::Unit { at: escaped, .. }, _) => {
            found(token, from..escaped);
            return State::Broken { from: escaped };
        }
        (Escape::None, _) => {}
    }
    match byte {
        b'"' => {
            found(token, from..at);
            if is_key { State::Colon } else { State::Behind }
        }
        b'\\' => next(Escape::Backslash { at, high: false }),
        0..b' ' => {
            found(token, from..at);
            State::Broken { from: at }
        }
        _ => next(Escape::None),
    }
}

/// What follows an escape of a code unit, which begins at `escaped` or is the second one of those that do, and ends at `end`.
fn unit_ended(
    escaped: usize,
    high: bool,
    unit: u16,
    end: usize,
    found: &mut impl FnMut(Token, Range<usize>),
) -> Escape {
    const UNIT: usize = 6;
    let is_low = (0xdc00..0xe000).contains(&unit);
    let mut start = escaped;
    if high && !is_low {
        start = end - UNIT;
        found(Token::Escape, escaped..start);
    }
    if (0xd800..0xdc00).contains(&unit) {
        return Escape::High { at: start };
    }
    found(Token::Escape, start..end);
    Escape::None
}

#[cfg(test)]
mod tests {
    use super::{JsonWalk, Token};

    /// The tokens of a text, and what of it is JSON.
    fn tokens(text: &str) -> (Vec<(Token, &str)>, &str) {
        let (mut walk, mut ranges) = (JsonWalk::default(), Vec::new());
        for character in text.chars() {
            walk.push(character.encode_utf8(&mut [0; 4]), |token, range| {
                ranges.push((token, range))
            });
        }
        walk.end(|token, range| ranges.push((token, range)));
        let tokens = ranges.into_iter().map(|(token, range)| (token, &text[range]));
        (tokens.collect(), &text[..walk.json_end().unwrap_or(text.len())])
    }

    #[test]
    fn keys_strings_numbers_and_escapes_are_found() {
        let text = r#" {"a\n": [-1.5e+3, 0, true, null, "\u00e9\ud83d\ude00\ud83dx"], "b": {}} "#;
        let expected = [
            (Token::Escape, r"\n"),
            (Token::Key, r"a\n"),
            (Token::Number, "-1.5e+3"),
            (Token::Number, "0"),
            (Token::Escape, r"\u00e9"),
            (Token::Escape, r"\ud83d\ude00"),
            (Token::Escape, r"\ud83d"),
            (Token::String, r"\u00e9\ud83d\ude00\ud83dx"),
            (Token::Key, "b"),
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
