//! What a match leads to: actions, scores, and what a tenant changes of them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_policy::{Action, Decision, Direction, Judgement, Mode};
use serde_json::{Value, json};
use support::{Policy, with_defaults};

/// Three rules, one for each action; gold and silver together reach the threshold.
fn config() -> Value {
    json!({"rules": [
        with_defaults(json!({"id": "gold", "literals": ["gold"], "score": 60, "action": "flag"})),
        with_defaults(json!({"id": "silver", "literals": ["silver"], "score": 40, "action": "redact"})),
        with_defaults(json!({"id": "bomb", "literals": ["bomb"], "score": 0, "action": "block"})),
    ]})
}

fn for_tenant(tenant: Value) -> Policy {
    Policy::for_tenant(&config(), Some(&tenant))
}

/// The last decision about the words of a text, one after the other, and the judgement.
fn judge(policy: &mut Policy, text: &str) -> (Option<Decision>, Judgement) {
    let mut judgement = Judgement::new();
    let mut last = None;
    for word in text.split(' ') {
        for id in policy.ids(word) {
            let rule = policy.index(&id, word);
            last = Some(judgement.add(&policy.engine, &policy.profile, rule));
        }
    }
    (last, judgement)
}

fn decision(policy: &mut Policy, text: &str) -> Option<Decision> {
    judge(policy, text).1.decision()
}

fn block(policy: &mut Policy, id: &str, by_score: bool) -> Option<Decision> {
    let rule = policy.index(id, "gold silver bomb");
    Some(Decision::Block { rule, by_score })
}

#[test]
fn a_rule_does_what_its_action_says() {
    let mut policy = Policy::of(&config());
    assert_eq!(decision(&mut policy, "nothing"), None);
    assert_eq!(decision(&mut policy, "gold"), Some(Decision::Flag));
    assert_eq!(decision(&mut policy, "silver"), Some(Decision::Redact));
    let blocked = block(&mut policy, "bomb", false);
    assert_eq!(decision(&mut policy, "bomb"), blocked);
}

#[test]
fn scores_of_different_rules_add_up_to_a_denial() {
    let mut policy = Policy::of(&config());
    let (last, judgement) = judge(&mut policy, "gold silver");
    let blocked = block(&mut policy, "silver", true);
    assert_eq!((last, judgement.score()), (blocked, 100));
}

#[test]
fn a_rule_counts_its_score_once() {
    let mut policy = Policy::of(&config());
    let (last, judgement) = judge(&mut policy, "gold gold gold gold");
    assert_eq!((last, judgement.score()), (Some(Decision::Flag), 60));
}

#[test]
fn the_first_rule_that_denies_is_named() {
    let mut policy = Policy::of(&config());
    let blocked = block(&mut policy, "bomb", false);
    assert_eq!(decision(&mut policy, "bomb gold silver"), blocked);
}

#[test]
fn all_rules_that_matched_are_known() {
    let mut policy = Policy::of(&config());
    let (_, judgement) = judge(&mut policy, "silver bomb");
    let ids: Vec<_> = judgement
        .matched()
        .map(|rule| policy.engine.rule(rule).id.as_str())
        .collect();
    assert_eq!(ids, ["silver", "bomb"]);
}

#[test]
fn the_action_of_the_policy_replaces_those_of_its_rules() {
    let mut config = config();
    config["action"] = json!("flag");
    assert_eq!(
        decision(&mut Policy::of(&config), "bomb silver"),
        Some(Decision::Flag)
    );
}

#[test]
fn the_action_of_a_tenant_replaces_that_of_the_policy() {
    let mut config = config();
    config["action"] = json!("flag");
    let mut policy = Policy::for_tenant(&config, Some(&json!({"action": "redact"})));
    assert_eq!(decision(&mut policy, "bomb"), Some(Decision::Redact));
}

#[test]
fn a_tenant_has_its_own_threshold() {
    let mut strict = for_tenant(json!({"threshold": 60}));
    let blocked = block(&mut strict, "gold", true);
    assert_eq!(decision(&mut strict, "gold"), blocked);
    let mut lenient = for_tenant(json!({"threshold": 101}));
    assert_eq!(decision(&mut lenient, "gold silver"), Some(Decision::Redact));
}

#[test]
fn a_rule_that_a_tenant_disables_matches_for_the_others_only() {
    let mut policy = for_tenant(json!({"disabled_rules": ["gold"]}));
    assert_eq!(policy.ids("gold silver"), ["silver"]);
    policy.profile = policy.engine.profile(None).unwrap();
    assert_eq!(policy.ids("gold silver"), ["gold", "silver"]);
}

#[test]
fn a_rule_that_the_policy_disables_is_gone() {
    let mut config = config();
    config["disabled_rules"] = json!(["gold"]);
    let mut policy = Policy::of(&config);
    assert_eq!(policy.ids("gold silver"), ["silver"]);
    assert!(policy.engine.rules().all(|rule| rule.id != "gold"));
}

#[test]
fn a_dry_run_only_flags_and_remembers_what_it_would_have_done() {
    let mut policy = for_tenant(json!({"mode": "dry_run"}));
    let (last, judgement) = judge(&mut policy, "silver bomb");
    assert_eq!(last, Some(Decision::Flag));
    assert_eq!(judgement.decision(), Some(Decision::Flag));
    assert!(judgement.would_block());
    assert_eq!(judgement.if_enforced(), block(&mut policy, "bomb", false));
}

#[test]
fn a_tenant_can_enforce_what_the_policy_only_tries() {
    let mut config = config();
    config["mode"] = json!("dry_run");
    assert_eq!(decision(&mut Policy::of(&config), "silver"), Some(Decision::Flag));
    let mut policy = Policy::for_tenant(&config, Some(&json!({"mode": "enforce"})));
    assert_eq!(policy.profile.mode(), Mode::Enforce);
    assert_eq!(decision(&mut policy, "silver"), Some(Decision::Redact));
}

#[test]
fn a_rule_looks_at_the_direction_of_its_target_only() {
    let mut policy = Policy::rule(json!({"literals": ["gold"], "target": "response"}));
    assert!(policy.found(Direction::Request, "gold").is_empty());
    assert_eq!(policy.found(Direction::Response, "gold").len(), 1);
    assert!(policy.profile.is_idle(Direction::Request) && !policy.profile.is_idle(Direction::Response));
}

#[test]
fn a_profile_says_what_each_rule_does() {
    let mut policy = for_tenant(json!({"disabled_rules": ["silver"]}));
    let gold = policy.index("gold", "gold");
    assert_eq!(policy.profile.action(gold), Some(Action::Flag));
    policy.profile = policy.engine.profile(None).unwrap();
    let silver = policy.index("silver", "silver");
    policy.profile = for_tenant(json!({"disabled_rules": ["silver"]})).profile;
    assert_eq!(policy.profile.action(silver), None);
}
