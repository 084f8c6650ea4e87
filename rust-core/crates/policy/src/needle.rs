//! Needles: literals of which every match of a regex contains one, and the cost of searching for them.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind, Look, Repetition};

use crate::english::phrase_frequency;
use crate::fold_table::plain_byte;
use crate::prefilter::MAX_LITERAL_BYTES;
use crate::start_bytes::is_word_byte;

const MAX_LITERALS: usize = 300;
const KB: f64 = 1024.0;

/// Returns the needle with the lowest `cost`, among the needles that have a cost.
pub(crate) fn min_by_cost(needles: &[Needle], cost: impl Fn(&Needle) -> Option<f64>) -> Option<&Needle> {
    let priced = needles.iter().filter_map(|needle| Some((needle, cost(needle)?)));
    priced
        .min_by(|one, other| one.1.total_cmp(&other.1))
        .map(|(needle, _)| needle)
}

/// The distance of an element of a match from the match's beginning, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

impl Offsets {
    /// Returns the first and last possible start of a match whose element is at `place`.
    pub(crate) fn start_range(self, place: usize) -> Option<(usize, usize)> {
        Some((place.saturating_sub(self.max), place.checked_sub(self.min)?))
    }
}

/// Plain literals of which every match contains one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needle {
    pub(crate) literals: Vec<Vec<u8>>,
    pub(crate) offsets: Offsets,
    /// Pattern of the part of every match that begins with the literal; `None` if it is not known.
    pub(crate) tail_pattern: Option<Hir>,
}

impl Needle {
    /// Whether `literal`, one of the needle's, counts only at the start of a word.
    pub(crate) fn requires_word_start(&self, literal: &[u8]) -> bool {
        let looks = self
            .tail_pattern
            .as_ref()
            .map(|rest| rest.properties().look_set_prefix());
        let is_at_border = looks.is_some_and(|looks| looks.contains(Look::WordAscii));
        is_at_border && literal.first().is_some_and(|byte| is_word_byte(*byte))
    }

    /// Returns the expected number of occurrences in a kilobyte of English.
    fn expected_hits(&self) -> f64 {
        self.literals
            .iter()
            .map(|literal| KB * phrase_frequency(literal))
            .sum()
    }

    /// Returns the approximate cost of finding its literals, in nanoseconds per kilobyte.
    pub(crate) fn find_cost(&self) -> f64 {
        let short = self.literals.iter().filter(|literal| literal.len() < 4).count();
        self.expected_hits() * 20.0 + short as f64 * 35.0 + self.literals.len() as f64 * 0.1
    }

    /// Returns the approximate cost of searching for a match of at most `longest` bytes around each literal, in nanoseconds
    /// per kilobyte.
    pub(crate) fn search_cost(&self, longest: usize) -> f64 {
        let stretch = self.offsets.max - self.offsets.min + longest;
        self.expected_hits() * (60.0 + stretch as f64)
    }

    /// Whether both needles often occur in the same bytes, so that together they exclude little
    /// more than one alone.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let within = |one: &[u8], other: &[u8]| memchr::memmem::find(one, other).is_some();
        let shared = |literal: &&Vec<u8>| {
            let mut others = other.literals.iter();
            others.any(|other| within(literal, other) || within(other, literal))
        };
        let rate = |literal: &Vec<u8>| KB * phrase_frequency(literal);
        let shared: f64 = self.literals.iter().filter(shared).map(rate).sum();
        shared > self.expected_hits() / 4.0
    }

    pub(crate) fn survives_folding(&self) -> bool {
        let is_blank = |byte: &u8| *byte == b' ';
        self.literals.iter().all(|literal| {
            literal.is_ascii()
                && !literal.first().is_some_and(is_blank)
                && !literal.windows(2).any(|pair| pair.iter().all(is_blank))
        })
    }

    /// Makes the literals plain and removes those that another literal covers.
    pub(crate) fn normalize(mut self) -> Option<Self> {
        for literal in &mut self.literals {
            literal.truncate(MAX_LITERAL_BYTES);
            literal.iter_mut().for_each(|byte| *byte = plain_byte(*byte));
        }
        self.literals.sort();
        self.literals
            .dedup_by(|longer, shorter| longer.starts_with(shorter));
        let usable = !self.literals.is_empty()
            && self.literals.len() <= MAX_LITERALS
            && self.literals.iter().all(|literal| !literal.is_empty());
        usable.then_some(self)
    }
}

/// Returns all sets of literals that are known to occur in each match.
pub(crate) fn needles(hir: &Hir) -> Vec<Needle> {
    let mut needles = Vec::new();
    let parts = parts(hir);
    let (mut nearest, mut farthest) = (0, 0);
    for (index, part) in parts.iter().enumerate() {
        let from = |index: usize| parts[index..].iter().map(|part| (*part).clone());
        let rest = Hir::concat(from(index).collect());
        needles.extend(
            Needle {
                literals: prefixes(&rest),
                offsets: Offsets {
                    min: nearest,
                    max: farthest,
                },
                tail_pattern: Some(rest),
            }
            .normalize(),
        );
        needles.extend(best_needle_in(part).and_then(|mut inner| {
            inner.offsets.min += nearest;
            inner.offsets.max += farthest;
            inner.tail_pattern = inner.tail_pattern.map(|rest| concatenate(rest, from(index + 1)));
            inner.normalize()
        }));
        let properties = part.properties();
        let (Some(least), Some(most)) = (properties.minimum_len(), properties.maximum_len()) else {
            break;
        };
        nearest += least;
        farthest += most;
    }
    needles
}

/// Returns the best needle within one part of a concatenation that is not itself a concatenation.
fn best_needle_in(part: &Hir) -> Option<Needle> {
    let best = |hir: &Hir| {
        let longest = hir.properties().maximum_len()?;
        min_by_cost(&needles(hir), |needle| {
            Some(needle.find_cost() + needle.search_cost(longest))
        })
        .cloned()
    };
    match part.kind() {
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            let mut first = best(&repetition.sub)?;
            let others = Hir::repetition(Repetition {
                min: repetition.min - 1,
                max: repetition.max.map(|most| most.saturating_sub(1)),
                ..repetition.clone()
            });
            first.tail_pattern = first.tail_pattern.map(|rest| concatenate(rest, [others]));
            Some(first)
        }
        HirKind::Alternation(branches) => {
            let mut all = best(branches.first()?)?;
            let mut rests = vec![all.tail_pattern.take()];
            for branch in &branches[1..] {
                let needle = best(branch)?;
                all.literals.extend(needle.literals);
                all.offsets.min = all.offsets.min.min(needle.offsets.min);
                all.offsets.max = all.offsets.max.max(needle.offsets.max);
                rests.push(needle.tail_pattern);
            }
            all.tail_pattern = rests.into_iter().collect::<Option<_>>().map(Hir::alternation);
            Some(all)
        }
        _ => None,
    }
}

fn concatenate(first: Hir, others: impl IntoIterator<Item = Hir>) -> Hir {
    Hir::concat(std::iter::once(first).chain(others).collect())
}

/// Returns the parts of a concatenation, including parts within groups.
pub(crate) fn parts(hir: &Hir) -> Vec<&Hir> {
    match hir.kind() {
        HirKind::Concat(parts) => parts.iter().flat_map(self::parts).collect(),
        HirKind::Capture(group) => self::parts(&group.sub),
        _ => vec![hir],
    }
}

fn prefixes(hir: &Hir) -> Vec<Vec<u8>> {
    let extract = |class| {
        let mut extractor = Extractor::new();
        extractor
            .kind(ExtractKind::Prefix)
            .limit_class(class)
            .limit_repeat(8)
            .limit_literal_len(32);
        let sequence = extractor.limit_total(MAX_LITERALS).extract(hir);
        let literals = sequence.literals().unwrap_or_default();
        literals
            .iter()
            .map(|literal| literal.as_bytes().to_vec())
            .collect::<Vec<_>>()
    };
    let literals = extract(12);
    let is_short = |literal: &Vec<u8>| literal.len() < 4;
    if !literals.iter().any(is_short) {
        return literals;
    }
    // Short literals are expensive: the class after them may make them longer.
    let longer = extract(64);
    if longer.is_empty() || longer.iter().any(is_short) {
        literals
    } else {
        longer
    }
}

#[cfg(test)]
mod tests {
    use regex_syntax::parse;

    use super::*;

    #[test]
    fn a_literal_within_a_word_counts_unless_every_match_begins_a_word_with_it() {
        for (pattern, expected) in [
            (r"(?-u:\b)token", true),
            (r"(?-u:\b)(?:token|secret) ?=", true),
            (r"[a-z ]{0,9}(?-u:\b)token", true),
            (r"token(?-u:\b)", false),
            (r"(?:(?-u:\b)token|secret) ?=", false),
            (r"(?-u:\b)-token", false),
            (r"(?:(?-u:\b)|x)token", false),
        ] {
            let found = needles(&parse(pattern).unwrap()).iter().any(|needle| {
                let mut literals = needle.literals.iter();
                literals.any(|literal| needle.requires_word_start(literal))
            });
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
