//! What becomes of an answer that comes as one body.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{AnswerKind, Reading, ResponseInspector, Stop, needs_response};
use serde_json::{Value, json};
use support::{LIMIT, Policy, answer, rules};

fn pass(body: &str) -> (String, Result<(), Stop>) {
    let (out, ended, _) = Policy::new().pass(AnswerKind::Unary, &[body.as_bytes()]);
    (String::from_utf8(out).unwrap(), ended)
}

#[test]
fn nothing_leaves_before_the_end_and_a_clean_answer_leaves_as_it_came() {
    let mut policy = Policy::new();
    let Policy {
        engine,
        profile,
        scratch,
    } = &mut policy;
    let body = answer("Hello \u{e9} \"there\"");
    let (first, second) = body.split_at(40);
    let mut inspector = ResponseInspector::new(AnswerKind::Unary, LIMIT);
    let mut out = Vec::new();
    inspector
        .push(
            engine,
            profile,
            scratch,
            &mut Reading::default(),
            first.as_bytes(),
            &mut out,
        )
        .unwrap();
    inspector
        .push(
            engine,
            profile,
            scratch,
            &mut Reading::default(),
            second.as_bytes(),
            &mut out,
        )
        .unwrap();
    assert!(out.is_empty());
    inspector
        .finish(engine, profile, scratch, &mut Reading::default(), &mut out)
        .unwrap();
    assert_eq!(out, body.as_bytes());
    assert!(!inspector.is_redacted());
}

#[test]
fn generated_text_is_redacted_and_everything_else_is_kept() {
    let body = answer("Your key is sk-abcdef123.");
    assert_eq!(
        pass(&body),
        (body.replace("sk-abcdef123", "[redacted:key]"), Ok(()))
    );
}

#[test]
fn log_probabilities_leave_with_a_redaction_only() {
    let with = |content: &str, logprobs: Value| {
        json!({"choices": [{"index": 0, "logprobs": logprobs, "message": {"role": "assistant", "content": content}}]}).to_string()
    };
    let tokens = json!({"content": [{"token": "sk", "logprob": -0.1}]});
    let clean = with("Hello", tokens.clone());
    assert_eq!(pass(&clean), (clean.clone(), Ok(())));
    let redacted = with("[redacted:key]", Value::Null);
    assert_eq!(pass(&with("sk-abcdef123", tokens)), (redacted, Ok(())));
}

#[test]
fn texts_are_scanned_one_by_one() {
    let body =
        json!({"choices": [{"message": {"content": "open the pod"}}, {"message": {"content": "bay doors"}}]});
    assert_eq!(pass(&body.to_string()).1, Ok(()));
}

#[test]
fn arguments_of_tool_calls_are_generated_text() {
    let body = |arguments: &str| {
        json!({"choices": [{"message": {"content": null, "tool_calls": [{"id": "sk-abcdef123", "type": "function", "function": {"name": "f", "arguments": arguments}}]}}]})
            .to_string()
    };
    let redacted = body(r#"{"key":"[redacted:key]"}"#);
    assert_eq!(pass(&body(r#"{"key":"sk-ghijkl456"}"#)), (redacted, Ok(())));
}

#[test]
fn a_denied_answer_does_not_leave() {
    let (out, ended) = pass(&answer("I will open the pod bay doors, dragon."));
    assert_eq!(out, "");
    assert!(matches!(ended, Err(Stop::Blocked { by_score: false, .. })));
    assert_eq!(ended.unwrap_err().code(), "response_blocked");
}

#[test]
fn the_rules_of_a_denied_answer_are_all_known() {
    let mut policy = Policy::new();
    let body = answer("I will open the pod bay doors, dragon. sk-abcdef123");
    let (_, _, inspector) = policy.pass(AnswerKind::Unary, &[body.as_bytes()]);
    assert_eq!(policy.matched(&inspector), ["key", "dragon", "phrase"]);
}

#[test]
fn an_answer_of_another_shape_is_one_text() {
    let error = r#"{"error":{"message":"invalid key sk-abcde\u0066123","code":401}}"#;
    let redacted = r#"{"error":{"message":"invalid key [redacted:key]","code":401}}"#;
    assert_eq!(pass(error), (redacted.to_owned(), Ok(())));
    let page = "<h1>Bad gateway</h1>\n<p>sk-abcdef123\n</p>";
    assert_eq!(
        pass(page),
        (page.replace("sk-abcdef123", "[redacted:key]"), Ok(()))
    );
    assert_eq!(pass(""), (String::new(), Ok(())));
}

#[test]
fn what_cannot_be_read_does_not_leave() {
    let mut policy = Policy::new();
    let bodies: [&[u8]; 3] = [
        b"{\"choices\":[",
        b"{\"choices\":[],\"choices\":[]}",
        b"\x1f\x8b\x08\x00gzip",
    ];
    for body in bodies {
        let (out, ended, _) = policy.pass(AnswerKind::Unary, &[body]);
        assert_eq!((out.len(), ended), (0, Err(Stop::Malformed)));
    }
}

#[test]
fn an_answer_beyond_the_limit_is_stopped_for_good() {
    let Policy {
        engine,
        profile,
        mut scratch,
    } = Policy::new();
    let mut inspector = ResponseInspector::new(AnswerKind::Unary, 10);
    let mut out = Vec::new();
    inspector
        .push(
            &engine,
            &profile,
            &mut scratch,
            &mut Reading::default(),
            b"0123456789",
            &mut out,
        )
        .unwrap();
    let stop = inspector.push(
        &engine,
        &profile,
        &mut scratch,
        &mut Reading::default(),
        b"0",
        &mut out,
    );
    assert_eq!(stop, Err(Stop::TooLarge));
    assert_eq!(
        inspector.finish(&engine, &profile, &mut scratch, &mut Reading::default(), &mut out),
        stop
    );
    assert!(out.is_empty());
    inspector.reset(AnswerKind::Unary);
    inspector
        .push(
            &engine,
            &profile,
            &mut scratch,
            &mut Reading::default(),
            b"0",
            &mut out,
        )
        .unwrap();
    inspector
        .finish(&engine, &profile, &mut scratch, &mut Reading::default(), &mut out)
        .unwrap();
    assert_eq!(out, b"0");
}

#[test]
fn an_answer_with_too_many_texts_is_stopped() {
    let choices = |count: usize| {
        let choices: Vec<Value> = (0..count)
            .map(|index| json!({"index": index, "message": {"content": "x"}}))
            .collect();
        json!({"choices": choices}).to_string()
    };
    assert_eq!(pass(&choices(256)).1, Ok(()));
    assert_eq!(pass(&choices(257)).1, Err(Stop::TooLarge));
}

#[test]
fn inspection_is_needed_only_for_rules_that_look_at_answers() {
    assert!(needs_response(&Policy::new().profile));
    let mut config = rules();
    for rule in config["rules"].as_array_mut().unwrap() {
        rule["target"] = json!("request");
    }
    assert!(!needs_response(&Policy::of(&config, None).profile));
    assert!(!needs_response(&Policy::of(&json!({}), None).profile));
}

#[test]
fn a_dry_run_changes_nothing_and_remembers_the_denial() {
    let mut policy = Policy::dry_run();
    let body = answer("sk-abcdef123: open the pod bay doors");
    let (out, ended, inspector) = policy.pass(AnswerKind::Unary, &[body.as_bytes()]);
    assert_eq!((out, ended), (body.into_bytes(), Ok(())));
    assert!(inspector.judgement().would_block());
    assert_eq!(policy.matched(&inspector), ["key", "phrase"]);
}
