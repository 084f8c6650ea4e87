//! Requests of Anthropic's messages to providers of chat completions.

use super::*;

fn sent(model: &str, rule: UntranslatableFieldPolicy, fields: Value) -> (Value, Vec<&'static str>) {
    let mut body = asking(fields);
    body["max_tokens"] = json!(100);
    written(anthropic_openai::translate_request, model, rule, &body).unwrap()
}

fn turns(result: Value) -> Value {
    json!([
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [
            {"type": "text", "text": "go on"},
            {"type": "tool_result", "tool_use_id": "t", "content": result},
        ]},
    ])
}

/// 12-tool-result-image.
#[test]
fn pictures_and_documents_of_a_result_stand_with_what_the_user_says() {
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}});
    let pdf = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}});
    let shot = json!([{"type": "text", "text": "shot"}, image, pdf]);
    let (sent, _) = sent("gpt", REFUSE, json!({"messages": turns(shot)}));
    let messages = sent["messages"].as_array().unwrap();
    assert_eq!(
        messages[2],
        json!({"role": "tool", "tool_call_id": "t", "content": "shot"})
    );
    assert_eq!(messages[3]["role"], "user");
    let parts = messages[3]["content"].as_array().unwrap();
    let kinds: Vec<_> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["image_url", "file", "text"]);
    assert_eq!(
        parts[0]["image_url"]["url"],
        format!("data:image/png;base64,{PIXEL}")
    );
}

#[test]
fn a_result_of_a_picture_alone_has_a_text_that_says_where_it_is() {
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}});
    let (sent, _) = sent("gpt", REFUSE, json!({"messages": turns(json!([image]))}));
    assert!(
        sent["messages"][2]["content"]
            .as_str()
            .unwrap()
            .contains("next user message")
    );
}

fn thinking(signature: &str) -> Value {
    json!([
        {"role": "user", "content": "w?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "I call \"it\"", "signature": signature},
            {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "rain"}]},
    ])
}

/// 14-thinking-back-to-the-provider-that-thought.
#[test]
fn unsigned_thinking_returns_to_the_provider_that_thought() {
    let (sent_back, dropped) = sent("deepseek-reasoner", REFUSE, json!({"messages": thinking("")}));
    assert_eq!(sent_back["messages"][1]["reasoning_content"], "I call \"it\"");
    assert!(dropped.is_empty());
    for (model, signature) in [("deepseek-reasoner", "sig"), ("gpt-5", "")] {
        let (kept, dropped) = sent(model, REFUSE, json!({"messages": thinking(signature)}));
        assert!(kept["messages"][1].get("reasoning_content").is_none());
        assert_eq!(dropped, ["thinking"]);
    }
}

/// 16-tools-and-effort-at-openais-own-models.
#[test]
fn openais_own_models_take_tools_without_an_effort() {
    let tools = json!([{"name": "f", "input_schema": {"type": "object"}}]);
    let effort = json!({"effort": "high"});
    let fields = json!({"tools": tools, "output_config": effort});
    for model in ["gpt-5.4", "gpt-5.6-terra", "gpt-6"] {
        let (sent_so, dropped) = sent(model, DROP, fields.clone());
        assert_eq!(sent_so["reasoning_effort"], "none", "{model}");
        assert_eq!(dropped, ["output_config.effort"]);
        let (without, _) = sent(model, REFUSE, json!({"output_config": effort}));
        assert_eq!(without["reasoning_effort"], "high");
    }
    for model in ["gpt-5.1", "deepseek-reasoner", "o3"] {
        assert_eq!(sent(model, REFUSE, fields.clone()).0["reasoning_effort"], "high");
    }
}

/// 20-strict-schema-with-optional-property.
#[test]
fn a_schema_is_strict_only_where_it_can_be() {
    let schema = |required: Value| {
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": required, "additionalProperties": false})
    };
    let strict = |required: Value| {
        let format = json!({"type": "json_schema", "schema": schema(required.clone())});
        let tools = json!([{"name": "f", "strict": true, "input_schema": schema(required)}]);
        let (sent, _) = sent(
            "gpt",
            REFUSE,
            json!({"output_config": {"format": format}, "tools": tools}),
        );
        let format = sent["response_format"]["json_schema"].get("strict").cloned();
        (format, sent["tools"][0]["function"].get("strict").cloned())
    };
    assert_eq!(strict(json!(["a", "b"])), (Some(json!(true)), Some(json!(true))));
    assert_eq!(strict(json!(["a"])), (None, None));
}

/// 21-claude-code-billing-block.
#[test]
fn the_line_that_says_who_sends_a_request_is_left_out() {
    let line = "x-anthropic-billing-header: cc_version=2.1; cch=a1b2c3;";
    let text = |text: &str| json!({"type": "text", "text": text});
    for system in [
        json!([text(line), text("You are Claude Code")]),
        json!([text(&format!("{line}\nYou are Claude Code"))]),
        json!(format!("{line}\n\nYou are Claude Code")),
    ] {
        let (sent, dropped) = sent("gpt", REFUSE, json!({"system": system}));
        assert_eq!(sent["messages"][0]["content"], "You are Claude Code");
        assert_eq!(dropped, ["system[].x-anthropic-billing-header"]);
    }
    let (sent, _) = sent("gpt", REFUSE, json!({"system": [text(line)]}));
    assert_eq!(sent["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn what_says_nothing_to_the_model_is_never_refused() {
    let user = "u".repeat(65);
    let (_, dropped) = sent(
        "gpt",
        REFUSE,
        json!({"metadata": {"user_id": user}, "cache_control": {"type": "ephemeral"}, "service_tier": "standard_only"}),
    );
    assert_eq!(dropped, ["metadata.user_id", "cache_control"]);
}

/// 06-claude-code-context-management, at another provider.
#[test]
fn to_keep_all_thinking_is_nothing_to_ask_for() {
    let management = |edits: Value| json!({"context_management": {"edits": edits}});
    let keep = |keep: Value| json!([{"type": "clear_thinking_20251015", "keep": keep}]);
    let (_, dropped) = sent("gpt", REFUSE, management(keep(json!("all"))));
    assert!(dropped.is_empty());
    for edits in [
        keep(json!({"type": "thinking_turns", "value": 1})),
        json!([{"type": "clear_tool_uses_20250919"}]),
        json!("?"),
    ] {
        let (_, dropped) = sent("gpt", DROP, management(edits));
        assert_eq!(dropped, ["context_management"]);
    }
}
