//! A value that is replaced in a request is replaced wherever it occurs, and a masked value can be
//! restored.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{InspectionOutcome, RequestVerdict};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use support::{Policy, inspect};

/// Rules that redact passwords after their name, and mask addresses and numbers.
fn policy() -> Policy {
    Policy::of(
        &json!({"budgetMilliseconds": 10_000, "rules": [
            {"id": "password", "reason": "A password.", "regex": r#"(?:password|token)"?\s?[:=]\s?"?(?<value>[^\s"]{3,40})"#, "score": 1, "action": "Redact"},
            {"id": "email", "reason": "An address.", "regex": r"\b[a-z]{1,20}@[a-z]{1,20}\.[a-z]{2,8}\b", "score": 1, "action": "Mask"},
            {"id": "card", "reason": "A card.", "regex": r"\b4[0-9]{15}\b", "score": 1, "action": "Mask"},
        ]}),
        None,
    )
}

/// Returns the inspected contents of messages.
fn contents(contents: &[&str]) -> Vec<String> {
    let messages: Vec<_> = contents
        .iter()
        .map(|content| json!({"role": "tool", "content": content}))
        .collect();
    let (_, out) = inspect(
        &mut policy(),
        &json!({"model": "m", "messages": messages}).to_string(),
    );
    let out: Value = serde_json::from_str(&out).unwrap();
    let messages = out["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Restores the values of placeholders.
fn put_back(verdict: &RequestVerdict, text: &str) -> String {
    let mut placeholders: Vec<_> = verdict.placeholders.iter().collect();
    placeholders.sort_by_key(|placeholder| std::cmp::Reverse(placeholder.name.len()));
    placeholders.iter().fold(text.to_owned(), |text, placeholder| {
        text.replace(&placeholder.name, &placeholder.value)
    })
}

#[test]
fn a_secret_is_redacted_where_it_stands_without_its_name_too() {
    assert_eq!(
        contents(&[
            "sending x9Kq2LmZ7vR4tY6u to queue",
            "APP_TOKEN=\"x9Kq2LmZ7vR4tY6u\"\n",
            "{\"x9Kq2LmZ7vR4tY6u\": [1]}"
        ]),
        [
            "sending [redacted:password] to queue",
            "APP_TOKEN=\"[redacted:password]\"\n",
            "{\"[redacted:password]\": [1]}",
        ]
    );
}

#[test]
fn a_word_that_is_a_password_stays_a_word_elsewhere() {
    assert_eq!(
        contents(&["password: postgres", "connect to postgres"]),
        ["password: [redacted:password]", "connect to postgres"]
    );
}

#[test]
fn a_masked_value_has_one_placeholder_and_keeps_it_while_the_conversation_grows() {
    let first = [
        "ann@a.example to bob@b.example",
        "Ann@a.example, ann@a.example",
        "4111111111111111",
    ];
    let expected = ["[email-1] to [email-2]", "[email-3], [email-1]", "[card-1]"];
    assert_eq!(contents(&first), expected);
    let grown = [&first[..], &["eve@e.example and bob@b.example"]].concat();
    assert_eq!(contents(&grown)[..3], expected);
    assert_eq!(contents(&grown)[3], "[email-4] and [email-2]");
}

#[test]
fn a_placeholder_that_a_text_holds_already_stands_for_nothing_else() {
    assert_eq!(
        contents(&["ann@a.example", "what is [email-1], [email-2] or [email-x]?"])[0],
        "[email-3]"
    );
}

#[test]
fn a_value_that_is_both_redacted_and_masked_is_redacted() {
    assert_eq!(
        contents(&["ann@a.example", "password=ann@a.example"]),
        ["[redacted:email]", "password=[redacted:password]"]
    );
}

#[test]
fn the_counts_of_both_are_by_rules() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "ann@a.example password=s3cret token: s3cret2 bob@b.example"}]});
    let mut policy = policy();
    let (verdict, _) = inspect(&mut policy, &body.to_string());
    assert_eq!(verdict.outcome, InspectionOutcome::Redact);
    assert_eq!(
        verdict
            .replacement_counts(false)
            .display(&policy.engine)
            .to_string(),
        "password=2"
    );
    assert_eq!(
        verdict
            .replacement_counts(true)
            .display(&policy.engine)
            .to_string(),
        "email=2"
    );
}

fn value() -> impl Strategy<Value = Value> {
    let parts = vec![
        "ann@a.example",
        "bob@b.example",
        "4111111111111111",
        "4222222222222222",
        "password: x9Kq2LmZ7vR4tY6u",
        "x9Kq2LmZ7vR4tY6u",
        "[email-1]",
        "a",
        " ",
        "\n",
        "\"",
        "\\",
        "\u{e9}",
        "{\"password\":\"hunter2\",\"n\":1}",
        "[",
    ];
    let string = prop::collection::vec(select(parts), 0..4).prop_map(|parts| parts.concat());
    let leaf = prop_oneof![
        string.clone().prop_map(Value::from),
        select(vec![
            json!(1),
            json!(4_111_111_111_111_111_u64),
            json!(0.25),
            Value::Null,
            json!(true)
        ]),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(string.clone(), inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// Returns a text without its quotes, because a number in possible JSON is put in quotes.
fn bare(text: &str) -> String {
    text.replace('"', "")
}

/// Whether `after` equals `before` except for replaced values, with masked values restored.
fn differs_in_values_only(before: &Value, after: &Value, verdict: &RequestVerdict) -> bool {
    let same = |one: &Value, other: &Value| differs_in_values_only(one, other, verdict);
    match (before, after) {
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(one, other)| same(one, other))
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .all(|(key, value)| after.get(key).is_none_or(|other| same(value, other)))
        }
        (Value::Number(before), Value::String(after)) => put_back(verdict, after) == before.to_string(),
        (Value::String(before), Value::String(after)) => {
            let documents = |text: &str| {
                serde_json::from_str::<Value>(text)
                    .ok()
                    .filter(|value| value.is_object() || value.is_array())
            };
            match (documents(before), documents(after)) {
                (Some(before), Some(after)) => same(&before, &after),
                (Some(_), None) => false,
                _ => after.contains("[redacted:password]") || bare(&put_back(verdict, after)) == bare(before),
            }
        }
        _ => before == after,
    }
}

proptest! {
    #[test]
    fn what_leaves_parses_as_what_came_and_differs_in_values_only(
        input in value(),
        texts in prop::collection::vec(value().prop_map(|value| value.to_string()), 0..4),
    ) {
        let messages: Vec<_> = texts.iter().map(|content| json!({"role": "tool", "content": content})).collect();
        let call = json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": input}}]});
        let messages = [&messages[..], &[call]].concat();
        let body = json!({"model": "m", "messages": messages});
        let (verdict, out) = inspect(&mut policy(), &body.to_string());
        let out: Value = serde_json::from_str(&out).unwrap();
        prop_assert!(differs_in_values_only(&body, &out, &verdict), "{}", out);
        let is_masked = verdict.placeholders.iter().any(|placeholder| placeholder.value == "4111111111111111");
        prop_assert!(!is_masked || !out.to_string().contains("4111111111111111"), "{}", out);
    }
}
