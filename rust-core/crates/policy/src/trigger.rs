//! Triggers: conditions for trying a rule on a text, derived from the rule's regex. With them,
//! ordinary text costs one pass for all rules together instead of one pass for each.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::View;
use crate::anchor::Anchor;
use crate::needle::{Needle, Offsets, min_by_cost, needles, parts};

/// Minimum length of a run of graphic characters for [`Trigger::Graphic`].
pub(crate) const MIN_GRAPHIC_RUN: usize = 16;
/// Maximum number of needles of [`Trigger::Needles`].
pub(crate) const MAX_NEEDLES: usize = 2;
/// Minimum number of digits for [`Trigger::Digits`].
const MIN_DIGITS: usize = 3;
/// Cost of trying a rule where there are digits, divided by their number: tables, logs and code often contain a few.
const DIGITS_COST: f64 = 400.0;

/// The condition under which a rule is tried, and where its matches can begin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trigger {
    /// A match contains one literal of each needle: one or two needles.
    Needles(Vec<Needle>),
    /// A match contains at least this many ASCII digits.
    Digits(usize),
    /// A match contains a character of these ranges, none of which is ASCII.
    Characters(Vec<(char, char)>, Offsets),
    /// A match contains a run of [`MIN_GRAPHIC_RUN`] bytes, none of them whitespace or a control character.
    Graphic,
    /// No condition is known.
    Always,
}

impl Trigger {
    /// Returns the cheapest condition that every match of `hir` meets. `required`: plain literals of which a match has to
    /// contain one (may be empty).
    pub(crate) fn derive(hir: &Hir, required: &[Vec<u8>], view: View) -> Self {
        let longest = hir.properties().maximum_len().unwrap_or(usize::MAX);
        let mut best = (Self::Always, 2000.0);
        let mut offer = |wake: Self, cost: f64| {
            if cost < best.1 {
                best = (wake, cost);
            }
        };
        let characters = required_characters(hir);
        let has_characters = characters.is_some();
        if let Some((ranges, offsets)) = characters {
            offer(Self::Characters(ranges, offsets), 15.0);
        }
        let digits = min_digits(hir);
        if digits >= MIN_DIGITS {
            offer(Self::Digits(digits), DIGITS_COST / digits as f64);
        }
        if longest_graphic_run(hir) >= MIN_GRAPHIC_RUN {
            // One long word is enough to search the whole window for the rule.
            offer(Self::Graphic, 400.0);
        }
        let explicit = Needle {
            literals: required.to_vec(),
            offsets: Offsets { min: 0, max: longest },
            tail_pattern: None,
        };
        let mut needles: Vec<Needle> = needles(hir).into_iter().chain(explicit.normalize()).collect();
        if view == View::Text && (has_characters || needles.iter().any(Needle::survives_folding)) {
            // Both copies of a text can then be searched together.
            needles.retain(Needle::survives_folding);
        }
        if let Some(first) = min_by_cost(&needles, |needle| {
            Some(needle.find_cost() + needle.search_cost(longest))
        }) {
            let alone = first.find_cost() + first.search_cost(longest);
            // Two needles near each other are rare, but the second one also has to be searched for.
            let second = min_by_cost(&needles, |needle| {
                (!first.overlaps(needle)).then(|| needle.find_cost())
            });
            match second.filter(|second| second.find_cost() < first.search_cost(longest) / 2.0) {
                Some(second) => offer(Self::Needles(vec![first.clone(), second.clone()]), alone / 2.0),
                None => offer(Self::Needles(vec![first.clone()]), alone),
            }
        }
        best.0
    }
}

impl Trigger {
    /// Returns, for each needle, the anchor for the part of a match from its literal on.
    pub(crate) fn anchors(&self) -> Result<[Option<Anchor>; MAX_NEEDLES], String> {
        let mut anchors = [None, None];
        if let Self::Needles(needles) = self {
            for (anchor, needle) in anchors.iter_mut().zip(needles) {
                let behind = |rest| Anchor::after_literals(&needle.literals, rest);
                *anchor = needle.tail_pattern.as_ref().map(behind).transpose()?.flatten();
            }
        }
        Ok(anchors)
    }

    /// Whether the folded copy of an ASCII text without references, markup and control characters contains every literal
    /// that the text contains, from the same character on.
    pub(crate) fn survives_folding(&self) -> bool {
        match self {
            Self::Needles(needles) => needles.iter().all(Needle::survives_folding),
            _ => true,
        }
    }
}

/// Returns the minimum number of ASCII digits in a match.
fn min_digits(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().filter(|byte| byte.is_ascii_digit()).count(),
        HirKind::Class(class) => usize::from(class_within(class, '0', '9')),
        HirKind::Repetition(repetition) => {
            min_digits(&repetition.sub).saturating_mul(repetition.min as usize)
        }
        HirKind::Capture(group) => min_digits(&group.sub),
        HirKind::Concat(parts) => parts.iter().map(min_digits).sum(),
        HirKind::Alternation(branches) => branches.iter().map(min_digits).min().unwrap_or(0),
        HirKind::Empty | HirKind::Look(_) => 0,
    }
}

/// Returns a non-ASCII class of which every match contains a character, and its offsets.
fn required_characters(hir: &Hir) -> Option<(Vec<(char, char)>, Offsets)> {
    let (mut nearest, mut farthest) = (0, 0);
    for part in parts(hir) {
        let found = match part.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                let ranges: Vec<_> = class
                    .ranges()
                    .iter()
                    .map(|range| (range.start(), range.end()))
                    .collect();
                Some((ranges, Offsets { min: 0, max: 0 }))
            }
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                let found = text.char_indices().find(|(_, character)| !character.is_ascii());
                found.map(|(at, character)| (vec![(character, character)], Offsets { min: at, max: at }))
            }
            HirKind::Repetition(repetition) if repetition.min > 0 => required_characters(&repetition.sub),
            HirKind::Alternation(branches) => any_of(branches),
            _ => None,
        };
        if let Some((ranges, offsets)) =
            found.filter(|(ranges, _)| ranges.iter().all(|(first, _)| !first.is_ascii()))
        {
            return Some((
                ranges,
                Offsets {
                    min: nearest + offsets.min,
                    max: farthest + offsets.max,
                },
            ));
        }
        nearest += part.properties().minimum_len()?;
        farthest += part.properties().maximum_len()?;
    }
    None
}

fn any_of(branches: &[Hir]) -> Option<(Vec<(char, char)>, Offsets)> {
    let (mut all, mut offsets) = required_characters(branches.first()?)?;
    for branch in &branches[1..] {
        let (ranges, other) = required_characters(branch)?;
        all.extend(ranges);
        offsets.min = offsets.min.min(other.min);
        offsets.max = offsets.max.max(other.max);
    }
    Some((all, offsets))
}

/// Returns the length of the longest run of graphic characters that every match contains, in bytes.
fn longest_graphic_run(hir: &Hir) -> usize {
    let (mut longest, mut run) = (0, 0);
    for part in parts(hir) {
        if is_graphic(part) {
            run += part.properties().minimum_len().unwrap_or(0);
        } else {
            let inner = match part.kind() {
                HirKind::Alternation(branches) => branches.iter().map(longest_graphic_run).min().unwrap_or(0),
                HirKind::Repetition(repetition) if repetition.min > 0 => longest_graphic_run(&repetition.sub),
                _ => 0,
            };
            longest = longest.max(inner);
            run = 0;
        }
        longest = longest.max(run);
    }
    longest
}

/// Whether every byte of every match is greater than a space.
fn is_graphic(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().all(|byte| *byte > b' '),
        HirKind::Class(class) => class_within(class, '!', char::MAX),
        HirKind::Repetition(repetition) => is_graphic(&repetition.sub),
        HirKind::Capture(group) => is_graphic(&group.sub),
        HirKind::Concat(parts) => parts.iter().all(is_graphic),
        HirKind::Alternation(branches) => branches.iter().all(is_graphic),
        HirKind::Empty | HirKind::Look(_) => true,
    }
}

fn class_within(class: &Class, first: char, last: char) -> bool {
    match class {
        Class::Unicode(class) => class
            .ranges()
            .iter()
            .all(|range| range.start() >= first && range.end() <= last),
        Class::Bytes(_) => false,
    }
}
