use super::*;

#[test]
fn the_provider_is_asked_to_keep_nothing_and_to_give_its_reasoning() {
    let (sent, dropped) = sent_to("gpt-5.6", REFUSE, &asking(json!({"store": true}))).unwrap();
    assert_eq!(sent["model"], "gpt-5.6");
    assert_eq!(sent["store"], false);
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(dropped, ["store"]);
    assert!(sent.get("instructions").is_none() && sent.get("reasoning").is_none());
}

#[test]
fn a_model_that_does_not_reason_is_not_asked_for_reasoning() {
    for model in ["gpt-4.1", "gpt-4o", "gpt-5-chat-latest"] {
        let (sent, _) = sent_to(model, REFUSE, &asking(json!({}))).unwrap();
        assert!(sent.get("include").is_none(), "{model}");
    }
}

#[test]
fn messages_keep_their_order_and_their_roles() {
    let sent = sent(&saying(json!([
        {"role": "system", "content": "a"},
        {"role": "developer", "content": [{"type": "text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit"}}]},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": [{"type": "text", "text": "d"}, {"type": "text", "text": "e"}]},
        {"role": "system", "content": "f"},
    ])));
    assert_eq!(
        sent["input"],
        json!([
            {"type": "message", "role": "system", "content": "a"},
            {"type": "message", "role": "developer", "content": [
                {"type": "input_text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit"}}]},
            {"type": "message", "role": "user", "content": "c"},
            {"type": "message", "role": "assistant", "content": "de"},
            {"type": "message", "role": "system", "content": "f"},
        ])
    );
}

#[test]
fn pictures_and_files_stand_in_messages_and_in_results() {
    let parts = json!([
        {"type": "text", "text": "t"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "high"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_data": "https://a/b.pdf"}},
    ]);
    let expected = json!([
        {"type": "input_text", "text": "t"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"},
        {"type": "input_image", "image_url": "https://a/b.png", "detail": "high"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
        {"type": "input_file", "file_url": "https://a/b.pdf"},
    ]);
    let sent = sent(&saying(json!([
        {"role": "user", "content": parts},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": parts},
    ])));
    assert_eq!(sent["input"][0]["content"], expected);
    assert_eq!(
        sent["input"][2],
        json!({"type": "function_call_output", "call_id": "c1", "output": expected})
    );
}

#[test]
fn calls_and_their_results_are_items() {
    let sent = sent(&saying(json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "I look", "tool_calls": [
            {"id": "c1", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{\"a\":1.50}"}},
            {"id": "c2", "type": "function", "function": {"name": "f", "arguments": ""}},
            {"id": "c3", "type": "custom", "custom": {"name": "g", "input": "x\ny"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": null},
        {"role": "tool", "tool_call_id": "c3", "content": "3"},
    ])));
    let items = sent["input"].as_array().unwrap();
    assert_eq!(
        items[1..],
        *json!([
            {"type": "message", "role": "assistant", "content": "I look"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1.50}"},
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "c3", "name": "g", "input": "x\ny"},
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {"type": "function_call_output", "call_id": "c2", "output": ""},
            {"type": "custom_tool_call_output", "call_id": "c3", "output": "3"},
        ])
        .as_array()
        .unwrap()
    );
}

#[test]
fn an_id_that_is_too_long_is_the_same_shorter_one_in_call_and_result() {
    let ids = [
        "ä".repeat(60),
        format!("{}1", "x".repeat(64)),
        format!("{}2", "x".repeat(64)),
    ];
    let calls: Vec<_> = ids
        .iter()
        .map(|id| json!({"id": id, "function": {"name": "f", "arguments": "{}"}}))
        .collect();
    let mut messages = vec![json!({"role": "assistant", "tool_calls": calls})];
    messages.extend(
        ids.iter()
            .map(|id| json!({"role": "tool", "tool_call_id": id, "content": "r"})),
    );
    let sent = sent(&saying(json!(messages)));
    let id = |at: usize| sent["input"][at]["call_id"].as_str().unwrap().to_owned();
    for at in 0..3 {
        assert!(id(at).len() <= 64);
        assert_eq!(id(at), id(at + 3));
    }
    assert_ne!(id(1), id(2));
}

#[test]
fn reasoning_returns_before_what_it_led_to() {
    let details = json!([
        {"type": "reasoning.summary", "index": 0, "id": "rs_1", "format": "openai-responses-v1", "summary": "one \"a\""},
        {"type": "reasoning.summary", "index": 1, "id": "rs_1", "format": "openai-responses-v1", "summary": "two"},
        {"type": "reasoning.encrypted", "index": 2, "id": "rs_1", "format": "openai-responses-v1", "data": "ENC=="},
        {"type": "reasoning.encrypted", "index": 3, "id": "rs_2", "format": "openai-responses-v1", "data": "ENC2"},
    ]);
    let (sent, dropped) = sent_to(
        "gpt-5.6",
        REFUSE,
        &saying(json!([
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "so", "reasoning_content": "one", "reasoning_details": details, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"},
        ])),
    )
    .unwrap();
    assert!(dropped.is_empty());
    let kinds: Vec<_> = sent["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["type"])
        .collect();
    let expected = [
        "message",
        "reasoning",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        sent["input"][1],
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "ENC==", "summary": [
            {"type": "summary_text", "text": "one \"a\""}, {"type": "summary_text", "text": "two"}]})
    );
    assert_eq!(sent["input"][2]["summary"], json!([]));
}

#[test]
fn reasoning_that_nobody_can_read_is_left_out_and_named() {
    for details in [
        json!([{"type": "reasoning.text", "index": 0, "text": "t", "signature": "s"}]),
        json!([{"type": "reasoning.encrypted", "index": 0, "data": "d"}]),
        json!([{"type": "reasoning.summary", "id": "rs_1", "summary": "kept nowhere"}]),
        json!("?"),
    ] {
        let body = saying(json!([{"role": "assistant", "content": "a", "reasoning_details": details}]));
        let (sent, dropped) = sent_to("gpt-5.6", REFUSE, &body).unwrap();
        assert_eq!(sent["input"].as_array().unwrap().len(), 1);
        assert_eq!(dropped, ["messages[].reasoning_details"]);
    }
    let alone = json!({"role": "assistant", "content": "", "reasoning_details": [
        {"type": "reasoning.encrypted", "id": "rs_1", "data": "d"}]});
    let body = saying(json!([{"role": "user", "content": "a"}, alone]));
    let (sent, dropped) = sent_to("gpt-5.6", REFUSE, &body).unwrap();
    assert_eq!(sent["input"].as_array().unwrap().len(), 1);
    assert_eq!(dropped, ["messages[].reasoning_details"]);
    let unsigned =
        saying(json!([{"role": "assistant", "content": "a", "reasoning_content": "t", "reasoning": "t"}]));
    let (_, dropped) = sent_to("gpt-5.6", REFUSE, &unsigned).unwrap();
    assert_eq!(dropped, ["messages[].reasoning", "messages[].reasoning_content"]);
}
