//! Marks that stand in texts for replaced values: `[redacted:<rule id>]`, and `[<kind>-<number>]` for masked ones.
//!
//! Only marks that these rules can write are recognised, so that no other text can be put into a mark to avoid being
//! scanned.

use std::ops::Range;

use memchr::memchr;

use crate::rule::RuleInfo;

const REDACTED: &str = "redacted:";
/// Maximum digits of the number of a mask.
const MAX_DIGITS: usize = 9;

/// The marks of an engine's rules.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// Sorted names that can follow the bracket: a complete name, or a prefix that ends with a dash
    /// and is followed by a number.
    names: Vec<String>,
    /// Bytes of the longest name including its number.
    max_name_len: usize,
}

/// A mark in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A complete mark, brackets included.
    Complete(Range<usize>),
    /// From this position on the text may be the beginning of a mark; the following text decides.
    Partial(usize),
}

impl RuleInfo {
    /// Returns the kind of value that the rule finds: the rule's id without the prefix that the
    /// rules of its pack share (`pii-email` finds an `email`).
    #[must_use]
    pub fn kind(&self) -> &str {
        match (&self.pack, self.id.split_once('-')) {
            (Some(_), Some((_, kind))) => kind,
            _ => &self.id,
        }
    }
}

impl Marks {
    pub(crate) fn from_rules<'r>(rules: impl Iterator<Item = &'r RuleInfo>) -> Self {
        let mut names: Vec<String> = rules
            .flat_map(|rule| [format!("{REDACTED}{}", rule.id), format!("{}-", rule.kind())])
            .collect();
        names.sort_unstable();
        names.dedup();
        let longest = names.iter().map(String::len).max().unwrap_or(0) + MAX_DIGITS;
        Self {
            names,
            max_name_len: longest,
        }
    }

    /// Returns the first mark that begins at or after `from`, a character boundary.
    #[must_use]
    pub fn find(&self, text: &str, from: usize) -> Option<Mark> {
        let bytes = text.as_bytes();
        let mut at = from;
        while let Some(found) = memchr(b'[', bytes.get(at..)?) {
            let start = at + found;
            at = start + 1;
            let rest = &bytes[at..bytes.len().min(at + self.max_name_len + 1)];
            let length = rest.iter().position(|byte| !is_name_byte(*byte));
            match length {
                Some(length) if rest[length] == b']' && self.is_name(&rest[..length]) => {
                    return Some(Mark::Complete(start..at + length + 1));
                }
                None if at + rest.len() == bytes.len() && self.is_name_prefix(rest) => {
                    return Some(Mark::Partial(start));
                }
                _ => {}
            }
        }
        None
    }

    fn is_name(&self, name: &[u8]) -> bool {
        let (head, digits) = split_number(name);
        let is_known = |name: &[u8]| {
            self.names
                .binary_search_by(|known| known.as_bytes().cmp(name))
                .is_ok()
        };
        (!name.ends_with(b"-") && is_known(name)) || (!digits.is_empty() && is_known(head))
    }

    fn is_name_prefix(&self, name: &[u8]) -> bool {
        let next = self.names.partition_point(|known| known.as_bytes() < name);
        let begins = self
            .names
            .get(next)
            .is_some_and(|known| known.as_bytes().starts_with(name));
        begins || self.is_name(name)
    }
}

fn is_name_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b':')
}

/// Splits a name into the part up to the dash before its number, and the number; the digits are empty if there is no number.
fn split_number(name: &[u8]) -> (&[u8], &[u8]) {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (head, digits) = name.split_at(name.len() - digits);
    let is_number = (1..=MAX_DIGITS).contains(&digits.len()) && digits[0] != b'0' && head.ends_with(b"-");
    (head, if is_number { digits } else { &[] })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Mark, Marks};
    use crate::{Engine, PolicyConfig};

    fn marks() -> Marks {
        let rule = |id: &str| serde_json::json!({"id": id, "reason": "r", "literals": ["x"]});
        let rules = serde_json::json!({"rules": [rule("staff"), rule("staff-2"), rule("mail")]});
        let config: PolicyConfig = serde_json::from_value(rules).unwrap();
        Engine::compile(&config).unwrap().marks().clone()
    }

    #[test]
    fn marks_of_known_rules_are_found_and_nothing_else() {
        let marks = marks();
        for text in [
            "[redacted:staff]",
            "[redacted:staff-2]",
            "[staff-1]",
            "[staff-2-256]",
            "[mail-999]",
        ] {
            let within = format!("a [{text}] b");
            assert_eq!(
                marks.find(&within, 0),
                Some(Mark::Complete(3..3 + text.len())),
                "{text}"
            );
            assert_eq!(marks.find(&within, 4), None, "{text}");
        }
        for text in [
            "[redacted:other]",
            "[redacted:staff sk-1]",
            "[redacted:Staff]",
            "[mail]",
            "[mail-]",
            "[mail-0]",
            "[mail-01]",
            "[mail-4111111111]",
            "[redacted:]",
            "[a",
            "[redacted:staff2",
            "[mail-1234567890",
            "[[",
            "",
        ] {
            let expected = (text == "[[").then_some(Mark::Partial(1));
            assert_eq!(marks.find(text, 0), expected, "{text}");
        }
    }

    #[test]
    fn what_may_become_a_mark_is_undecided() {
        let marks = marks();
        for whole in ["[redacted:staff-2]", "[staff-2-256]"] {
            for length in 1..whole.len() {
                let text = format!("[redacted:staff] ü {}", &whole[..length]);
                assert_eq!(marks.find(&text, 16), Some(Mark::Partial(20)), "{text}");
            }
        }
    }
}
