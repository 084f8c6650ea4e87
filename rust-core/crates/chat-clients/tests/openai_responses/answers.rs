use super::*;

#[test]
fn a_text_is_a_chat_completion() {
    let (got, usage) = received(&response(json!([message("Hi \"you\"")]), json!({}))).unwrap();
    assert_eq!(
        got,
        json!({
            "id": "resp_1", "object": "chat.completion", "created": 1_760_000_000, "model": "gpt", "service_tier": "default",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi \"you\"", "refusal": null},
                "logprobs": null, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42,
                "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 7}},
        })
    );
    let expected = Usage {
        input: 30,
        cache_read: 20,
        cache_write: 5,
        output: 12,
        reasoning: 7,
    };
    assert_eq!(usage, expected);
}

#[test]
fn calls_are_told_of_and_reasoning_goes_to_the_client() {
    let (got, _) = received(&response(
        json!([
            reasoning("rs_1", &["one", "two"], "ENC=="),
            message("I look"),
            call("c1", "f", "{\"a\":1}"),
            call("c2", "f", ""),
            {"type": "custom_tool_call", "call_id": "c3", "name": "g", "input": "x"},
        ]),
        json!({}),
    ))
    .unwrap();
    let choice = &got["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let said = &choice["message"];
    assert_eq!(said["content"], "I look");
    assert_eq!(said["reasoning_content"], "one\n\ntwo");
    assert_eq!(
        said["reasoning_details"],
        json!([
            {"type": "reasoning.summary", "index": 0, "id": "rs_1", "format": "openai-responses-v1", "summary": "one"},
            {"type": "reasoning.summary", "index": 1, "id": "rs_1", "format": "openai-responses-v1", "summary": "two"},
            {"type": "reasoning.encrypted", "index": 2, "id": "rs_1", "format": "openai-responses-v1", "data": "ENC=="},
        ])
    );
    assert_eq!(
        said["tool_calls"],
        json!([
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c3", "type": "custom", "custom": {"name": "g", "input": "x"}},
        ])
    );
}

#[test]
fn calls_alone_have_no_content() {
    let (got, _) = received(&response(json!([call("c1", "f", "{}")]), json!({}))).unwrap();
    assert_eq!(got["choices"][0]["message"]["content"], Value::Null);
}

#[test]
fn several_messages_are_one_content_and_citations_keep_their_place() {
    let mut cited = message("as b says");
    cited["content"][0]["annotations"] = json!([
        {"type": "url_citation", "start_index": 3, "end_index": 4, "title": "B", "url": "https://b"},
        {"type": "file_citation", "file_id": "f", "filename": "f", "index": 0},
    ]);
    let (got, _) = received(&response(json!([message("Ä\u{1f600}"), cited]), json!({}))).unwrap();
    let said = &got["choices"][0]["message"];
    assert_eq!(said["content"], "Ä\u{1f600}\n\nas b says");
    assert_eq!(
        said["annotations"],
        json!([{"type": "url_citation", "url_citation": {"start_index": 7, "end_index": 8, "title": "B", "url": "https://b"}}])
    );
}

#[test]
fn a_refusal_is_one() {
    let refusal = json!([{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}]);
    let (got, _) = received(&response(refusal, json!({}))).unwrap();
    let said = &got["choices"][0]["message"];
    assert_eq!((&said["refusal"], &said["content"]), (&json!("No"), &Value::Null));
    assert_eq!(got["choices"][0]["finish_reason"], "stop");
}

#[test]
fn probabilities_of_tokens_pass() {
    let token = json!({"token": "a", "bytes": [97], "logprob": -0.5, "top_logprobs": []});
    let mut said = message("a");
    said["content"][0]["logprobs"] = json!([token]);
    let (got, _) = received(&response(json!([said, said]), json!({}))).unwrap();
    assert_eq!(
        got["choices"][0]["logprobs"],
        json!({"content": [token, token], "refusal": null})
    );
}

#[test]
fn an_answer_that_was_cut_says_why() {
    for (reason, expected) in [
        ("max_output_tokens", "length"),
        ("content_filter", "content_filter"),
        ("a new one", "length"),
    ] {
        let fields = json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
        let (got, _) = received(&response(json!([call("c", "f", "{\"a")]), fields)).unwrap();
        assert_eq!(got["choices"][0]["finish_reason"], expected);
        let called = &got["choices"][0]["message"]["tool_calls"][0];
        assert_eq!(called["function"]["arguments"], "{\"a");
    }
}

#[test]
fn items_of_unknown_types_say_nothing() {
    let (got, _) = received(&response(
        json!([{"type": "web_search_call", "id": "w"}, message("a"), {"type": 3.to_string()}, {}]),
        json!({}),
    ))
    .unwrap();
    assert_eq!(got["choices"][0]["message"]["content"], "a");
}

#[test]
fn an_answer_without_usage_costs_nothing() {
    let (_, usage) = received(&response(json!([message("a")]), json!({"usage": null}))).unwrap();
    assert_eq!(usage, Usage::default());
}

#[test]
fn what_failed_or_is_no_response_is_an_error() {
    for fields in [
        json!({"status": "failed", "error": {"code": "server_error", "message": "m"}}),
        json!({"status": "failed"}),
        json!({"status": "cancelled"}),
        json!({"status": "in_progress"}),
        json!({"status": "queued"}),
    ] {
        let failed = received(&response(json!([]), fields)).unwrap_err();
        assert!(matches!(failed, ResponseError::Failed(_)));
    }
    for malformed in [
        json!({"id": "x"}),
        json!({"output": [{"type": "function_call", "name": "f"}]}),
        json!({"output": [{"type": "message", "content": "text"}]}),
        json!([]),
    ] {
        let error = received(&malformed).unwrap_err();
        assert!(matches!(error, ResponseError::Malformed(_)), "{malformed}");
    }
}
