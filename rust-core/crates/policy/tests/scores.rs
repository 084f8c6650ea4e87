//! The score of a message's matches: which matches count, and which decision the sum leads to.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_policy::{Budget, Decision, Judgement, MessageJudgement, Scope};
use serde_json::{Value, json};
use support::{Policy, with_defaults};

fn rule(id: &str, literal: &str, score: u32, action: &str) -> Value {
    with_defaults(json!({"id": id, "literals": [literal], "score": score, "action": action}))
}

/// Rules that partly overlap.
fn policy(tenant: Value) -> Policy {
    let config = json!({"rules": [
        rule("gold", "gold", 60, "Flag"),
        rule("silver", "silver", 60, "Flag"),
        rule("tin", "tin", 5, "Flag"),
        rule("old", "old", 70, "Flag"),
        rule("ld-si", "ld si", 40, "Flag"),
        rule("key", "a key", 60, "Redact"),
        rule("key-name", "key of gold", 60, "Redact"),
        rule("bomb", "bomb", 0, "Block"),
    ]});
    Policy::for_tenant(&config, Some(&tenant))
}

/// Returns the judgement of messages of one text each.
fn judge(policy: &mut Policy, messages: &[&str]) -> Judgement {
    let mut judgement = Judgement::new();
    for (number, text) in (0..).zip(messages) {
        let mut message = MessageJudgement::default();
        let mut found = policy.scan(Scope::User, text, &mut Budget::unlimited()).unwrap();
        found.sort_unstable_by_key(|found| (found.start, found.end, found.rule));
        for found in &found {
            message.record(&policy.profile, Scope::User, found.rule);
        }
        message.count(&policy.engine, &policy.profile, Scope::User, &found);
        judgement.add(&policy.profile, number, Scope::User, &message);
    }
    judgement
}

fn score(text: &str) -> u32 {
    judge(&mut policy(json!({})), &[text]).score()
}

#[test]
fn flags_alone_never_deny_unless_a_threshold_says_so() {
    let text = "gold, silver and tin";
    let mut free = policy(json!({}));
    assert_eq!(judge(&mut free, &[text]).decision(), Some(Decision::Flag));
    let mut bound = policy(json!({"threshold": 135}));
    let denied = judge(&mut bound, &[text]);
    let strongest = bound.index("old", "gold");
    let by_score = Decision::Block {
        rule: strongest,
        by_score: true,
    };
    assert_eq!((denied.decision(), denied.score()), (Some(by_score), 135));
    assert_eq!(judge(&mut bound, &["gold"]).decision(), Some(Decision::Flag));
}

#[test]
fn a_rule_counts_its_score_once() {
    assert_eq!(score("silver silver silver"), 60);
}

#[test]
fn scores_of_different_messages_are_not_added() {
    let mut bound = policy(json!({"threshold": 100}));
    let judgement = judge(&mut bound, &["gold", "silver", "gold"]);
    assert_eq!(
        (judgement.decision(), judgement.score()),
        (Some(Decision::Flag), 70)
    );
}

#[test]
fn of_matches_that_overlap_the_strongest_counts() {
    assert_eq!(score("old"), 70);
    // `gold` contains `old`.
    assert_eq!(score("gold"), 70);
    // `ld si` overlaps both others.
    assert_eq!(score("old silver"), 130);
}

#[test]
fn what_is_replaced_does_not_count_and_neither_does_what_lies_within_it() {
    assert_eq!(score("a key"), 0);
    assert_eq!(score("key of gold"), 0);
    assert_eq!(score("a key of gold and silver"), 60);
    let mut strict = policy(json!({"threshold": 1}));
    assert_eq!(
        judge(&mut strict, &["a key of gold"]).decision(),
        Some(Decision::Redact)
    );
}

#[test]
fn a_message_is_flagged_from_its_threshold_on() {
    for (threshold, text, flagged) in [
        (50, "gold", true),
        (71, "gold", false),
        (5, "tin", true),
        (50, "tin", false),
    ] {
        let mut policy = policy(json!({"flagThreshold": threshold}));
        assert_eq!(
            judge(&mut policy, &[text]).is_flagged(),
            flagged,
            "{text} {threshold}"
        );
    }
    assert!(!judge(&mut policy(json!({})), &["bomb"]).is_flagged());
}

#[test]
fn the_message_that_decides_is_the_first_that_is_denied_or_has_the_highest_score() {
    let worst = |tenant: Value, messages: &[&str]| judge(&mut policy(tenant), messages).worst().unwrap();
    assert_eq!(worst(json!({}), &["tin", "silver", "tin silver"]).message, 2);
    assert_eq!(worst(json!({}), &["tin", "bomb", "tin silver"]).message, 1);
    let by_score = worst(json!({"threshold": 60}), &["tin", "silver", "gold"]);
    assert_eq!((by_score.message, by_score.score), (1, 60));
}
