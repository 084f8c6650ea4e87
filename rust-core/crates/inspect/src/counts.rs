//! Numbers of replacements by rule.

use std::fmt::{self, Display};

use proofgate_policy::{Engine, RuleIndex};

/// The number of replaced parts for each rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplacementCounts(Vec<(RuleIndex, u32)>);

impl ReplacementCounts {
    /// Counts one more part that a rule replaced.
    pub(crate) fn add(&mut self, rule: RuleIndex) {
        let place = self.0.partition_point(|(known, _)| *known < rule);
        match self.0.get_mut(place) {
            Some((known, count)) if *known == rule => *count = count.saturating_add(1),
            _ => self.0.insert(place, (rule, 1)),
        }
    }

    /// Whether nothing was replaced.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the comment that reports the counts in an event stream.
    pub fn sse_comment(&self, engine: &Engine) -> Vec<u8> {
        format!(": proofgate redacted {}\n\n", self.display(engine)).into_bytes()
    }

    /// Displays the ids of the rules with their counts, as in `pii-email=2, pii-iban=1`.
    pub fn display<'c>(&'c self, engine: &'c Engine) -> impl Display + 'c {
        CountsDisplay { counts: self, engine }
    }
}

impl FromIterator<RuleIndex> for ReplacementCounts {
    fn from_iter<T: IntoIterator<Item = RuleIndex>>(rules: T) -> Self {
        let mut counts = ReplacementCounts::default();
        rules.into_iter().for_each(|rule| counts.add(rule));
        counts
    }
}

struct CountsDisplay<'c> {
    counts: &'c ReplacementCounts,
    engine: &'c Engine,
}

impl Display for CountsDisplay<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (rule, count)) in self.counts.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{}={count}", self.engine.rule(*rule).id)?;
        }
        Ok(())
    }
}
