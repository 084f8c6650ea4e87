//! Positions where a match of a rule can begin.

use crate::RuleIndex;

/// A range of positions where a match of a triggered rule can begin: `min_start` to `max_start`, counted from the first
/// undecided position. If the rule has several needles, `needle` is the one that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) rule: RuleIndex,
    pub(crate) needle: u8,
    pub(crate) min_start: usize,
    pub(crate) max_start: usize,
    /// The position of the needle's literal.
    pub(crate) literal_position: usize,
}

impl Hit {
    /// Creates a hit for a rule without needles.
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
