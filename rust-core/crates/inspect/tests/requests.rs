//! What becomes of a request.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{Outcome, RequestVerdict, inspect_request};
use proofgate_json::Workspace;
use proofgate_policy::{Deadline, Fault};
use proofgate_providers::{BodyText, ChatRequest};
use serde_json::json;
use support::Policy;

fn inspect(policy: &mut Policy, body: &str) -> (RequestVerdict, String) {
    let mut text = BodyText::new();
    ChatRequest::read(body.as_bytes(), &mut Workspace::new(), &mut text).unwrap();
    let Policy {
        engine,
        profile,
        scratch,
    } = policy;
    let verdict = inspect_request(engine, profile, &text, &Deadline::never(), scratch).unwrap();
    let mut out = Vec::new();
    let model = verdict.rewrite(engine, &text, body.as_bytes(), &mut out);
    assert_eq!(&out[model], br#""m""#);
    (verdict, String::from_utf8(out).unwrap())
}

fn body(content: &str) -> String {
    json!({"messages": [{"role": "user", "content": content}], "model": "m"}).to_string()
}

fn blocked_by(policy: &Policy, verdict: &RequestVerdict) -> Option<(String, bool)> {
    match verdict.outcome {
        Outcome::Block { rule, by_score } => Some((policy.engine.rule(rule).id.clone(), by_score)),
        _ => None,
    }
}

#[test]
fn a_clean_request_passes_byte_for_byte() {
    let body = body("Hello, \"world\" \u{e9}");
    let (verdict, out) = inspect(&mut Policy::new(), &body);
    assert_eq!((verdict.outcome, verdict.judgement.score()), (Outcome::Allow, 0));
    assert_eq!(out, body);
}

#[test]
fn a_flagged_request_passes_and_names_its_rules() {
    let mut policy = Policy::new();
    let (verdict, _) = inspect(&mut policy, &body("a dragon and another dragon"));
    assert_eq!((verdict.outcome, verdict.judgement.score()), (Outcome::Allow, 1));
    let matched: Vec<_> = verdict
        .judgement
        .matched()
        .map(|rule| &policy.engine.rule(rule).id)
        .collect();
    assert_eq!(matched, ["dragon"]);
}

#[test]
fn what_a_rule_redacts_is_replaced_by_its_name() {
    let (verdict, out) = inspect(
        &mut Policy::new(),
        &body("use sk-abcdef123 or \u{e9} sk-ghijkl456"),
    );
    assert_eq!(verdict.outcome, Outcome::Redact);
    assert_eq!(out, body("use [redacted:key] or \u{e9} [redacted:key]"));
}

#[test]
fn overlapping_matches_are_replaced_once_by_the_first_ones_name() {
    let (verdict, out) = inspect(&mut Policy::new(), &body("Ann Smith sk-abcdef123."));
    assert_eq!(verdict.redactions.len(), 1);
    assert_eq!(out, body("[redacted:name]."));
}

#[test]
fn a_match_across_messages_is_found() {
    let body = json!({"messages": [{"role": "user", "content": "open the pod"}, {"role": "user", "content": "bay doors"}], "model": "m"});
    let mut policy = Policy::new();
    let (verdict, _) = inspect(&mut policy, &body.to_string());
    assert_eq!(blocked_by(&policy, &verdict), Some(("phrase".to_owned(), false)));
}

#[test]
fn scores_add_up_to_a_denial() {
    let mut policy = Policy::new();
    let (verdict, _) = inspect(&mut policy, &body("silver and gold"));
    assert_eq!(blocked_by(&policy, &verdict), Some(("gold".to_owned(), true)));
    assert_eq!(verdict.judgement.score(), 120);
}

#[test]
fn a_denied_request_is_not_redacted() {
    let body = body("sk-abcdef123: open the pod bay doors");
    let (verdict, out) = inspect(&mut Policy::new(), &body);
    assert!(matches!(verdict.outcome, Outcome::Block { .. }));
    assert_eq!(out, body);
}

#[test]
fn a_dry_run_changes_nothing_and_remembers_the_denial() {
    let body = body("sk-abcdef123: open the pod bay doors");
    let (verdict, out) = inspect(&mut Policy::dry_run(), &body);
    assert_eq!(verdict.outcome, Outcome::Allow);
    assert!(verdict.judgement.would_block());
    assert_eq!(out, body);
}

#[test]
fn an_evaluation_without_a_result_is_a_fault() {
    let mut policy = Policy::new();
    let other = Policy::new();
    let text = BodyText::new();
    let outcome = inspect_request(
        &policy.engine,
        &other.profile,
        &text,
        &Deadline::never(),
        &mut policy.scratch,
    );
    assert!(matches!(outcome, Err(Fault::Internal(_))));
}
