//! Requests of a Messages client to a Claude model on Amazon Bedrock, and their answers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_translate::anthropic_invoke::{
    Stream, supports_messages, translate_error, translate_request, translate_response,
};
use proofgate_translate::{EventKind, RequestContext, StreamStatus, Target, UntranslatableFieldPolicy};
use proptest::prelude::*;
use serde_json::{Value, json};

const TARGET: Target<'static> = Target {
    model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    max_output_tokens: 4096,
    untranslatable: UntranslatableFieldPolicy::Refuse,
};

fn sent(body: &str, betas: &[&str]) -> (String, RequestContext) {
    let mut out = Vec::new();
    let asked = translate_request(body.as_bytes(), &TARGET, betas, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), asked)
}

#[test]
fn a_request_passes_but_for_what_stands_elsewhere_at_bedrock() {
    let body = r#"{"model":"claude", "max_tokens":10,"stream":true,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"\u00e4","signature":"c2ln"}]}],"temperature":1.000000000000000001}"#;
    let (out, asked) = sent(body, &[]);
    assert_eq!(
        out,
        r#"{"anthropic_version":"bedrock-2023-05-31","max_tokens":10,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"\u00e4","signature":"c2ln"}]}],"temperature":1.000000000000000001}"#
    );
    assert_eq!((asked.model.as_str(), asked.stream), ("claude", true));
    assert!(!sent(r#"{"model":"claude","stream":false}"#, &[]).1.stream);
}

#[test]
fn betas_that_are_allowed_stand_in_the_body() {
    let (out, _) = sent(r#"{"model":"claude"}"#, &["one-2026-01-01", "two-2026-01-01"]);
    let body: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        body["anthropic_beta"],
        json!(["one-2026-01-01", "two-2026-01-01"])
    );
}

#[test]
fn a_client_cannot_choose_betas_in_the_body_past_the_list_of_those_allowed() {
    for (body, param) in [
        (r#"{"model":"m","anthropic_beta":["x"]}"#, "anthropic_beta"),
        (r#"{"model":"m","anthropic\u005fbeta":["x"]}"#, "anthropic_beta"),
        (r#"{"model":"m","anthropic_version":"x"}"#, "anthropic_version"),
        ("[]", ""),
    ] {
        let mut out = b"before".to_vec();
        let refused = translate_request(body.as_bytes(), &TARGET, &[], &mut out).unwrap_err();
        assert_eq!((refused.param.as_ref(), out.as_slice()), (param, &b"before"[..]));
    }
}

#[test]
fn models_of_other_vendors_do_not_take_messages_and_an_arn_that_names_none_may() {
    for model in [
        "anthropic.claude-3-haiku-20240307-v1:0",
        "global.anthropic.claude-opus-4-7-v1:0",
        "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3",
        "arn:aws-us-gov:bedrock:us-gov-west-1:123456789012:provisioned-model/a1b2c3",
    ] {
        assert!(supports_messages(model), "{model}");
    }
    for model in [
        "us.amazon.nova-pro-v1:0",
        "meta.llama3-1-8b-instruct-v1:0",
        "arn:aws:bedrock:us-east-1::foundation-model/mistral.mistral-large-2402-v1:0",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.meta.llama4-scout-17b-instruct-v1:0",
    ] {
        assert!(!supports_messages(model), "{model}");
    }
}

#[test]
fn an_answer_passes_as_it_is_and_one_that_is_no_message_is_none() {
    let message = br#"{"id":"msg_bdrk_1", "type":"message","content":[]}"#;
    let mut out = Vec::new();
    translate_response(message, &mut out).unwrap();
    assert_eq!(out, message);
    // Seen with status 200 (stenolabs/stenoai#361).
    let unknown =
        br#"{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}"#;
    assert!(translate_response(unknown, &mut Vec::new()).is_err());
}

#[test]
fn errors_have_anthropics_shape_and_type() {
    for (status, kind, body, expected, message) in [
        (
            400,
            Some("ValidationException:http://internal.amazon.com/"),
            r#"{"message":"max_tokens"}"#,
            "invalid_request_error",
            "max_tokens",
        ),
        (
            429,
            Some("ThrottlingException"),
            r#"{"message":"Too many tokens"}"#,
            "rate_limit_error",
            "Too many tokens",
        ),
        (
            429,
            None,
            r#"{"__type":"com.amazon#ModelNotReadyException","Message":"wait"}"#,
            "rate_limit_error",
            "wait",
        ),
        (
            404,
            Some("ResourceNotFoundException"),
            "{}",
            "not_found_error",
            "The provider does not know the model.",
        ),
        (
            408,
            Some("ModelTimeoutException"),
            "{}",
            "timeout_error",
            "The provider's model took too long.",
        ),
        (
            424,
            Some("ModelErrorException"),
            r#"{"message":"it broke"}"#,
            "api_error",
            "it broke",
        ),
        (
            503,
            Some("ServiceUnavailableException"),
            "{}",
            "overloaded_error",
            "The provider is unavailable.",
        ),
        (500, None, "<html>", "api_error", "The provider failed."),
        (
            400,
            Some("ExpiredTokenException"),
            r#"{"message":"token TOKEN"}"#,
            "api_error",
            "The provider denied access to the gateway.",
        ),
        (
            403,
            Some("AccessDeniedException"),
            r#"{"message":"User: arn:aws:iam::1:user/x"}"#,
            "api_error",
            "The provider denied access to the gateway.",
        ),
    ] {
        let mut out = Vec::new();
        translate_error(status, kind, body.as_bytes(), &mut out);
        let said: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            said,
            json!({"type": "error", "error": {"type": expected, "message": message}}),
            "{status} {kind:?}"
        );
    }
}

#[test]
fn events_pass_and_message_stop_alone_is_the_good_end() {
    let mut stream = Stream::new();
    let mut out = Vec::new();
    let delta = br#"{"type":"content_block_delta","index":0}"#;
    let step = stream.push_event(EventKind::Event, "content_block_delta", delta, &mut out);
    assert_eq!(step, Ok(StreamStatus::InProgress));
    let step = stream.push_event(
        EventKind::Event,
        "message_stop",
        br#"{"type":"message_stop"}"#,
        &mut out,
    );
    assert_eq!(step, Ok(StreamStatus::Finished));
    let written = out.len();
    let step = stream.push_event(EventKind::Event, "ping", b"{}", &mut out);
    assert_eq!((step, out.len()), (Ok(StreamStatus::Finished), written));
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0}\n\n\
         event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    );
}

#[test]
fn a_failure_is_one_error_event_whoever_reports_it() {
    for (kind, name, data, expected) in [
        (
            EventKind::Exception,
            "modelStreamErrorException",
            r#"{"message":"broke"}"#,
            "api_error",
        ),
        (
            EventKind::Exception,
            "throttlingException",
            "{}",
            "rate_limit_error",
        ),
        (
            EventKind::Exception,
            "modelTimeoutException",
            "{}",
            "timeout_error",
        ),
        (
            EventKind::Event,
            "error",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
            "overloaded_error",
        ),
    ] {
        let (mut stream, mut out) = (Stream::new(), Vec::new());
        assert_eq!(
            stream.push_event(kind, name, data.as_bytes(), &mut out),
            Ok(StreamStatus::Failed)
        );
        let said = String::from_utf8(out).unwrap();
        let data = said.strip_prefix("event: error\ndata: ").unwrap();
        let error: Value = serde_json::from_str(data).unwrap();
        assert_eq!(error["error"]["type"], expected);
    }
}

proptest! {
    #[test]
    fn no_input_makes_it_panic_or_write_what_is_no_json(name in "[a-z_]{0,20}", value in any::<String>(), cut in 0usize..200) {
        let body = json!({"model": value, "stream": true, name.as_str(): value, "messages": [{"content": value}]}).to_string();
        let bytes = &body.as_bytes()[..cut.min(body.len())];
        for bytes in [bytes, body.as_bytes()] {
            let mut out = Vec::new();
            if translate_request(bytes, &TARGET, &["a", "b"], &mut out).is_ok() {
                prop_assert!(serde_json::from_slice::<Value>(&out).is_ok());
            }
            out.clear();
            translate_error(400, Some(&value), bytes, &mut out);
            prop_assert!(serde_json::from_slice::<Value>(&out).is_ok());
            let _ = translate_response(bytes, &mut Vec::new());
            let _ = Stream::new().push_event(EventKind::Exception, &name, bytes, &mut Vec::new());
        }
    }
}
