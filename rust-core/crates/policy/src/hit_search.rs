//! Selects the rules worth trying on a text, and where their matches can begin.

use std::ops::Range;

use regex_automata::hybrid::dfa::Cache;

use crate::budget::Clock;
use crate::fold::fill_plain;
use crate::hit::Hit;
use crate::match_range::{MatchRange, UndecidedText};
use crate::needle_search::NeedleOwner;
use crate::prefilter::MAX_LITERAL_BYTES;
use crate::rule_set::RuleSet;
use crate::start_bytes::is_word_byte;
use crate::trigger::{MAX_NEEDLES, MIN_GRAPHIC_RUN};
use crate::{Engine, EvaluationError, RuleIndex, View};

/// Maximum bytes read after literals, per byte of a text. Beyond this limit every literal is a hit.
const MAX_READ_FACTOR: usize = 4;

/// The caches of the [anchors](crate::anchor::Anchor) of a rule.
type AnchorCaches = [Option<Cache>; MAX_NEEDLES];

/// Adds a hit for every range of `surface` in which a match of an active rule can begin.
pub(crate) fn collect_hits(
    engine: &Engine,
    active: &RuleSet,
    surface: &UndecidedText<'_>,
    hits: &mut Vec<Hit>,
) {
    let search = engine.needle_search(surface.view);
    search.prefilter.search(surface.bytes, |literal, place| {
        for owner in &search.owners[literal] {
            owner.add_hit(active, surface, place, hits);
        }
    });
    collect_non_needle_hits(engine, active, surface, hits);
}

/// Like [`collect_hits`], for both copies of a text in one search: they differ only in blanks, in
/// non-ASCII characters and in the irregular ranges. `place_in_text` returns the position in the
/// text that produced a byte of the copy.
pub(crate) fn collect_hits_in_both_copies(
    engine: &Engine,
    active: &RuleSet,
    (text, copy): (&UndecidedText<'_>, &UndecidedText<'_>),
    place_in_text: impl Fn(usize) -> Option<usize>,
    hits: &mut Vec<Hit>,
) {
    let search = engine.needle_search(None);
    search.prefilter.search(copy.bytes, |literal, place| {
        let mut known = None;
        for owner in &search.owners[literal] {
            if owner.view == View::Folded {
                owner.add_hit(active, copy, place, hits);
            } else if let Some(place) = *known.get_or_insert_with(|| place_in_text(place)) {
                owner.add_hit(active, text, place, hits);
            }
        }
    });
    collect_non_needle_hits(engine, active, text, hits);
    collect_non_needle_hits(engine, active, copy, hits);
}

/// Like [`collect_hits`], for the needles of rules with the view `Text` that touch an irregular range (`odd`) of the text.
/// `plain` is a buffer.
pub(crate) fn collect_irregular_hits(
    engine: &Engine,
    active: &RuleSet,
    text: &UndecidedText<'_>,
    odd: impl Iterator<Item = Range<usize>>,
    plain: &mut Vec<u8>,
    hits: &mut Vec<Hit>,
) {
    let search = engine.needle_search(Some(View::Text));
    let mut around = |part: Range<usize>| {
        fill_plain(plain, &text.bytes[part.clone()]);
        search.prefilter.search(plain, |literal, place| {
            for owner in &search.owners[literal] {
                owner.add_hit(active, text, part.start + place, hits);
            }
        });
    };
    let mut open: Option<Range<usize>> = None;
    for part in odd {
        let part =
            part.start.saturating_sub(MAX_LITERAL_BYTES)..text.bytes.len().min(part.end + MAX_LITERAL_BYTES);
        match &mut open {
            Some(open) if part.start <= open.end => open.end = open.end.max(part.end),
            _ => open.replace(part).into_iter().for_each(&mut around),
        }
    }
    open.into_iter().for_each(around);
}

impl NeedleOwner {
    /// Adds a hit for the literal at `place` of `surface`.
    fn add_hit(&self, active: &RuleSet, surface: &UndecidedText<'_>, place: usize, hits: &mut Vec<Hit>) {
        let before = place.checked_sub(1).and_then(|last| surface.bytes.get(last));
        if self.at_word_start && before.is_some_and(|byte| is_word_byte(*byte)) {
            return;
        }
        let Some((low, high)) = self.offsets.start_range(place) else {
            return;
        };
        if low < surface.limit && active.contains(self.rule) && surface.applies_to(self.view) {
            hits.push(Hit {
                rule: self.rule,
                needle: self.needle,
                min_start: low,
                max_start: high,
                literal_position: place,
            });
        }
    }
}

/// Adds a hit for every range of `surface` in which a match of a rule without needles can begin.
fn collect_non_needle_hits(
    engine: &Engine,
    active: &RuleSet,
    surface: &UndecidedText<'_>,
    hits: &mut Vec<Hit>,
) {
    let bytes = surface.bytes;
    let takes_part =
        |index: RuleIndex| active.contains(index) && surface.applies_to(engine.rules[index.position()].view);
    let mut hit = |rule: RuleIndex, low: usize, high: usize| {
        if low < surface.limit && takes_part(rule) {
            hits.push(Hit::new(rule, low, high));
        }
    };
    engine
        .unconditional_rules
        .iter()
        .for_each(|rule| hit(*rule, 0, usize::MAX));
    if !engine.character_triggers.is_empty() && !bytes.is_ascii() {
        engine.character_triggers.search(bytes, &mut hit);
    }
    if !engine.graphic_run_rules.is_empty() && has_graphic_run(bytes) {
        engine
            .graphic_run_rules
            .iter()
            .for_each(|rule| hit(*rule, 0, usize::MAX));
    }
}

/// Drops the hits of rules for which a needle was not found.
fn drop_incomplete(engine: &Engine, hits: &mut Vec<Hit>) {
    let mut found = [RuleSet::default(), RuleSet::default()];
    for hit in hits.iter() {
        found[usize::from(hit.needle & 1)].insert(hit.rule);
    }
    hits.retain(|hit| {
        !engine.two_needle_rules.contains(hit.rule) || found.iter().all(|found| found.contains(hit.rule))
    });
}

/// Drops the hits whose literal is followed by text that belongs to no match, as far as the read
/// limit permits. `grounds` are the ranges of the views `Text` and `Folded`.
fn drop_impossible(
    engine: &Engine,
    hits: &mut Vec<Hit>,
    grounds: [&MatchRange<'_>; 2],
    caches: &mut [AnchorCaches],
    clock: &mut Clock<'_>,
) -> Result<(), EvaluationError> {
    let mut left = grounds[0].bytes.len().saturating_mul(MAX_READ_FACTOR);
    let mut outcome = Ok(());
    hits.retain(|hit| {
        let rule = &engine.rules[hit.rule.position()];
        let number = usize::from(hit.needle & 1);
        let Some(anchor) = rule.anchors[number].as_ref().filter(|_| left > 0) else {
            return true;
        };
        let ground = grounds[usize::from(rule.view == View::Folded)];
        let cache = &mut caches[hit.rule.position()][number];
        let held = anchor.check_start(cache, ground.bytes, ground.from + hit.literal_position);
        let held = held.and_then(|(holds, length)| {
            left = left.saturating_sub(length);
            clock.charge_pass(length)?;
            Ok(holds)
        });
        held.unwrap_or_else(|fault| {
            outcome = Err(fault);
            left = 0;
            false
        })
    });
    outcome
}

/// Drops the hits that cannot lead to a match, sorts the other hits, and joins adjacent hits of the
/// same needle, so that the ranges of a needle are disjoint and ascending.
pub(crate) fn join_hits(
    engine: &Engine,
    hits: &mut Vec<Hit>,
    grounds: [&MatchRange<'_>; 2],
    caches: &mut [AnchorCaches],
    clock: &mut Clock<'_>,
) -> Result<(), EvaluationError> {
    drop_incomplete(engine, hits);
    drop_impossible(engine, hits, grounds, caches, clock)?;
    drop_incomplete(engine, hits);
    hits.sort_unstable();
    hits.dedup_by(|next, previous| {
        let touches = (next.rule, next.needle) == (previous.rule, previous.needle)
            && next.min_start <= previous.max_start.saturating_add(1);
        if touches {
            previous.max_start = previous.max_start.max(next.max_start);
        }
        touches
    });
    Ok(())
}

/// Returns the ranges, first and last position, in which a match of the rule of `hits` can begin: each range satisfies all
/// of the rule's `needles`.
pub(crate) fn hit_ranges(hits: &[Hit], needles: usize) -> impl Iterator<Item = (usize, usize)> {
    let border = hits.partition_point(|hit| hit.needle == 0);
    let (mut first, mut second) = hits.split_at(border);
    std::iter::from_fn(move || {
        loop {
            let (one, more) = first.split_first()?;
            if needles < 2 {
                first = more;
                return Some((one.min_start, one.max_start));
            }
            let (other, others) = second.split_first()?;
            let both = (
                one.min_start.max(other.min_start),
                one.max_start.min(other.max_start),
            );
            if one.max_start < other.max_start {
                first = more;
            } else {
                second = others;
            }
            if both.0 <= both.1 {
                return Some(both);
            }
        }
    })
}

/// Whether there may be [`MIN_GRAPHIC_RUN`] consecutive bytes greater than a space: three aligned words of four such bytes.
fn has_graphic_run(bytes: &[u8]) -> bool {
    const { assert!(MIN_GRAPHIC_RUN >= 3 + 3 * 4) };
    let mut run = 0_u32;
    for word in bytes.as_chunks::<4>().0 {
        let word = u32::from_le_bytes(*word);
        let breaks = word.wrapping_sub(0x2121_2121) & !word & 0x8080_8080;
        run = if breaks == 0 { run + 1 } else { 0 };
        if run == 3 {
            return true;
        }
    }
    false
}
