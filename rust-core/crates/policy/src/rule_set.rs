//! A set of rules as a bitmap.

use crate::RuleIndex;

/// Maximum number of rules of an engine.
pub(crate) const MAX_RULES: usize = 1024;
const WORD_COUNT: usize = MAX_RULES / 64;

/// A subset of the rules of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSet {
    words: [u64; WORD_COUNT],
}

impl Default for RuleSet {
    fn default() -> Self {
        Self {
            words: [0; WORD_COUNT],
        }
    }
}

impl RuleSet {
    /// Adds a rule; returns whether it is new.
    pub(crate) fn insert(&mut self, rule: RuleIndex) -> bool {
        let new = !self.contains(rule);
        self.words[rule.position() / 64] |= 1 << (rule.position() % 64);
        new
    }

    pub(crate) fn contains(&self, rule: RuleIndex) -> bool {
        self.words[rule.position() / 64] & (1 << (rule.position() % 64)) != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Appends its bits, for the maximum number of rules.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes());
        out.extend(bytes);
    }

    /// Iterates in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RuleIndex> {
        (0..MAX_RULES as u16)
            .map(RuleIndex)
            .filter(|rule| self.contains(*rule))
    }
}
