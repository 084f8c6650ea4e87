//! What no rule matches: what a policy allows, and what stands in documentation only.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::addresses::{Address, all_addresses, is_within};
use crate::documentation::{is_documentation, is_published};
use crate::fold::fold_text;
use crate::fold_table::FoldTable;
use crate::{PolicyError, View};

/// Entries that each list may have.
const MOST_ENTRIES: usize = 1024;
/// Bytes that an entry may have.
const LONGEST_ENTRY: usize = 1024;
/// The pack whose rules are about credentials: about what stands in an address, and not about the address.
const SECRETS: &str = "secrets";

/// What no rule of a policy matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allow {
    /// Values: a rule does not match what is one of them, in any case if it looks at the folded copy.
    pub values: Vec<String>,
    /// Domains: a rule, but for those of the pack `secrets`, does not match what holds only mail addresses and URLs of these
    /// or of domains below them.
    pub domains: Vec<String>,
    /// Patterns of mail addresses and URLs, in which `*` stands for any characters, in the same way.
    pub patterns: Vec<String>,
}

/// What all rules of an engine spare.
#[derive(Debug, Default)]
struct Allowed {
    values: HashSet<Vec<u8>>,
    folded_values: HashSet<Vec<u8>>,
    domains: Vec<String>,
    patterns: Vec<String>,
}

/// What one rule does not match.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exemptions {
    allowed: Arc<Allowed>,
    view: View,
    addresses: bool,
    documentation: bool,
}

impl Exemptions {
    /// Of no rule yet.
    ///
    /// # Errors
    /// [`PolicyError::InvalidSetting`] when an entry is empty or too long, or a list is.
    pub(crate) fn compile(config: &Allow, table: &FoldTable) -> Result<Self, PolicyError> {
        for list in [&config.values, &config.domains, &config.patterns] {
            let fits = |entry: &String| !entry.trim().is_empty() && entry.len() <= LONGEST_ENTRY;
            if list.len() > MOST_ENTRIES || !list.iter().all(fits) {
                let reason = format!(
                    "a list can have at most {MOST_ENTRIES} entries, each of 1 to {LONGEST_ENTRY} bytes and not blank"
                );
                return Err(PolicyError::InvalidSetting {
                    field: "allow",
                    reason,
                });
            }
        }
        let values = config.values.iter();
        let allowed = Allowed {
            values: values.clone().map(|value| value.clone().into_bytes()).collect(),
            folded_values: values.map(|value| fold_text(table, value).into_bytes()).collect(),
            domains: config
                .domains
                .iter()
                .map(|domain| domain.to_ascii_lowercase())
                .collect(),
            patterns: config
                .patterns
                .iter()
                .map(|pattern| pattern.to_ascii_lowercase())
                .collect(),
        };
        Ok(Self {
            allowed: Arc::new(allowed),
            ..Self::default()
        })
    }

    /// Of a rule of this view and pack. `documentation`: whether it spares what stands in documentation only.
    pub(crate) fn of_rule(&self, view: View, pack: Option<&str>, documentation: bool) -> Self {
        Self {
            allowed: Arc::clone(&self.allowed),
            view,
            addresses: pack != Some(SECRETS),
            documentation,
        }
    }

    /// Whether the rule does not match this, of its view, after all.
    pub(crate) fn spares(&self, matched: &[u8]) -> bool {
        let Allowed {
            values,
            folded_values,
            domains,
            patterns,
        } = &*self.allowed;
        let values = match self.view {
            View::Text => values,
            View::Folded => folded_values,
        };
        if values.contains(matched) {
            return true;
        }
        let asks = self.addresses && !(domains.is_empty() && patterns.is_empty());
        if !asks && !self.documentation {
            return false;
        }
        let Ok(matched) = std::str::from_utf8(matched) else {
            return false;
        };
        let matched = matched.to_ascii_lowercase();
        let is_allowed = |address: &Address<'_>| {
            domains.iter().any(|domain| is_within(address.host, domain))
                || patterns.iter().any(|pattern| is_like(address.full, pattern))
        };
        let is_nobodys = if self.addresses {
            is_documentation
        } else {
            is_published
        };
        (asks && all_addresses(&matched, is_allowed)) || (self.documentation && is_nobodys(&matched))
    }
}

/// Whether a text is what a pattern says, in which `*` stands for any characters.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(between) = last.replace(part) {
            let Some((_, behind)) = rest.split_once(between) else {
                return false;
            };
            rest = behind;
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (text, pattern, like) in [
            ("ann@acme.com", "*@acme.com", true),
            ("ann@acme.com", "ann@acme.com", true),
            ("ann@acme.com", "a*@*.com", true),
            ("ann@acme.com.evil.net", "*@acme.com", false),
            ("https://acme.com/a/b", "https://acme.com/*", true),
            ("https://acme.com.evil.net/", "https://acme.com/*", false),
            ("ab", "ab*b", false),
            ("anything", "*", true),
        ] {
            assert_eq!(is_like(text, pattern), like, "{text} {pattern}");
        }
    }
}
