//! Whole answers, complete or malformed, as the client receives them.

use proofgate_chat_clients::openai_converse::{translate_error, translate_response};
use proofgate_dialect::ResponseError;
use serde_json::{Value, json};

use crate::{CREATED, asked};

#[test]
fn stop_reasons_are_told_in_openais_words() {
    for (said, calls, heard) in [
        ("end_turn", "", Ok("stop")),
        ("stop_sequence", "", Ok("stop")),
        ("max_tokens", "", Ok("length")),
        ("model_context_window_exceeded", "", Ok("length")),
        ("guardrail_intervened", "", Ok("content_filter")),
        ("content_filtered", "", Ok("content_filter")),
        (
            "tool_use",
            r#"{"toolUse":{"toolUseId":"a","name":"f","input":{}}}"#,
            Ok("tool_calls"),
        ),
        (
            "end_turn",
            r#"{"toolUse":{"toolUseId":"a","name":"f","input":{}}}"#,
            Ok("tool_calls"),
        ),
        (
            "max_tokens",
            r#"{"toolUse":{"toolUseId":"a","name":"f","input":{}}}"#,
            Ok("length"),
        ),
        ("a_new_one", "", Ok("stop")),
        ("malformed_model_output", "", Ok("content_filter")),
        ("malformed_tool_use", "", Ok("content_filter")),
    ] {
        let body = format!(
            r#"{{"output":{{"message":{{"content":[{calls}]}}}},"stopReason":"{said}","usage":{{}}}}"#
        );
        let mut out = Vec::new();
        let result = translate_response(body.as_bytes(), &asked(), CREATED, &mut out)
            .map(|_| serde_json::from_slice::<Value>(&out).unwrap()["choices"][0]["finish_reason"].clone());
        assert_eq!(result, heard.map(Value::from), "{said}");
    }
}

// BerriAI/litellm#9812, #11789
#[test]
fn cached_tokens_are_part_of_the_prompt_and_counted_once() {
    let usage = |said: &str| {
        let body =
            format!(r#"{{"output":{{"message":{{"content":[]}}}},"stopReason":"end_turn","usage":{said}}}"#);
        let mut out = Vec::new();
        let usage = translate_response(body.as_bytes(), &asked(), CREATED, &mut out).unwrap();
        let heard: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(heard["usage"]["prompt_tokens"], usage.input);
        assert_eq!(heard["usage"]["total_tokens"], usage.input + usage.output);
        assert_eq!(
            heard["usage"]["prompt_tokens_details"]["cached_tokens"],
            usage.cache_read
        );
        (usage.input, usage.cache_read, usage.cache_write, usage.output)
    };
    let said = r#"{"inputTokens":4,"outputTokens":200,"totalTokens":1831,"cacheReadInputTokens":1600,"cacheWriteInputTokens":27}"#;
    assert_eq!(usage(said), (1631, 1600, 27, 200));
    let without_total = r#"{"inputTokens":4,"outputTokens":200,"cacheReadInputTokens":1600}"#;
    assert_eq!(usage(without_total), (1604, 1600, 0, 200));
    let counted_in =
        r#"{"inputTokens":1604,"outputTokens":2,"totalTokens":1606,"cacheReadInputTokens":1600}"#;
    assert_eq!(usage(counted_in), (1604, 1600, 0, 2));
}

// stenolabs/stenoai#361: a badly encoded ARN was answered with status 200.
#[test]
fn an_answer_that_is_none_is_malformed() {
    let unknown =
        r#"{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}"#;
    for body in [
        unknown,
        "",
        "null",
        "<html>",
        r#"{"output":{},"stopReason":"end_turn","usage":{}}"#,
    ] {
        let mut out = b"before".to_vec();
        let result = translate_response(body.as_bytes(), &asked(), CREATED, &mut out);
        assert!(matches!(result, Err(ResponseError::Malformed(_))), "{body}");
        assert_eq!(out, b"before");
    }
}

fn said(status: u16, kind: Option<&str>, body: &str) -> (String, String, Value) {
    let mut out = Vec::new();
    translate_error(status, kind, body.as_bytes(), &mut out);
    let heard: Value = serde_json::from_slice(&out).unwrap();
    let error = heard["error"].as_object().unwrap();
    assert_eq!(
        error.keys().collect::<Vec<_>>(),
        ["code", "message", "param", "type"]
    );
    let text = |name: &str| error[name].as_str().unwrap().to_owned();
    (text("message"), text("type"), error["code"].clone())
}

#[test]
fn an_error_is_known_by_its_header_or_its_body_or_its_status() {
    let body = r#"{"message":"It says \"why\"."}"#;
    let why = "It says \"why\".".to_owned();
    for (status, kind, heard, code) in [
        (
            400,
            "ValidationException:http://internal.amazon.com/",
            "invalid_request_error",
            Value::Null,
        ),
        (
            400,
            "ServiceQuotaExceededException",
            "rate_limit_error",
            json!("insufficient_quota"),
        ),
        (
            404,
            "ResourceNotFoundException",
            "invalid_request_error",
            json!("model_not_found"),
        ),
        (408, "ModelTimeoutException", "api_error", json!("model_timeout")),
        (424, "ModelErrorException", "api_error", json!("model_error")),
        (
            429,
            "com.amazon.bedrock#ThrottlingException",
            "rate_limit_error",
            json!("rate_limit_exceeded"),
        ),
        (
            429,
            "ModelNotReadyException",
            "rate_limit_error",
            json!("model_not_ready"),
        ),
        (500, "InternalServerException", "api_error", Value::Null),
        (
            503,
            "ServiceUnavailableException",
            "api_error",
            json!("server_is_overloaded"),
        ),
        (418, "ANewException", "invalid_request_error", Value::Null),
    ] {
        let expected = (why.clone(), heard.to_owned(), code);
        assert_eq!(said(status, Some(kind), body), expected, "{kind}");
    }
    let typed = r#"{"__type":"ThrottlingException","Message":"Wait."}"#;
    assert_eq!(said(400, None, typed).2, "rate_limit_exceeded");
    assert_eq!(said(400, None, typed).0, "Wait.");
    assert_eq!(said(429, None, "<html>").2, "rate_limit_exceeded");
    assert_eq!(said(404, None, "").2, "model_not_found");
    assert_eq!(said(200, Some("UnknownOperationException"), "{}").1, "api_error");
}

#[test]
fn what_the_provider_says_of_the_gateways_credentials_is_not_told() {
    for (status, kind) in [
        (403, "AccessDeniedException"),
        (403, "InvalidSignatureException"),
        (403, "ExpiredTokenException"),
        (401, "a"),
    ] {
        let body = r#"{"message":"The Canonical String should have been 'x-amz-security-token:SECRET'"}"#;
        let (message, kind, code) = said(status, Some(kind), body);
        assert!(!message.contains("SECRET"));
        assert_eq!(
            (kind.as_str(), code),
            ("api_error", json!("provider_denied_access"))
        );
    }
}
