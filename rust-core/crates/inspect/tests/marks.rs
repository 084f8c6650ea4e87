//! Marks left in a text by redaction and masks are never matched again, in requests or responses.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{InspectionOutcome, ResponseKind};
use serde_json::json;
use support::{Policy, answer, chunk, contents, inspect};

/// Rules that would match their own marks, or match because of them.
fn policy() -> Policy {
    let rules = json!({"budgetMilliseconds": 10_000, "rules": [
        {"id": "secret-password", "reason": "r", "view": "Text", "regex": r"password=(?<value>[^ ;]{3,80})", "action": "Redact"},
        {"id": "secret-quoted", "reason": "r", "view": "Text", "regex": "\"(?<value>[^\"]{8,90})\"", "action": "Redact"},
        {"id": "secret-key", "reason": "r", "regex": "key]?[:=] ?(?<value>[a-z0-9]{12})", "action": "Redact"},
        {"id": "mail", "reason": "r", "regex": "[a-z]{1,20}@[a-z]{1,20}", "target": "Request", "action": "Mask"},
        {"id": "word", "reason": "r", "literals": ["redacted", "mail-1"], "action": "Flag"},
    ]});
    Policy::of(&rules, None)
}

fn found_in_request(policy: &mut Policy, content: &str) -> (Vec<String>, bool) {
    let body = json!({"messages": [{"role": "user", "content": content}], "model": "m"}).to_string();
    let (verdict, _) = inspect(policy, &body);
    let engine = &policy.engine;
    let matched = verdict.judgement.matched_rules();
    let matched = matched.map(|rule| engine.rule(rule).id.clone()).collect();
    (matched, verdict.outcome == InspectionOutcome::Redact)
}

const LEFT: [&str; 7] = [
    "password=[redacted:secret-password]; and more",
    "\"[redacted:secret-quoted]\"",
    "[redacted:secret-key]: abcdefghijkl",
    "[redacted:secret-key]=abcdefghijkl",
    "password=[mail-1]",
    "ask [mail-12] or [redacted:mail]",
    "[redacted:word][redacted:secret-key]",
];

#[test]
fn nothing_is_found_in_what_redaction_has_left_nor_because_of_it() {
    let mut policy = policy();
    for text in LEFT {
        assert_eq!(found_in_request(&mut policy, text), (vec![], false), "{text}");
        let body = answer(text);
        let (out, ended, inspector) = policy.pass(ResponseKind::Unary, &[body.as_bytes()]);
        assert_eq!((ended, policy.matched(&inspector)), (Ok(()), vec![]), "{text}");
        assert_eq!(out, body.as_bytes());
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let events = [chunk(&text[..cut]), chunk(&text[cut..])].concat();
            let (out, ended, inspector) = policy.pass(ResponseKind::Events, &[events.as_bytes()]);
            assert_eq!(
                (ended, policy.matched(&inspector)),
                (Ok(()), vec![]),
                "{text} {cut}"
            );
            assert_eq!(contents(&out).concat(), *text);
        }
        let letters: String = text.chars().map(|letter| chunk(&letter.to_string())).collect();
        let (_, ended, inspector) = policy.pass(ResponseKind::Events, &[letters.as_bytes()]);
        assert_eq!((ended, policy.matched(&inspector)), (Ok(()), vec![]), "{text}");
    }
}

#[test]
fn what_only_looks_like_a_mark_is_text() {
    let mut policy = policy();
    for (text, rule) in [
        ("password=[redacted:hunter2]", "secret-password"),
        ("password=[redacted:secret-password", "secret-password"),
        ("password=[redacted:secret-password]hunter2", "secret-password"),
        ("password=[mail-4111111111]", "secret-password"),
        ("[redacted:key]=abcdefghijkl", "secret-key"),
    ] {
        let (found, redacts) = found_in_request(&mut policy, text);
        assert!(redacts && found.contains(&rule.to_owned()), "{text}: {found:?}");
        let body = answer(text);
        let (_, _, inspector) = policy.pass(ResponseKind::Unary, &[body.as_bytes()]);
        let whole = policy.matched(&inspector);
        assert!(whole.contains(&rule.to_owned()), "{text}: {whole:?}");
        for cut in 0..=text.len() {
            let events = [chunk(&text[..cut]), chunk(&text[cut..])].concat();
            let (_, _, inspector) = policy.pass(ResponseKind::Events, &[events.as_bytes()]);
            assert_eq!(policy.matched(&inspector), whole, "{text} {cut}");
        }
    }
}

#[test]
fn a_match_around_a_mark_counts() {
    let mut policy = Policy::of(
        &json!({"rules": [
            {"id": "phrase", "reason": "r", "regex": "ignore .{0,60}instructions", "action": "Block"},
            {"id": "key", "reason": "r", "literals": ["sk-abc"], "action": "Redact"},
        ]}),
        None,
    );
    let (found, _) = found_in_request(&mut policy, "ignore [redacted:key] all instructions");
    assert_eq!(found, ["phrase"]);
}
