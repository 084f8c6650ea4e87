//! The rest of a token that is longer than its rule can match: a match has a maximum length, and a signed or encrypted token
//! has none.
//!
//! Only a match that ended because of the maximum has such a rest: it is followed by a character that the regex's last
//! repetition accepts. From there the token continues over the characters of tokens (RFC 6750, 2.1: `b64token`) and of that
//! repetition.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::pattern::has_value_group;

/// Maximum number of consecutive backslashes before a character that JSON within a JSON string escapes.
const MAX_BACKSLASHES: usize = 8;

/// Graphic ASCII characters except quotes and the backslash, which end a token in every notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct AsciiSet(u128);

impl AsciiSet {
    fn has(self, byte: u8) -> bool {
        byte.is_ascii() && self.0 & 1 << byte != 0
    }

    fn add(&mut self, byte: u8) {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'\\') {
            // The folded copy has no upper case, but the text has.
            self.0 |= 1 << byte | 1 << byte.to_ascii_uppercase();
        }
    }
}

/// The characters that can follow a rule's match and belong to it, and the progress of reading them
/// in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenTail {
    /// Characters that the last repetition accepts.
    repeated: AsciiSet,
    /// Whether one of the repeated characters directly followed the match.
    has_started: bool,
}

/// The extent of a token in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailEnd {
    /// The end of its last character so far, exclusive.
    pub end: usize,
    /// Whether the text that follows can belong to it. If so, the bytes after `end`, at most 32, can belong to it, too.
    pub is_open: bool,
}

enum Unit {
    /// A character and the number of bytes that encode it.
    Character(u8, usize),
    /// A possibly incomplete character at the end of the text.
    Incomplete,
    Other,
}

impl TokenTail {
    /// Creates the token tail of a rule with this pattern.
    pub(crate) fn from_pattern(hir: &Hir) -> Self {
        let mut last = AsciiSet::default();
        collect_trailing(hir, &mut last);
        Self {
            repeated: last,
            has_started: false,
        }
    }

    /// Whether a match is never cut off.
    pub(crate) fn is_empty(self) -> bool {
        self.repeated == AsciiSet::default()
    }

    /// Continues in `text` at `from`, which is the end of the match or of the part that already
    /// belongs to it. An open token continues at `end` in the following text.
    pub fn advance(&mut self, text: &[u8], from: usize) -> TailEnd {
        let mut end = from;
        loop {
            let rest = text.get(end..).unwrap_or_default();
            let length = match parse_unit(rest) {
                Unit::Character(byte, _) if !self.has_started && !self.repeated.has(byte) => None,
                Unit::Character(byte, length) if is_joiner(byte) => match parse_unit(&rest[length..]) {
                    Unit::Character(byte, more) if !is_joiner(byte) && self.accepts(byte) => {
                        Some(length + more)
                    }
                    Unit::Incomplete => return TailEnd { end, is_open: true },
                    _ => None,
                },
                Unit::Character(byte, length) if self.accepts(byte) => Some(length),
                Unit::Incomplete => return TailEnd { end, is_open: true },
                _ => None,
            };
            let Some(length) = length else {
                return TailEnd { end, is_open: false };
            };
            self.has_started = true;
            end += length;
        }
    }

    fn accepts(&self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b"-_+/=~".contains(&byte) || self.repeated.has(byte)
    }
}

/// Whether `byte` joins two parts of a token without being part of its end: a full stop after a token ends a sentence.
fn is_joiner(byte: u8) -> bool {
    matches!(byte, b'.' | b'%')
}

/// Parses the character at the beginning of a text. JSON encoders write some base64 characters as escapes: `\/`, `\u002B`.
fn parse_unit(text: &[u8]) -> Unit {
    let backslashes = text.iter().take_while(|byte| **byte == b'\\').count();
    let written = &text[backslashes..];
    match written {
        _ if backslashes > MAX_BACKSLASHES => Unit::Other,
        [] => Unit::Incomplete,
        [byte, ..] if backslashes == 0 && byte.is_ascii_graphic() => Unit::Character(*byte, 1),
        [b'/', ..] if backslashes > 0 => Unit::Character(b'/', backslashes + 1),
        [b'u', digits @ ..] if backslashes > 0 => parse_escape(digits, backslashes + 1),
        _ => Unit::Other,
    }
}

/// Returns the base64 character for the digits of its escape.
fn parse_escape(digits: &[u8], before: usize) -> Unit {
    let digits = &digits[..digits.len().min(4)];
    let signs = [(b"002b", b'+'), (b"002f", b'/'), (b"003d", b'=')];
    let sign = signs
        .iter()
        .find(|(written, _)| written[..digits.len()].eq_ignore_ascii_case(digits));
    match sign {
        Some((_, sign)) if digits.len() == 4 => Unit::Character(*sign, before + 4),
        Some(_) => Unit::Incomplete,
        None => Unit::Other,
    }
}

/// Collects the characters of variable repetitions at the end of a pattern's value; returns whether the pattern can match
/// nothing.
fn collect_trailing(hir: &Hir, last: &mut AsciiSet) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Repetition(repetition) => {
            let mut is_optional = repetition.min == 0;
            match repetition.sub.kind() {
                _ if repetition.max == Some(repetition.min) => {}
                HirKind::Class(class) => add_class(class, last),
                _ => is_optional |= collect_trailing(&repetition.sub, last),
            }
            is_optional
        }
        HirKind::Capture(group) => collect_trailing(&group.sub, last),
        HirKind::Alternation(branches) => {
            let mut is_optional = false;
            for branch in branches {
                is_optional |= collect_trailing(branch, last);
            }
            is_optional
        }
        HirKind::Concat(parts) => {
            // The part after the value does not belong to it.
            let value = parts.iter().position(has_value_group);
            let behind = value.map_or(&[][..], |value| &parts[value + 1..]);
            if behind
                .iter()
                .any(|part| part.properties().minimum_len() > Some(0))
            {
                return false;
            }
            let of_value = value.map_or(parts.len(), |value| value + 1);
            parts[..of_value]
                .iter()
                .rev()
                .all(|part| collect_trailing(part, last))
        }
    }
}

fn add_class(class: &Class, last: &mut AsciiSet) {
    let takes = |byte: u8| match class {
        Class::Unicode(class) => {
            let mut ranges = class.ranges().iter();
            ranges.any(|range| (range.start()..=range.end()).contains(&char::from(byte)))
        }
        Class::Bytes(class) => {
            let mut ranges = class.ranges().iter();
            ranges.any(|range| (range.start()..=range.end()).contains(&byte))
        }
    };
    (0..0x80)
        .filter(|byte| takes(*byte))
        .for_each(|byte| last.add(byte));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{TailEnd, TokenTail};
    use crate::{Engine, Extent, PolicyConfig};

    #[test]
    fn every_rule_for_secrets_that_can_be_cut_off_takes_the_rest_out() {
        let packs = vec!["secrets".to_owned()];
        let config = PolicyConfig {
            packs,
            ..PolicyConfig::default()
        };
        for rule in &Engine::compile(&config).unwrap().rules {
            let is_cut_off = !TokenTail::from_pattern(&rule.pattern.hir).is_empty();
            assert_eq!(rule.info.extent != Extent::Match, is_cut_off, "{}", rule.info.id);
        }
    }

    fn tail(pattern: &str) -> TokenTail {
        TokenTail::from_pattern(&regex_syntax::parse(pattern).unwrap())
    }

    /// Returns the text left after the end of a token of which `matched` characters are matched.
    fn left<'t>(pattern: &str, text: &'t str, matched: usize) -> &'t str {
        let TailEnd { end, .. } = tail(pattern).advance(text.as_bytes(), matched);
        &text[end..]
    }

    #[test]
    fn a_token_that_is_cut_off_goes_on_to_its_end() {
        for (text, rest) in [
            ("key-abcdefgh rest", " rest"),
            ("key-abcdEFGH123_-+/== rest", " rest"),
            ("key-abcdef.gh.ij, rest", ", rest"),
            ("key-abcdef.", "."),
            ("key-abcdef... rest", "... rest"),
            ("key-abcdef%2Bgh%", "%"),
            ("key-abcdef\"", "\""),
            ("key-abcdefé", "é"),
            (r"key-abcdef\/gh\u002Bij\\\u003d\n", r"\n"),
            (r"key-abcdef\u0022", r"\u0022"),
            ("key-abcd", ""),
        ] {
            assert_eq!(left("key-[a-z]{2,4}", text, 8), rest, "{text}");
        }
    }

    #[test]
    fn what_follows_a_whole_match_stays() {
        for (pattern, text, matched) in [
            ("key-[a-z]{2,4}", "key-abc/def", 7),
            ("key-[a-z]{2,4}", "key-abc.def", 7),
            ("key-[a-z]{4}", "key-abcdef", 8),
            ("key-[a-z]{2,4};?", "key-abcd/ef", 8),
            ("(?<value>[a-z]{2,4})@[a-z]{2,8}", "abcde@host", 4),
            ("id (?:(?<value>[a-z]{2,4}) |x)", "id abcde", 7),
        ] {
            assert_eq!(left(pattern, text, matched), &text[matched..], "{pattern}");
        }
    }

    #[test]
    fn the_last_repetition_is_found_in_every_branch_and_before_what_may_be_missing() {
        for (pattern, text) in [
            ("a(?:b|c[x-z]{1,2}|d[0-9]{3})", "acxyz"),
            (r"a[a-z]{1,2}=?\b", "abcd"),
            ("a(?<value>b[x-z]{1,2})\"?", "abxyz"),
            ("a[!#]{1,2}", "a!##"),
        ] {
            assert_eq!(left(pattern, text, text.len() - 1), "", "{pattern}");
        }
        assert!(tail("a[0-9]{3}(?:x|y)").is_empty());
    }

    #[test]
    fn a_token_that_comes_in_pieces_ends_where_the_whole_one_does() {
        let text = r"key-abcdefgh.ij%2F\\/kl\u002Bmn. And".as_bytes();
        let whole = tail("key-[a-z]{2,4}").advance(text, 8);
        for cut in 8..text.len() {
            let mut tail = tail("key-[a-z]{2,4}");
            let TailEnd { end, is_open } = tail.advance(&text[..cut], 8);
            assert!(end <= whole.end && cut - end <= 32 || !is_open);
            let end = if is_open { tail.advance(text, end).end } else { end };
            assert_eq!(end, whole.end, "{cut}");
        }
        assert!(!whole.is_open);
    }
}
