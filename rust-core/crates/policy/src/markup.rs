//! Markup inside a word: emphasis, code marks, inline elements and comments of HTML. A reader sees the word without it,
//! and so does a model (SEMANTICS.md, "Views of a text").

use crate::entities::Reading;

/// How many pieces of markup may stand at one place of a word.
const MOST_PIECES: usize = 4;
/// Characters between the name of an element, or the beginning of a comment, and its end.
const MOST_INSIDE: usize = 62;
/// Elements that do not end a word.
const INLINE: &[&[u8]] = &[
    b"a", b"abbr", b"b", b"big", b"code", b"del", b"em", b"font", b"i", b"ins", b"mark", b"s", b"small",
    b"span", b"strike", b"strong", b"sub", b"sup", b"tt", b"u", b"wbr",
];
const COMMENT: &[u8] = b"<!--";

/// Whether `byte` of the folded copy belongs to a letter: of ASCII, or of any other script.
#[inline]
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_lowercase() | !byte.is_ascii()
}

/// Whether markup can begin with `byte`.
#[inline]
pub(crate) fn is_mark(byte: u8) -> bool {
    (byte == b'*') | (byte == b'<') | (byte == b'`') | (byte == b'~')
}

/// Whether markup inside a word can begin with `byte`, behind `before`.
#[inline]
pub(crate) fn can_stand(before: u8, byte: u8) -> bool {
    is_letter(before) & is_mark(byte)
}

/// Where the markup ends that stands at the beginning of `copy`, behind a letter, if a letter follows it.
pub(crate) fn inside_word(copy: &[u8]) -> Reading<usize> {
    let mut end = 0;
    for _ in 0..MOST_PIECES {
        match piece(&copy[end..]) {
            Reading::Whole(length) => end += length,
            Reading::Unfinished => return Reading::Unfinished,
            Reading::Other => break,
        }
    }
    match copy.get(end) {
        None => Reading::Unfinished,
        Some(byte) if end > 0 && is_letter(*byte) => Reading::Whole(end),
        Some(_) => Reading::Other,
    }
}

/// The length of one piece of markup.
fn piece(copy: &[u8]) -> Reading<usize> {
    let run = |mark: u8| copy.iter().take_while(|byte| **byte == mark).take(3).count();
    match copy.first() {
        Some(mark @ (b'*' | b'`')) => Reading::Whole(run(*mark)),
        Some(b'~') if run(b'~') >= 2 => Reading::Whole(2),
        Some(b'~') if copy.len() == 1 => Reading::Unfinished,
        Some(b'<') => element(copy),
        _ => Reading::Other,
    }
}

fn element(copy: &[u8]) -> Reading<usize> {
    if let Some(comment) = copy.strip_prefix(COMMENT) {
        return match closing(comment, MOST_INSIDE + 2) {
            Reading::Whole(end) if comment[..end].ends_with(b"--") => Reading::Whole(COMMENT.len() + end + 1),
            Reading::Whole(_) => Reading::Other,
            other => other,
        };
    }
    if COMMENT[1..].starts_with(&copy[1..]) {
        return Reading::Unfinished;
    }
    let before = if copy.get(1) == Some(&b'/') { 2 } else { 1 };
    let rest = &copy[before..];
    let name = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let known = |name: &[u8]| INLINE.contains(&name);
    match rest.get(name) {
        None if INLINE.iter().any(|known| known.starts_with(rest)) => Reading::Unfinished,
        Some(b'>') if known(&rest[..name]) => Reading::Whole(before + name + 1),
        Some(b' ' | b'/') if known(&rest[..name]) => match closing(&rest[name + 1..], MOST_INSIDE) {
            Reading::Whole(end) => Reading::Whole(before + name + 1 + end + 1),
            other => other,
        },
        _ => Reading::Other,
    }
}

/// Where the first `>` stands, behind at most `most` characters none of which is a `<`.
fn closing(copy: &[u8], most: usize) -> Reading<usize> {
    let mut characters = 0;
    for (index, byte) in copy.iter().enumerate() {
        match byte {
            b'>' => return Reading::Whole(index),
            b'<' => return Reading::Other,
            _ => characters += usize::from(byte & 0xc0 != 0x80),
        }
        if characters > most {
            return Reading::Other;
        }
    }
    Reading::Unfinished
}
