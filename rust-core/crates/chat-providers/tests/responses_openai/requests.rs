//! Translation of Responses requests.

use super::*;

#[test]
fn a_string_is_what_the_user_says_and_instructions_stand_before() {
    let sent = sent(&with(json!("Hi"), json!({"instructions": "Be brief."})));
    assert_eq!(
        sent,
        json!({"model": "m-1", "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
        ]})
    );
}

#[test]
fn messages_of_all_forms_are_understood() {
    let items = json!([
        {"type": "message", "id": "msg_1", "role": "developer", "content": [
            {"type": "input_text", "text": "One."}, {"type": "input_text", "text": "Two."}]},
        {"role": "system", "content": "Three."},
        {"role": "user", "content": "easy"},
        {"id": "msg_2", "type": "message", "role": "assistant", "status": "completed", "phase": "commentary", "content": [
            {"type": "output_text", "text": "a", "annotations": [], "logprobs": []}, {"type": "output_text", "text": "b"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "developer", "content": "Later."},
        {"role": "user", "content": [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": PIXEL, "detail": "original"}]},
    ]);
    let sent = sent(&with(items, json!({"instructions": "Zero."})));
    assert_eq!(
        sent["messages"],
        json!([
            {"role": "system", "content": "Zero.\n\nOne.\nTwo.\n\nThree."},
            {"role": "user", "content": "easy"},
            {"role": "assistant", "content": "ab", "refusal": "No."},
            {"role": "system", "content": "Later."},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": PIXEL, "detail": "high"}}]},
        ])
    );
}

#[test]
fn files_are_parts_and_their_addresses_stand_for_their_data() {
    let items = json!([{"role": "user", "content": [
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        {"type": "input_file", "file_url": "https://example.com/b.pdf"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ]}]);
    assert_eq!(
        sent(&with(items, json!({})))["messages"][0]["content"],
        json!([
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
            {"type": "file", "file": {"file_data": "https://example.com/b.pdf"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ])
    );
}

#[test]
fn calls_of_one_turn_are_one_message_and_their_results_stand_behind_it() {
    let items = json!([
        {"role": "user", "content": "go"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}", "status": "completed"},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
        {"role": "user", "content": "and hurry"},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
        {"type": "function_call_output", "call_id": "c1", "output": [
            {"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": PIXEL}]},
        {"role": "user", "content": "done?"},
    ]);
    assert_eq!(
        sent(&with(items, json!({})))["messages"],
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {"role": "tool", "tool_call_id": "c1", "content": [
                {"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": PIXEL}}]},
            {"role": "user", "content": "and hurry"},
            {"role": "user", "content": "done?"},
        ])
    );
}

#[test]
fn a_provider_of_chat_is_shown_pictures_by_the_user() {
    let items = json!([
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_image", "image_url": PIXEL}]},
    ]);
    let body = with(
        items,
        json!({"max_output_tokens": 7, "safety_identifier": "u", "prompt_cache_key": "k"}),
    );
    let mut out = Vec::new();
    let asked = translate_for_chat(body.to_string().as_bytes(), &target(REFUSE), &mut out).unwrap();
    let sent: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        sent["messages"][1]["content"],
        "The result is in the next user message."
    );
    assert_eq!(
        sent["messages"][2],
        json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]})
    );
    assert_eq!(sent["max_tokens"], 7);
    assert_eq!(asked.dropped_fields, ["prompt_cache_key", "safety_identifier"]);
}

#[test]
fn settings_have_their_names_of_chat() {
    let fields = json!({
        "temperature": 0.50, "top_p": 0.9, "max_output_tokens": 100, "parallel_tool_calls": false, "stream": true,
        "stream_options": {"include_obfuscation": false}, "user": "u", "safety_identifier": "s", "prompt_cache_key": "k",
        "service_tier": "flex", "reasoning": {"effort": "high"}, "top_logprobs": 2, "store": false, "background": false,
        "previous_response_id": null, "truncation": "disabled", "tool_choice": "required",
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": false}],
        "text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": {"type": "object",
            "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}},
        "include": ["reasoning.encrypted_content"],
    });
    let (sent, asked) = translated(&with(json!("x"), fields)).unwrap();
    assert_eq!(asked.dropped_fields, Vec::<&str>::new());
    assert!(asked.stream && asked.include_usage);
    assert_eq!(asked.model, "assistant");
    let mut expected = json!({
        "model": "m-1", "messages": [{"role": "user", "content": "x"}],
        "temperature": 0.5, "top_p": 0.9, "max_completion_tokens": 100, "parallel_tool_calls": false,
        "user": "u", "safety_identifier": "s", "prompt_cache_key": "k", "service_tier": "flex",
        "reasoning_effort": "high", "top_logprobs": 2, "logprobs": true, "tool_choice": "required",
        "stream": true, "stream_options": {"include_usage": true},
    });
    expected["tools"] = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]);
    expected["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}}});
    assert_eq!(sent, expected);
}

#[test]
fn what_says_nothing_to_the_model_is_left_out_and_named() {
    let fields = json!({
        "metadata": {"a": "b"}, "include": ["web_search_call.action.sources"], "truncation": "auto", "store": true,
        "client_metadata": {"turn": "1"}, "reasoning": {"summary": "auto"}, "text": {"verbosity": "low"}, "max_tool_calls": 3,
        "tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "s"}, {"type": "tool_search"}],
    });
    let items = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "gAAAA"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "y"}]},
        {"role": "user", "content": "z"},
    ]);
    let (sent, asked) = translated(&with(items, fields)).unwrap();
    assert_eq!(sent.get("tools"), None);
    assert_eq!(sent["messages"][1], json!({"role": "assistant", "content": "y"}));
    let mut dropped = asked.dropped_fields;
    dropped.sort_unstable();
    assert_eq!(
        dropped,
        [
            "client_metadata",
            "include",
            "input[].content[].prompt_cache_breakpoint",
            "input[].encrypted_content",
            "input[].type",
            "max_tool_calls",
            "metadata",
            "reasoning.summary",
            "store",
            "text.verbosity",
            "tools[].type",
            "truncation",
        ]
    );
}

#[test]
fn what_openai_keeps_is_refused_by_name() {
    for (fields, name) in [
        (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
        (json!({"conversation": "conv_1"}), "conversation"),
        (json!({"prompt": {"id": "p"}}), "prompt"),
        (json!({"background": true}), "background"),
    ] {
        let (param, message) = refused(&with(json!("x"), fields));
        assert_eq!(param, name);
        assert!(message.contains("store: false"), "{message}");
    }
    for item in [
        json!({"type": "item_reference", "id": "msg_1"}),
        json!({"id": "msg_1"}),
    ] {
        let (param, message) = refused(&with(json!([{"role": "user", "content": "x"}, item]), json!({})));
        assert_eq!(param, "input[1]");
        assert!(message.contains("store: false"), "{message}");
    }
    for item in [
        json!({"type": "compaction", "encrypted_content": "x"}),
        json!({"type": "compaction_trigger"}),
        json!({"type": "computer_call_output", "call_id": "c", "output": {}}),
    ] {
        assert_eq!(refused(&with(json!([item]), json!({}))).0, "input[0]");
    }
    for part in [
        json!({"type": "input_image", "file_id": "file_1"}),
        json!({"type": "input_file", "file_id": "file_1"}),
    ] {
        let items = json!([{"role": "user", "content": [part]}]);
        assert_eq!(refused(&with(items, json!({}))).0, "input[0].content[0].file_id");
    }
}

#[test]
fn what_is_not_known_is_left_out_and_named() {
    let items = json!([{"role": "user", "content": [{"type": "input_text", "text": "x", "mood": 1}, {"type": "input_smell"}]},
        {"type": "thing_of_2027", "content": "?"}]);
    let body = with(
        items,
        json!({"field_of_2027": 1, "tools": [{"type": "tool_of_2027", "name": "t"}], "reasoning": {"depth": 3}}),
    );
    let (sent, asked) = translated(&body).unwrap();
    assert_eq!(
        sent,
        json!({"model": "m-1", "messages": [{"role": "user", "content": "x"}]})
    );
    let mut dropped = asked.dropped_fields;
    dropped.sort_unstable();
    assert_eq!(
        dropped,
        [
            "input[].content[].type",
            "input[].type",
            "other fields",
            "tools[].type"
        ]
    );
}

#[test]
fn fields_of_chat_that_ask_for_something_are_lost_as_the_provider_says() {
    let body = with(json!("x"), json!({"seed": 1, "reasoning": {"mode": "pro"}}));
    assert!(["seed", "reasoning.mode"].contains(&&*refused(&body).0));
    let mut out = Vec::new();
    let asked = translate_request(
        body.to_string().as_bytes(),
        &target(UntranslatableFieldPolicy::Drop),
        &mut out,
    )
    .unwrap();
    assert_eq!(asked.dropped_fields.len(), 2);
}

#[test]
fn a_provider_of_chat_is_asked_for_what_its_model_has() {
    let tools = json!([{"type": "function", "name": "f"}]);
    for (model, tools, effort, dropped) in [
        (
            "gpt-5",
            json!([]),
            "high",
            vec!["temperature", "reasoning_effort"],
        ),
        ("gpt-5.2", tools.clone(), "xhigh", vec!["reasoning_effort"]),
        ("gpt-5.5", tools, "none", vec!["reasoning_effort"]),
        ("mistral-large", json!([]), "max", vec![]),
    ] {
        let body = with(
            json!("x"),
            json!({"temperature": 0.5, "reasoning": {"effort": "max"}, "tools": tools}),
        );
        let target = Target {
            model,
            ..target(UntranslatableFieldPolicy::Drop)
        };
        let mut out = Vec::new();
        let mut asked = translate_for_chat(body.to_string().as_bytes(), &target, &mut out).unwrap();
        let sent: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(sent["reasoning_effort"], effort, "{model}");
        asked.dropped_fields.sort_by_key(|name| *name != "temperature");
        assert_eq!(asked.dropped_fields, dropped, "{model}");
        assert_eq!(
            sent.get("temperature").is_none(),
            dropped.contains(&"temperature")
        );
    }
}

#[test]
fn what_is_no_request_is_refused_with_its_place() {
    for (body, param) in [
        (json!({"input": "x"}), "model"),
        (json!({"model": "m"}), "input"),
        (json!({"model": "m", "input": 1}), "input"),
        (json!({"model": "m", "input": [1]}), "input[0]"),
        (
            json!({"model": "m", "input": [{"role": "king", "content": "x"}]}),
            "input[0].role",
        ),
        (
            json!({"model": "m", "input": [{"type": "function_call", "call_id": "c"}]}),
            "input[0]",
        ),
        (json!({"model": "m", "input": "x", "tools": {}}), "tools"),
        (json!({"model": "m", "input": "x", "stream": "yes"}), "stream"),
        (
            json!({"model": "m", "input": "x", "text": {"format": {"type": "xml"}}}),
            "text.format",
        ),
    ] {
        assert_eq!(refused(&body).0, param);
    }
    let mut out = b"before".to_vec();
    assert!(translate_request(b"{", &target(REFUSE), &mut out).is_err());
    assert_eq!(out, b"before");
}
