//! Counting the tokens of a message at Amazon Bedrock.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proofgate_translate::anthropic_invoke_tokens::{
    counting_model_id, translate_request, translate_response,
};
use serde_json::{Value, json};

fn invoked(body: &Value, betas: &[&str]) -> Value {
    let mut out = Vec::new();
    translate_request(body.to_string().as_bytes(), betas, &mut out).unwrap();
    let sent: Value = serde_json::from_slice(&out).unwrap();
    let body = sent["input"]["invokeModel"]["body"].as_str().unwrap();
    serde_json::from_slice(&BASE64_STANDARD.decode(body).unwrap()).unwrap()
}

#[test]
fn a_request_is_the_body_of_an_invoke_with_a_maximum() {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    for (body, expected) in [
        (
            json!({"model": "m", "messages": messages}),
            json!({"messages": messages, "max_tokens": 1}),
        ),
        (
            json!({"model": "m", "messages": messages, "max_tokens": 9}),
            json!({"messages": messages, "max_tokens": 9}),
        ),
        (
            json!({"model": "m", "messages": messages, "thinking": thinking}),
            json!({"messages": messages, "thinking": thinking, "max_tokens": 1025}),
        ),
    ] {
        let mut expected = expected;
        expected["anthropic_version"] = "bedrock-2023-05-31".into();
        assert_eq!(invoked(&body, &[]), expected);
        expected["anthropic_beta"] = json!(["b"]);
        assert_eq!(invoked(&body, &["b"]), expected);
    }
    assert!(translate_request(b"[]", &[], &mut Vec::new()).is_err());
}

#[test]
fn a_model_is_counted_by_the_id_of_its_foundation_model() {
    for (name, id) in [
        (
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            Some("anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ),
        ("global.anthropic.claude-opus-5", Some("anthropic.claude-opus-5")),
        ("us-gov.anthropic.claude-opus-5", Some("anthropic.claude-opus-5")),
        ("anthropic.claude-opus-5", Some("anthropic.claude-opus-5")),
        ("amazon.nova-pro-v1:0", None),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5",
            None,
        ),
        (
            "arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
            None,
        ),
    ] {
        assert_eq!(counting_model_id(name), id, "{name}");
    }
}

#[test]
fn an_answer_is_the_number() {
    let mut out = Vec::new();
    translate_response(br#"{"inputTokens":38,"other":1}"#, &mut out).unwrap();
    assert_eq!(out, br#"{"input_tokens":38}"#);
    assert!(translate_response(b"{}", &mut out).is_err());
}
