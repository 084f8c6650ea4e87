//! HTML character references (`&#110;`, `&nbsp;`), which models read as the characters that they stand for.

use crate::fold_table::FoldTable;

/// Digits of the longest number that is parsed.
const MAX_DIGITS: usize = 8;

/// The result of parsing the beginning of a text that may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParseResult<T> {
    /// The item is complete.
    Complete(T),
    /// More text is needed to decide.
    Incomplete,
    /// The text begins with something else.
    NoMatch,
}

/// Parses the character reference at the beginning of `text`, which is an `&`, into its character and its length in bytes.
pub(crate) fn parse_entity(table: &FoldTable, text: &[u8]) -> ParseResult<(char, usize)> {
    match text {
        [_] | [_, b'#'] | [_, b'#', b'x' | b'X'] => ParseResult::Incomplete,
        [_, b'#', b'x' | b'X', digits @ ..] => parse_number(digits, 16, 3),
        [_, b'#', digits @ ..] => parse_number(digits, 10, 2),
        [_, name @ ..] => parse_named(table, name),
        [] => ParseResult::NoMatch,
    }
}

/// Parses a numeric reference; `before` bytes precede `digits`.
fn parse_number(digits: &[u8], radix: u32, before: usize) -> ParseResult<(char, usize)> {
    let mut code = 0_u32;
    for (index, byte) in digits.iter().enumerate() {
        match char::from(*byte).to_digit(radix) {
            // With at most eight digits the number cannot overflow.
            Some(digit) if index < MAX_DIGITS => code = code.wrapping_mul(radix).wrapping_add(digit),
            None if *byte == b';' && index > 0 => {
                return char::from_u32(code).map_or(ParseResult::NoMatch, |character| {
                    ParseResult::Complete((character, before + index + 1))
                });
            }
            _ => return ParseResult::NoMatch,
        }
    }
    ParseResult::Incomplete
}

fn parse_named(table: &FoldTable, text: &[u8]) -> ParseResult<(char, usize)> {
    let length = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let name = &text[..length];
    match text.get(length) {
        Some(b';') => table
            .entities()
            .iter()
            .find(|(known, _)| known.as_bytes() == name)
            .map_or(ParseResult::NoMatch, |(_, character)| {
                ParseResult::Complete((*character, length + 2))
            }),
        None if table
            .entities()
            .iter()
            .any(|(known, _)| known.as_bytes().starts_with(name)) =>
        {
            ParseResult::Incomplete
        }
        _ => ParseResult::NoMatch,
    }
}
