//! Unescapes strings.

use crate::block::{BLOCK_SIZE, backslash_bits};
use crate::escape::read_escape;

/// Number of bytes that are collected before they are appended: they stay in the processor's first-level cache.
const BUFFER_BYTES: usize = 2048;
/// Number of bytes that one copy operation copies.
const COPY_BYTES: usize = 32;
/// Size of the input of one step: a block, and the bytes that are copied beyond its end.
const WINDOW: usize = BLOCK_SIZE + COPY_BYTES;
/// Size of the buffer: the collected bytes, and the excess bytes of the last steps.
const PADDED_BUFFER_BYTES: usize = BUFFER_BYTES + WINDOW + COPY_BYTES;

/// Appends the value of `raw`, the characters between the quotes of a string that was accepted. In other text, an
/// invalid escape ends the value.
///
/// Runs between escapes are short in code and JSON. A copy has a fixed size beyond the run, and the next copy
/// overwrites the excess: that avoids a call and a branch.
pub(crate) fn unescape_into(raw: &str, out: &mut String) {
    let bytes = raw.as_bytes();
    out.reserve(bytes.len());
    let mut value = PendingValue {
        room: [0; PADDED_BUFFER_BYTES],
        length: 0,
    };
    let mut at = 0;
    while let Some(window) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match value.step(window, BLOCK_SIZE, &bytes[at..]) {
            Some(read) => at += read,
            None => return value.append(out),
        }
        if value.length >= BUFFER_BYTES {
            value.append(out);
        }
    }
    // At most two steps, since less than a full window remains.
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let mut window = [0; WINDOW];
        window[..rest.len()].copy_from_slice(rest);
        match value.step(&window, rest.len().min(BLOCK_SIZE), rest) {
            Some(read) => at += read,
            None => break,
        }
    }
    value.append(out);
}

/// The part of a value that has not been appended yet.
struct PendingValue {
    room: [u8; PADDED_BUFFER_BYTES],
    length: usize,
}

impl PendingValue {
    /// Reads the first `length` bytes of a window, and the rest of an escape that they end in; `rest` is the text
    /// from there on. Returns the number of bytes read, or `None` at an invalid escape.
    #[inline]
    fn step(&mut self, window: &[u8; WINDOW], length: usize, rest: &[u8]) -> Option<usize> {
        let (block, _) = window.split_first_chunk::<BLOCK_SIZE>()?;
        let mut escapes = backslash_bits(block);
        let (mut done, mut to) = (0, self.length);
        while escapes != 0 {
            let place = escapes.trailing_zeros() as usize % BLOCK_SIZE;
            to = copy_range(window, done, place, &mut self.room, to);
            done = match SIMPLE_ESCAPES[usize::from(window[place + 1])] {
                0 => {
                    self.length = to;
                    let length = self.decode(&rest[place..])?;
                    to = self.length;
                    place + length
                }
                byte => {
                    self.room[to] = byte;
                    to += 1;
                    place + 2
                }
            };
            if done >= BLOCK_SIZE {
                self.length = to;
                return Some(done);
            }
            // The second of two backslashes does not begin an escape.
            escapes &= u64::MAX << done;
        }
        self.length = copy_range(window, done, length, &mut self.room, to);
        Some(length)
    }

    /// Decodes the escape at the beginning of `rest`, and returns its length.
    #[cold]
    fn decode(&mut self, rest: &[u8]) -> Option<usize> {
        let (decoded, length) = read_escape(rest).ok()?;
        let written = decoded.encode_utf8(&mut self.room[self.length..]).len();
        self.length += written;
        Some(length)
    }

    /// Appends the collected bytes, except for the start of an incomplete character.
    fn append(&mut self, out: &mut String) {
        let bytes = &self.room[..self.length];
        let whole = match std::str::from_utf8(bytes) {
            Ok(text) => {
                out.push_str(text);
                bytes.len()
            }
            Err(error) => {
                let whole = error.valid_up_to();
                out.push_str(std::str::from_utf8(&bytes[..whole]).unwrap_or_default());
                whole
            }
        };
        self.room.copy_within(whole..self.length, 0);
        self.length -= whole;
    }
}

/// Copies the bytes of a window's block from `start` to `end` to the offset `to`, plus some excess bytes; returns
/// where the copied range ends without the excess.
#[inline]
fn copy_range(
    window: &[u8; WINDOW],
    start: usize,
    end: usize,
    room: &mut [u8; PADDED_BUFFER_BYTES],
    to: usize,
) -> usize {
    copy_chunk(window, start, room, to);
    let length = end.saturating_sub(start);
    if length > COPY_BYTES {
        copy_chunk(window, start + COPY_BYTES, room, to + COPY_BYTES);
    }
    to + length
}

#[inline]
fn copy_chunk(window: &[u8; WINDOW], start: usize, room: &mut [u8; PADDED_BUFFER_BYTES], to: usize) {
    let from = window[start % BLOCK_SIZE..].first_chunk::<COPY_BYTES>();
    if let (Some(from), Some(to)) = (from, room[to..].first_chunk_mut()) {
        *to = *from;
    }
}

/// The character of an escape of a backslash and this byte, if it is a single-byte character;
/// otherwise 0.
const SIMPLE_ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let pairs = [
        (b'"', b'"'),
        (b'\\', b'\\'),
        (b'/', b'/'),
        (b'b', 8),
        (b'f', 12),
        (b'n', b'\n'),
        (b'r', b'\r'),
        (b't', b'\t'),
    ];
    let mut index = 0;
    while index < pairs.len() {
        table[pairs[index].0 as usize] = pairs[index].1;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK_SIZE, BUFFER_BYTES, unescape_into};
    use crate::{StrSegment, StrSegments, escape_into};

    fn unescaped(raw: &str) -> String {
        let mut out = "before ".to_owned();
        unescape_into(raw, &mut out);
        assert!(out.starts_with("before "));
        out.split_off("before ".len())
    }

    /// Returns the value segment by segment.
    fn plainly(raw: &str) -> String {
        let mut out = String::new();
        for piece in StrSegments::new(raw) {
            match piece {
                StrSegment::Plain(plain) => out.push_str(plain),
                StrSegment::Escape { decoded, .. } => out.push(decoded),
            }
        }
        out
    }

    #[test]
    fn every_escape_is_decoded_wherever_it_stands_in_a_block() {
        let escapes = [
            r#"\""#,
            r"\\",
            r"\/",
            r"\b",
            r"\f",
            r"\n",
            r"\r",
            r"\t",
            r"\u0000",
            r"\u00e9",
            r"\u20AC",
            r"\ud83d\ude00",
            r"\\n",
            r"\\\\",
            r"\\\n",
        ];
        for escape in escapes {
            for filling in ["x", "é", "語", "😀"] {
                for before in 0..BLOCK_SIZE + 34 {
                    for after in [0, 1, 30, BLOCK_SIZE] {
                        let raw = format!("{}{escape}{}", filling.repeat(before), filling.repeat(after));
                        assert_eq!(unescaped(&raw), plainly(&raw), "{raw}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_character_that_lies_across_two_appended_parts_is_whole() {
        for shift in 0..8 {
            let raw = format!(r"{}\n{}\t", "x".repeat(shift), "語😀é".repeat(BUFFER_BYTES));
            assert_eq!(unescaped(&raw), plainly(&raw));
        }
    }

    #[test]
    fn an_escape_that_is_none_ends_the_value() {
        for raw in [
            r"ab\",
            r"ab\q cd",
            r"ab\u12",
            r"ab\ud83d",
            r"ab\ud83dxx",
            &format!(r"ab\{}", "x".repeat(200)),
        ] {
            assert_eq!(unescaped(raw), "ab", "{raw}");
        }
    }

    proptest! {
        #[test]
        fn what_was_escaped_comes_back(text in "(\\PC|[\"\\\\/\n\t\u{1}]|[a-z ]{0,40}){0,200}") {
            let mut raw = Vec::new();
            escape_into(&text, &mut raw);
            prop_assert_eq!(unescaped(std::str::from_utf8(&raw).unwrap()), text);
        }

        #[test]
        fn any_text_is_read_as_it_is_piece_by_piece(raw in r#"(\\[bfnrtuxq"\\/]?|\\u[0-9a-fA-FD]{0,4}|[a-zé語😀 ]{0,70}){0,60}"#) {
            prop_assert_eq!(unescaped(&raw), plainly(&raw));
        }
    }
}
