//! Inspection of a response that arrives as one body.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use proofgate_inspect::{Denial, ResponseInspector, ResponseKind, inspects_responses};
use proofgate_policy::{EvaluationError, Step};
use proofgate_providers::Dialect;
use serde_json::{Value, json};
use support::{LIMIT, Policy, answer, rules};

fn pass(body: &str) -> (String, Result<(), Denial>) {
    let (out, ended, _) = Policy::new().pass(ResponseKind::Unary, &[body.as_bytes()]);
    (String::from_utf8(out).unwrap(), ended)
}

#[test]
fn nothing_leaves_before_the_end_and_a_clean_answer_leaves_as_it_came() {
    let mut policy = Policy::new();
    let body = answer("Hello \u{e9} \"there\"");
    let (first, second) = body.split_at(40);
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Unary, LIMIT);
    let mut out = Vec::new();
    policy.push(&mut inspector, first.as_bytes(), &mut out).unwrap();
    policy.push(&mut inspector, second.as_bytes(), &mut out).unwrap();
    assert!(out.is_empty());
    policy.finish(&mut inspector, &mut out).unwrap();
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
    assert!(matches!(ended, Err(Denial::Blocked { by_score: false, .. })));
    assert_eq!(ended.unwrap_err().code(), "response_blocked");
}

#[test]
fn the_rules_of_a_denied_answer_are_all_known() {
    let mut policy = Policy::new();
    let body = answer("I will open the pod bay doors, dragon. sk-abcdef123");
    let (_, _, inspector) = policy.pass(ResponseKind::Unary, &[body.as_bytes()]);
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
        let (out, ended, _) = policy.pass(ResponseKind::Unary, &[body]);
        assert_eq!((out.len(), ended), (0, Err(Denial::Malformed)));
    }
}

#[test]
fn an_answer_beyond_the_limit_is_stopped_for_good() {
    let mut policy = Policy::new();
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Unary, 10);
    let mut out = Vec::new();
    policy.push(&mut inspector, b"0123456789", &mut out).unwrap();
    let stop = policy.push(&mut inspector, b"0", &mut out);
    assert_eq!(stop, Err(Denial::TooLarge));
    assert_eq!(policy.finish(&mut inspector, &mut out), stop);
    assert!(out.is_empty());
    inspector.reset(Dialect::Chat, ResponseKind::Unary);
    policy.push(&mut inspector, b"0", &mut out).unwrap();
    policy.finish(&mut inspector, &mut out).unwrap();
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
    assert_eq!(pass(&choices(257)).1, Err(Denial::TooLarge));
}

#[test]
fn inspection_is_needed_only_for_rules_that_look_at_answers() {
    assert!(inspects_responses(&Policy::new().profile));
    let mut config = rules();
    for rule in config["rules"].as_array_mut().unwrap() {
        rule["target"] = json!("Request");
    }
    assert!(!inspects_responses(&Policy::of(&config, None).profile));
    assert!(!inspects_responses(&Policy::of(&json!({}), None).profile));
}

#[test]
fn a_dry_run_changes_nothing_and_remembers_the_denial() {
    let mut policy = Policy::dry_run();
    let body = answer("sk-abcdef123: open the pod bay doors");
    let (out, ended, inspector) = policy.pass(ResponseKind::Unary, &[body.as_bytes()]);
    assert_eq!((out, ended), (body.into_bytes(), Ok(())));
    assert!(inspector.judgement().would_block());
    assert_eq!(policy.matched(&inspector), ["key", "phrase"]);
}

/// Finishes a response in the smallest slices; returns the output, the outcome, and the number of steps.
fn in_slices(body: &str) -> (Vec<u8>, Result<(), Denial>, usize) {
    let mut policy = Policy::new();
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Unary, 20 * LIMIT);
    let (mut out, mut steps) = (Vec::new(), 0);
    let pushed = policy.push(&mut inspector, body.as_bytes(), &mut out);
    pushed.unwrap();
    loop {
        steps += 1;
        match policy.finish_step(&mut inspector, Duration::ZERO, &mut out) {
            Ok(Step::Pending) => assert!(out.is_empty()),
            Ok(Step::Done) => return (out, Ok(()), steps),
            Err(stop) => return (out, Err(stop), steps),
        }
    }
}

#[test]
fn a_long_answer_is_judged_in_slices_and_the_outcome_is_that_of_one() {
    let filler = "An ordinary sentence of the answer. ".repeat(2_000);
    let choices = json!({"choices": [
        {"index": 0, "message": {"content": format!("{filler} sk-abcdef123 {filler}")}},
        {"index": 1, "message": {"content": format!("{filler} sk-abcdef124 {filler}")}},
    ]});
    let other = json!({"output": format!("{filler} sk-abcdef123 {filler}"), "more": filler});
    for body in [choices, other] {
        let body = body.to_string();
        let (out, ended, steps) = in_slices(&body);
        let expected = body
            .replace("sk-abcdef123", "[redacted:key]")
            .replace("sk-abcdef124", "[redacted:key]");
        assert_eq!((String::from_utf8(out).unwrap(), ended), (expected, Ok(())));
        assert!(steps > 5, "{steps}");
    }
}

#[test]
fn redacted_arguments_of_a_tool_call_are_json_as_before() {
    let arguments =
        r#"{"sk-abcdef1": 1, "sk-abcdef2": {"note": "a \"quoted\" sk-abcdef3\n"}, "list": ["sk-abcdef4"]}"#;
    let body = json!({"choices": [{"index": 0, "message": {"tool_calls": [
        {"index": 0, "function": {"name": "look", "arguments": arguments}}]}}]})
    .to_string();
    let (out, ended) = pass(&body);
    assert_eq!(ended, Ok(()));
    let document: Value = serde_json::from_str(&out).unwrap();
    let redacted = &document["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"];
    let redacted: Value = serde_json::from_str(redacted.as_str().unwrap()).unwrap();
    let expected = json!({"[redacted:key]": 1, "[redacted:key]#2": {"note": "a \"quoted\" [redacted:key]\n"}, "list": ["[redacted:key]"]});
    assert_eq!(redacted, expected);
}

/// Returns a response of about 8 MiB, most of it log probabilities.
fn large(content: &str) -> String {
    let tokens = r#"{"token":"word","logprob":-0.01,"top_logprobs":[]},"#.repeat(160_000);
    let message = json!({"role": "assistant", "content": content});
    format!(r#"{{"choices":[{{"message":{message},"logprobs":{{"content":[{tokens}0]}}}}]}}"#)
}

#[test]
fn an_answer_that_is_held_is_in_memory_once_and_leaves_without_a_copy() {
    let mut policy = Policy::new();
    let body = large("Hello");
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Unary, 16 << 20);
    let mut out = Vec::new();
    for piece in body.as_bytes().chunks(16 * 1024) {
        let pushed = policy.push(&mut inspector, piece, &mut out);
        assert_eq!(pushed, Ok(()));
    }
    let held = inspector.capacity();
    assert!((body.len()..body.len() + (1 << 20)).contains(&held), "{held}");
    let finished = policy.finish(&mut inspector, &mut out);
    assert_eq!((finished, out.len()), (Ok(()), body.len()));
    assert!(out == body.as_bytes());
    assert!(inspector.capacity() < 1 << 20, "{}", inspector.capacity());
}

#[test]
fn the_texts_of_an_answer_count_from_one_slice_to_the_next() {
    let text = "An ordinary sentence of the answer. ".repeat(200_000);
    for answer in [
        json!({"choices": [{"index": 0, "message": {"content": text}}]}),
        json!({"output": text}),
    ] {
        let mut policy = Policy::new();
        let body = answer.to_string();
        let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Unary, 16 << 20);
        let mut out = Vec::new();
        let pushed = policy.push(&mut inspector, body.as_bytes(), &mut out);
        assert_eq!(pushed, Ok(()));
        let step = policy.finish_step(&mut inspector, Duration::ZERO, &mut out);
        assert_eq!(step, Ok(Step::Pending));
        assert!(inspector.capacity() >= body.len() + text.len());
        let finished = policy.finish(&mut inspector, &mut out);
        assert_eq!((finished, out.len()), (Ok(()), body.len()));
        inspector.release_memory(1000);
        assert!(inspector.capacity() < 10_000, "{}", inspector.capacity());
    }
}

#[test]
fn an_answer_with_a_text_that_matches_more_often_than_is_noted_is_denied() {
    for (count, expected) in [
        (100_000, Ok(())),
        (100_001, Err(Denial::Fault(EvaluationError::BudgetExceeded))),
    ] {
        let body = json!({"choices": [{"index": 0, "message": {"content": "dragon ".repeat(count)}}]});
        assert_eq!(in_slices(&body.to_string()).1, expected);
    }
}

#[test]
fn what_an_inspection_needed_is_given_back_and_what_it_found_is_not_forgotten() {
    let mut policy = Policy::new();
    let body = large(&"ann smith ".repeat(100_000));
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Unary, 16 << 20);
    let mut out = Vec::new();
    let pushed = policy.push(&mut inspector, body.as_bytes(), &mut out);
    assert_eq!(pushed, Ok(()));
    let finished = policy.finish(&mut inspector, &mut out);
    assert_eq!(finished, Ok(()));
    inspector.release_memory(1000);
    assert!(inspector.capacity() < 10_000, "{}", inspector.capacity());
    assert!(inspector.is_redacted());
    assert_eq!(policy.matched(&inspector), ["name"]);
}

#[test]
fn an_answer_of_more_parts_or_strings_than_are_read_cannot_be_inspected() {
    let strings = r#"" ","#.repeat(1 << 20);
    let bodies = [
        format!(r#"{{"choices":[{{"message":{{"content":[{strings}" "]}}}}]}}"#),
        format!(r#"{{"error":[{strings}" "]}}"#),
    ];
    for body in bodies {
        let mut policy = Policy::new();
        let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Unary, 16 << 20);
        let mut out = Vec::new();
        let pushed = policy.push(&mut inspector, body.as_bytes(), &mut out);
        let finished = policy.finish(&mut inspector, &mut out);
        assert_eq!((pushed, finished), (Ok(()), Err(Denial::TooLarge)));
        assert!(out.is_empty());
    }
}
