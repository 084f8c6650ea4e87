//! Exemptions: values that a policy allows, and values that occur only in documentation.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::addresses::{Address, all_addresses, is_domain_or_subdomain};
use crate::documentation::{is_example_value, is_published_example};
use crate::fold::fold_text;
use crate::fold_table::FoldTable;
use crate::{PolicyError, View};

/// Maximum number of entries in each list.
const MOST_ENTRIES: usize = 1024;
/// Maximum bytes of an entry.
const LONGEST_ENTRY: usize = 1024;
/// The pack with the rules for credentials. A domain or pattern does not exempt a credential inside an address.
const SECRETS: &str = "secrets";

/// Values that no rule of a policy matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyAllowList {
    /// Allowed values: no rule matches them. Rules on the folded copy ignore case.
    pub values: Vec<String>,
    /// Allowed domains, with their subdomains: a rule does not match a text that contains only mail addresses and URLs of
    /// these domains. Rules of the pack `secrets` are not affected.
    pub domains: Vec<String>,
    /// Allowed patterns of mail addresses and URLs, with the same effect as domains; `*` matches any characters.
    pub patterns: Vec<String>,
}

/// Exemptions that all rules of an engine share.
#[derive(Debug, Default)]
struct Allowed {
    values: HashSet<Vec<u8>>,
    folded_values: HashSet<Vec<u8>>,
    domains: Vec<String>,
    patterns: Vec<String>,
}

/// Exemptions of one rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exemptions {
    allowed: Arc<Allowed>,
    view: View,
    addresses: bool,
    documentation: bool,
}

impl Exemptions {
    /// Compiles the exemptions that all rules share.
    ///
    /// # Errors
    /// [`PolicyError::InvalidSetting`] if an entry is empty or too long, or a list is too long.
    pub(crate) fn compile(config: &PolicyAllowList, table: &FoldTable) -> Result<Self, PolicyError> {
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

    /// Returns the exemptions of a rule with this view and pack. `documentation`: whether values that occur only in
    /// documentation are exempt.
    pub(crate) fn for_rule(&self, view: View, pack: Option<&str>, documentation: bool) -> Self {
        Self {
            allowed: Arc::clone(&self.allowed),
            view,
            addresses: pack != Some(SECRETS),
            documentation,
        }
    }

    /// Whether a match of the rule, in its view, is exempt.
    pub(crate) fn is_exempt(&self, matched: &[u8]) -> bool {
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
            domains
                .iter()
                .any(|domain| is_domain_or_subdomain(address.host, domain))
                || patterns.iter().any(|pattern| is_like(address.full, pattern))
        };
        let is_nobodys = if self.addresses {
            is_example_value
        } else {
            is_published_example
        };
        (asks && all_addresses(&matched, is_allowed)) || (self.documentation && is_nobodys(&matched))
    }
}

/// Whether a text matches a pattern, in which `*` stands for any characters.
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
