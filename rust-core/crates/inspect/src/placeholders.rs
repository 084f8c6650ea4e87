//! Placeholders for masked values: `[email-1]` for the first e-mail address of a request.
//!
//! Values are numbered by first appearance, so that a value keeps its number while a conversation only grows, and the
//! provider can use its prompt cache.

use std::collections::{HashMap, HashSet};

use proofgate_policy::Engine;

use crate::masks::is_plain;
use crate::spans::Redaction;

/// Maximum number of different masked values in a request; further ones are redacted.
const MAX_MASKED_VALUES: usize = 256;
/// Maximum bytes of a masked value.
const MAX_VALUE_BYTES: usize = 1024;

/// A masked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// The text that replaces it.
    pub name: String,
    /// The original, which is restored in the response.
    pub value: String,
}

/// Assigns a placeholder to every masked value of a text, in order of appearance, numbered after `last`. A value that cannot
/// be restored is redacted.
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

/// The numbers of one kind that no placeholder in the text of the request uses yet.
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
