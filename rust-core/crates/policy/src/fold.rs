//! The folded copy of a text: the text as a reader sees it, in lower case.
//!
//! Letters are lower-cased, look-alikes and compatibility forms become ASCII, accents, invisible
//! characters and markup inside words are removed, character references are decoded, and white
//! space of any kind and length becomes one space. The result at a position depends on one
//! preceding byte of the copy, and on the following text up to the maximum length of a reference or
//! markup (SEMANTICS.md), so a text can be folded in pieces. An ASCII text that keeps its length
//! needs no map back to the text.

use std::ops::Range;
use std::{array, iter, mem};

use crate::entities::{ParseResult, parse_entity};
use crate::fold_table::{FoldResult, FoldTable, plain_byte};
use crate::markup;

/// Replaces the content of `plain` with the plain copy of `text`.
pub(crate) fn fill_plain(plain: &mut Vec<u8>, text: &[u8]) {
    plain.clear();
    plain.extend(text.iter().map(|byte| plain_byte(*byte)));
}

/// A segment of the folded copy. In a *run* (`width` 0), offsets advance together with the offsets
/// of the text; otherwise the segment is the copy of one character of `width` bytes.
#[derive(Debug, Clone, Copy)]
struct FoldedSegment {
    folded_start: usize,
    text_start: usize,
    width: usize,
}

/// A folded copy and its map back to the text. Offsets of the copy include `lead`.
#[derive(Debug, Default)]
pub(crate) struct FoldedText {
    bytes: Vec<u8>,
    segments: Vec<FoldedSegment>,
    prefix_len: usize,
    /// Number of bytes of the text that the copy covers.
    text_length: usize,
    plain: bool,
    /// Whether the copy can contain a byte with which markup begins.
    may_have_markup: bool,
    removed_ranges: Vec<Range<usize>>,
    /// Ranges where the copy differs from the text's plain copy by more than dropped repeated
    /// blanks and changed non-ASCII characters.
    irregular_ranges: Vec<Range<usize>>,
    scratch: (Vec<u8>, Vec<FoldedSegment>),
}

impl FoldedText {
    /// Replaces the content with the folded copy of `text`. `before` is the byte that precedes it
    /// in the folded copy of a longer text. Unless the text is `ended`, the copy omits the end of
    /// the text that depends on the following text: see [`Self::text_length`].
    pub(crate) fn fill(&mut self, table: &FoldTable, text: &str, before: Option<u8>, ended: bool) {
        self.bytes.clear();
        self.segments.clear();
        self.bytes.reserve(text.len() + 1 + STEP);
        self.bytes.extend(before);
        self.prefix_len = self.bytes.len();
        self.text_length = text.len();
        self.plain = true;
        self.may_have_markup = false;
        self.irregular_ranges.clear();
        self.fold(table, text, ended);
        if self.may_have_markup {
            self.remove_markup(ended);
        }
        if self.text_length < text.len() {
            self.plain = false;
            self.irregular_ranges.push(self.text_length..text.len());
        }
        self.irregular_ranges.sort_unstable_by_key(|part| part.start);
    }

    fn fold(&mut self, table: &FoldTable, text: &str, ended: bool) {
        let bytes = text.as_bytes();
        let mut at = 0;
        // Whether the last segment is a run that includes the copy of the last character.
        let mut in_run = false;
        while at < bytes.len() {
            at += self.copy_plain_run(&bytes[at..], at, &mut in_run);
            if self.bytes.last() == Some(&b' ') {
                let blanks = bytes[at..]
                    .iter()
                    .take_while(|byte| plain_byte(**byte) == b' ')
                    .count();
                if blanks > 0 {
                    self.plain = false;
                    in_run = false;
                    at += blanks;
                    continue;
                }
            }
            let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else {
                break;
            };
            let (character, width) = match character {
                '&' => match parse_entity(table, &bytes[at..]) {
                    ParseResult::Complete(read) => {
                        self.irregular_ranges.push(at..at + read.1);
                        read
                    }
                    ParseResult::Incomplete if !ended => {
                        self.text_length = at;
                        return;
                    }
                    _ => ('&', 1),
                },
                other => (other, other.len_utf8()),
            };
            match table.fold(character) {
                FoldResult::Character(folded) => {
                    let copy = &mut [0; 4];
                    let copy = folded.encode_utf8(copy).as_bytes();
                    if copy.len() == width && !self.is_repeated_blank(copy[0]) {
                        self.plain &= copy.is_ascii();
                        self.may_have_markup |= markup::is_markup_start(copy[0]);
                        let first = self.bytes.len();
                        self.open_run(&mut in_run, at, first);
                        self.bytes.extend_from_slice(copy);
                    } else {
                        self.push_character(copy, at, width);
                        in_run = false;
                    }
                }
                FoldResult::Characters(folded) => {
                    self.push_character(folded.as_bytes(), at, width);
                    in_run = false;
                }
                FoldResult::Dropped => {
                    if width == 1 {
                        self.irregular_ranges.push(at..at + 1);
                    }
                    self.plain = false;
                    in_run = false;
                }
            }
            at += width;
        }
    }

    fn is_repeated_blank(&self, byte: u8) -> bool {
        byte == b' ' && self.bytes.last() == Some(&b' ')
    }

    /// Adds the copy of one character of `width` bytes at `at`; a blank after a blank is dropped.
    fn push_character(&mut self, copy: &[u8], at: usize, width: usize) {
        self.plain = false;
        let known = self.bytes.len();
        for byte in copy {
            self.may_have_markup |= markup::is_markup_start(*byte);
            if !self.is_repeated_blank(*byte) {
                self.bytes.push(*byte);
            }
        }
        if self.bytes.len() > known {
            self.segments.push(FoldedSegment {
                folded_start: known,
                text_start: at,
                width,
            });
        }
    }

    /// Starts a run at `at` in the text and `folded` in the copy, unless a run is open.
    fn open_run(&mut self, in_run: &mut bool, at: usize, folded: usize) {
        if !*in_run {
            self.segments.push(FoldedSegment {
                folded_start: folded,
                text_start: at,
                width: 0,
            });
            *in_run = true;
        }
    }

    /// Adds the copy of the longest prefix of `text`, located at `place`, that folds to its plain copy without repeated
    /// blanks. Returns the length of the prefix in bytes.
    fn copy_plain_run(&mut self, text: &[u8], place: usize, in_run: &mut bool) -> usize {
        let mut step = [0; STEP + 1];
        step[STEP] = self.bytes.last().copied().unwrap_or_default();
        let mut at = 0;
        loop {
            // The previous byte, and the following ones; the end is padded with zeros, which end the prefix.
            step[0] = step[STEP];
            let rest = &text[at..];
            match rest.first_chunk::<STEP>() {
                Some(next) => step[1..].copy_from_slice(next),
                None => {
                    step[1..].fill(0);
                    step[1..=rest.len()].copy_from_slice(rest);
                }
            }
            // The whole step is examined, without a branch, so that the loops are vectorised.
            let stirs: [bool; STEP] =
                array::from_fn(|place| !folds_independently(step[place], step[place + 1]));
            let copy: [u8; STEP] = array::from_fn(|place| plain_byte(step[place + 1]));
            if !self.may_have_markup {
                self.may_have_markup = copy
                    .iter()
                    .fold(false, |any, byte| any | markup::is_markup_start(*byte));
            }
            let stirs = bitmask(stirs);
            if stirs == 0 {
                self.open_run(in_run, place + at, self.bytes.len());
                self.bytes.extend_from_slice(&copy);
                at += STEP;
                continue;
            }
            let second: [bool; STEP] =
                array::from_fn(|place| is_space(step[place]) & is_space(step[place + 1]));
            let second = bitmask(second);
            let length = (stirs & !second).trailing_zeros();
            self.copy_step(&copy, second, length as usize, place + at, in_run);
            at += length as usize;
            if (length as usize) < STEP {
                return at;
            }
        }
    }

    /// Adds the first `length` bytes of `copy`, located at `place` in the text, except the `left_out` ones.
    fn copy_step(
        &mut self,
        copy: &[u8; STEP],
        left_out: u32,
        length: usize,
        place: usize,
        in_run: &mut bool,
    ) {
        let mut whole = [0; 2 * STEP];
        whole[..STEP].copy_from_slice(copy);
        let left_out = u64::from(left_out);
        let mut at = 0;
        while at < length {
            let count = (left_out >> at).trailing_zeros() as usize;
            let count = count.min(length - at);
            if count > 0 {
                self.open_run(in_run, place + at, self.bytes.len());
                // Copies more than needed, because copying a fixed number of bytes is fast.
                let end = self.bytes.len() + count;
                self.bytes.extend_from_slice(&whole[at..at + STEP]);
                self.bytes.truncate(end);
                at += count;
            }
            let blanks = (!left_out >> at).trailing_zeros() as usize;
            if blanks > 0 && at < length {
                self.plain = false;
                *in_run = false;
                at += blanks;
            }
        }
    }

    /// Removes markup inside words. Unless the text is `ended`, the copy ends before markup that depends on the following
    /// text.
    fn remove_markup(&mut self, ended: bool) {
        self.removed_ranges.clear();
        let mut at = 1;
        while let Some(place) = find_pair(&self.bytes, at, markup::can_start_markup) {
            at = place + 1;
            match markup::parse_markup_in_word(&self.bytes[place..]) {
                ParseResult::Complete(length) => {
                    at = place + length;
                    self.removed_ranges.push(place..at);
                    self.irregular_ranges
                        .push(self.text_start(place)..self.text_end(at));
                }
                ParseResult::Incomplete if !ended => {
                    let cut = self.character_start(place);
                    self.text_length = self.text_start(cut);
                    self.bytes.truncate(cut);
                    self.segments.retain(|stretch| stretch.folded_start < cut);
                    break;
                }
                _ => {}
            }
        }
        if !self.removed_ranges.is_empty() {
            self.plain = false;
            self.remove_ranges();
        }
    }

    /// Removes `removed_ranges` from the copy; they are disjoint, ascending, and cover the copies of whole characters.
    fn remove_ranges(&mut self) {
        let (mut bytes, mut stretches) = mem::take(&mut self.scratch);
        bytes.clear();
        stretches.clear();
        bytes.extend_from_slice(&self.bytes[..self.prefix_len]);
        let mut from = self.prefix_len;
        let end = self.bytes.len();
        for range in self.removed_ranges.iter().cloned().chain(iter::once(end..end)) {
            let moved = from - bytes.len();
            let first = self
                .segments
                .partition_point(|stretch| stretch.folded_start < from);
            let inner = self.segments[first..]
                .iter()
                .take_while(|stretch| stretch.folded_start < range.start);
            if from < range.start
                && self
                    .segments
                    .get(first)
                    .is_none_or(|next| next.folded_start > from)
            {
                // A run continues after the part that was removed from it.
                stretches.push(FoldedSegment {
                    folded_start: bytes.len(),
                    text_start: self.text_start(from),
                    width: 0,
                });
            }
            stretches.extend(inner.map(|stretch| FoldedSegment {
                folded_start: stretch.folded_start - moved,
                ..*stretch
            }));
            bytes.extend_from_slice(&self.bytes[from..range.start]);
            from = range.end;
        }
        mem::swap(&mut self.bytes, &mut bytes);
        mem::swap(&mut self.segments, &mut stretches);
        self.scratch = (bytes, stretches);
    }

    /// Returns the copy, including the byte before it if there is one.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns how many bytes precede the copy: 0 or 1.
    pub(crate) fn prefix_len(&self) -> usize {
        self.prefix_len
    }

    /// Returns how many bytes of the text the copy covers: all, unless the last ones depend on the following text.
    pub(crate) fn text_length(&self) -> usize {
        self.text_length
    }

    /// Returns the irregular ranges: parts of the text whose non-blank ASCII characters differ in the folded and the plain
    /// copy.
    pub(crate) fn irregular_ranges(&self) -> &[Range<usize>] {
        &self.irregular_ranges
    }

    /// Whether the copy is the plain copy of the whole text.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    fn segment_at(&self, folded: usize) -> FoldedSegment {
        let after = self
            .segments
            .partition_point(|stretch| stretch.folded_start <= folded);
        match after.checked_sub(1) {
            Some(index) => self.segments[index],
            None => FoldedSegment {
                folded_start: self.prefix_len,
                text_start: 0,
                width: 0,
            },
        }
    }

    /// Returns the offset in the text of the start of the character that produced the byte at `folded`.
    pub(crate) fn text_start(&self, folded: usize) -> usize {
        let stretch = self.segment_at(folded);
        if stretch.width > 0 {
            stretch.text_start
        } else {
            stretch.text_start + (folded - stretch.folded_start)
        }
    }

    /// Returns the offset in the text of the end of the character that produced the byte before `folded`.
    pub(crate) fn text_end(&self, folded: usize) -> usize {
        let stretch = self.segment_at(folded.saturating_sub(1));
        if stretch.width > 0 {
            stretch.text_start + stretch.width
        } else {
            stretch.text_start + (folded - stretch.folded_start)
        }
    }

    /// Returns the offset in the copy of the start of the character that produced the byte at `folded`; the end of the copy
    /// if `folded` is the end.
    pub(crate) fn character_start(&self, folded: usize) -> usize {
        if folded >= self.bytes.len() {
            return self.bytes.len();
        }
        let stretch = self.segment_at(folded);
        if stretch.width > 0 {
            stretch.folded_start
        } else {
            folded
        }
    }
}

/// Returns the first position at or after `from` where `fits` is true for the previous byte and the
/// byte at the position. `from` is not 0.
#[inline]
fn find_pair(bytes: &[u8], from: usize, fits: impl Fn(u8, u8) -> bool) -> Option<usize> {
    let mut at = from;
    // The whole step is examined, without a branch, so that the loop is vectorised.
    while let Some(chunk) = bytes
        .get(at - 1..)
        .and_then(|rest| rest.first_chunk::<{ STEP + 1 }>())
    {
        let fitting = bitmask(array::from_fn(|place| fits(chunk[place], chunk[place + 1])));
        if fitting != 0 {
            return Some(at + fitting.trailing_zeros() as usize);
        }
        at += STEP;
    }
    let rest = bytes.get(at - 1..).unwrap_or_default();
    rest.windows(2)
        .position(|pair| fits(pair[0], pair[1]))
        .map(|place| at + place)
}

/// Bytes that are examined together.
pub(crate) const STEP: usize = 32;

/// Returns the flags as bits, the first one the lowest.
#[inline]
pub(crate) fn bitmask(flags: [bool; STEP]) -> u32 {
    let bytes = flags.map(u8::from);
    let words = bytes.as_chunks::<8>().0.iter().zip((0..).step_by(8));
    words.fold(0, |mask, (word, shift)| {
        // The highest byte of the product collects the lowest bits of all eight bytes.
        let bits = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask | (bits as u32) << shift
    })
}

#[inline]
fn is_space(byte: u8) -> bool {
    (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)
}

/// Whether `byte` folds independently of its neighbours, after `before`.
#[inline]
fn folds_independently(before: u8, byte: u8) -> bool {
    let is_graphic = byte.wrapping_sub(b'!') < 94;
    (is_graphic & (byte != b'&')) | (is_space(byte) & !is_space(before))
}

/// Returns the folded copy of a complete `text`.
pub(crate) fn fold_text(table: &FoldTable, text: &str) -> String {
    let mut copy = FoldedText::default();
    copy.fill(table, text, None, true);
    String::from_utf8_lossy(&copy.bytes).into_owned()
}

/// Returns the last character boundary at or before `at`.
pub(crate) fn floor_char_boundary(text: &[u8], mut at: usize) -> usize {
    while at > 0 && text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at -= 1;
    }
    at
}
