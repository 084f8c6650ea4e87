//! Exempt values, which are not reported (SEMANTICS.md, "Matches of a rule in one text"), by regexes.

use std::sync::{Arc, LazyLock};

use proofgate_policy::{PolicyAllowList, View};
use regex::Regex;
use toml::Table;

use super::fold;

static FILE: LazyLock<Table> =
    LazyLock::new(|| include_str!("../../src/documentation.toml").parse().unwrap());
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        "(?P<local>[a-z0-9._%+-]*)@(?P<mail>[a-z0-9.-]*)",
        r#"|[a-z0-9]*://(?:[^/?#\t\n\x0c\r "'<>()`]*@)?(?P<url>[^@:/?#\t\n\x0c\r "'<>()`]*)[^\t\n\x0c\r "'<>()`]*"#
    ))
    .unwrap()
});
static NETWORK: LazyLock<Regex> = LazyLock::new(|| compiled(r"\A(?:{})[0-9a-f.:]*\z", "networks"));
static MAILBOX: LazyLock<Regex> = LazyLock::new(|| compiled(r"\A(?:{})(?:\+|\z)", "mailboxes"));
static DOMAIN: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?:\A|\.)(?:{})\z", "domains"));
static EXAMPLE: LazyLock<Regex> = LazyLock::new(|| {
    let country = r"(?:ac|co|com|edu|gov|net|org)\.[a-z]{2}";
    Regex::new(&format!(
        r"(?:\A|\.)example\.(?:[^.]*|{country})\z|(?:\A|\.)noreply(?:\.|\z)"
    ))
    .unwrap()
});

fn list(name: &str) -> Vec<&'static str> {
    let entries = FILE[name].as_array().unwrap();
    entries.iter().map(|entry| entry.as_str().unwrap()).collect()
}

/// Returns a regex in which `{}` matches any entry of a list.
fn compiled(pattern: &str, name: &str) -> Regex {
    let entries: Vec<_> = list(name).into_iter().map(regex::escape).collect();
    Regex::new(&pattern.replace("{}", &entries.join("|"))).unwrap()
}

/// Exemptions of one rule.
#[derive(Clone, Default)]
pub struct Exemptions {
    allow: Arc<PolicyAllowList>,
    looks_at_addresses: bool,
    documentation: bool,
}

impl Exemptions {
    pub fn new(allow: &Arc<PolicyAllowList>, pack: Option<&str>, documentation: bool) -> Self {
        Self {
            allow: Arc::clone(allow),
            looks_at_addresses: pack != Some("secrets"),
            documentation,
        }
    }

    pub fn spares(&self, table: &fold::Table, view: View, value: &str) -> bool {
        let is_value = |allowed: &String| match view {
            View::Text => value == allowed,
            View::Folded => value == table.copy(allowed).0,
        };
        let lower = value.to_ascii_lowercase();
        let is_allowed = |address: &str, host: &str| {
            let within = self.allow.domains.iter().any(|domain| {
                let domain = domain.to_ascii_lowercase();
                host == domain || host.ends_with(&format!(".{domain}"))
            });
            within
                || self.allow.patterns.iter().any(|pattern| {
                    let pattern = pattern.to_ascii_lowercase();
                    let parts: Vec<_> = pattern.split('*').map(regex::escape).collect();
                    let whole = format!(r"(?s)\A{}\z", parts.join(".*"));
                    Regex::new(&whole).unwrap().is_match(address)
                })
        };
        self.allow.values.iter().any(is_value)
            || (self.looks_at_addresses && all_addresses(&lower, is_allowed))
            || (self.documentation && self.is_documentation(&lower))
    }

    fn is_documentation(&self, lower: &str) -> bool {
        if !self.looks_at_addresses {
            return list("keys").contains(&lower) || list("parts").iter().any(|part| lower.contains(part));
        }
        let digits: String = lower.chars().filter(char::is_ascii_digit).collect();
        let is_number = lower.chars().all(|character| "0123456789 -".contains(character));
        all_addresses(lower, |address, host| {
            let is_mailbox = address.contains('@')
                && !address.contains("://")
                && MAILBOX.is_match(address.split('@').next().unwrap());
            is_mailbox || DOMAIN.is_match(host) || EXAMPLE.is_match(host)
        }) || NETWORK.is_match(lower)
            || (is_number && list("cards").contains(&digits.as_str()))
    }
}

/// Whether a text contains addresses and `is_such` accepts all of them: the address and its host.
fn all_addresses(lower: &str, is_such: impl Fn(&str, &str) -> bool) -> bool {
    let mut addresses = ADDRESS.captures_iter(lower).peekable();
    addresses.peek().is_some()
        && addresses.all(|address| {
            let host = match address.name("mail") {
                Some(mail) => mail.as_str().trim_end_matches('.'),
                None => address.name("url").unwrap().as_str(),
            };
            is_such(&address[0], host)
        })
}
