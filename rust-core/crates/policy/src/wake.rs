//! What a text must hold before a rule is worth trying: derived from the rule's regex, so that ordinary text costs one
//! pass for all rules together and not one pass for each.

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use crate::View;
use crate::anchor::Anchor;
use crate::english::occurrence;
use crate::fold::plain_byte;
use crate::prefilter::LONGEST;

/// Shortest stretch of graphic characters that [`Wake::Graphic`] can stand for.
pub(crate) const GRAPHIC_RUN: usize = 16;
/// Needles that [`Wake::Needles`] has at most.
pub(crate) const MOST_NEEDLES: usize = 2;
/// Fewest digits that [`Wake::Digits`] can stand for.
const LEAST_DIGITS: usize = 3;
const MOST_LITERALS: usize = 300;
/// What it costs to try a rule where digits stand, divided by how many: tables, logs and code are full of a few.
const DIGITS_COST: f64 = 400.0;
const KB: f64 = 1024.0;

/// When a rule is tried, and where its matches can begin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wake {
    /// A match holds one literal of each needle: one or two needles.
    Needles(Vec<Needle>),
    /// A match holds at least this many ASCII digits.
    Digits(usize),
    /// A match holds a character of these ranges, none of which is ASCII.
    Characters(Vec<(char, char)>, Offsets),
    /// A match holds a run of [`GRAPHIC_RUN`] bytes, none of them whitespace or a control.
    Graphic,
    /// Nothing is known.
    Always,
}

impl Wake {
    /// The cheapest condition that every match of `hir` fulfils. `required`: plain literals of which a match has to contain
    /// one (may be empty).
    pub(crate) fn derive(hir: &Hir, required: &[Vec<u8>], view: View) -> Self {
        let longest = hir.properties().maximum_len().unwrap_or(usize::MAX);
        let mut best = (Self::Always, 2000.0);
        let mut offer = |wake: Self, cost: f64| {
            if cost < best.1 {
                best = (wake, cost);
            }
        };
        let characters = characters(hir);
        let has_characters = characters.is_some();
        if let Some((ranges, offsets)) = characters {
            offer(Self::Characters(ranges, offsets), 15.0);
        }
        let digits = digits(hir);
        if digits >= LEAST_DIGITS {
            offer(Self::Digits(digits), DIGITS_COST / digits as f64);
        }
        if graphic_run(hir) >= GRAPHIC_RUN {
            // One long word, and the rule is searched for in the whole window.
            offer(Self::Graphic, 400.0);
        }
        let explicit = Needle {
            literals: required.to_vec(),
            offsets: Offsets {
                nearest: 0,
                farthest: longest,
            },
            rest: None,
        };
        let mut needles: Vec<Needle> = needles(hir).into_iter().chain(explicit.tidy()).collect();
        if view == View::Text && (has_characters || needles.iter().any(Needle::is_kept_by_folding)) {
            // Then both copies of a text can be searched at once.
            needles.retain(Needle::is_kept_by_folding);
        }
        if let Some(first) = least(&needles, |needle| {
            Some(needle.finding() + needle.searching(longest))
        }) {
            let alone = first.finding() + first.searching(longest);
            // Two needles near each other are rare, but the second one has to be looked for as well.
            let second = least(&needles, |needle| {
                (!first.overlaps(needle)).then(|| needle.finding())
            });
            match second.filter(|second| second.finding() < first.searching(longest) / 2.0) {
                Some(second) => offer(Self::Needles(vec![first.clone(), second.clone()]), alone / 2.0),
                None => offer(Self::Needles(vec![first.clone()]), alone),
            }
        }
        best.0
    }
}

impl Wake {
    /// By its needles, what matches from their literals on.
    pub(crate) fn anchors(&self) -> Result<[Option<Anchor>; MOST_NEEDLES], String> {
        let mut anchors = [None, None];
        if let Self::Needles(needles) = self {
            for (anchor, needle) in anchors.iter_mut().zip(needles) {
                let behind = |rest| Anchor::behind(&needle.literals, rest);
                *anchor = needle.rest.as_ref().map(behind).transpose()?.flatten();
            }
        }
        Ok(anchors)
    }

    /// Whether the folded copy of an ASCII text without references, markup and controls holds every literal that the text
    /// holds, from the same character on.
    pub(crate) fn is_kept_by_folding(&self) -> bool {
        match self {
            Self::Needles(needles) => needles.iter().all(Needle::is_kept_by_folding),
            _ => true,
        }
    }
}

/// The needle for which `cost` is the least, of those that have one.
fn least(needles: &[Needle], cost: impl Fn(&Needle) -> Option<f64>) -> Option<&Needle> {
    let priced = needles.iter().filter_map(|needle| Some((needle, cost(needle)?)));
    priced
        .min_by(|one, other| one.1.total_cmp(&other.1))
        .map(|(needle, _)| needle)
}

/// How many bytes behind the beginning of a match something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(crate) nearest: usize,
    pub(crate) farthest: usize,
}

impl Offsets {
    /// Where a match can begin, first and last, that has this at `place`.
    pub(crate) fn beginnings(self, place: usize) -> Option<(usize, usize)> {
        Some((
            place.saturating_sub(self.farthest),
            place.checked_sub(self.nearest)?,
        ))
    }
}

/// Plain literals of which every match contains one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needle {
    pub(crate) literals: Vec<Vec<u8>>,
    pub(crate) offsets: Offsets,
    /// What matches where its literal stands, in every match: the literal and what follows it. None, if that is not known.
    pub(crate) rest: Option<Hir>,
}

impl Needle {
    /// How often it is expected in a kilobyte of English.
    fn hits(&self) -> f64 {
        self.literals.iter().map(|literal| KB * occurrence(literal)).sum()
    }

    /// Expected nanoseconds for a kilobyte, roughly: to find its literals,
    fn finding(&self) -> f64 {
        let short = self.literals.iter().filter(|literal| literal.len() < 4).count();
        self.hits() * 20.0 + short as f64 * 35.0 + self.literals.len() as f64 * 0.1
    }

    /// and to search a match of at most `longest` bytes around each of them.
    fn searching(&self, longest: usize) -> f64 {
        let stretch = self.offsets.farthest - self.offsets.nearest + longest;
        self.hits() * (60.0 + stretch as f64)
    }

    /// Whether often, where one is found, the other is found in the same bytes: then both say little more than one.
    fn overlaps(&self, other: &Self) -> bool {
        let within = |one: &[u8], other: &[u8]| memchr::memmem::find(one, other).is_some();
        let shared = |literal: &&Vec<u8>| {
            let mut others = other.literals.iter();
            others.any(|other| within(literal, other) || within(other, literal))
        };
        let rate = |literal: &Vec<u8>| KB * occurrence(literal);
        let shared: f64 = self.literals.iter().filter(shared).map(rate).sum();
        shared > self.hits() / 4.0
    }

    fn is_kept_by_folding(&self) -> bool {
        let is_blank = |byte: &u8| *byte == b' ';
        self.literals.iter().all(|literal| {
            literal.is_ascii()
                && !literal.first().is_some_and(is_blank)
                && !literal.windows(2).any(|pair| pair.iter().all(is_blank))
        })
    }

    /// Makes the literals plain and leaves out those that another one covers.
    fn tidy(mut self) -> Option<Self> {
        for literal in &mut self.literals {
            literal.truncate(LONGEST);
            literal.iter_mut().for_each(|byte| *byte = plain_byte(*byte));
        }
        self.literals.sort();
        self.literals
            .dedup_by(|longer, shorter| longer.starts_with(shorter));
        let usable = !self.literals.is_empty()
            && self.literals.len() <= MOST_LITERALS
            && self.literals.iter().all(|literal| !literal.is_empty());
        usable.then_some(self)
    }
}

/// Every set of literals that is known to occur in each match.
fn needles(hir: &Hir) -> Vec<Needle> {
    let mut needles = Vec::new();
    let parts = parts(hir);
    let (mut nearest, mut farthest) = (0, 0);
    for (index, part) in parts.iter().enumerate() {
        let from = |index: usize| parts[index..].iter().map(|part| (*part).clone());
        let rest = Hir::concat(from(index).collect());
        needles.extend(
            Needle {
                literals: prefixes(&rest),
                offsets: Offsets { nearest, farthest },
                rest: Some(rest),
            }
            .tidy(),
        );
        needles.extend(inside(part).and_then(|mut inner| {
            inner.offsets.nearest += nearest;
            inner.offsets.farthest += farthest;
            inner.rest = inner.rest.map(|rest| followed(rest, from(index + 1)));
            inner.tidy()
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

/// The best needle within one part of a concatenation that is not a concatenation itself.
fn inside(part: &Hir) -> Option<Needle> {
    let best = |hir: &Hir| {
        let longest = hir.properties().maximum_len()?;
        least(&needles(hir), |needle| {
            Some(needle.finding() + needle.searching(longest))
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
            first.rest = first.rest.map(|rest| followed(rest, [others]));
            Some(first)
        }
        HirKind::Alternation(branches) => {
            let mut all = best(branches.first()?)?;
            let mut rests = vec![all.rest.take()];
            for branch in &branches[1..] {
                let needle = best(branch)?;
                all.literals.extend(needle.literals);
                all.offsets.nearest = all.offsets.nearest.min(needle.offsets.nearest);
                all.offsets.farthest = all.offsets.farthest.max(needle.offsets.farthest);
                rests.push(needle.rest);
            }
            all.rest = rests.into_iter().collect::<Option<_>>().map(Hir::alternation);
            Some(all)
        }
        _ => None,
    }
}

fn followed(first: Hir, others: impl IntoIterator<Item = Hir>) -> Hir {
    Hir::concat(std::iter::once(first).chain(others).collect())
}

/// The parts of a concatenation, through groups.
fn parts(hir: &Hir) -> Vec<&Hir> {
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
        let sequence = extractor.limit_total(MOST_LITERALS).extract(hir);
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
    // Short literals are expensive: perhaps the class behind them makes them longer.
    let longer = extract(64);
    if longer.is_empty() || longer.iter().any(is_short) {
        literals
    } else {
        longer
    }
}

/// The fewest ASCII digits in a match.
fn digits(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().filter(|byte| byte.is_ascii_digit()).count(),
        HirKind::Class(class) => usize::from(class_within(class, '0', '9')),
        HirKind::Repetition(repetition) => digits(&repetition.sub).saturating_mul(repetition.min as usize),
        HirKind::Capture(group) => digits(&group.sub),
        HirKind::Concat(parts) => parts.iter().map(digits).sum(),
        HirKind::Alternation(branches) => branches.iter().map(digits).min().unwrap_or(0),
        HirKind::Empty | HirKind::Look(_) => 0,
    }
}

/// A class without ASCII of which every match holds a character, and where.
fn characters(hir: &Hir) -> Option<(Vec<(char, char)>, Offsets)> {
    let (mut nearest, mut farthest) = (0, 0);
    for part in parts(hir) {
        let found = match part.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                let ranges: Vec<_> = class
                    .ranges()
                    .iter()
                    .map(|range| (range.start(), range.end()))
                    .collect();
                Some((
                    ranges,
                    Offsets {
                        nearest: 0,
                        farthest: 0,
                    },
                ))
            }
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                let found = text.char_indices().find(|(_, character)| !character.is_ascii());
                found.map(|(at, character)| {
                    (
                        vec![(character, character)],
                        Offsets {
                            nearest: at,
                            farthest: at,
                        },
                    )
                })
            }
            HirKind::Repetition(repetition) if repetition.min > 0 => characters(&repetition.sub),
            HirKind::Alternation(branches) => any_of(branches),
            _ => None,
        };
        if let Some((ranges, offsets)) =
            found.filter(|(ranges, _)| ranges.iter().all(|(first, _)| !first.is_ascii()))
        {
            return Some((
                ranges,
                Offsets {
                    nearest: nearest + offsets.nearest,
                    farthest: farthest + offsets.farthest,
                },
            ));
        }
        nearest += part.properties().minimum_len()?;
        farthest += part.properties().maximum_len()?;
    }
    None
}

fn any_of(branches: &[Hir]) -> Option<(Vec<(char, char)>, Offsets)> {
    let (mut all, mut offsets) = characters(branches.first()?)?;
    for branch in &branches[1..] {
        let (ranges, other) = characters(branch)?;
        all.extend(ranges);
        offsets.nearest = offsets.nearest.min(other.nearest);
        offsets.farthest = offsets.farthest.max(other.farthest);
    }
    Some((all, offsets))
}

/// The longest run of graphic characters that every match holds, in bytes.
fn graphic_run(hir: &Hir) -> usize {
    let (mut longest, mut run) = (0, 0);
    for part in parts(hir) {
        if is_graphic(part) {
            run += part.properties().minimum_len().unwrap_or(0);
        } else {
            let inner = match part.kind() {
                HirKind::Alternation(branches) => branches.iter().map(graphic_run).min().unwrap_or(0),
                HirKind::Repetition(repetition) if repetition.min > 0 => graphic_run(&repetition.sub),
                _ => 0,
            };
            longest = longest.max(inner);
            run = 0;
        }
        longest = longest.max(run);
    }
    longest
}

/// Whether every byte of every match is above the space.
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
