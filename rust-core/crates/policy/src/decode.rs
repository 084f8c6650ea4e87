//! Encoded parts of a text: base64, hex, percent-encoding and escapes, found in *tokens* (SEMANTICS.md).

use crate::digits::word_bitmask;

/// Maximum bytes of a token; a longer one is split into pieces of this size.
pub(crate) const MAX_TOKEN_BYTES: usize = 4096;
pub(crate) const MIN_BASE64: usize = 24;
const MIN_HEX: usize = 32;
const MIN_ESCAPES: usize = 3;

const BASE64: u8 = 1;
const HEX: u8 = 2;
const TOKEN: u8 = 4;
/// The class of the bytes with which escapes begin.
const ESCAPE: u8 = 8;

/// The alphabets to which each byte belongs.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        classes[byte] = match b {
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => BASE64 | HEX | TOKEN,
            b'g'..=b'z' | b'G'..=b'Z' | b'+' | b'/' | b'_' | b'-' => BASE64 | TOKEN,
            b'.' | b'~' => TOKEN,
            b'%' | b'\\' => ESCAPE | TOKEN,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

#[inline]
fn is_in_class(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Returns the start of the token that ends at the end of `text`, or the end if the last byte belongs to no token.
pub(crate) fn trailing_token_start(text: &[u8]) -> usize {
    text.iter()
        .rposition(|byte| !is_in_class(*byte, TOKEN))
        .map_or(0, |last| last + 1)
}

/// The result of a search for tokens.
pub(crate) enum TokenSearchResult {
    /// A token, with its start and end.
    Token(usize, usize),
    /// No token up to this position, where the search can continue.
    NoToken(usize),
}

/// Bytes without a token after which [`TokenSearchResult::NoToken`] is reported: about ten
/// microseconds of searching.
const SEARCH_STEP: usize = 64 * 1024;

/// Calls `visit` with the span of every token of `text` at or after `from` that can contain an
/// encoded text, in order. Stops at the first error.
pub(crate) fn for_each_token<E>(
    text: &[u8],
    from: usize,
    mut visit: impl FnMut(TokenSearchResult) -> Result<(), E>,
) -> Result<(), E> {
    let mut done = from;
    loop {
        let limit = text.len().min(done + SEARCH_STEP);
        let Some((begin, end)) = suspicious_block(&text[..limit], done) else {
            if limit == text.len() {
                return Ok(());
            }
            // A token that crosses the limit is searched whole in the next step; it cannot be as
            // long as the range.
            let cut = done + trailing_token_start(&text[done..limit]);
            done = if cut > done { cut } else { limit };
            visit(TokenSearchResult::NoToken(done))?;
            continue;
        };
        let mut at = begin;
        while at > done && is_in_class(text[at - 1], TOKEN) {
            at -= 1;
        }
        while at < end {
            if !is_in_class(text[at], TOKEN) {
                at += 1;
                continue;
            }
            let limit = text.len().min(at + MAX_TOKEN_BYTES);
            let (length, encodes) = token_length(&text[at..limit]);
            if encodes {
                visit(TokenSearchResult::Token(at, at + length))?;
            }
            at += length;
        }
        done = at;
        visit(TokenSearchResult::NoToken(done))?;
    }
}

/// Returns the length of the token at the beginning of `text`, and whether it can contain an
/// encoded text.
fn token_length(text: &[u8]) -> (usize, bool) {
    let (mut longest, mut run, mut escapes) = (0, 0, 0);
    for (at, byte) in text.iter().enumerate() {
        let class = CLASSES[usize::from(*byte)];
        if class == 0 {
            return (at, longest.max(run) >= MIN_BASE64 || escapes >= MIN_ESCAPES);
        }
        escapes += usize::from(class & ESCAPE != 0);
        if class & BASE64 != 0 {
            run += 1;
        } else {
            longest = longest.max(run);
            run = 0;
        }
    }
    (
        text.len(),
        longest.max(run) >= MIN_BASE64 || escapes >= MIN_ESCAPES,
    )
}

/// Returns the first range of `text` at or after `from` that can belong to an encoding: eight bytes with a `%` or `\`, or
/// sixteen bytes of the alphabet within a run of at least the minimum length of an encoding.
fn suspicious_block(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut from = from;
    while let Some(chunk) = text.get(from..).and_then(|rest| rest.first_chunk()) {
        if !is_unsuspicious(chunk)
            && let Some(block) = suspicious_block_in_chunk(text, from, chunk)
        {
            return Some(block);
        }
        from += CHUNK_SIZE;
    }
    let rest = text.get(from..)?;
    let mut chunk = [0; CHUNK_SIZE + 8];
    chunk[..rest.len()].copy_from_slice(rest);
    suspicious_block_in_chunk(text, from, &chunk).or_else(|| {
        let mut last = [0; CHUNK_SIZE + 8];
        let behind = rest.get(CHUNK_SIZE..)?;
        last[..behind.len()].copy_from_slice(behind);
        suspicious_block_in_chunk(text, from + CHUNK_SIZE, &last)
    })
}

/// Like [`suspicious_block`], for blocks that begin in the first [`CHUNK_SIZE`] bytes of `chunk`,
/// which is located at `from` and may be padded with zeros after the end of `text`.
fn suspicious_block_in_chunk(
    text: &[u8],
    from: usize,
    chunk: &[u8; CHUNK_SIZE + 8],
) -> Option<(usize, usize)> {
    let (first, rest) = chunk.split_first_chunk::<CHUNK_SIZE>()?;
    let escapes = word_bitmask(first, |byte| (byte == b'%') | (byte == b'\\'));
    let behind = (0..).zip(rest).fold(0, |behind, (place, byte)| {
        behind | u128::from(is_base64_digit(*byte)) << (CHUNK_SIZE + place)
    });
    let run = u128::from(word_bitmask(first, is_base64_digit)) | behind;
    // For each position, whether two, four, eight, and then sixteen digits begin there.
    let run = run & run >> 1;
    let run = run & run >> 2;
    let run = run & run >> 4;
    let mut runs = (run & run >> 8) as u64 & BLOCK_BITS;
    let first_escape = escapes.trailing_zeros() as usize & !7;
    while runs != 0 {
        let begin = runs.trailing_zeros() as usize;
        if begin > first_escape {
            break;
        }
        if is_in_run(text, from + begin) {
            return Some((from + begin, from + begin + 16));
        }
        runs &= runs - 1;
    }
    (escapes != 0).then(|| (from + first_escape, text.len().min(from + first_escape + 8)))
}

/// A bit for every eighth position.
const BLOCK_BITS: u64 = 0x0101_0101_0101_0101;

/// Whether the sixteen digits at `at` are within a run of at least the minimum length of an encoding.
fn is_in_run(text: &[u8], at: usize) -> bool {
    let most = MIN_BASE64 - 16;
    let before = text[..at]
        .iter()
        .rev()
        .take(most)
        .take_while(|byte| is_in_class(**byte, BASE64));
    let behind = text[at + 16..]
        .iter()
        .take(most)
        .take_while(|byte| is_in_class(**byte, BASE64));
    before.count() + behind.count() >= most
}

/// Whether `byte` belongs to one of the base64 alphabets. Written to be vectorised.
#[inline]
fn is_base64_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/') | (byte == b'_') | (byte == b'-')
}

/// Bytes that [`suspicious_block`] examines together.
const CHUNK_SIZE: usize = 64;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of each byte of `word` that is not graphic ASCII.
fn non_graphic_bits(word: u64) -> u64 {
    (word.wrapping_sub(0x2121_2121_2121_2121) | word) & HIGH_BITS
}

/// Whether no suspicious block begins in the first [`CHUNK_SIZE`] bytes. Branch-free, so that the loops are vectorised.
fn is_unsuspicious(chunk: &[u8; CHUNK_SIZE + 8]) -> bool {
    let escapes = chunk[..CHUNK_SIZE].iter().fold(0, |found, byte| {
        found | u8::from(*byte == b'%') | u8::from(*byte == b'\\')
    });
    let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| chunk[index * 8 + byte]));
    let runs = (0..CHUNK_SIZE / 8).fold(0, |found, index| {
        // Two words without a break give zero, and only then the subtraction borrows into the highest bit.
        found | ((non_graphic_bits(word(index)) | non_graphic_bits(word(index + 1))) >> 7).wrapping_sub(1)
    });
    escapes == 0 && runs & (1 << 63) == 0
}

/// The part of a token that was decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodedSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Number of bytes at its beginning that appear unchanged in the decoded text.
    pub(crate) plain_prefix: usize,
}

/// Calls `keep` with each decoding of `token` and the part of the token that was decoded. `buffer` holds the decoded bytes
/// and is reused.
pub(crate) fn decode_token<E>(
    token: &[u8],
    buffer: &mut Vec<u8>,
    mut keep: impl FnMut(&str, DecodedSpan) -> Result<(), E>,
) -> Result<(), E> {
    let mut offer = |buffer: &[u8], start, end, plain| match std::str::from_utf8(buffer) {
        Ok(text) if is_mostly_printable(text) => keep(
            text,
            DecodedSpan {
                start,
                end,
                plain_prefix: plain,
            },
        ),
        _ => Ok(()),
    };
    let mut at = 0;
    while at < token.len() {
        let length = run_length(&token[at..]);
        if decode_run(&token[at..at + length], buffer) {
            offer(buffer, at, at + length, 0)?;
        }
        at += length.max(1);
    }
    if memchr::memchr(b'%', token).is_some()
        && let Some(plain) = decode_percent(token, buffer)
    {
        offer(buffer, 0, token.len(), plain)?;
    }
    if memchr::memchr(b'\\', token).is_some()
        && let Some(plain) = decode_escapes(token, buffer)
    {
        offer(buffer, 0, token.len(), plain)?;
    }
    Ok(())
}

fn is_mostly_printable(text: &str) -> bool {
    let (mut all, mut bad) = (0_usize, 0_usize);
    for character in text.chars() {
        all += 1;
        let fine = match character {
            '\t' | '\n' | '\r' => true,
            '\u{fffd}' => false,
            other => !other.is_control(),
        };
        bad += usize::from(!fine);
    }
    all > 0 && bad * 10 <= all
}

fn decode_run(run: &[u8], decoded: &mut Vec<u8>) -> bool {
    if run.len() < MIN_BASE64 {
        return false;
    }
    decoded.clear();
    let digits = hex_digits(run);
    if digits.len() >= MIN_HEX && digits.iter().all(|byte| is_hex(*byte)) {
        decode_hex(digits, decoded);
        return true;
    }
    // Most words of this length are names and paths, whose first bytes do not decode to text.
    decode_base64(&run[..MIN_BASE64], decoded);
    if std::str::from_utf8(decoded).is_err_and(|error| error.error_len().is_some()) {
        return false;
    }
    decoded.clear();
    decode_base64(run, decoded);
    true
}

/// Returns the length of the run at the beginning of `text`.
pub(crate) fn run_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_in_class(**byte, BASE64)).count()
}

/// Returns a run without its prefix `0x`: the part that can consist of hex digits.
pub(crate) fn hex_digits(run: &[u8]) -> &[u8] {
    let digits = run.strip_prefix(b"0x").or_else(|| run.strip_prefix(b"0X"));
    digits.unwrap_or(run)
}

pub(crate) fn is_hex(byte: u8) -> bool {
    is_in_class(byte, HEX)
}

/// Appends the bytes that the hex digits encode; the last digit of an odd number is ignored.
pub(crate) fn decode_hex(digits: &[u8], decoded: &mut Vec<u8>) {
    let pairs = digits.as_chunks::<2>().0.iter();
    decoded.extend(pairs.map(|[high, low]| (hex_value(*high) << 4) | hex_value(*low)));
}

/// Appends the bytes that `run` encodes in either base64 alphabet, without padding.
pub(crate) fn decode_base64(run: &[u8], decoded: &mut Vec<u8>) {
    let (groups, rest) = run.as_chunks::<4>();
    for group in groups {
        let bits = group.iter().fold(0_u32, |bits, byte| (bits << 6) | sextet(*byte));
        decoded.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    let bits = rest.iter().fold(0_u32, |bits, byte| (bits << 6) | sextet(*byte));
    match rest.len() {
        2 => decoded.push((bits >> 4) as u8),
        3 => decoded.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        _ => {}
    }
}

/// Returns the value of a digit of either base64 alphabet.
pub(crate) fn sextet(byte: u8) -> u32 {
    u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    })
}

/// Returns the value of a hex digit; the result is meaningless for other bytes.
pub(crate) fn hex_value(byte: u8) -> u8 {
    (byte & 15) + 9 * (byte >> 6)
}

/// Replaces the content of `decoded`. Returns the position of the first escape, if there are enough of them.
fn decode_percent(token: &[u8], decoded: &mut Vec<u8>) -> Option<usize> {
    decoded.clear();
    let (mut escapes, mut first) = (0, None);
    let mut at = 0;
    while at < token.len() {
        match token[at..] {
            [b'%', high, low, ..] if is_in_class(high, HEX) && is_in_class(low, HEX) => {
                decoded.push((hex_value(high) << 4) | hex_value(low));
                escapes += 1;
                first.get_or_insert(at);
                at += 3;
            }
            [byte, ..] => {
                decoded.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
            [] => break,
        }
    }
    first.filter(|_| escapes >= MIN_ESCAPES)
}

/// Returns the code of the escape at the beginning of `text`, and its length.
fn parse_escape(text: &[u8]) -> Option<(u32, usize)> {
    let backslashes = text.iter().take_while(|byte| **byte == b'\\').count();
    if backslashes == 0 {
        return None;
    }
    let (digits, prefix) = match text[backslashes..] {
        [b'u', a, b, c, d, ..] => ([a, b, c, d], 5),
        [b'x', a, b, ..] => ([b'0', b'0', a, b], 3),
        _ => return None,
    };
    let number = digits
        .iter()
        .fold(0, |number, digit| (number << 4) | u32::from(hex_value(*digit)));
    digits
        .iter()
        .all(|digit| is_in_class(*digit, HEX))
        .then_some((number, backslashes + prefix))
}

/// Like [`decode_percent`], for escapes.
fn decode_escapes(token: &[u8], decoded: &mut Vec<u8>) -> Option<usize> {
    decoded.clear();
    let (mut escapes, mut first) = (0, None);
    let mut at = 0;
    while at < token.len() {
        let Some((mut number, mut length)) = parse_escape(&token[at..]) else {
            // None of these bytes begins an escape, including the backslashes.
            let plain = token[at..]
                .iter()
                .take_while(|byte| **byte == b'\\')
                .count()
                .max(1);
            decoded.extend_from_slice(&token[at..at + plain]);
            at += plain;
            continue;
        };
        escapes += 1;
        first.get_or_insert(at);
        if (0xd800..0xdc00).contains(&number)
            && let Some((low @ 0xdc00..0xe000, more)) = parse_escape(&token[at + length..])
        {
            number = 0x1_0000 + ((number - 0xd800) << 10) + (low - 0xdc00);
            length += more;
            escapes += 1;
        }
        let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        at += length;
    }
    first.filter(|_| escapes >= MIN_ESCAPES)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// The tokens of `text` after `from`.
    fn visited(text: &str, from: usize) -> Vec<(usize, usize)> {
        let mut spans = Vec::new();
        let Ok(()) = for_each_token(text.as_bytes(), from, |found| {
            let TokenSearchResult::Token(start, end) = found else {
                return Ok(());
            };
            spans.push((start, end));
            Ok::<(), Infallible>(())
        });
        spans
    }

    #[test]
    fn a_token_is_visited_wherever_it_stands() {
        for token in [
            &"A".repeat(MIN_BASE64)[..],
            "%41%42%43",
            r"\x41\x42\x43",
            &"9z".repeat(80),
        ] {
            for at in 0..3 * CHUNK_SIZE {
                for behind in [0, 1, 7, 8, 9, CHUNK_SIZE, 2 * CHUNK_SIZE] {
                    let text = format!("{}{token}{}", " ".repeat(at), " ".repeat(behind));
                    assert_eq!(visited(&text, 0), [(at, at + token.len())], "{token} at {at}");
                    assert_eq!(visited(&text, at), [(at, at + token.len())], "{token} from {at}");
                }
            }
        }
    }

    #[test]
    fn words_and_punctuation_are_not_visited() {
        let prose =
            "Fifteen letters, each a word; nothing encoded (or so), in \u{fc}ber-long lines. ".repeat(40);
        for from in 0..2 * CHUNK_SIZE {
            assert_eq!(visited(&prose[..prose.len() - from % 7], from), []);
        }
    }
}
