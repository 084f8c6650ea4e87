//! Where a match of a rule can begin.

use crate::RuleIndex;

/// A rule was woken: its matches can begin at `low` to `high`, counted from the first place that is to be decided. If the
/// rule has several needles, `needle` says which of them was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) rule: RuleIndex,
    pub(crate) needle: u8,
    pub(crate) min_start: usize,
    pub(crate) max_start: usize,
    /// Where the needle's literal stands.
    pub(crate) literal_position: usize,
}

impl Hit {
    /// Of a rule without needles.
    pub(crate) fn new(rule: RuleIndex, low: usize, high: usize) -> Self {
        Self {
            rule,
            needle: 0,
            min_start: low,
            max_start: high,
            literal_position: low,
        }
    }
}
