//! A second engine, written from SEMANTICS.md: every rule is tried on the whole of every text, without filters, windows or
//! streams.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod checks;
mod derived;
mod fold;
mod spared;

use std::sync::Arc;

use proofgate_policy::{Pack, PolicyAllowList, RuleSpec, Scope, Target, View, pattern_pack_names};
use regex::Regex;

use crate::support::Found;
use fold::Table;
use spared::Exemptions;

struct Rule {
    id: String,
    target: Target,
    view: View,
    regex: Regex,
    required: Vec<String>,
    check: Option<fn(&str) -> bool>,
    spared: Exemptions,
}

pub struct Reference {
    table: Table,
    rules: Vec<Rule>,
}

impl Reference {
    /// Returns the rules of all built-in packs.
    pub fn built_in() -> Self {
        Self::allowing(&PolicyAllowList::default())
    }

    /// Returns the rules of all built-in packs, with exemptions.
    pub fn allowing(allow: &PolicyAllowList) -> Self {
        let (table, allow) = (Table::read(), Arc::new(allow.clone()));
        let packs = pattern_pack_names().map(|name| Pack::built_in(name).unwrap());
        let rules = packs.flat_map(|pack| {
            let spared = Exemptions::new(&allow, Some(&pack.name), pack.spares_documentation);
            let rules = pack.rules.iter();
            let rules = rules.map(|spec| rule(spec, &spared, &table));
            rules.collect::<Vec<_>>()
        });
        Self {
            rules: rules.collect(),
            table,
        }
    }

    pub fn of(specs: &[RuleSpec]) -> Self {
        let table = Table::read();
        let rules = specs
            .iter()
            .map(|spec| rule(spec, &Exemptions::default(), &table))
            .collect();
        Self { table, rules }
    }

    pub fn found(&self, scope: Scope, text: &str) -> Found {
        let mut found = Found::new();
        self.scan(scope, text, None, 0, &mut found);
        found
    }

    fn scan(
        &self,
        scope: Scope,
        text: &str,
        within: Option<&dyn Fn(usize, usize) -> (usize, usize)>,
        level: usize,
        found: &mut Found,
    ) {
        let (copy, origins) = self.table.copy(text);
        let looks = |rule: &&Rule| rule.target.includes(scope.direction());
        for rule in self.rules.iter().filter(looks) {
            let hay = if rule.view == View::Text { text } else { &copy };
            for (start, end) in rule.matches(&self.table, hay) {
                let span = match rule.view {
                    View::Text => (start, end),
                    View::Folded => (origins[start].0, origins[end - 1].1),
                };
                let (start, end) = within.map_or(span, |within| within(span.0, span.1));
                found.insert((rule.id.clone(), start, end));
            }
        }
        if level < 2 {
            for derived in derived::derived(text) {
                // The text before the first escape keeps its position.
                let place = |at: usize, _: usize| {
                    let (start, end) = (derived.start + at.min(derived.plain), derived.end);
                    within.map_or((start, end), |within| within(start, end))
                };
                self.scan(scope, &derived.text, Some(&place), level + 1, found);
            }
        }
    }
}

impl Rule {
    fn matches(&self, table: &Table, hay: &str) -> Vec<(usize, usize)> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(groups) = self.regex.captures_at(hay, at) {
            let candidate = groups.get(0).unwrap();
            let matched = candidate.as_str();
            let holds = |literal: &String| fold::plain(matched).contains(literal);
            if !self.required.is_empty() && !self.required.iter().any(holds) {
                at = candidate.start() + matched.chars().next().unwrap().len_utf8();
                continue;
            }
            at = candidate.end();
            let value = groups.name("value").unwrap_or(candidate);
            let is_spared = || self.spared.spares(table, self.view, value.as_str());
            if self.check.is_none_or(|check| check(value.as_str())) && !is_spared() {
                found.push((value.start(), value.end()));
            }
        }
        found
    }
}

fn rule(spec: &RuleSpec, spared: &Exemptions, table: &Table) -> Rule {
    let folded = |literals: &[String]| {
        literals
            .iter()
            .map(|literal| table.copy(literal).0)
            .collect::<Vec<_>>()
    };
    let (view, pattern, required) = match (&spec.regex, spec.view) {
        (None, _) => {
            let literals: Vec<_> = folded(&spec.literals)
                .iter()
                .map(|literal| regex::escape(literal))
                .collect();
            (View::Folded, literals.join("|"), Vec::new())
        }
        (Some(regex), View::Text) => {
            let plain = spec.literals.iter().map(|literal| fold::plain(literal)).collect();
            (View::Text, ascii_classes(regex), plain)
        }
        (Some(regex), View::Folded) => {
            let regex = ascii_classes(&table.fold_unless_ascii(regex));
            (View::Folded, regex, folded(&spec.literals))
        }
    };
    Rule {
        id: spec.id.clone(),
        target: spec.target,
        view,
        regex: Regex::new(&pattern).unwrap(),
        required,
        check: spec.check.as_deref().map(checks::named),
        spared: spared.clone(),
    }
}

/// Replaces Perl classes with their ASCII equivalents; a class within a class becomes a union.
fn ascii_classes(regex: &str) -> String {
    let mut written = String::new();
    let mut characters = regex.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' {
            characters.next()
        } else {
            None
        };
        match escaped {
            Some('d') => written.push_str("[0-9]"),
            Some('D') => written.push_str("[^0-9]"),
            Some('w') => written.push_str("[0-9A-Za-z_]"),
            Some('W') => written.push_str("[^0-9A-Za-z_]"),
            Some('s') => written.push_str(r"[\t\n\v\f\r ]"),
            Some('S') => written.push_str(r"[^\t\n\v\f\r ]"),
            Some('b') => written.push_str(r"(?-u:\b)"),
            Some(other) => written.extend(['\\', other]),
            None => written.push(character),
        }
    }
    written
}
