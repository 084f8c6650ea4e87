//! The folded copy of a text: what a reader sees, in lower case.
//!
//! Letters are lower-cased, look-alikes and compatibility forms become ASCII, accents, invisible characters and markup
//! inside words are left out, character references are read, and white space of any kind and length is one space. What
//! precedes a place matters by one byte of the copy only, and what follows by the bounded length of a reference or of
//! markup (SEMANTICS.md), so a text can be folded in pieces. An ASCII text that keeps its length needs no map back.

use std::ops::Range;
use std::{array, iter, mem};

use crate::entities::{ParseResult, parse_entity};
use crate::fold_table::{FoldResult, FoldTable, plain_byte};
use crate::markup;

/// Replaces the content of `plain` by the plain copy of `text`.
pub(crate) fn fill_plain(plain: &mut Vec<u8>, text: &[u8]) {
    plain.clear();
    plain.extend(text.iter().map(|byte| plain_byte(*byte)));
}

/// A stretch of the folded copy. In a *run* (`width` 0) offsets advance together with those of the text; otherwise the
/// stretch is what one character of `width` bytes became.
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
    /// How much of the text the copy stands for.
    text_length: usize,
    plain: bool,
    /// Whether the copy may hold a byte that markup begins with.
    may_have_markup: bool,
    removed_ranges: Vec<Range<usize>>,
    /// Where the copy is not made of the text's plain one by leaving out blanks after blanks and changing other characters
    /// than ASCII.
    irregular_ranges: Vec<Range<usize>>,
    scratch: (Vec<u8>, Vec<FoldedSegment>),
}

impl FoldedText {
    /// Replaces the content by the folded copy of `text`. `before` is the byte that stands before it in the folded copy
    /// of a longer text. If the text is not `ended`, what the rest of it decides is left: [`Self::text_length`].
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
        // Whether the copy of the last character is a part of the last stretch, a run.
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

    /// Adds what one character of `width` bytes at `at` becomes: a blank after a blank is left out.
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

    /// Lets a run begin at `at` in the text and `folded` in the copy, unless one goes on there.
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

    /// Adds the copy of what `text`, which stands at `place`, begins with, as far as that is its plain copy without blanks
    /// after blanks. Returns how many bytes of the text that is.
    fn copy_plain_run(&mut self, text: &[u8], place: usize, in_run: &mut bool) -> usize {
        let mut step = [0; STEP + 1];
        step[STEP] = self.bytes.last().copied().unwrap_or_default();
        let mut at = 0;
        loop {
            // The byte before, and those that follow; behind the end are zeros, which are not calm.
            step[0] = step[STEP];
            let rest = &text[at..];
            match rest.first_chunk::<STEP>() {
                Some(next) => step[1..].copy_from_slice(next),
                None => {
                    step[1..].fill(0);
                    step[1..=rest.len()].copy_from_slice(rest);
                }
            }
            // All of a step is looked at, without a branch, so that the loops are vectorised.
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

    /// Adds the first `length` bytes of `copy`, which stand at `place` in the text, but for the `left_out` ones.
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
                // More than is wanted, for copying a fixed number of bytes is fast.
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

    /// Leaves the markup inside words out. If the text is not `ended`, the copy ends before markup that the rest decides.
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

    /// Takes the `removed` ranges of the copy away, which are disjoint, ascend and hold whole characters' copies.
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
                // A run goes on behind what was taken from it.
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

    /// The copy, with the byte before it if there is one.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes stand before the copy: 0 or 1.
    pub(crate) fn lead(&self) -> usize {
        self.prefix_len
    }

    /// How many bytes of the text the copy stands for: all of them, unless what follows decides about the last ones.
    pub(crate) fn text_length(&self) -> usize {
        self.text_length
    }

    /// The parts of the text that hold something in ASCII, but for blanks, that is not in the copy as it is in the plain copy
    /// of the text.
    pub(crate) fn odd(&self) -> &[Range<usize>] {
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

    /// Where in the text the character begins that the byte at `folded` was made from.
    pub(crate) fn text_start(&self, folded: usize) -> usize {
        let stretch = self.segment_at(folded);
        if stretch.width > 0 {
            stretch.text_start
        } else {
            stretch.text_start + (folded - stretch.folded_start)
        }
    }

    /// Where in the text the character ends that the byte before `folded` was made from.
    pub(crate) fn text_end(&self, folded: usize) -> usize {
        let stretch = self.segment_at(folded.saturating_sub(1));
        if stretch.width > 0 {
            stretch.text_start + stretch.width
        } else {
            stretch.text_start + (folded - stretch.folded_start)
        }
    }

    /// The offset in the copy at which the character begins that the byte at `folded` was made from; at the end of the
    /// copy, the end.
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

/// The first place at or behind `from`, which is not 0, where `fits` is true of the byte before it and the byte there.
#[inline]
fn find_pair(bytes: &[u8], from: usize, fits: impl Fn(u8, u8) -> bool) -> Option<usize> {
    let mut at = from;
    // All of a step is looked at, without a branch, so that the loop is vectorised.
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

/// Bytes that are looked at together.
pub(crate) const STEP: usize = 32;

/// The flags as bits, the first one the lowest.
#[inline]
pub(crate) fn bitmask(flags: [bool; STEP]) -> u32 {
    let bytes = flags.map(u8::from);
    let words = bytes.as_chunks::<8>().0.iter().zip((0..).step_by(8));
    words.fold(0, |mask, (word, shift)| {
        // The product's highest byte gathers the lowest bits of all eight.
        let bits = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask | (bits as u32) << shift
    })
}

#[inline]
fn is_space(byte: u8) -> bool {
    (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)
}

/// Whether `byte` is folded by itself, behind `before`.
#[inline]
fn folds_independently(before: u8, byte: u8) -> bool {
    let is_graphic = byte.wrapping_sub(b'!') < 94;
    (is_graphic & (byte != b'&')) | (is_space(byte) & !is_space(before))
}

/// The folded copy of a whole `text`.
pub(crate) fn fold_text(table: &FoldTable, text: &str) -> String {
    let mut copy = FoldedText::default();
    copy.fill(table, text, None, true);
    String::from_utf8_lossy(&copy.bytes).into_owned()
}

/// The last beginning of a character at or before `at`.
pub(crate) fn floor_char_boundary(text: &[u8], mut at: usize) -> usize {
    while at > 0 && text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at -= 1;
    }
    at
}
