//! Whole answers, and errors.

use super::*;

#[test]
fn a_text_is_a_response() {
    let request = with(
        json!("x"),
        json!({"instructions": "Be brief.", "temperature": 0.5, "metadata": {"k": "v"}, "tools": [{"type": "function", "name": "f", "parameters": {}}]}),
    );
    let asked = translated(&request).unwrap().1;
    let response = whole(
        json!({"role": "assistant", "content": "Hi\n\"you\""}),
        "stop",
        &asked,
    )
    .unwrap();
    let expected = json!({
        "id": "resp_chatcmpl-1", "object": "response", "created_at": CREATED, "status": "completed", "error": null,
        "incomplete_details": null, "model": "assistant",
        "output": [{"id": "msg_chatcmpl-1_0", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi\n\"you\"", "annotations": [], "logprobs": []}]}],
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15},
        "instructions": "Be brief.", "max_output_tokens": null, "max_tool_calls": null, "metadata": {"k": "v"},
        "parallel_tool_calls": true, "prompt_cache_key": null, "reasoning": {"effort": null, "summary": null},
        "safety_identifier": null, "temperature": 0.5, "text": {"format": {"type": "text"}}, "tool_choice": "auto",
        "tools": [{"type": "function", "name": "f", "parameters": {}}], "top_logprobs": 0, "top_p": null,
        "truncation": "disabled", "user": null, "background": false, "previous_response_id": null, "store": false,
    });
    assert_eq!(response, expected);
}

#[test]
fn thinking_text_and_calls_are_items_in_this_order() {
    let message = json!({"role": "assistant", "content": "So.", "refusal": null, "reasoning_content": "ab",
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "a", "signature": "S1"},
            {"type": "reasoning.encrypted", "index": 1, "data": "D"},
            {"type": "reasoning.text", "index": 2, "text": "b", "signature": "S2"}],
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}}]});
    let response = whole(message, "tool_calls", &asked()).unwrap();
    let output = response["output"].as_array().unwrap();
    let types: Vec<&str> = output.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(
        output[0]["summary"],
        json!([{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}])
    );
    let kept = output[0]["encrypted_content"].as_str().unwrap();
    assert!(kept.contains("S1") && !kept.contains("text\":\"a"), "{kept}");
    assert_eq!(output[3]["arguments"], "{}");
    assert_eq!(output[2]["id"], "fc_chatcmpl-1_2");
}

/// Returns what the items of an answer become in the next request.
fn sent_back(message: Value) -> Value {
    let response = whole(message, "stop", &asked()).unwrap();
    let mut items = response["output"].as_array().unwrap().clone();
    items.push(json!({"role": "user", "content": "next"}));
    sent(&with(Value::Array(items), json!({})))["messages"][0].clone()
}

#[test]
fn thinking_comes_back_to_its_provider_as_it_was() {
    for members in [
        json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "a \"b\"\n", "signature": "S1"},
            {"type": "reasoning.encrypted", "index": 1, "data": "D"},
            {"type": "reasoning.text", "index": 2, "text": "c", "signature": "S2", "format": "anthropic-claude-v1"}]}),
        json!({"reasoning_content": "as DeepSeek has it"}),
        json!({"reasoning": "as vLLM has it"}),
        json!({"extra_content": {"google": {"thought_signature": "G="}}}),
    ] {
        let mut message = json!({"role": "assistant", "content": "So."});
        message
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        assert_eq!(sent_back(message.clone()), message);
    }
}

#[test]
fn the_signature_of_a_call_comes_back_on_the_call() {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "G="}}},
        {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    assert_eq!(sent_back(message.clone()), message);
}

#[test]
fn no_text_that_a_model_reads_is_taken_from_where_rules_do_not_look() {
    for kept in [
        r#"proofgate-1:{"details":[{"type":"reasoning.text","text":"obey","index":0}]}"#,
        r#"proofgate-1:{"details":[],"field":"reasoning_content","reasoning_content":"obey","content":"obey"}"#,
        r#"proofgate-1:{"details":[{"type":"reasoning.summary","summary":"obey"}]}"#,
        r#"proofgate-1:{"extra_content":"obey","signature":{"text":"obey"}}"#,
        r#"proofgate-2:{"details":[]}"#,
    ] {
        let items = json!([
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": kept},
            {"role": "assistant", "content": "y"}, {"role": "user", "content": "z"}]);
        assert!(!sent(&with(items, json!({}))).to_string().contains("obey"));
    }
}

#[test]
fn an_answer_that_was_cut_is_incomplete() {
    for (reason, told) in [
        ("length", "max_output_tokens"),
        ("content_filter", "content_filter"),
    ] {
        let message = json!({"content": "So", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{\"a\":"}}]});
        let response = whole(message, reason, &asked()).unwrap();
        assert_eq!(response["status"], "incomplete");
        assert_eq!(response["incomplete_details"]["reason"], told);
        assert_eq!(response["output"][1]["status"], "incomplete");
        assert_eq!(response["output"][1]["arguments"], "{\"a\":");
    }
    // A truncated patch must not be run.
    let patch = json!({"content": "So", "tool_calls": [{"id": "c", "function": {"name": "p", "arguments": "{\"input\":\"*** Del"}}]});
    let response = whole(
        patch,
        "length",
        &asked_with(json!([{"type": "custom", "name": "p"}])),
    )
    .unwrap();
    assert_eq!(response["output"].as_array().unwrap().len(), 1);
}

#[test]
fn refusals_citations_and_probabilities_are_told() {
    let body = json!({"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "See.", "annotations": [
            {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 4}}]},
        "logprobs": {"content": [{"token": "See.", "logprob": -0.5, "bytes": [83], "top_logprobs": []}], "refusal": null}}]});
    let mut out = Vec::new();
    translate_response(body.to_string().as_bytes(), &asked(), CREATED, &mut out).unwrap();
    let response: Value = serde_json::from_slice(&out).unwrap();
    let part = &response["output"][0]["content"][0];
    assert_eq!(
        part["annotations"],
        json!([{"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 4}])
    );
    assert_eq!(
        part["logprobs"],
        json!([{"token": "See.", "logprob": -0.5, "bytes": [83], "top_logprobs": []}])
    );
    let refusal = whole(json!({"content": null, "refusal": "No."}), "stop", &asked()).unwrap();
    assert_eq!(
        refusal["output"][0]["content"],
        json!([{"type": "refusal", "refusal": "No."}])
    );
}

#[test]
fn a_request_is_repeated_in_bounds() {
    let long = "x".repeat(9000);
    let asked = translated(&with(json!("x"), json!({"instructions": long, "user": "u"})))
        .unwrap()
        .1;
    let response = whole(json!({"content": "a"}), "stop", &asked).unwrap();
    assert_eq!(
        (&response["instructions"], &response["user"]),
        (&Value::Null, &json!("u"))
    );
}

#[test]
fn what_is_no_answer_is_an_error() {
    let of = |body: Value| {
        translate_response(body.to_string().as_bytes(), &asked(), CREATED, &mut Vec::new()).unwrap_err()
    };
    assert!(matches!(of(json!([])), ResponseError::Malformed(_)));
    assert!(matches!(of(json!({"choices": []})), ResponseError::Malformed(_)));
    assert!(matches!(
        of(json!({"error": {"message": "x"}})),
        ResponseError::Failed(_)
    ));
    let torso = json!({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{\"a\":"}}]});
    assert!(matches!(
        whole(torso, "stop", &asked()),
        Err(ResponseError::Malformed(_))
    ));
}

fn error_of(status: u16, body: &str) -> Value {
    let mut out = Vec::new();
    translate_error(status, body.as_bytes(), &mut out);
    serde_json::from_slice::<Value>(&out).unwrap()["error"].take()
}

#[test]
fn errors_keep_their_words() {
    assert_eq!(
        error_of(
            400,
            r#"{"error":{"message":"Too \"long\"","type":"invalid_request_error","code":"context_length_exceeded","param":"x"}}"#
        ),
        json!({"message": "Too \"long\"", "type": "invalid_request_error", "param": null, "code": "context_length_exceeded"})
    );
    assert_eq!(
        error_of(
            422,
            r#"{"object":"error","message":"no","type":"a b","code":1400}"#
        ),
        json!({"message": "no", "type": "invalid_request_error", "param": null, "code": "1400"})
    );
    assert_eq!(
        error_of(503, "<html>")["message"],
        "The provider answered with status 503."
    );
    assert_eq!(
        error_of(
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-1","code":"invalid_api_key"}}"#
        )["message"],
        "The provider answered with status 401."
    );
}
