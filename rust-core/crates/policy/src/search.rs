//! Searches for the matches of one rule where they can begin.

use regex_automata::{Anchored, Input, hybrid, meta};

use crate::EvaluationError;
use crate::budget::Clock;
use crate::fold_table::plain_byte;
use crate::hit::Hit;
use crate::hit_search;
use crate::match_range::MatchRange;
use crate::rule::Rule;
use crate::trigger::Trigger;

/// Maximum length of a range that is tried position by position even if the matches are short.
const SHORT_RANGE: usize = 64;
/// Maximum bytes that trying each position may read, per byte that a search would read.
const MAX_READ_FACTOR: usize = 4;

/// Caches that a pattern reuses between texts, once it was searched for.
#[derive(Default)]
pub(crate) struct PatternCaches {
    regex: Option<meta::Cache>,
    anchor: Option<hybrid::dfa::Cache>,
}

impl Rule {
    fn needle_count(&self) -> usize {
        if let Trigger::Needles(needles) = &self.trigger {
            needles.len()
        } else {
            1
        }
    }

    /// Calls `found` with the values of the matches that begin in the ranges of `hits`, after `consumed`. Returns the end of
    /// the last candidate, whether or not it passed the rule's check.
    pub(crate) fn search(
        &self,
        caches: &mut PatternCaches,
        ground: &MatchRange<'_>,
        hits: &[Hit],
        mut consumed: usize,
        clock: &mut Clock<'_>,
        mut found: impl FnMut(usize, usize),
    ) -> Result<usize, EvaluationError> {
        let MatchRange { bytes, from, to, .. } = *ground;
        let PatternCaches { regex, anchor } = caches;
        let regex = regex.get_or_insert_with(|| self.pattern.regex.create_cache());
        for (low, high) in hit_search::hit_ranges(hits, self.needle_count()) {
            if low >= to - from {
                break;
            }
            let low = from + low;
            let high = from.saturating_add(high).min(to - 1);
            // If matches are long and few bytes are read at each position, trying each position of
            // a range costs less than a search, which does not know where to stop.
            let stretch = high - low;
            let mut is_short = stretch < self.pattern.max_len.max(SHORT_RANGE);
            let mut left = (stretch + self.pattern.max_len).saturating_mul(MAX_READ_FACTOR);
            let mut at = low.max(consumed);
            while at <= high {
                if is_short {
                    if !self.pattern.start_bytes.can_start_at(bytes, at) {
                        at += 1;
                        continue;
                    }
                    let (holds, length) = self.pattern.anchor.check_start(anchor, bytes, at)?;
                    clock.charge_pass(length)?;
                    if !holds {
                        at += 1;
                        is_short = left > length;
                        left = left.saturating_sub(length);
                        continue;
                    }
                }
                let end = bytes
                    .len()
                    .min(if is_short { at } else { high } + self.pattern.max_len + 4);
                clock.charge_search(end - at)?;
                let anchored = if is_short { Anchored::Yes } else { Anchored::No };
                let input = Input::new(bytes).range(at..end).anchored(anchored);
                let candidate = match self.pattern.regex.search_with(regex, &input) {
                    Some(candidate) if candidate.start() <= high => candidate,
                    _ if is_short => {
                        at += 1;
                        is_short = left > end - at;
                        left = left.saturating_sub(end - at);
                        continue;
                    }
                    _ => break,
                };
                let matched = &bytes[candidate.range()];
                if !self.required.is_empty()
                    && !self.required.iter().any(|literal| contains(matched, literal))
                {
                    at = candidate.start() + 1;
                    continue;
                }
                consumed = candidate.end();
                at = consumed;
                let value = self.pattern.value(regex, bytes, candidate.range(), end);
                let matched = &bytes[value.clone()];
                if self.check.is_none_or(|check| check(matched)) && !self.exemptions.is_exempt(matched) {
                    found(value.start, value.end);
                }
            }
        }
        Ok(consumed)
    }
}

/// Whether the plain copy of `text` contains `literal`.
fn contains(text: &[u8], literal: &[u8]) -> bool {
    text.windows(literal.len()).any(|window| {
        window
            .iter()
            .map(|byte| plain_byte(*byte))
            .eq(literal.iter().copied())
    })
}
