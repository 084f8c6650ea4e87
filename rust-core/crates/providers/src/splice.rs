//! Replaces parts of strings inside a document and leaves every other byte unchanged.

use std::ops::Range;

use proofgate_json::{Str, StrSegment, StrSegments};

/// The location of a string in its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringLocation {
    /// The range between its quotes, in bytes of the document.
    pub raw: Range<usize>,
    /// Whether it contains escapes.
    pub has_escapes: bool,
}

impl From<Str<'_>> for StringLocation {
    fn from(string: Str<'_>) -> Self {
        StringLocation {
            raw: string.range(),
            has_escapes: string.is_escaped(),
        }
    }
}

/// Maps offsets of a string's value to offsets in the document.
#[derive(Debug)]
pub struct OffsetMapper<'d> {
    /// The segments after the current one; `None` for a string without escapes.
    pieces: Option<StrSegments<'d>>,
    piece: Option<StrSegment<'d>>,
    /// The start of the current segment in the document and in the value.
    raw: usize,
    value: usize,
    end: usize,
}

impl<'d> OffsetMapper<'d> {
    /// Starts at the beginning of the string at `place` in `document`.
    pub fn new(document: &'d [u8], place: &StringLocation) -> Self {
        let raw = document.get(place.raw.clone()).unwrap_or_default();
        let mut pieces = place
            .has_escapes
            .then(|| StrSegments::new(std::str::from_utf8(raw).unwrap_or_default()));
        OffsetMapper {
            piece: pieces.as_mut().and_then(Iterator::next),
            pieces,
            raw: place.raw.start,
            value: 0,
            end: place.raw.end,
        }
    }

    /// Returns the document offset for an offset in the value; the requested offsets must not decrease.
    ///
    /// An offset inside an escaped character maps to its beginning, an offset after the string to its end.
    pub fn raw_offset(&mut self, value: usize) -> usize {
        let Some(pieces) = &mut self.pieces else {
            return (self.raw + value).min(self.end);
        };
        while let Some(piece) = self.piece {
            let (raw_length, value_length) = match piece {
                StrSegment::Plain(plain) => (plain.len(), plain.len()),
                StrSegment::Escape { decoded, length } => (length, decoded.len_utf8()),
            };
            let inside = value.saturating_sub(self.value);
            if inside < value_length {
                return match piece {
                    StrSegment::Plain(_) => self.raw + inside,
                    StrSegment::Escape { .. } => self.raw,
                };
            }
            self.raw += raw_length;
            self.value += value_length;
            self.piece = pieces.next();
        }
        self.end
    }
}

/// Copies a document and replaces parts of it.
#[derive(Debug)]
pub struct Rewriter<'d, 'o> {
    document: &'d [u8],
    copied: usize,
    out: &'o mut Vec<u8>,
}

impl<'d, 'o> Rewriter<'d, 'o> {
    /// Starts a copy of `document`, appended to `out`.
    pub fn new(document: &'d [u8], out: &'o mut Vec<u8>) -> Self {
        Rewriter {
            document,
            copied: 0,
            out,
        }
    }

    /// Replaces `raw` with the bytes that `write` appends. Ranges must be in order; the part
    /// covered by an earlier range is skipped.
    pub fn replace(&mut self, raw: Range<usize>, write: impl FnOnce(&mut Vec<u8>)) {
        self.copy_to(raw.start);
        write(self.out);
        self.copied = self.copied.max(raw.end);
    }

    /// Copies the rest.
    pub fn finish(mut self) {
        self.copy_to(self.document.len());
    }

    fn copy_to(&mut self, end: usize) {
        if let Some(part) = self.document.get(self.copied..end) {
            self.out.extend_from_slice(part);
            self.copied = end;
        }
    }
}
