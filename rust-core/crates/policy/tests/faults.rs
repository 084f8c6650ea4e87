//! A rule that panics, hangs or takes too long denies the exchange that it was evaluated for, and no other.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use proofgate_policy::{Budget, EvaluationError, Scope, Scratch, StreamScan};
use serde_json::json;
use support::{Policy, with_defaults};

const REQUEST: Scope = Scope::User;

/// Returns a policy with one rule that finds gold, and one whose `check` runs when it matches "trap".
fn trapped(check: &str) -> Policy {
    Policy::of(&json!({"rules": [
        with_defaults(json!({"id": "gold", "literals": ["gold"]})),
        with_defaults(json!({"id": "trap", "literals": ["trap"], "check": check})),
    ]}))
}

fn used_up() -> Budget {
    Budget::new(Duration::ZERO)
}

/// Suppresses the output of expected panics.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    std::panic::set_hook(Box::new(|_| {}));
    work()
}

#[test]
fn a_rule_that_panics_denies_that_text_only() {
    quietly(|| {
        let mut policy = trapped("panic-for-tests");
        for _ in 0..3 {
            assert_eq!(
                policy.scan(REQUEST, "gold in a trap", &mut Budget::unlimited()),
                Err(EvaluationError::Panicked)
            );
            assert_eq!(policy.ids("gold in a mine"), ["gold"]);
        }
    });
}

#[test]
fn after_a_fault_the_results_of_other_texts_are_as_they_were() {
    quietly(|| {
        let mut policy = trapped("panic-for-tests");
        let mut found = policy.scan(REQUEST, "gold", &mut Budget::unlimited()).unwrap();
        let before = found.clone();
        let Policy {
            engine,
            profile,
            scratch,
        } = &mut policy;
        let ended = engine.scan(
            profile,
            REQUEST,
            "gold trap",
            &mut Budget::unlimited(),
            scratch,
            &mut found,
        );
        assert_eq!(ended, Err(EvaluationError::Panicked));
        assert_eq!(found, before);
    });
}

#[test]
fn a_stream_stays_denied_after_a_panic() {
    quietly(|| {
        let mut policy = trapped("panic-for-tests");
        let (mut stream, mut found) = (StreamScan::new(), Vec::new());
        let Policy {
            engine,
            profile,
            scratch,
        } = &mut policy;
        let mut push = |text| {
            stream.push(
                engine,
                profile,
                REQUEST,
                text,
                &mut Budget::unlimited(),
                scratch,
                &mut found,
            )
        };
        assert!(push("a tr").is_ok());
        assert_eq!(push("ap ahead"), Err(EvaluationError::Panicked));
        assert_eq!(push("nothing"), Err(EvaluationError::Panicked));
    });
}

#[test]
fn a_rule_that_outlasts_the_budget_denies_that_text_only() {
    let mut policy = trapped("spin-for-tests");
    let mut budget = Budget::new(Duration::from_millis(1));
    assert_eq!(
        policy.scan(REQUEST, "a trap", &mut budget),
        Err(EvaluationError::BudgetExceeded)
    );
    let mut enough = Budget::new(Duration::from_secs(60));
    assert_eq!(policy.scan(REQUEST, "no gold", &mut enough).unwrap().len(), 1);
}

#[test]
fn a_long_text_is_given_up_when_the_budget_is_used_up() {
    let mut policy = Policy::built_in();
    let text = "A word, and another one. ".repeat(100_000);
    assert_eq!(
        policy.scan(REQUEST, &text, &mut used_up()),
        Err(EvaluationError::BudgetExceeded)
    );
}

#[test]
fn a_short_text_that_wakes_no_rule_needs_no_clock() {
    let mut policy = trapped("spin-for-tests");
    assert_eq!(policy.scan(REQUEST, "hello", &mut used_up()), Ok(Vec::new()));
}

#[test]
fn a_profile_of_another_engine_is_a_fault() {
    let (mut one, other) = (trapped("Luhn"), trapped("Luhn"));
    one.profile = other.profile;
    let ended = one.scan(REQUEST, "gold", &mut Budget::unlimited());
    assert!(matches!(ended, Err(EvaluationError::Internal(_))));
}

#[test]
fn a_scratch_serves_one_engine_after_another() {
    let mut scratch = Scratch::new();
    for id in ["one", "other"] {
        let mut policy = Policy::rule(json!({"id": id, "literals": ["gold"]}));
        policy.scratch = std::mem::take(&mut scratch);
        assert_eq!(policy.ids("gold"), [id]);
        scratch = policy.scratch;
    }
}

#[test]
fn a_stream_that_would_hold_too_much_is_denied() {
    let mut policy = Policy::rule(json!({"literals": ["gold"]}));
    let hidden = format!("go{}", "\u{200b}".repeat(40_000));
    assert_eq!(
        policy.stream(REQUEST, [hidden.as_str()]),
        Err(EvaluationError::BudgetExceeded)
    );
}

#[test]
fn every_fault_has_a_code() {
    let codes = [
        EvaluationError::BudgetExceeded,
        EvaluationError::Panicked,
        EvaluationError::Internal("x"),
    ]
    .map(EvaluationError::code);
    assert_eq!(codes, ["policy_budget", "policy_panic", "policy_internal"]);
}
