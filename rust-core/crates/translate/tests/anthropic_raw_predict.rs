//! Requests of clients to a Claude model on Vertex AI, and their answers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_translate::anthropic_raw_predict::{
    Stream, supports_messages, translate_chat_request, translate_error, translate_request, translate_response,
};
use proofgate_translate::{StreamStatus, Target, UntranslatableFieldPolicy};
use proptest::prelude::*;
use serde_json::{Value, json};

const TARGET: Target<'static> = Target {
    model: "claude-sonnet-4-5@20250929",
    max_output_tokens: 4096,
    untranslatable: UntranslatableFieldPolicy::Refuse,
};

#[test]
fn a_request_of_messages_loses_its_model_and_keeps_that_it_is_streamed() {
    let mut out = Vec::new();
    let body = r#"{"model":"claude","stream":true, "max_tokens":10,"messages":[],"temperature":1.000000000000000001}"#;
    let asked = translate_request(body.as_bytes(), &["one-2026-01-01"], &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"anthropic_version":"vertex-2023-10-16","anthropic_beta":["one-2026-01-01"],"max_tokens":10,"messages":[],"temperature":1.000000000000000001,"stream":true}"#
    );
    assert!(asked.stream);
    let mut out = Vec::new();
    let asked = translate_request(br#"{"model":"claude","stream":false}"#, &[], &mut out).unwrap();
    assert_eq!(out, br#"{"anthropic_version":"vertex-2023-10-16"}"#);
    assert!(!asked.stream);
}

#[test]
fn a_client_cannot_choose_the_version_or_betas_in_the_body() {
    for param in ["anthropic_version", "anthropic_beta"] {
        let mut out = b"before".to_vec();
        let body = json!({"model": "m", param: "x"}).to_string();
        let refused = translate_request(body.as_bytes(), &[], &mut out).unwrap_err();
        assert_eq!((refused.param.as_ref(), out.as_slice()), (param, &b"before"[..]));
    }
}

#[test]
fn a_request_of_chat_completions_becomes_messages_without_a_model() {
    let mut out = b"before".to_vec();
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let asked = translate_chat_request(body.to_string().as_bytes(), &TARGET, &mut out).unwrap();
    let sent: Value = serde_json::from_slice(out.strip_prefix(b"before").unwrap()).unwrap();
    assert_eq!(sent["anthropic_version"], "vertex-2023-10-16");
    assert_eq!(sent["stream"], true);
    assert_eq!(sent["max_tokens"], 4096);
    assert_eq!(sent.get("model"), None);
    assert_eq!(asked.model, "m");
}

#[test]
fn models_of_google_do_not_take_messages() {
    assert!(supports_messages("claude-opus-4-7"));
    assert!(!supports_messages("gemini-3-pro"));
}

#[test]
fn an_answer_passes_as_it_is_and_one_that_is_no_message_is_none() {
    let message = br#"{"id":"msg_vrtx_1", "type":"message","content":[]}"#;
    let mut out = Vec::new();
    translate_response(message, &mut out).unwrap();
    assert_eq!(out, message);
    assert!(translate_response(br#"{"error":{"code":400}}"#, &mut Vec::new()).is_err());
}

#[test]
fn errors_of_google_and_of_anthropic_are_said_as_anthropics() {
    for (status, body, kind) in [
        (
            429,
            r#"{"error":{"code":429,"message":"said","status":"RESOURCE_EXHAUSTED"}}"#,
            "rate_limit_error",
        ),
        (
            404,
            r#"{"error":{"code":404,"message":"said","status":"NOT_FOUND"}}"#,
            "not_found_error",
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"said"}}"#,
            "invalid_request_error",
        ),
    ] {
        let mut out = Vec::new();
        translate_error(status, body.as_bytes(), &mut out);
        let said: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            said,
            json!({"type": "error", "error": {"type": kind, "message": "said"}})
        );
    }
}

#[test]
fn events_pass_and_message_stop_alone_is_the_good_end() {
    let (mut stream, mut out) = (Stream::new(), Vec::new());
    assert_eq!(
        stream.push_event("ping", b"{}", &mut out),
        Ok(StreamStatus::InProgress)
    );
    assert_eq!(
        stream.push_event("message_stop", b"{}", &mut out),
        Ok(StreamStatus::Finished)
    );
    assert_eq!(out, b"event: ping\ndata: {}\n\nevent: message_stop\ndata: {}\n\n");
    assert_eq!(
        Stream::new().push_event("error", b"{}", &mut Vec::new()),
        Ok(StreamStatus::Failed)
    );
}

proptest! {
    #[test]
    fn no_input_makes_it_panic_or_write_what_is_no_json(name in "[a-z_]{0,20}", value in any::<String>(), cut in 0usize..200) {
        let body = json!({"model": value, "stream": true, name.as_str(): value, "messages": [{"role": "user", "content": value}]}).to_string();
        let bytes = &body.as_bytes()[..cut.min(body.len())];
        for bytes in [bytes, body.as_bytes()] {
            let mut out = Vec::new();
            if translate_request(bytes, &["a", "b"], &mut out).is_ok() {
                prop_assert!(serde_json::from_slice::<Value>(&out).is_ok());
            }
            out.clear();
            if translate_chat_request(bytes, &TARGET, &mut out).is_ok() {
                prop_assert!(serde_json::from_slice::<Value>(&out).is_ok());
            }
            out.clear();
            translate_error(400, bytes, &mut out);
            prop_assert!(serde_json::from_slice::<Value>(&out).is_ok());
        }
    }
}
