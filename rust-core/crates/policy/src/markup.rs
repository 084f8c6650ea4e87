//! Markup inside a word: emphasis, code marks, inline elements and comments of HTML. A reader sees the word without it,
//! and so does a model (SEMANTICS.md, "Views of a text").

use crate::entities::ParseResult;

/// Maximum number of adjacent pieces of markup within a word.
const MAX_PIECES: usize = 4;
/// Maximum characters between the name of an element, or the beginning of a comment, and its end.
const MAX_TAG_CHARACTERS: usize = 62;
/// Elements that do not end a word.
const INLINE: &[&[u8]] = &[
    b"a", b"abbr", b"b", b"big", b"code", b"del", b"em", b"font", b"i", b"ins", b"mark", b"s", b"small",
    b"span", b"strike", b"strong", b"sub", b"sup", b"tt", b"u", b"wbr",
];
const COMMENT: &[u8] = b"<!--";

/// Whether `byte` of the folded copy belongs to a letter, of ASCII or of any other script.
#[inline]
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_lowercase() | !byte.is_ascii()
}

/// Whether markup can begin with `byte`.
#[inline]
pub(crate) fn is_markup_start(byte: u8) -> bool {
    (byte == b'*') | (byte == b'<') | (byte == b'`') | (byte == b'~')
}

/// Whether markup inside a word can begin with `byte`, after `before`.
#[inline]
pub(crate) fn can_start_markup(before: u8, byte: u8) -> bool {
    is_letter(before) & is_markup_start(byte)
}

/// Returns the end of the markup at the beginning of `copy`, which follows a letter, if another letter follows the markup.
pub(crate) fn parse_markup_in_word(copy: &[u8]) -> ParseResult<usize> {
    let mut end = 0;
    for _ in 0..MAX_PIECES {
        match parse_piece(&copy[end..]) {
            ParseResult::Complete(length) => end += length,
            ParseResult::Incomplete => return ParseResult::Incomplete,
            ParseResult::NoMatch => break,
        }
    }
    match copy.get(end) {
        None => ParseResult::Incomplete,
        Some(byte) if end > 0 && is_letter(*byte) => ParseResult::Complete(end),
        Some(_) => ParseResult::NoMatch,
    }
}

/// Returns the length of one piece of markup.
fn parse_piece(copy: &[u8]) -> ParseResult<usize> {
    let run = |mark: u8| copy.iter().take_while(|byte| **byte == mark).take(3).count();
    match copy.first() {
        Some(mark @ (b'*' | b'`')) => ParseResult::Complete(run(*mark)),
        Some(b'~') if run(b'~') >= 2 => ParseResult::Complete(2),
        Some(b'~') if copy.len() == 1 => ParseResult::Incomplete,
        Some(b'<') => parse_element(copy),
        _ => ParseResult::NoMatch,
    }
}

fn parse_element(copy: &[u8]) -> ParseResult<usize> {
    if let Some(comment) = copy.strip_prefix(COMMENT) {
        return match find_closing(comment, MAX_TAG_CHARACTERS + 2) {
            ParseResult::Complete(end) if comment[..end].ends_with(b"--") => {
                ParseResult::Complete(COMMENT.len() + end + 1)
            }
            ParseResult::Complete(_) => ParseResult::NoMatch,
            other => other,
        };
    }
    if COMMENT[1..].starts_with(&copy[1..]) {
        return ParseResult::Incomplete;
    }
    let before = if copy.get(1) == Some(&b'/') { 2 } else { 1 };
    let rest = &copy[before..];
    let name = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let known = |name: &[u8]| INLINE.contains(&name);
    match rest.get(name) {
        None if INLINE.iter().any(|known| known.starts_with(rest)) => ParseResult::Incomplete,
        Some(b'>') if known(&rest[..name]) => ParseResult::Complete(before + name + 1),
        Some(b' ' | b'/') if known(&rest[..name]) => {
            match find_closing(&rest[name + 1..], MAX_TAG_CHARACTERS) {
                ParseResult::Complete(end) => ParseResult::Complete(before + name + 1 + end + 1),
                other => other,
            }
        }
        _ => ParseResult::NoMatch,
    }
}

/// Returns the position of the first `>`, after at most `most` characters, none of which is a `<`.
fn find_closing(copy: &[u8], most: usize) -> ParseResult<usize> {
    let mut characters = 0;
    for (index, byte) in copy.iter().enumerate() {
        match byte {
            b'>' => return ParseResult::Complete(index),
            b'<' => return ParseResult::NoMatch,
            _ => characters += usize::from(byte & 0xc0 != 0x80),
        }
        if characters > most {
            return ParseResult::NoMatch;
        }
    }
    ParseResult::Incomplete
}
