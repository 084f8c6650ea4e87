//! Searches a request for further occurrences of the values that are replaced in it: a secret that was found after its name
//! is also a secret without the name.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use proofgate_policy::{EvaluationError, RuleIndex, Step};
use proofgate_providers::BodyText;

use crate::spans::{MAX_MATCHES, Redaction, Spans};

/// Minimum bytes of a value that is searched for, and of one that may consist of letters only and is also found within
/// words: a short word may occur elsewhere with its ordinary meaning.
const MIN_VALUE_BYTES: usize = 6;
const MIN_EMBEDDED_BYTES: usize = 16;
/// Maximum number of different values, and of their total bytes.
const MAX_VALUES: usize = 1000;
const MAX_TOTAL_BYTES: usize = 64 * 1024;
/// Bytes of the text that are searched in one step.
const WINDOW_BYTES: usize = 128 * 1024;

/// A search for values in the text in which they were found.
#[derive(Debug)]
pub(crate) struct RepeatedValueSearch {
    automaton: AhoCorasick,
    /// For each value, the rule that found it, and whether it is masked.
    found_by: Vec<(RuleIndex, bool)>,
    max_len: usize,
    /// The end of the searched part of the text, and the occurrences found so far.
    searched_to: usize,
    found: Vec<Redaction>,
}

impl RepeatedValueSearch {
    /// Creates a search for the values that `redactions` replace; `None` if there is nothing to search for.
    pub(crate) fn new(text: &str, redactions: &[Redaction]) -> Option<Self> {
        let mut values: HashMap<&str, (RuleIndex, bool)> = HashMap::new();
        let mut bytes = 0;
        for redaction in redactions {
            let value = text
                .get(redaction.range.clone())
                .filter(|value| is_distinctive(value));
            if let Some(value) = value
                && (values.contains_key(value)
                    || (values.len() < MAX_VALUES && bytes + value.len() <= MAX_TOTAL_BYTES))
            {
                bytes += if values.contains_key(value) {
                    0
                } else {
                    value.len()
                };
                let known = values.entry(value).or_insert((redaction.rule, true));
                // A value that is redacted anywhere is redacted everywhere.
                known.1 &= redaction.is_masked;
            }
        }
        let (values, found_by): (Vec<&str>, Vec<_>) = values.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The smallest automaton that is fast enough.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&values);
        Some(RepeatedValueSearch {
            automaton: automaton.ok()?,
            found_by,
            max_len: values.iter().map(|value| value.len()).max()?,
            searched_to: 0,
            found: Vec::new(),
        })
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.automaton.memory_usage() + self.found.capacity() * size_of::<Redaction>()
    }

    /// Searches the next part of the text.
    ///
    /// # Errors
    /// [`EvaluationError`] if the values occur more often than the maximum number of matches of a text.
    pub(crate) fn step(&mut self, body: &BodyText) -> Result<Step, EvaluationError> {
        let text = body.text();
        let until = text.len().min(self.searched_to.saturating_add(WINDOW_BYTES));
        let end = text.len().min(until.saturating_add(self.max_len));
        let mut at = self.searched_to;
        while at < until {
            let Some(found) = self.automaton.find(Input::new(text).range(at..end)) else {
                break;
            };
            if found.start() >= until {
                break;
            }
            at = match is_standalone(text.as_bytes(), found.start(), found.end()) {
                true => found.end(),
                false => found.start() + 1,
            };
            if let Some((rule, is_masked)) = self.found_by.get(found.pattern().as_usize())
                && at == found.end()
            {
                let part = found.start()..found.end();
                if body.align_to_escapes(part.clone()) == part {
                    self.found.push(Redaction::new(*rule, part, *is_masked));
                }
            }
        }
        if self.found.len() > MAX_MATCHES {
            return Err(EvaluationError::BudgetExceeded);
        }
        self.searched_to = until.max(at);
        Ok(match self.searched_to < text.len() {
            true => Step::Pending,
            false => Step::Done,
        })
    }

    /// Returns all redactions, including `redactions` found by rules.
    pub(crate) fn merge_with(mut self, redactions: Spans) -> Spans {
        self.found.extend(redactions.into_redactions());
        self.found
            .sort_unstable_by_key(|found| (found.range.start, found.range.end, found.rule));
        let mut all = Spans::default();
        for Redaction {
            rule,
            range,
            is_masked,
            ..
        } in self.found
        {
            all.add(rule, range, is_masked);
        }
        all
    }
}

/// Whether a value has the same meaning wherever it occurs.
fn is_distinctive(value: &str) -> bool {
    let is_word = || value.chars().all(char::is_alphabetic);
    value.len() >= MIN_EMBEDDED_BYTES || (value.len() >= MIN_VALUE_BYTES && !is_word())
}

/// Whether a value is long, or not part of a longer word.
fn is_standalone(text: &[u8], start: usize, end: usize) -> bool {
    let in_word = |place: usize| {
        let byte = text.get(place).copied().unwrap_or(b' ');
        byte.is_ascii_alphanumeric() || byte == b'_'
    };
    let joins = |before: usize| in_word(before) && in_word(before + 1);
    end - start >= MIN_EMBEDDED_BYTES || !(start > 0 && joins(start - 1) || joins(end - 1))
}

#[cfg(test)]
mod tests {
    use proofgate_policy::{Engine, PolicyConfig, RuleIndex, Step};
    use proofgate_providers::BodyText;

    use super::{RepeatedValueSearch, WINDOW_BYTES};
    use crate::spans::Spans;

    fn rule() -> RuleIndex {
        let rule = serde_json::json!({"id": "a", "reason": "b", "literals": ["c"]});
        let config: PolicyConfig = serde_json::from_value(serde_json::json!({"rules": [rule]})).unwrap();
        let engine = Engine::compile(&config).unwrap();
        let profile = engine.profile(None).unwrap();
        let (mut found, mut scratch) = (Vec::new(), proofgate_policy::Scratch::new());
        let mut budget = proofgate_policy::Budget::unlimited();
        let scope = proofgate_policy::Scope::User;
        engine
            .scan(&profile, scope, "c", &mut budget, &mut scratch, &mut found)
            .unwrap();
        found[0].rule
    }

    /// Returns the text with all redactions replaced by `_`, if a rule found only the first `value` in it.
    fn replaced(text: &str, value: &str) -> String {
        let start = text.find(value).unwrap();
        let mut spans = Spans::default();
        spans.add(rule(), start..start + value.len(), false);
        if let Some(mut search) = RepeatedValueSearch::new(text, spans.as_slice()) {
            let mut body = BodyText::new();
            body.collect_plain_text(text);
            while search.step(&body).unwrap() == Step::Pending {}
            spans = search.merge_with(spans);
        }
        let mut out = text.to_owned();
        for redaction in spans.into_redactions().into_iter().rev() {
            out.replace_range(redaction.range, "_");
        }
        out
    }

    #[test]
    fn a_value_is_found_wherever_it_stands() {
        assert_eq!(
            replaced("key=x9Kq2LmZ x9Kq2LmZ\n(x9Kq2LmZ)", "x9Kq2LmZ"),
            "key=_ _\n(_)"
        );
        assert_eq!(
            replaced("=x9Kq2LmZ7vR4tY6u ax9Kq2LmZ7vR4tY6ub", "x9Kq2LmZ7vR4tY6u"),
            "=_ a_b"
        );
    }

    #[test]
    fn a_short_value_is_not_found_in_a_longer_word_nor_if_it_is_a_word_itself() {
        assert_eq!(
            replaced("=x9Kq2L x9Kq2LmZ ax9Kq2L x9Kq2L", "x9Kq2L"),
            "=_ x9Kq2LmZ ax9Kq2L _"
        );
        assert_eq!(replaced("=postgres in postgres", "postgres"), "=_ in postgres");
        assert_eq!(replaced("=a1 a1", "a1"), "=_ a1");
    }

    #[test]
    fn a_value_over_the_edge_of_a_window_is_found() {
        for before in WINDOW_BYTES - 12..WINDOW_BYTES + 2 {
            let text = format!("=x9Kq2LmZ {} x9Kq2LmZ x9Kq2LmZ", "y".repeat(before));
            assert!(replaced(&text, "x9Kq2LmZ").ends_with("y _ _"));
        }
    }
}
