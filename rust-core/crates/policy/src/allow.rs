//! What no rule matches: what a policy allows, and what stands in documentation only.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::documentation::{is_documentation, is_published};
use crate::fold::folded;
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
pub(crate) struct Spared {
    allowed: Arc<Allowed>,
    view: View,
    addresses: bool,
    documentation: bool,
}

impl Spared {
    /// Of no rule yet.
    ///
    /// # Errors
    /// [`PolicyError::Setting`] when an entry is empty or too long, or a list is.
    pub(crate) fn compile(config: &Allow, table: &FoldTable) -> Result<Self, PolicyError> {
        for list in [&config.values, &config.domains, &config.patterns] {
            let fits = |entry: &String| !entry.trim().is_empty() && entry.len() <= LONGEST_ENTRY;
            if list.len() > MOST_ENTRIES || !list.iter().all(fits) {
                let reason = format!(
                    "a list has at most {MOST_ENTRIES} entries, each of 1 to {LONGEST_ENTRY} bytes and not blank"
                );
                return Err(PolicyError::Setting {
                    field: "allow",
                    reason,
                });
            }
        }
        let values = config.values.iter();
        let allowed = Allowed {
            values: values.clone().map(|value| value.clone().into_bytes()).collect(),
            folded_values: values.map(|value| folded(table, value).into_bytes()).collect(),
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
                || patterns.iter().any(|pattern| is_like(address.whole, pattern))
        };
        let is_nobodys = if self.addresses {
            is_documentation
        } else {
            is_published
        };
        (asks && all_addresses(&matched, is_allowed)) || (self.documentation && is_nobodys(&matched))
    }
}

/// A mail address or a URL in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address<'t> {
    pub(crate) whole: &'t str,
    /// What stands before the `@` of a mail address; empty of a URL.
    pub(crate) local: &'t str,
    pub(crate) host: &'t str,
}

/// Whether a text in lower case has addresses, and all of them are such.
pub(crate) fn all_addresses(text: &str, is_such: impl Fn(&Address<'_>) -> bool) -> bool {
    let (mut rest, mut any) = (text, false);
    while let Some((address, behind)) = next_address(rest) {
        if !is_such(&address) {
            return false;
        }
        (rest, any) = (behind, true);
    }
    any
}

/// The first address of a text in lower case, and what stands behind it.
fn next_address(text: &str) -> Option<(Address<'_>, &str)> {
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_of_local = |byte: u8| is_of_host(byte) || matches!(byte, b'_' | b'%' | b'+');
    let ends_url = |byte: u8| {
        byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'(' | b')' | b'`')
    };
    let bytes = text.as_bytes();
    let (mail, url) = (text.find('@'), text.find("://"));
    if let Some(colon) = url.filter(|colon| mail.is_none_or(|at| *colon < at)) {
        let scheme = bytes[..colon]
            .iter()
            .rposition(|byte| !byte.is_ascii_alphanumeric());
        let start = scheme.map_or(0, |before| before + 1);
        let begin = colon + 3;
        let length = bytes[begin..].iter().position(|byte| ends_url(*byte));
        let end = length.map_or(text.len(), |length| begin + length);
        let authority = text
            .get(begin..end)?
            .split(['/', '?', '#'])
            .next()
            .unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let address = Address {
            whole: text.get(start..end)?,
            local: "",
            host: host.split(':').next().unwrap_or_default(),
        };
        return Some((address, text.get(end..)?));
    }
    let at = mail?;
    let before = bytes[..at].iter().rposition(|byte| !is_of_local(*byte));
    let start = before.map_or(0, |before| before + 1);
    let length = bytes[at + 1..].iter().position(|byte| !is_of_host(*byte));
    let end = length.map_or(text.len(), |length| at + 1 + length);
    let address = Address {
        whole: text.get(start..end)?,
        local: text.get(start..at)?,
        host: text.get(at + 1..end)?.trim_end_matches('.'),
    };
    Some((address, text.get(end..)?))
}

/// Whether a host is a domain or lies below it.
pub(crate) fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|below| below.is_empty() || below.ends_with('.'))
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
    use super::{Address, is_like, is_within, next_address};

    #[test]
    fn an_address_is_read_with_what_belongs_to_it() {
        for (text, whole, local, host) in [
            (
                "mail ann.b@mail.acme.com now",
                "ann.b@mail.acme.com",
                "ann.b",
                "mail.acme.com",
            ),
            (
                "(https://acme.com:8443/a?b=c) x",
                "https://acme.com:8443/a?b=c",
                "",
                "acme.com",
            ),
            (
                "http://ann:pw@acme.com/x",
                "http://ann:pw@acme.com/x",
                "",
                "acme.com",
            ),
            ("x@acme.com.", "x@acme.com.", "x", "acme.com"),
        ] {
            let address = Address { whole, local, host };
            assert_eq!(next_address(text).unwrap().0, address);
        }
        assert_eq!(next_address("nothing here"), None);
    }

    #[test]
    fn a_domain_holds_what_lies_below_it_and_not_what_ends_alike() {
        assert!(is_within("acme.com", "acme.com") && is_within("a.acme.com", "acme.com"));
        assert!(!is_within("notacme.com", "acme.com") && !is_within("acme.com.evil.net", "acme.com"));
    }

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
