//! The check `random`, which distinguishes random characters from words.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Minimum sum of the weights of all pairs of neighbouring characters. A weight is four times the
/// logarithm of a ratio: the pair's frequency in random letters and digits to its frequency in
/// identifiers of code.
const MIN_WEIGHT: i32 = 16;
const RARE_PAIR_WEIGHT: i32 = 9;
const COMMON_PAIR_WEIGHT: i32 = -4;
const LETTER_AND_DIGIT_WEIGHT: i32 = 7;
const SYMBOL_WEIGHT: i32 = 4;
const MIN_DISTINCT: usize = 6;
/// Hex digits of a 128-bit key or a UUID. Only six of the sixteen hex digits are letters, so their
/// pairs give little evidence.
const LONG_HEX: usize = 32;

/// For each letter, the letters that often follow it, as bits.
static COMMON_FOLLOWERS: LazyLock<[u32; 26]> = LazyLock::new(|| {
    let followers: BTreeMap<String, String> =
        toml::from_str(include_str!("letter_pairs.toml")).unwrap_or_default();
    let mut table = [0; 26];
    for (first, row) in ('a'..='z').zip(&mut table) {
        let letters = followers
            .get(first.encode_utf8(&mut [0; 4]))
            .map_or("", |letters| letters);
        *row = letters.bytes().fold(0, |row, letter| row | letter_bit(letter));
    }
    table
});

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Letter,
    Digit,
    /// A character that also occurs between words.
    Joiner,
    Symbol,
}

/// Whether `text` looks like random characters rather than words, ignoring case. A value that is cut short (`...`) is not a
/// secret.
pub(crate) fn is_random(text: &[u8]) -> bool {
    let mut seen = [false; 256];
    text.iter()
        .for_each(|byte| seen[usize::from(byte.to_ascii_lowercase())] = true);
    let different = seen.iter().filter(|seen| **seen).count();
    let is_whole = memchr::memmem::find(text, b"...").is_none();
    is_whole && different >= MIN_DISTINCT && (is_long_hex(text) || weight(text) >= MIN_WEIGHT)
}

/// Whether it consists only of hex digits, including letters, and `-`.
fn is_long_hex(text: &[u8]) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    digits >= LONG_HEX
        && text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
        && text.iter().any(u8::is_ascii_alphabetic)
        && text.iter().any(u8::is_ascii_digit)
}

fn weight(text: &[u8]) -> i32 {
    let (mut sum, mut before, mut rest) = (0, None, text);
    while let Some((&byte, behind)) = rest.split_first() {
        sum += before.map_or(0, |before| pair_weight(before, byte));
        // A percent escape counts as one symbol.
        rest = match behind {
            [high, low, others @ ..]
                if byte == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                others
            }
            _ => behind,
        };
        before = Some(byte);
    }
    sum
}

fn pair_weight(first: u8, second: u8) -> i32 {
    match (kind(first), kind(second)) {
        (CharKind::Letter, CharKind::Letter) if is_common(first, second) => COMMON_PAIR_WEIGHT,
        (CharKind::Letter, CharKind::Letter) => RARE_PAIR_WEIGHT,
        (CharKind::Letter, CharKind::Digit) | (CharKind::Digit, CharKind::Letter) => LETTER_AND_DIGIT_WEIGHT,
        (CharKind::Symbol, other) | (other, CharKind::Symbol) if other != CharKind::Symbol => SYMBOL_WEIGHT,
        _ => 0,
    }
}

fn kind(byte: u8) -> CharKind {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' => CharKind::Letter,
        b'0'..=b'9' => CharKind::Digit,
        b'_' | b'-' | b'.' | b'/' | b':' | b',' | b' ' => CharKind::Joiner,
        _ => CharKind::Symbol,
    }
}

/// Whether two letters often occur in this order in words.
fn is_common(first: u8, second: u8) -> bool {
    COMMON_FOLLOWERS[usize::from(first.to_ascii_lowercase() - b'a')] & letter_bit(second) != 0
}

fn letter_bit(letter: u8) -> u32 {
    1_u32.wrapping_shl(u32::from(letter.to_ascii_lowercase().wrapping_sub(b'a')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_characters_of_every_shape_are_told_from_words() {
        for random in [
            "q7Zt3LmP9xKv",
            "kQzRtWmLpXcVbNhJ",
            "GPzEyoL8_Es_#aJd@wy#",
            "7ylvuhfJXqIEnom42ef2mSJ",
            "c2VjcmV0LXRva2VuLXZhbHVlLTE3",
            "0123456789abcdef0123456789abcdef",
            "8e03978e-40d5-43e8-bc93-6894a57f9324",
        ] {
            assert!(is_random(random.as_bytes()), "{random}");
        }
        for words in [
            "",
            "a",
            "getAuthenticationToken",
            "correct-horse-battery-staple",
            "application/x-www-form-urlencoded",
            "utf8mb4_unicode_520_ci",
            "changeme123",
            "%F0%9F%8D%A9",
            "P%40ssw%25rd",
            "20261127",
            "d107beecc17325f55da976bcbab207ba4df68bd3f8fce7c3...",
            "xxxxxxxxxxxxxxxxxxxxxxxx",
            "00000000-0000-0000-0000-000000000000",
        ] {
            assert!(!is_random(words.as_bytes()), "{words}");
        }
    }

    #[test]
    fn every_letter_has_followers() {
        assert!(COMMON_FOLLOWERS.iter().all(|followers| *followers != 0));
    }
}
