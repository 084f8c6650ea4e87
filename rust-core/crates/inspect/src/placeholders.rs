//! What stands for a value that is masked: `[email-1]` for the first e-mail address of a request.
//!
//! The number of a value is that of its first appearance, so that a value keeps it while a conversation only grows, and the
//! provider finds what it has cached.

use std::collections::{HashMap, HashSet};

use proofgate_policy::Engine;

use crate::masks::is_plain;
use crate::spans::Redaction;

/// Different values that are masked in one request; more are redacted.
const MAX_MASKED_VALUES: usize = 256;
/// Bytes of the longest value that is masked.
const MAX_VALUE_BYTES: usize = 1024;

/// A masked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// What takes its place.
    pub name: String,
    /// What is put back in the answer.
    pub value: String,
}

/// Gives every masked value of a text its placeholder, in order of appearance, with numbers behind `last`. What cannot be put
/// back is redacted.
pub(crate) fn assign(
    engine: &Engine,
    text: &str,
    last: u32,
    redactions: &mut [Redaction],
) -> Vec<Placeholder> {
    let mut placeholders = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut kinds: HashMap<&str, PlaceholderNumbers> = HashMap::new();
    for redaction in redactions.iter_mut().filter(|redaction| redaction.is_masked) {
        let value = text.get(redaction.range.clone()).unwrap_or_default();
        redaction.mask = match known.get(value) {
            Some(number) => Some(*number),
            None if placeholders.len() == MAX_MASKED_VALUES
                || value.len() > MAX_VALUE_BYTES
                || !value.chars().all(is_plain) =>
            {
                None
            }
            None => {
                let kind = engine.rule(redaction.rule).kind();
                let number = kinds
                    .entry(kind)
                    .or_insert_with(|| PlaceholderNumbers::unused_in(text, kind, last))
                    .next();
                placeholders.push(Placeholder {
                    name: format!("[{kind}-{number}]"),
                    value: value.to_owned(),
                });
                known.insert(value, placeholders.len() - 1);
                Some(placeholders.len() - 1)
            }
        };
    }
    placeholders
}

/// The numbers of one kind that no text of the request has in a placeholder already.
struct PlaceholderNumbers {
    used: HashSet<u32>,
    last: u32,
}

impl PlaceholderNumbers {
    fn unused_in(text: &str, kind: &str, last: u32) -> Self {
        let begin = format!("[{kind}-");
        let taken = text.match_indices(&begin).filter_map(|(at, _)| {
            let (number, _) = text.get(at + begin.len()..)?.split_once(']')?;
            number.parse().ok()
        });
        PlaceholderNumbers {
            used: taken.collect(),
            last,
        }
    }

    fn next(&mut self) -> u32 {
        loop {
            self.last = self.last.saturating_add(1);
            if !self.used.contains(&self.last) || self.last == u32::MAX {
                return self.last;
            }
        }
    }
}
