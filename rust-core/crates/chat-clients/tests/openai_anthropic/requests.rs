use proofgate_chat_clients::openai_anthropic::translate_request;
use proofgate_dialect::UntranslatableFieldPolicy;
use serde_json::json;

use super::{after, asking, refused, sent, target};

/// mlflow/mlflow#25788, #24296, agentgateway PR#1358.
#[test]
fn results_of_tools_in_a_row_are_one_turn_and_come_first_in_it() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": ""}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
    let sent = sent(&json!({"model": "gpt", "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [call("a"), call("b"), call("c")]},
        result("a"),
        {"role": "user", "content": "Hurry"},
        result("b"),
        result("c"),
    ]}));
    let turn = &sent["messages"][2];
    let blocks: Vec<_> = turn["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(blocks, ["tool_result", "tool_result", "tool_result", "text"]);
    let ids: Vec<_> = turn["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["tool_use_id"])
        .collect();
    assert_eq!(ids[..3], ["a", "b", "c"]);
}

/// agentgateway#2318, elastic/kibana#284682.
#[test]
fn messages_of_one_role_in_a_row_are_one_turn() {
    let sent = sent(&json!({"model": "gpt", "messages": [
        {"role": "user", "content": "One"},
        {"role": "system", "content": "Brief"},
        {"role": "user", "content": "Two"},
        {"role": "assistant", "content": "Three"},
        {"role": "assistant", "content": "Four"},
    ]}));
    let roles: Vec<_> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| &turn["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant"]);
    assert_eq!(sent["system"], json!([{"type": "text", "text": "Brief"}]));
}

/// litellm#12695.
#[test]
fn a_mark_for_the_cache_survives_on_everything_that_can_have_one() {
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let text = json!([{"type": "text", "text": "x", "cache_control": mark}]);
    let function = json!({"name": "f", "arguments": "{}"});
    let sent = sent(&json!({"model": "gpt", "cache_control": mark,
        "tools": [{"type": "function", "function": {"name": "f"}, "cache_control": mark}],
        "messages": [
            {"role": "system", "content": text},
            {"role": "user", "content": "Hi", "cache_control": mark},
            {"role": "assistant", "tool_calls": [{"id": "a", "function": function}], "cache_control": mark},
            {"role": "tool", "tool_call_id": "a", "content": text},
        ],
    }));
    for path in [
        "",
        "/tools/0",
        "/system/0",
        "/messages/0/content/0",
        "/messages/1/content/0",
        "/messages/2/content/0",
    ] {
        assert_eq!(
            sent.pointer(&format!("{path}/cache_control")),
            Some(&mark),
            "{path}"
        );
    }
}

/// vercel/ai#14847, litellm#19028.
#[test]
fn a_call_without_arguments_has_an_empty_object_and_a_cut_one_is_refused() {
    let with = |arguments: &str| {
        let function = json!({"name": "f", "arguments": arguments});
        after(json!({"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": function}]}))
    };
    let blocks = &sent(&with(" "))["messages"][1]["content"];
    assert_eq!(
        *blocks,
        json!([{"type": "tool_use", "id": "a", "name": "f", "input": {}}])
    );
    for cut in [r#"{"a": "secret"#, "[1]", "null", "{} {}"] {
        let error = refused(&with(cut), UntranslatableFieldPolicy::Drop);
        assert_eq!(error.param, "messages[1].tool_calls[0].function.arguments");
        assert!(!error.message.contains("secret"));
    }
}

/// maximhq/bifrost#5638, #6342.
#[test]
fn fragments_of_thinking_return_as_the_block_that_they_were() {
    let sent = sent(&after(
        json!({"role": "assistant", "content": "Yes", "reasoning_content": "ab", "reasoning_details": [
            {"type": "thinking", "index": 0, "thinking": "a\n"},
            {"type": "thinking", "index": 0, "thinking": "b"},
            {"type": "thinking", "index": 0, "signature": "sig=="},
            {"type": "redacted_thinking", "index": 1, "data": "d"},
        ]}),
    ));
    let blocks = &sent["messages"][1]["content"];
    assert_eq!(
        blocks[0],
        json!({"type": "thinking", "thinking": "a\nb", "signature": "sig=="})
    );
    assert_eq!(blocks[1], json!({"type": "redacted_thinking", "data": "d"}));
    assert_eq!(blocks[2], json!({"type": "text", "text": "Yes"}));
}

#[test]
fn thinking_without_its_signature_does_not_return() {
    let body = after(
        json!({"role": "assistant", "content": "Yes", "reasoning_details": [{"type": "thinking", "thinking": "a"}]}),
    );
    let mut out = Vec::new();
    let rule = target(UntranslatableFieldPolicy::Refuse);
    let asked = translate_request(body.to_string().as_bytes(), &rule, &mut out).unwrap();
    assert_eq!(asked.dropped_fields, ["messages[].reasoning_details"]);
    assert!(!String::from_utf8(out).unwrap().contains("thinking"));
}

#[test]
fn what_would_be_another_request_without_it_is_refused_whatever_the_rule() {
    let audio = json!([{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]);
    let stored = json!([{"type": "file", "file": {"file_id": "file-1"}}]);
    let picture = json!([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]);
    for (body, param) in [
        (asking(json!({"n": 2})), "n"),
        (asking(json!({"functions": [{"name": "f"}]})), "functions"),
        (asking(json!({"modalities": ["text", "audio"]})), "modalities"),
        (
            asking(json!({"web_search_options": {"a": 1}})),
            "web_search_options",
        ),
        (asking(json!({"moderation": {"model": "m"}})), "moderation"),
        (
            asking(json!({"tools": [{"type": "custom", "custom": {"name": "c"}}]})),
            "tools[0].type",
        ),
        (asking(json!({"tool_choice": "required"})), "tool_choice"),
        (
            asking(json!({"response_format": {"type": "grammar"}})),
            "response_format.type",
        ),
        (asking(json!({"max_tokens": 0})), "max_tokens"),
        (
            after(json!({"role": "user", "content": audio})),
            "messages[1].content[0].type",
        ),
        (
            after(json!({"role": "user", "content": stored})),
            "messages[1].content[0].file.file_id",
        ),
        (
            after(json!({"role": "user", "content": picture})),
            "messages[1].content[0].image_url.url",
        ),
        (
            after(json!({"role": "system", "content": picture})),
            "messages[1].content[0].type",
        ),
        (
            after(json!({"role": "function", "content": "x"})),
            "messages[1].role",
        ),
        (
            after(json!({"role": "assistant", "audio": {"id": "audio_1"}})),
            "messages[1].audio",
        ),
        (
            after(json!({"role": "tool", "content": "x"})),
            "messages[1].tool_call_id",
        ),
        (
            json!({"model": "gpt", "messages": [{"role": "system", "content": "Hi"}]}),
            "messages",
        ),
        (json!({"messages": []}), "model"),
    ] {
        assert_eq!(refused(&body, UntranslatableFieldPolicy::Drop).param, param);
    }
}

#[test]
fn a_field_without_counterpart_is_refused_by_its_name() {
    for (fields, param) in [
        (json!({"seed": 0}), "seed"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"temperature": 1.5}), "temperature"),
        (json!({"service_tier": "flex"}), "service_tier"),
        (json!({"reasoning_effort": "huge"}), "reasoning_effort"),
        (json!({"stop": ["x", "\n"]}), "stop[1]"),
    ] {
        assert_eq!(
            refused(&asking(fields), UntranslatableFieldPolicy::Refuse).param,
            param
        );
    }
}

#[test]
fn a_field_of_a_wrong_type_is_named_by_its_path_and_its_text_is_not_quoted() {
    let wrong = |body: &str| {
        let mut out = Vec::new();
        translate_request(
            body.as_bytes(),
            &target(UntranslatableFieldPolicy::Drop),
            &mut out,
        )
        .unwrap_err()
    };
    for (body, param) in [
        (
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":{"a":"secret"}}]}"#,
            "messages[1].content",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},
            {"type":"image_url","image_url":"secret"}]}]}"#,
            "messages[0].content[1].image_url",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":"secret \" [{"}],"stream":"secret"}"#,
            "stream",
        ),
        (r#"{"model":["secret"],"messages":[]}"#, "model"),
        (
            r#"{"model":"m","messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"function","function":"secret"}}"#,
            "tool_choice.function",
        ),
        (r#"{"model":"m","messages":["secret"#, ""),
    ] {
        let error = wrong(body);
        assert_eq!(error.param, param);
        assert!(!error.message.contains("secret"), "{error}");
    }
    let twice = wrong(r#"{"model":"m","messages":[],"model":"n"}"#);
    assert_eq!(twice.param, "model");
}

#[test]
fn a_temperature_that_the_provider_knows_passes_with_its_digits() {
    let mut out = Vec::new();
    let body = r#"{"model":"m","temperature":1.0,"top_p":0.10,"top_k":4e1,"messages":[{"role":"user","content":"a"}]}"#;
    translate_request(
        body.as_bytes(),
        &target(UntranslatableFieldPolicy::Refuse),
        &mut out,
    )
    .unwrap();
    let sent = String::from_utf8(out).unwrap();
    assert!(
        sent.contains(r#""temperature":1.0,"top_p":0.10,"top_k":4e1"#),
        "{sent}"
    );
}
