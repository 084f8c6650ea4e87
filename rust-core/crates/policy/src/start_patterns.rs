//! Positions where matches of digit-triggered rules can begin, computed as bits for a whole text at once.

use std::array;

use crate::digits::{PositionBitmap, WORD_BITS};
use crate::shapes::{ByteKind, FirstBytes, MAX_FIRST_BYTES, MAX_SHAPE_BYTES, Shape};
use crate::start_bytes::is_word_byte;

/// Maximum number of shapes that are distinguished by their first bytes; if there are more, some share a bit.
const MAX_GROUPS: usize = u64::BITS as usize;

/// The ways in which the matches of some rules begin.
pub(crate) struct StartPatterns {
    /// Shapes that specify the positions of digits.
    probes: Vec<DigitProbe>,
    /// Possible distances between the first two digits of a shape; empty if one of the shapes has only one digit.
    gaps: Vec<usize>,
    /// Shapes that specify no position of a digit.
    non_digit: Option<NonDigitStarts>,
}

/// A [`Shape`] that specifies the positions of digits.
struct DigitProbe {
    at_word_start: bool,
    /// Offsets of bytes, each with the mask that inverts the digit bits: zero if the byte is a
    /// digit.
    tests: Vec<(usize, u64)>,
}

/// Rules whose matches can begin with other bytes than digits.
struct NonDigitStarts {
    /// Pairs of the minimum digits of a match of one of these rules and the number of bitmap words
    /// that contain them.
    densities: Vec<(u32, usize)>,
    matchers: Vec<FirstByteMatcher>,
}

/// The kind of position where a match begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StartPosition {
    AtWordStart,
    /// At one byte before a word.
    BeforeWord,
    Anywhere,
}

/// For each of the first bytes and each of its values, the shapes that allow this value.
struct FirstByteMatcher {
    position: StartPosition,
    bytes: Box<[[u64; 256]; MAX_FIRST_BYTES]>,
}

impl StartPatterns {
    /// Creates the patterns for matches with one of these `shapes`. Shapes without digits belong to rules with the
    /// `densities`: minimum digits, and maximum bytes.
    pub(crate) fn from_shapes(shapes: Vec<Shape>, densities: &[(usize, usize)]) -> Self {
        let (known, unknown): (Vec<_>, Vec<_>) = shapes.into_iter().partition(Shape::has_digits);
        let known = Shape::remove_covered(Shape::merge_similar(known));
        let probes: Vec<DigitProbe> = known.iter().map(DigitProbe::from_shape).collect();
        let gap = |shape: &Shape| {
            let kinds = shape.kinds.iter().enumerate();
            let mut digits = kinds.filter(|(_, kind)| **kind == ByteKind::Digit);
            let (first, second) = (digits.next()?, digits.next()?);
            Some(second.0 - first.0)
        };
        let gaps = known.iter().map(gap).collect::<Option<Vec<_>>>();
        let mut gaps = gaps.unwrap_or_default();
        gaps.sort_unstable();
        gaps.dedup();
        Self {
            probes,
            gaps,
            non_digit: NonDigitStarts::from_shapes(&unknown, densities),
        }
    }

    /// Replaces the content of `candidates` with bits for the positions of `text` at which a match can begin. `sums` is a
    /// buffer.
    pub(crate) fn fill_candidates(
        &self,
        places: &PositionBitmap,
        text: &[u8],
        sums: &mut Vec<u32>,
        candidates: &mut Vec<u64>,
    ) {
        candidates.clear();
        let words = places.digits.windows(2).zip(&places.word_starts);
        candidates.extend(words.map(|(pair, begins)| self.apply_probes(pair[0], pair[1], *begins)));
        if let Some(loose) = &self.non_digit {
            loose.add(places, text, sums, candidates);
        }
    }

    fn apply_probes(&self, digits: u64, next: u64, begins: u64) -> u64 {
        if digits | next == 0 {
            return 0;
        }
        let shifted: [u64; MAX_SHAPE_BYTES + 1] =
            array::from_fn(|count| (digits >> count) | (next << (WORD_BITS - 1 - count) << 1));
        let is_near = |gap: &usize| digits & shifted[*gap] != 0 || next & (next >> gap) != 0;
        if !self.gaps.is_empty() && !self.gaps.iter().any(is_near) {
            return 0;
        }
        self.probes.iter().fold(0, |any, probe| {
            let fitting = if probe.at_word_start { begins } else { u64::MAX };
            any | probe.tests.iter().fold(fitting, |fitting, (offset, flip)| {
                fitting & (shifted[*offset] ^ flip)
            })
        })
    }
}

impl DigitProbe {
    fn from_shape(shape: &Shape) -> Self {
        let test = |(offset, kind): (usize, &ByteKind)| match kind {
            ByteKind::Digit => Some((offset, 0)),
            ByteKind::Other => Some((offset, u64::MAX)),
            ByteKind::Any => None,
        };
        let tests = shape.kinds.iter().enumerate().filter_map(test);
        Self {
            at_word_start: shape.at_word_start,
            tests: tests.collect(),
        }
    }
}

impl NonDigitStarts {
    /// Returns `None` if there are no such `shapes`.
    fn from_shapes(shapes: &[Shape], densities: &[(usize, usize)]) -> Option<Self> {
        let mut shapes: Vec<_> = shapes
            .iter()
            .map(|shape| (StartPosition::from_shape(shape), &shape.first_bytes))
            .collect();
        shapes.sort();
        shapes.dedup();
        let firsts = shapes
            .chunk_by(|one, other| one.0 == other.0)
            .map(FirstByteMatcher::from_shapes);
        // Counted from the last position of a word.
        let words = |longest: &usize| (longest + WORD_BITS - 2) / WORD_BITS + 1;
        let densities = densities
            .iter()
            .map(|(least, longest)| (*least as u32, words(longest)));
        (!shapes.is_empty()).then(|| Self {
            densities: remove_covered(densities.collect()),
            matchers: firsts.collect(),
        })
    }

    fn add(&self, places: &PositionBitmap, text: &[u8], sums: &mut Vec<u32>, candidates: &mut [u64]) {
        sums.clear();
        let mut sum = 0;
        sums.extend(places.digits.iter().map(|digits| {
            sum += digits.count_ones();
            sum
        }));
        let begins = places.word_starts.windows(2);
        for (word, (candidates, begins)) in candidates.iter_mut().zip(begins).enumerate() {
            let before = word.checked_sub(1).map_or(0, |last| sums[last]);
            let is_dense = |(least, words): &(u32, usize)| {
                sums[(word + words - 1).min(sums.len() - 1)] - before >= *least
            };
            if !self.densities.iter().any(is_dense) {
                continue;
            }
            for firsts in &self.matchers {
                let places = match firsts.position {
                    StartPosition::AtWordStart => begins[0],
                    StartPosition::BeforeWord => begins[0] >> 1 | begins[1] << (WORD_BITS - 1),
                    StartPosition::Anywhere => u64::MAX,
                };
                *candidates |= firsts.matching_positions(places, &text[word * WORD_BITS..]);
            }
        }
    }
}

impl StartPosition {
    fn from_shape(shape: &Shape) -> Self {
        let known = |offset: usize, fits: &dyn Fn(u8) -> bool| {
            let bytes = shape.first_bytes.get(offset);
            bytes.is_some_and(|ranges| ranges.iter().all(|(low, high)| (*low..=*high).all(fits)))
        };
        if shape.at_word_start {
            Self::AtWordStart
        } else if known(0, &|byte| !is_word_byte(byte)) && known(1, &is_word_byte) {
            Self::BeforeWord
        } else {
            Self::Anywhere
        }
    }
}

impl FirstByteMatcher {
    /// Creates the matcher for shapes that begin at the same kind of position.
    fn from_shapes(shapes: &[(StartPosition, &FirstBytes)]) -> Self {
        let mut bytes = Box::new([[0_u64; 256]; MAX_FIRST_BYTES]);
        let all = [(0, u8::MAX)].to_vec();
        for (number, (_, firsts)) in shapes.iter().enumerate() {
            for (offset, shapes) in bytes.iter_mut().enumerate() {
                for (low, high) in firsts.get(offset).unwrap_or(&all) {
                    for byte in *low..=*high {
                        shapes[usize::from(byte)] |= 1 << (number % MAX_GROUPS);
                    }
                }
            }
        }
        let place = shapes
            .first()
            .map_or(StartPosition::Anywhere, |(place, _)| *place);
        Self {
            position: place,
            bytes,
        }
    }

    /// Returns those of `places` of `text` at which a match can begin.
    fn matching_positions(&self, places: u64, text: &[u8]) -> u64 {
        // After the end of the text any byte is possible.
        let Some(chunk) = text.first_chunk::<{ WORD_BITS + MAX_FIRST_BYTES }>() else {
            return places;
        };
        let (mut left, mut fitting) = (places, 0);
        while left != 0 {
            let place = left.trailing_zeros() as usize & (WORD_BITS - 1);
            let behind = |offset: usize| self.bytes[offset][usize::from(chunk[place + offset])];
            let shapes = behind(0) & behind(1);
            if shapes != 0 && shapes & behind(2) & behind(3) != 0 {
                fitting |= 1 << place;
            }
            left &= left - 1;
        }
        fitting
    }
}

/// Removes `densities` that are found wherever another density is found.
fn remove_covered(mut densities: Vec<(u32, usize)>) -> Vec<(u32, usize)> {
    // Fewest digits first: a text with more digits within as few words satisfies those, too.
    densities.sort_unstable_by_key(|(least, words)| (*least, std::cmp::Reverse(*words)));
    let mut reach = 0;
    densities.retain(|(_, words)| {
        let wider = *words > reach;
        reach = reach.max(*words);
        wider
    });
    densities
}
