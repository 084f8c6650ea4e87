use std::ops::Range;

use crate::block::{BLOCK_SIZE, special_bits};
use crate::error::JsonError;
use crate::escape::read_escape;
use crate::run::{plain_run_end, short_run_end};
use crate::unescape::unescape_into;

/// A string of a document in its escaped form. Its escapes are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Str<'d> {
    raw: &'d str,
    /// The offset of the string in the document, below 2 GiB; the highest bit is set if it contains
    /// escapes. A separate flag byte would be written separately but read together with its
    /// neighbours, which stalls the processor.
    packed_start: usize,
}

const ESCAPED: usize = 1 << (usize::BITS - 1);

impl<'d> Str<'d> {
    /// Reads the string whose first character is at `start`, directly after the opening quote.
    #[inline]
    pub(crate) fn scan(text: &'d str, start: usize) -> Result<Self, JsonError> {
        let bytes = text.as_bytes();
        let (at, escaped) = string_end(bytes, start)?;
        Ok(Str::new(&text[start..at], start, escaped))
    }

    /// Creates a string from a range that a [`Reader`](crate::Reader) returned earlier.
    pub(crate) fn from_range(text: &'d str, range: Range<usize>, escaped: bool) -> Self {
        let start = range.start;
        Str::new(text.get(range).unwrap_or_default(), start, escaped)
    }

    #[inline]
    fn new(raw: &'d str, start: usize, escaped: bool) -> Self {
        let place = if escaped { start | ESCAPED } else { start };
        Str {
            raw,
            packed_start: place,
        }
    }

    /// Returns the characters between the quotes, with escapes as written.
    pub fn raw(&self) -> &'d str {
        self.raw
    }

    /// Returns the range of the characters between the quotes in the document, in bytes.
    pub fn range(&self) -> Range<usize> {
        let start = self.packed_start & !ESCAPED;
        start..start + self.raw.len()
    }

    /// Whether the string contains an escape. If not, [`raw`](Str::raw) is its value.
    pub fn is_escaped(&self) -> bool {
        self.packed_start & ESCAPED != 0
    }

    /// Returns the value of the string in segments.
    pub fn segments(&self) -> StrSegments<'d> {
        StrSegments::new(self.raw)
    }

    /// Appends the value of the string.
    pub fn unescape_into(&self, out: &mut String) {
        match self.is_escaped() {
            true => unescape_into(self.raw, out),
            false => out.push_str(self.raw),
        }
    }

    /// Returns the value of the string: borrowed from the document if possible, otherwise written to `buffer`, which
    /// is cleared first.
    pub fn decode<'s>(&self, buffer: &'s mut String) -> &'s str
    where
        'd: 's,
    {
        if !self.is_escaped() {
            return self.raw;
        }
        buffer.clear();
        self.unescape_into(buffer);
        buffer
    }
}

/// A segment of a string's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrSegment<'d> {
    /// Characters written without escapes.
    Plain(&'d str),
    /// One character written as an escape, or as a surrogate pair of escapes.
    Escape {
        /// The character.
        decoded: char,
        /// Length of its escapes, in bytes.
        length: usize,
    },
}

/// Iterates over the segments of a string's value.
#[derive(Debug, Clone)]
pub struct StrSegments<'d> {
    remaining: &'d str,
}

impl<'d> StrSegments<'d> {
    /// Creates an iterator over the characters between the quotes of a string that a [`Reader`](crate::Reader)
    /// accepted.
    ///
    /// In any other text, an invalid escape ends the iteration.
    pub fn new(raw: &'d str) -> Self {
        StrSegments { remaining: raw }
    }
}

impl<'d> Iterator for StrSegments<'d> {
    type Item = StrSegment<'d>;

    fn next(&mut self) -> Option<StrSegment<'d>> {
        match memchr::memchr(b'\\', self.remaining.as_bytes()) {
            _ if self.remaining.is_empty() => None,
            Some(0) => match read_escape(self.remaining.as_bytes()) {
                Ok((decoded, length)) => {
                    self.remaining = &self.remaining[length..];
                    Some(StrSegment::Escape { decoded, length })
                }
                Err(_) => {
                    self.remaining = "";
                    None
                }
            },
            found => {
                let (plain, rest) = self.remaining.split_at(found.unwrap_or(self.remaining.len()));
                self.remaining = rest;
                Some(StrSegment::Plain(plain))
            }
        }
    }
}

/// Returns where the string that begins at `start` ends, and whether it contains escapes.
#[inline]
fn string_end(bytes: &[u8], start: usize) -> Result<(usize, bool), JsonError> {
    // Most strings of a chat body are short: two words are tried before the setup cost of a block.
    match short_run_end(bytes, start) {
        Ok(end) if bytes.get(end) == Some(&b'"') => Ok((end, false)),
        Ok(at) | Err(at) => long_string_end(bytes, at),
    }
}

fn long_string_end(bytes: &[u8], mut at: usize) -> Result<(usize, bool), JsonError> {
    let mut escaped = false;
    'blocks: while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let mut found = special_bits(block);
        while found != 0 {
            let place = found.trailing_zeros() as usize;
            let next = match block[place] {
                b'"' => return Ok((at + place, escaped)),
                b'\\' => place + escape_length(bytes, at + place)?,
                _ => return Err(JsonError::ControlCharacter { at: at + place }),
            };
            escaped = true;
            if next >= BLOCK_SIZE {
                at += next;
                continue 'blocks;
            }
            // The characters of an escape are not special bytes.
            found &= u64::MAX << next;
        }
        at += BLOCK_SIZE;
    }
    loop {
        at = plain_run_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok((at, escaped)),
            Some(b'\\') => at += escape_length(bytes, at)?,
            Some(_) => return Err(JsonError::ControlCharacter { at }),
            None => return Err(JsonError::UnexpectedEnd { at: bytes.len() }),
        }
        escaped = true;
    }
}

/// Returns the length of the escape at `at`.
#[inline]
fn escape_length(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    if let Some(b'"' | b'\\' | b'n' | b't') = bytes.get(at + 1) {
        return Ok(2);
    }
    match read_escape(&bytes[at..]) {
        Ok((_, length)) => Ok(length),
        Err(flaw) => Err(flaw.into_json_error(at, bytes.len())),
    }
}

/// Appends `text`, escaped for a JSON string, without quotes.
pub fn escape_into(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let end = plain_run_end(bytes, at);
        out.extend_from_slice(&bytes[at..end]);
        let Some(&byte) = bytes.get(end) else { return };
        match byte {
            b'"' => out.extend_from_slice(br#"\""#),
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            control => {
                let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(control >> 4), digit(control)]);
            }
        }
        at = end + 1;
    }
}
