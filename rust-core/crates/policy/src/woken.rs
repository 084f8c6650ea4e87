//! Which rules are worth trying on a text, and where their matches can begin.

use crate::engine::{Owner, Rule};
use crate::rule_set::RuleSet;
use crate::wake::GRAPHIC_RUN;
use crate::{Engine, RuleIndex, View};

/// A rule was woken: its matches can begin at `low` to `high`, counted from the first place that is to be decided. If the
/// rule has several needles, `needle` says which of them was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) rule: RuleIndex,
    pub(crate) needle: u8,
    pub(crate) low: usize,
    pub(crate) high: usize,
}

impl Hit {
    /// Of a rule without needles.
    pub(crate) fn new(rule: RuleIndex, low: usize, high: usize) -> Self {
        Self {
            rule,
            needle: 0,
            low,
            high,
        }
    }
}

/// A copy of a text from the first undecided place on.
pub(crate) struct Surface<'t> {
    pub(crate) bytes: &'t [u8],
    /// Matches that begin here or later are not looked for.
    pub(crate) limit: usize,
    /// The view whose rules are tried, or none if the copy serves both.
    pub(crate) view: Option<View>,
}

impl Surface<'_> {
    fn serves(&self, rule: &Rule) -> bool {
        self.view.is_none_or(|view| view == rule.view)
    }
}

/// Adds a hit for every stretch of `surface` in which a match of an active rule can begin.
pub(crate) fn collect(engine: &Engine, active: &RuleSet, surface: &Surface<'_>, hits: &mut Vec<Hit>) {
    let bytes = surface.bytes;
    let takes_part =
        |index: RuleIndex| active.contains(index) && surface.serves(&engine.rules[index.position()]);
    let search = engine.search(surface.view);
    search.prefilter.search(bytes, |literal, place| {
        for Owner {
            rule,
            needle,
            offsets,
        } in &search.owners[literal]
        {
            let Some((low, high)) = offsets.beginnings(place) else {
                continue;
            };
            if low < surface.limit && takes_part(*rule) {
                hits.push(Hit {
                    rule: *rule,
                    needle: *needle,
                    low,
                    high,
                });
            }
        }
    });
    let mut hit = |rule: RuleIndex, low: usize, high: usize| {
        if low < surface.limit && takes_part(rule) {
            hits.push(Hit::new(rule, low, high));
        }
    };
    engine.always.iter().for_each(|rule| hit(*rule, 0, usize::MAX));
    if !engine.signs.is_empty() && !bytes.is_ascii() {
        engine.signs.search(bytes, &mut hit);
    }
    if !engine.by_graphic_run.is_empty() && has_graphic_run(bytes) {
        engine
            .by_graphic_run
            .iter()
            .for_each(|rule| hit(*rule, 0, usize::MAX));
    }
}

/// Drops the hits of rules of which a needle was not found, sorts the others and joins those of one needle that touch;
/// then the stretches of a needle are disjoint and ascend.
pub(crate) fn join(engine: &Engine, hits: &mut Vec<Hit>) {
    let mut found = [RuleSet::default(), RuleSet::default()];
    for hit in hits.iter() {
        found[usize::from(hit.needle & 1)].insert(hit.rule);
    }
    hits.retain(|hit| !engine.pairs.contains(hit.rule) || found.iter().all(|found| found.contains(hit.rule)));
    hits.sort_unstable();
    hits.dedup_by(|next, previous| {
        let touches = (next.rule, next.needle) == (previous.rule, previous.needle)
            && next.low <= previous.high.saturating_add(1);
        if touches {
            previous.high = previous.high.max(next.high);
        }
        touches
    });
}

/// The stretches, first and last place, in which a match of the rule of `hits` can begin: in each, all of the rule's
/// `needles` were found.
pub(crate) fn stretches(hits: &[Hit], needles: usize) -> impl Iterator<Item = (usize, usize)> {
    let border = hits.partition_point(|hit| hit.needle == 0);
    let (mut first, mut second) = hits.split_at(border);
    std::iter::from_fn(move || {
        loop {
            let (one, more) = first.split_first()?;
            if needles < 2 {
                first = more;
                return Some((one.low, one.high));
            }
            let (other, others) = second.split_first()?;
            let both = (one.low.max(other.low), one.high.min(other.high));
            if one.high < other.high {
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

/// Whether there may be [`GRAPHIC_RUN`] bytes in a row above the space: three aligned words of four such bytes.
fn has_graphic_run(bytes: &[u8]) -> bool {
    const { assert!(GRAPHIC_RUN >= 3 + 3 * 4) };
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
