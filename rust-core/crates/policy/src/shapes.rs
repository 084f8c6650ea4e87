//! Shapes: the positions of digits at the beginning of a regex's matches. Searching a whole text
//! for shapes is cheap.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use crate::start_bytes::is_word_byte;

/// Minimum bytes, and digits among them, of a shape that is rare enough.
const MIN_RARE_BYTES: usize = 4;
const MIN_RARE_DIGITS: usize = 2;
pub(crate) const MAX_SHAPE_BYTES: usize = 16;
/// Maximum spread of repetitions that are expanded.
const MAX_REPETITION_SPREAD: u32 = 3;
const MAX_SHAPES: usize = 64;
/// Maximum number of known first bytes of a match without digits.
pub(crate) const MAX_FIRST_BYTES: usize = 4;

/// The known property of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ByteKind {
    Digit,
    Other,
    Any,
}

/// For each of the first bytes, the ranges of its possible values.
pub(crate) type FirstBytes = Vec<Vec<(u8, u8)>>;

/// One way in which matches begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    /// Whether it begins at the start of a word.
    pub(crate) at_word_start: bool,
    /// Kinds of its first bytes.
    pub(crate) kinds: Vec<ByteKind>,
    /// The possible values of the first bytes, as far as they are known.
    pub(crate) first_bytes: FirstBytes,
    closed: bool,
}

impl Shape {
    /// Returns the ways in which matches of `hir` begin: each match begins in one of them.
    pub(crate) fn from_hir(hir: &Hir) -> Vec<Self> {
        let mut shapes = extend_shapes(vec![Self::default()], hir);
        for shape in &mut shapes {
            shape.at_word_start &= !shape.kinds.is_empty();
            while shape.kinds.last() == Some(&ByteKind::Any) {
                shape.kinds.pop();
            }
            if shape.has_digits() {
                shape.first_bytes.clear();
            }
            shape.closed = true;
        }
        shapes.sort();
        shapes.dedup();
        shapes
    }

    /// Merges `shapes` that differ in only one byte, which is a digit in one and not a digit in the other.
    pub(crate) fn merge_similar(mut shapes: Vec<Self>) -> Vec<Self> {
        let mut number = 0;
        while number < shapes.len() {
            let one = &shapes[number];
            let mut others = shapes.iter().enumerate().skip(number + 1);
            match others.find_map(|(other, shape)| Some((other, one.merge(shape)?))) {
                Some((other, joined)) => {
                    shapes.swap_remove(other);
                    shapes[number] = joined;
                    number = 0;
                }
                None => number += 1,
            }
        }
        shapes
    }

    fn merge(&self, other: &Self) -> Option<Self> {
        let kinds = self.kinds.iter().zip(&other.kinds).enumerate();
        let mut different = kinds.filter(|(_, (one, other))| one != other);
        let (place, (one, another)) = different.next()?;
        let is_joined = different.next().is_none()
            && (self.at_word_start, self.kinds.len()) == (other.at_word_start, other.kinds.len())
            && *one != ByteKind::Any
            && *another != ByteKind::Any;
        let mut joined = self.clone();
        joined.kinds[place] = ByteKind::Any;
        is_joined.then_some(joined)
    }

    /// Removes `shapes` that are found wherever another shape is found.
    pub(crate) fn remove_covered(mut shapes: Vec<Self>) -> Vec<Self> {
        let is_known = |kind: &&ByteKind| **kind != ByteKind::Any;
        shapes.sort_by_key(|shape| (shape.kinds.iter().filter(is_known).count(), shape.at_word_start));
        let mut widest: Vec<Self> = Vec::new();
        for shape in shapes {
            if !widest.iter().any(|wide| wide.covers(&shape)) {
                widest.push(shape);
            }
        }
        widest
    }

    /// Whether this shape is found wherever `other` is found.
    fn covers(&self, other: &Self) -> bool {
        let mut kinds = self.kinds.iter().enumerate();
        (other.at_word_start || !self.at_word_start)
            && kinds.all(|(offset, kind)| *kind == ByteKind::Any || other.kinds.get(offset) == Some(kind))
    }

    /// Whether it specifies the position of a digit.
    pub(crate) fn has_digits(&self) -> bool {
        self.kinds.contains(&ByteKind::Digit)
    }

    fn push(&mut self, ranges: &[(u8, u8)]) {
        let within = |low: u8, high: u8| move |(first, last): &(u8, u8)| *first >= low && *last <= high;
        let kind = if ranges.iter().all(within(b'0', b'9')) {
            ByteKind::Digit
        } else if ranges.iter().all(|(first, last)| *last < b'0' || *first > b'9') {
            ByteKind::Other
        } else {
            ByteKind::Any
        };
        if self.kinds.is_empty() {
            self.at_word_start &= ranges
                .iter()
                .all(|(first, last)| (*first..=*last).all(is_word_byte));
        }
        if self.first_bytes.len() < MAX_FIRST_BYTES {
            self.first_bytes.push(ranges.to_vec());
        }
        self.kinds.push(kind);
        let digits = self.kinds.iter().filter(|kind| **kind == ByteKind::Digit).count();
        self.closed |= self.kinds.len() >= MAX_SHAPE_BYTES
            || (digits >= MIN_RARE_DIGITS && self.kinds.len() >= MIN_RARE_BYTES);
    }
}

/// Returns the shapes extended by `hir`.
fn extend_shapes(mut shapes: Vec<Shape>, hir: &Hir) -> Vec<Shape> {
    if shapes.iter().all(|shape| shape.closed) {
        return shapes;
    }
    let mut each =
        |change: &dyn Fn(&mut Shape)| shapes.iter_mut().filter(|shape| !shape.closed).for_each(change);
    match hir.kind() {
        HirKind::Empty => {}
        HirKind::Look(look) => {
            each(&|shape| shape.at_word_start |= shape.kinds.is_empty() && *look == Look::WordAscii)
        }
        HirKind::Literal(literal) => {
            for byte in &literal.0 {
                each(&|shape| {
                    if !shape.closed {
                        shape.push(&[(*byte, *byte)]);
                    }
                });
            }
        }
        HirKind::Class(class) => match ascii_ranges(class) {
            Some(ranges) => each(&|shape| shape.push(&ranges)),
            None => each(&|shape| shape.closed = true),
        },
        HirKind::Capture(group) => return extend_shapes(shapes, &group.sub),
        HirKind::Concat(parts) => return parts.iter().fold(shapes, extend_shapes),
        HirKind::Alternation(branches) => {
            return limit_shapes(
                branches
                    .iter()
                    .flat_map(|branch| extend_shapes(shapes.clone(), branch))
                    .collect(),
            );
        }
        HirKind::Repetition(repetition) => {
            for _ in 0..repetition.min.min(MAX_SHAPE_BYTES as u32) {
                shapes = extend_shapes(shapes, &repetition.sub);
            }
            match repetition.max.and_then(|most| most.checked_sub(repetition.min)) {
                Some(0) => {}
                Some(spread) if spread <= MAX_REPETITION_SPREAD => {
                    let mut all = shapes.clone();
                    for _ in 0..spread {
                        shapes = extend_shapes(shapes, &repetition.sub);
                        all.extend(shapes.iter().cloned());
                    }
                    return limit_shapes(all);
                }
                _ => shapes.iter_mut().for_each(|shape| shape.closed = true),
            }
        }
    }
    shapes
}

/// Limits the number of shapes: if there are more, none is extended further.
fn limit_shapes(mut shapes: Vec<Shape>) -> Vec<Shape> {
    shapes.sort();
    shapes.dedup();
    if shapes.len() > MAX_SHAPES {
        shapes.iter_mut().for_each(|shape| shape.closed = true);
    }
    shapes
}

/// Returns the ranges of an ASCII class.
fn ascii_ranges(class: &Class) -> Option<Vec<(u8, u8)>> {
    let Class::Unicode(class) = class else {
        return None;
    };
    let byte = |character: char| u8::try_from(character).ok().filter(u8::is_ascii);
    class
        .ranges()
        .iter()
        .map(|range| Some((byte(range.start())?, byte(range.end())?)))
        .collect()
}
