//! A token that is longer than its rule can match is removed up to its end, and nothing more.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{InspectionOutcome, RequestVerdict, ResponseKind, inspect_request};
use proofgate_json::Workspace;
use proofgate_policy::Budget;
use proofgate_providers::{BodyText, Dialect, ParsedRequest};
use serde_json::{Value, json};
use support::{Policy, answer, chunk, contents, events};

const HEADER: &str = "\u{65}yJhbGciOiJSUzI1NiIsImtpZCI6IjcifQ";
const DIGITS: &str = "q7Zt3LmP9xKv2RbN8wYc5Hd4Fg6Jk1Qs";

/// Returns a token whose payload and signature have these multiples of 32 digits.
fn token(payload: usize, signature: usize) -> String {
    let (payload, signature) = (DIGITS.repeat(payload), DIGITS.repeat(signature));
    format!("{HEADER}.\u{65}yJ{payload}.{signature}")
}

/// Returns texts with secrets that are longer than a match, and the expected results.
fn long_secrets() -> Vec<(String, &'static str)> {
    let long = DIGITS.repeat(60);
    let slashes = format!("{}+/=", DIGITS).repeat(60);
    vec![
        (
            format!("here: {}. And", token(2, 11)),
            "here: [redacted:secret-jwt]. And",
        ),
        (
            format!("here: {}. And", token(6, 40)),
            "here: [redacted:secret-jwt]. And",
        ),
        (
            format!("here: {} and", token(7, 11)),
            "here: [redacted:secret-jwt] and",
        ),
        (
            format!("here: {} and", token(90, 90)),
            "here: [redacted:secret-jwt] and",
        ),
        (
            format!("X-Api-Key: {slashes} and"),
            "X-Api-Key: [redacted:secret-authorization-header] and",
        ),
        (
            format!("\"session_token\": \"{slashes}\""),
            "\"session_token\": \"[redacted:secret-assignment]\"",
        ),
        (
            format!("{{\"session_token\": \"{}\"}}", slashes.replace('/', "\\/")),
            "{\"session_token\": \"[redacted:secret-assignment]\"}",
        ),
        (
            format!("session_token = {slashes}\nnext"),
            "session_token = [redacted:secret-assignment-bare]\nnext",
        ),
        (format!("ya29.{long}, next"), "[redacted:secret-google-key], next"),
        (
            format!("glc_eyJ{long}== next"),
            "[redacted:secret-token-grafana-cloud] next",
        ),
    ]
}

fn secrets() -> Policy {
    Policy::of(&json!({"packs": ["secrets"], "budgetMilliseconds": 10_000}), None)
}

fn inspect(policy: &mut Policy, messages: &Value) -> (RequestVerdict, Value) {
    let body = json!({"messages": messages, "model": "m"}).to_string();
    let mut text = BodyText::new();
    ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut Workspace::new(), &mut text).unwrap();
    let Policy {
        engine,
        profile,
        scratch,
    } = policy;
    let verdict = inspect_request(engine, profile, &text, Budget::unlimited(), scratch).unwrap();
    let mut out = Vec::new();
    let _ = verdict.rewrite(engine, &text, body.as_bytes(), &mut out);
    let mut sent: Value = serde_json::from_slice(&out).unwrap();
    (verdict, sent["messages"].take())
}

/// Returns the content that results from a stream of these pieces.
fn streamed(policy: &mut Policy, pieces: &[&str]) -> String {
    let pieces: Vec<String> = pieces.iter().map(|piece| chunk(piece)).collect();
    let pieces: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
    let (out, ended, _) = policy.pass(ResponseKind::Events, &pieces);
    assert_eq!(ended, Ok(()));
    contents(&out).concat()
}

#[test]
fn all_of_a_long_token_is_taken_out_of_a_request() {
    let mut policy = secrets();
    for (text, expected) in long_secrets() {
        let (verdict, sent) = inspect(&mut policy, &json!([{"role": "tool", "content": text}]));
        assert_eq!(
            (verdict.outcome, sent[0]["content"].as_str()),
            (InspectionOutcome::Redact, Some(expected))
        );
    }
}

#[test]
fn all_of_it_is_taken_out_of_a_whole_answer() {
    let mut policy = secrets();
    for (text, expected) in long_secrets() {
        let (out, ended, _) = policy.pass(ResponseKind::Unary, &[answer(&text).as_bytes()]);
        assert_eq!((ended, out), (Ok(()), answer(expected).into_bytes()));
    }
}

/// Lengths around that of a payload up to which a match includes a part of the signature.
#[test]
fn a_web_token_is_taken_out_whatever_the_lengths_of_its_parts() {
    let mut policy = secrets();
    for payload in (8..12).chain(198..206).chain([600, 5000]) {
        for signature in [43, 100, 342] {
            let part = |length: usize| DIGITS.chars().cycle().take(length).collect::<String>();
            let token = format!("{HEADER}.\u{65}yJ{}.{}", part(payload), part(signature));
            let (out, ended, _) = policy.pass(
                ResponseKind::Unary,
                &[answer(&format!("a {token}. B")).as_bytes()],
            );
            let expected = match payload {
                ..10 => format!("a {token}. B"),
                _ => "a [redacted:secret-jwt]. B".to_owned(),
            };
            assert_eq!(
                (ended, out),
                (Ok(()), answer(&expected).into_bytes()),
                "{payload} {signature}"
            );
        }
    }
}

#[test]
fn all_of_it_is_taken_out_of_a_stream_wherever_that_is_cut() {
    let mut policy = secrets();
    for (text, expected) in long_secrets() {
        let ends = text.len().saturating_sub(24)..text.len();
        let places = (0..text.len()).step_by(67).chain(96..120).chain(ends);
        for place in places {
            let pieces = [&text[..place], &text[place..]];
            assert_eq!(streamed(&mut policy, &pieces), expected, "{place}");
        }
        for length in [100, 1000] {
            let characters: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = characters.chunks(length).map(String::from_iter).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            assert_eq!(streamed(&mut policy, &pieces), expected, "{length}");
        }
    }
}

#[test]
fn nothing_of_a_token_leaves_while_it_arrives() {
    let mut policy = secrets();
    for (text, expected) in long_secrets() {
        let mut inspector =
            proofgate_inspect::ResponseInspector::new(Dialect::Chat, ResponseKind::Events, 1 << 20);
        let (mut out, mut told) = (Vec::new(), String::new());
        for piece in text.as_bytes().chunks(3) {
            let event = chunk(std::str::from_utf8(piece).unwrap());
            policy.push(&mut inspector, event.as_bytes(), &mut out).unwrap();
            told.push_str(&contents(&out).concat());
            out.clear();
            assert!(expected.starts_with(&told), "{told}");
        }
        policy.finish(&mut inspector, &mut out).unwrap();
        told.push_str(&contents(&out).concat());
        assert_eq!(told, expected);
    }
}

#[test]
fn a_token_of_megabytes_is_swallowed_and_not_kept() {
    let mut policy = secrets();
    let mut inspector =
        proofgate_inspect::ResponseInspector::new(Dialect::Chat, ResponseKind::Events, 1 << 20);
    let mut told = String::new();
    let mut out = Vec::new();
    let begin = format!("here: {}", token(2, 11));
    let piece = DIGITS.repeat(32);
    for piece in std::iter::once(begin.as_str())
        .chain(std::iter::repeat_n(piece.as_str(), 1024))
        .chain([". And"])
    {
        policy
            .push(&mut inspector, chunk(piece).as_bytes(), &mut out)
            .unwrap();
        told.push_str(&contents(&out).concat());
        out.clear();
        assert!(inspector.capacity() < 128 * 1024, "{}", inspector.capacity());
    }
    policy.finish(&mut inspector, &mut out).unwrap();
    told.push_str(&contents(&out).concat());
    assert_eq!(told, "here: [redacted:secret-jwt]. And");
}

#[test]
fn arguments_with_a_long_token_stay_json_whole_and_streamed() {
    let mut policy = secrets();
    let signed = token(8, 11).replace("Hd4", "Hd4\\u002B");
    let arguments = format!(r#"{{"a": 1, "session_token": "{signed}\n", "b": "c"}}"#);
    let expected = json!({"a": 1, "session_token": "[redacted:secret-assignment]\n", "b": "c"});
    let call = |arguments: &str| json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}});
    let whole = json!({"choices": [{"index": 0, "message": {"tool_calls": [call(&arguments)]}}]}).to_string();
    let (out, ended, _) = policy.pass(ResponseKind::Unary, &[whole.as_bytes()]);
    assert_eq!(ended, Ok(()));
    let out: Value = serde_json::from_slice(&out).unwrap();
    let told = out["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        .as_str()
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(told).unwrap(), expected);
    for place in (0..arguments.len()).step_by(5) {
        let event = |piece: &str| {
            let call = json!({"index": 0, "function": {"arguments": piece}});
            let data = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
            format!("data: {data}\n\n")
        };
        let pieces = [event(&arguments[..place]), event(&arguments[place..])];
        let pieces: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
        let (out, ended, _) = policy.pass(ResponseKind::Events, &pieces);
        assert_eq!(ended, Ok(()));
        let pieces = events(&out);
        let told: String = pieces
            .iter()
            .map(|event| {
                event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
                    .as_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), expected, "{place}");
    }
}

/// A masked original is restored from the headers of the exchange, which are kept in memory.
#[test]
fn a_short_token_can_be_masked_and_a_long_one_is_redacted() {
    let actions = json!([{"rules": ["secret-jwt"], "action": "Mask"}]);
    let mut policy = Policy::of(&json!({"packs": ["secrets"], "actions": actions}), None);
    for (token, expected) in [(token(2, 11), "[jwt-1]"), (token(2, 40), "[redacted:secret-jwt]")] {
        let (verdict, sent) = inspect(
            &mut policy,
            &json!([{"role": "user", "content": format!("a {token} b")}]),
        );
        assert_eq!(sent[0]["content"], format!("a {expected} b"));
        let originals: Vec<_> = verdict
            .placeholders
            .iter()
            .map(|placeholder| placeholder.value.clone())
            .collect();
        assert!(originals.is_empty() || originals == [token]);
    }
}

#[test]
fn what_follows_a_token_of_usual_length_stays() {
    let mut policy = secrets();
    let short = format!("{HEADER}.\u{65}yJ{DIGITS}.{DIGITS}");
    for behind in ["/path", ".Then", "=x", "+x", "?y", "\\/z"] {
        let text = format!("a {short}{behind}");
        let expected = format!("a [redacted:secret-jwt]{behind}");
        assert_eq!(streamed(&mut policy, &[&text]), expected);
    }
}
