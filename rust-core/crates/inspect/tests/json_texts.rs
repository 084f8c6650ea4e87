//! A text of a response that is JSON, such as the arguments of a tool call, remains valid JSON when something in it is
//! redacted, however it arrives.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::ResponseKind;
use proofgate_providers::Dialect;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use support::{Policy, events, named_event};

fn policy() -> Policy {
    Policy::of(
        &json!({"budgetMilliseconds": 10_000, "rules": [
            {"id": "card", "reason": "A card.", "regex": "[0-9]{9,19}", "score": 1, "action": "Redact"},
            {"id": "key", "reason": "A key.", "view": "Text", "regex": r"sk-[a-z0-9]{6,40}", "score": 1, "action": "Redact"},
            {"id": "quoted", "reason": "A value.", "regex": r#"\bpassword\\?"? ?: ?\\?"?(?<value>[^" \\]{4,20})"#, "score": 1, "action": "Redact"},
            {"id": "name", "reason": "A name.", "literals": ["ann smith", "n\\u0041nn"], "score": 1, "action": "Redact"},
            {"id": "across", "reason": "A key and its value.", "view": "Text", "regex": r#"over": ?"?all"?"#, "score": 1, "action": "Redact"},
        ]}),
        None,
    )
}

/// Text that is redacted, text that is not, and characters that JSON escapes.
fn string() -> impl Strategy<Value = String> {
    let parts = vec![
        "ann smith",
        "sk-abcdef12",
        "123456789",
        "4111111111111111",
        "password: hunter2",
        "over",
        "all",
        "x",
        " ",
        "\n",
        "\"",
        "\\",
        "\u{e9}",
        "\u{1f600}",
        "{\"password\":\"hunter2\",\"n\":123456789}",
        "",
        "[",
    ];
    prop::collection::vec(select(parts), 0..4).prop_map(|parts| parts.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        string().prop_map(Value::from),
        select(vec![
            json!(1),
            json!(4_000_056_655_665_556_u64),
            json!(-1_234_567_890_i64),
            json!(0.556_454_322_652_433_4),
            json!(1e300)
        ]),
        select(vec![Value::Null, json!(true), json!([]), json!({})]),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop_oneof![Just("password".to_owned()), string()], inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// Writes the text in different ways: with optional escapes, with blanks, on several lines.
fn written(value: &Value, style: u8) -> String {
    match style {
        0 => value.to_string(),
        1 => serde_json::to_string_pretty(value).unwrap(),
        2 => value.to_string().replace('A', "\\u0041").replace('a', "\\u0061"),
        _ => format!(
            "{}\n{}",
            value,
            json!({"password": "hunter2", "number": 123_456_789})
        ),
    }
}

/// A dialect, how its events carry a piece of a text, and where the text is in the event.
type Brings = (Dialect, fn(&str) -> String, &'static str);

const DIALECTS: [Brings; 3] = [
    (
        Dialect::Chat,
        |piece| {
            let call = json!({"index": 0, "function": {"arguments": piece}});
            let event = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
            format!("data: {event}\n\n")
        },
        "/choices/0/delta/tool_calls/0/function/arguments",
    ),
    (
        Dialect::Messages,
        |piece| {
            named_event(
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}),
            )
        },
        "/delta/partial_json",
    ),
    (
        Dialect::Responses,
        |piece| {
            named_event(
                &json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "i", "delta": piece}),
            )
        },
        "/delta",
    ),
];

/// Returns the inspected arguments of a call in a whole response.
fn whole(policy: &mut Policy, arguments: &str) -> String {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}});
    let body = json!({"choices": [{"index": 0, "message": {"tool_calls": [call]}}]}).to_string();
    let (out, ended, _) = policy.pass(ResponseKind::Unary, &[body.as_bytes()]);
    assert_eq!(ended, Ok(()));
    let out: Value = serde_json::from_slice(&out).unwrap();
    let arguments = out.pointer("/choices/0/message/tool_calls/0/function/arguments");
    arguments.unwrap().as_str().unwrap().to_owned()
}

/// Returns the inspected arguments from a stream with these pieces.
fn streamed(policy: &mut Policy, pieces: &[&str], (dialect, brings, place): Brings) -> String {
    let stream: String = pieces.iter().map(|piece| brings(piece)).collect();
    let (out, ended, _) = policy.pass_as(dialect, ResponseKind::Events, &[stream.as_bytes()]);
    assert_eq!(ended, Ok(()));
    let events = events(&out);
    let pieces = events
        .iter()
        .map(|event| event.pointer(place).unwrap().as_str().unwrap());
    pieces.collect()
}

/// Whether `after` has the shape of `before`, and only redacted values differ.
fn differs_in_values_only(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .zip(after)
                    .all(|(one, other)| differs_in_values_only(one, other))
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before.iter().all(|(key, value)| {
                    after
                        .get(key)
                        .is_none_or(|other| differs_in_values_only(value, other))
                })
        }
        (Value::Number(_), Value::String(after)) => after.starts_with("[redacted:"),
        (Value::String(before), Value::String(after)) => {
            before == after || after.contains("[redacted:") || after.len() < before.len()
        }
        _ => before == after,
    }
}

/// Returns the text split at these positions, which are moved to character boundaries.
fn pieces<'t>(text: &'t str, cuts: &[usize]) -> Vec<&'t str> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    places.extend([0, text.len()]);
    for place in &mut places {
        while !text.is_char_boundary(*place) {
            *place -= 1;
        }
    }
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &text[pair[0]..pair[1]])
        .filter(|piece| !piece.is_empty())
        .collect()
}

fn documents(text: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap()
}

proptest! {
    #[test]
    fn redacted_arguments_are_json_and_the_same_however_they_come(
        value in prop::collection::btree_map(string(), value(), 0..4),
        style in 0..4_u8,
        cuts in prop::collection::vec(any::<usize>(), 0..40),
        brings in select(DIALECTS.to_vec()),
    ) {
        let value = Value::Object(value.into_iter().collect());
        let text = written(&value, style);
        let mut policy = policy();
        let whole = whole(&mut policy, &text);
        let (before, after) = (documents(&text), documents(&whole));
        prop_assert_eq!(before.len(), after.len());
        prop_assert!(before.iter().zip(&after).all(|(before, after)| differs_in_values_only(before, after)), "{}", whole);
        let streamed = streamed(&mut policy, &pieces(&text, &cuts), brings);
        prop_assert_eq!(streamed, whole);
    }

    #[test]
    fn what_is_json_only_at_its_beginning_is_the_same_however_it_comes(
        parts in prop::collection::vec(prop_oneof![
            string(),
            select(vec!["{", "}", "[", "]", ",", ":", "\"", "\\", "12", "3456789", "0.", "-", "true", "\\u00", "e9", "e+"]).prop_map(str::to_owned),
        ], 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..40),
        brings in select(DIALECTS.to_vec()),
    ) {
        let text = format!("{{\"a\": [1{}", parts.concat());
        let mut policy = policy();
        let whole = whole(&mut policy, &text);
        let streamed = streamed(&mut policy, &pieces(&text, &cuts), brings);
        prop_assert_eq!(streamed, whole);
    }
}

#[test]
fn a_number_becomes_a_string_in_a_stream_of_single_characters() {
    let text = r#"{"order_id": 4000056655665556, "similarity": 0.5564543226524334, "n": 12}"#;
    let expected = r#"{"order_id": "[redacted:card]", "similarity": "[redacted:card]", "n": 12}"#;
    let mut policy = policy();
    assert_eq!(whole(&mut policy, text), expected);
    let characters: Vec<&str> = text.split("").filter(|piece| !piece.is_empty()).collect();
    for brings in DIALECTS {
        assert_eq!(streamed(&mut policy, &characters, brings), expected);
    }
}

#[test]
fn a_key_and_the_quotes_around_a_value_stay() {
    let text = r#"{"password":"hunter2","region":"eu"}"#;
    let expected = r#"{"password":"[redacted:quoted]","region":"eu"}"#;
    let mut policy = policy();
    assert_eq!(whole(&mut policy, text), expected);
    assert_eq!(streamed(&mut policy, &[text], DIALECTS[0]), expected);
}
