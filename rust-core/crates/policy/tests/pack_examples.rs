//! Every rule of every pack matches its positive examples and none of its negative examples.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_policy::{Pack, Scope, Target, pattern_pack_names};
use support::Policy;

fn scope(target: Target) -> Scope {
    match target {
        Target::Response => Scope::Response,
        Target::Request | Target::Both => Scope::User,
    }
}

#[test]
fn every_rule_matches_its_examples_and_none_of_its_counter_examples() {
    let mut policy = Policy::built_in();
    let mut wrong = Vec::new();
    for rule in pattern_pack_names().flat_map(|name| Pack::built_in(name).unwrap().rules) {
        let examples = &rule.examples;
        for (expected, texts) in [(true, &examples.matching), (false, &examples.no_match)] {
            for text in texts {
                let found = policy.found(scope(rule.target), text);
                if found.iter().any(|(id, _, _)| *id == rule.id) != expected {
                    wrong.push(format!("{}: {text:?} should match: {expected}", rule.id));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_rule_has_examples_of_both_kinds() {
    for rule in pattern_pack_names().flat_map(|name| Pack::built_in(name).unwrap().rules) {
        assert!(!rule.examples.matching.is_empty(), "{} has no example", rule.id);
        assert!(
            !rule.examples.no_match.is_empty(),
            "{} has no counter-example",
            rule.id
        );
    }
}

#[test]
fn the_packs_hold_at_least_47_rules() {
    let policy = Policy::built_in();
    assert!(policy.engine.rules().count() >= 47);
}

#[test]
fn every_pack_can_be_used_alone() {
    for name in pattern_pack_names() {
        let policy = Policy::of(&serde_json::json!({"packs": [name]}));
        assert!(
            policy
                .engine
                .rules()
                .all(|rule| rule.pack.as_deref() == Some(name))
        );
    }
}
