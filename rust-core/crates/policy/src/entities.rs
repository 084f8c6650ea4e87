//! Character references of HTML (`&#110;`, `&nbsp;`), which models read as the characters that they stand for.

use crate::fold_table::FoldTable;

/// Digits of the longest number that is read.
const MOST_DIGITS: usize = 8;

/// What stands at the beginning of a text that may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading<T> {
    /// It is there.
    Whole(T),
    /// What follows decides.
    Unfinished,
    /// It is something else.
    Other,
}

/// The character reference at the beginning of `text`, which is an `&`: its character and its length in bytes.
pub(crate) fn entity(table: &FoldTable, text: &[u8]) -> Reading<(char, usize)> {
    match text {
        [_] | [_, b'#'] | [_, b'#', b'x' | b'X'] => Reading::Unfinished,
        [_, b'#', b'x' | b'X', digits @ ..] => number(digits, 16, 3),
        [_, b'#', digits @ ..] => number(digits, 10, 2),
        [_, name @ ..] => named(table, name),
        [] => Reading::Other,
    }
}

/// `digits` are behind `before` bytes.
fn number(digits: &[u8], radix: u32, before: usize) -> Reading<(char, usize)> {
    let mut code = 0_u32;
    for (index, byte) in digits.iter().enumerate() {
        match char::from(*byte).to_digit(radix) {
            // At most eight digits: no number is too large.
            Some(digit) if index < MOST_DIGITS => code = code.wrapping_mul(radix).wrapping_add(digit),
            None if *byte == b';' && index > 0 => {
                return char::from_u32(code).map_or(Reading::Other, |character| {
                    Reading::Whole((character, before + index + 1))
                });
            }
            _ => return Reading::Other,
        }
    }
    Reading::Unfinished
}

fn named(table: &FoldTable, text: &[u8]) -> Reading<(char, usize)> {
    let length = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let name = &text[..length];
    match text.get(length) {
        Some(b';') => table
            .entities()
            .iter()
            .find(|(known, _)| known.as_bytes() == name)
            .map_or(Reading::Other, |(_, character)| {
                Reading::Whole((*character, length + 2))
            }),
        None if table
            .entities()
            .iter()
            .any(|(known, _)| known.as_bytes().starts_with(name)) =>
        {
            Reading::Unfinished
        }
        _ => Reading::Other,
    }
}
