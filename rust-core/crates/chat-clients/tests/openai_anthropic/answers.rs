use proofgate_chat_clients::openai_anthropic::translate_response;
use proofgate_dialect::Usage;
use serde_json::{Value, json};

use super::{CREATED, asked, asking, sent};

fn received(message: &Value) -> (Value, Usage) {
    let mut out = Vec::new();
    let usage = translate_response(message.to_string().as_bytes(), &asked(), CREATED, &mut out).unwrap();
    (serde_json::from_slice(&out).unwrap(), usage)
}

/// litellm#9812, #11789.
#[test]
fn tokens_of_the_cache_are_counted_once() {
    let (received, usage) = received(
        &json!({"type": "message", "content": [], "stop_reason": "end_turn", "usage":
        {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000, "output_tokens": 7}}),
    );
    let expected = Usage {
        input: 3210,
        cache_read: 3000,
        cache_write: 200,
        output: 7,
        reasoning: 0,
    };
    assert_eq!(usage, expected);
    assert_eq!(received["usage"]["prompt_tokens"], 3210);
    assert_eq!(received["usage"]["total_tokens"], 3217);
    assert_eq!(
        received["usage"]["prompt_tokens_details"],
        json!({"cached_tokens": 3000, "cache_write_tokens": 200})
    );
}

/// litellm PR#12463.
#[test]
fn an_answer_in_json_is_content_that_ends_with_stop() {
    let schema = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}});
    let sent = sent(&asking(json!({"response_format": schema})));
    assert_eq!(sent["tools"], Value::Null, "no tool is put in");
    let (received, _) = received(&json!({"type": "message", "stop_reason": "end_turn", "usage": {},
        "content": [{"type": "text", "text": "{\"a\":1}"}]}));
    assert_eq!(received["choices"][0]["message"]["content"], "{\"a\":1}");
    assert_eq!(received["choices"][0]["finish_reason"], "stop");
}

#[test]
fn every_stop_reason_has_its_finish_reason() {
    for (stop, finish) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("a_new_reason", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ] {
        let (received, _) = received(&json!({"content": [], "stop_reason": stop, "usage": {}}));
        assert_eq!(received["choices"][0]["finish_reason"], finish);
    }
    let call = json!([{"type": "tool_use", "id": "a", "name": "f", "input": {}}]);
    let (received, _) = received(&json!({"content": call, "stop_reason": "end_turn", "usage": {}}));
    assert_eq!(received["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn an_answer_that_is_none_is_an_error() {
    for (body, expected) in [
        (
            r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#,
            "failed",
        ),
        (
            r#"{"type":"message","stop_reason":"end_turn","usage":{}}"#,
            "malformed",
        ),
        (r#"{"type":"message","content":[],"usage":{}}"#, "malformed"),
        (
            r#"{"type":"message","content":[],"stop_reason":"end_turn"}"#,
            "malformed",
        ),
        (
            r#"{"content":[{"type":"tool_use","id":"a","name":"f","input":{"a"#,
            "malformed",
        ),
        ("<html>", "malformed"),
    ] {
        let mut out = Vec::new();
        let error = translate_response(body.as_bytes(), &asked(), CREATED, &mut out).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(out.is_empty());
    }
}
