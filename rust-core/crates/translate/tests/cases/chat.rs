//! Chat-completions requests to providers of other APIs.

use super::*;

fn schema() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "p", "strict": true, "schema": {
        "type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}}})
}

/// 22-schema-with-minimum.
#[test]
fn a_keyword_that_claude_refuses_stands_in_the_description() {
    let expected = json!({"type": "object", "required": ["age"], "additionalProperties": false,
        "properties": {"age": {"type": "integer", "description": "{minimum: 0}"}}});
    let body = asking(json!({"response_format": schema()}));
    let (sent, _) = written(
        openai_anthropic::translate_request,
        "claude-opus-4-7",
        REFUSE,
        &body,
    )
    .unwrap();
    assert_eq!(sent["output_config"]["format"]["schema"], expected);
    let (sent, _) = written(
        openai_converse::translate_request,
        "us.anthropic.claude-opus-4-7",
        REFUSE,
        &body,
    )
    .unwrap();
    let format = &sent["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"];
    assert_eq!(
        serde_json::from_str::<Value>(format.as_str().unwrap()).unwrap(),
        expected
    );
    let (sent, _) = written(
        openai_converse::translate_request,
        "amazon.nova-pro-v1:0",
        REFUSE,
        &body,
    )
    .unwrap();
    let format = &sent["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"];
    assert!(format.as_str().unwrap().contains("minimum\":0"));

    let tool = json!({"type": "function", "function": {"name": "f", "strict": true, "parameters": schema()["json_schema"]["schema"]}});
    let (sent, _) = written(
        openai_anthropic::translate_request,
        "claude",
        REFUSE,
        &asking(json!({"tools": [tool]})),
    )
    .unwrap();
    assert_eq!(sent["tools"][0]["input_schema"], expected);
    let body = asking(json!({"tools": [tool]}));
    let (sent, _) = written(
        openai_converse::translate_request,
        "anthropic.claude",
        REFUSE,
        &body,
    )
    .unwrap();
    assert_eq!(
        sent["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"],
        expected
    );
}

/// 24-effort-at-haiku.
#[test]
fn an_effort_is_said_as_the_model_takes_it() {
    let to = |model: &str, fields: Value| {
        let mut body = asking(json!({"reasoning_effort": "high", "max_tokens": 8192}));
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        written(openai_anthropic::translate_request, model, DROP, &body).unwrap()
    };
    let (haiku, dropped) = to("claude-haiku-4-5", json!({}));
    assert_eq!(
        haiku["thinking"],
        json!({"type": "enabled", "budget_tokens": 4096})
    );
    assert!(haiku.get("output_config").is_none() && dropped.is_empty());
    assert_eq!(
        to("claude-opus-4-7", json!({})).0["output_config"]["effort"],
        "high"
    );
    let (clamped, dropped) = to("claude-opus-4-5", json!({"reasoning_effort": "max"}));
    assert_eq!(clamped["output_config"]["effort"], "high");
    assert_eq!(dropped, ["reasoning_effort"]);

    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let function = json!({"name": "f", "arguments": "{}"});
    let calls = json!([
        {"role": "user", "content": "w?"},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": "sun"},
    ]);
    for fields in [
        json!({"max_tokens": 100}),
        json!({"temperature": 0.2}),
        json!({"tools": tools, "tool_choice": "required"}),
        json!({"tools": tools, "messages": calls}),
    ] {
        let (sent, dropped) = to("claude-haiku-4-5", fields);
        assert!(sent.get("thinking").is_none());
        assert_eq!(dropped, ["reasoning_effort"]);
    }
    assert_eq!(to("claude-3-haiku-20240307", json!({})).1, ["reasoning_effort"]);

    let body = asking(json!({"reasoning_effort": "low", "max_tokens": 8192}));
    let haiku = "anthropic.claude-haiku-4-5-20251001-v1:0";
    let (sent, _) = written(openai_converse::translate_request, haiku, REFUSE, &body).unwrap();
    assert_eq!(
        sent["additionalModelRequestFields"]["thinking"]["budget_tokens"],
        1024
    );
    assert!(sent.get("outputConfig").is_none());
}

/// 26-weighted-routes-anthropic-bedrock.
#[test]
fn thoughts_go_on_at_either_provider_of_a_model() {
    let ours = json!([{"type": "reasoning.text", "index": 0, "text": "t", "signature": "SIG"},
        {"type": "reasoning.encrypted", "index": 1, "data": "D"}]);
    let anthropics = json!([{"type": "thinking", "index": 0, "thinking": "t", "signature": "SIG"},
        {"type": "redacted_thinking", "index": 1, "data": "D"}]);
    for details in [ours, anthropics] {
        let body = asking(json!({"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "A", "reasoning_content": "t", "reasoning_details": details},
            {"role": "user", "content": "next"},
        ]}));
        let (sent, dropped) = written(openai_anthropic::translate_request, "claude", REFUSE, &body).unwrap();
        let blocks = &sent["messages"][1]["content"];
        assert_eq!(
            blocks[0],
            json!({"type": "thinking", "thinking": "t", "signature": "SIG"})
        );
        assert_eq!(blocks[1], json!({"type": "redacted_thinking", "data": "D"}));
        assert!(dropped.is_empty());
        let (sent, dropped) = written(
            openai_converse::translate_request,
            "anthropic.claude",
            REFUSE,
            &body,
        )
        .unwrap();
        let blocks = &sent["messages"][1]["content"];
        let text = json!({"reasoningText": {"text": "t", "signature": "SIG"}});
        assert_eq!(blocks[0], json!({"reasoningContent": text}));
        assert_eq!(blocks[1], json!({"reasoningContent": {"redactedContent": "D"}}));
        assert!(dropped.is_empty());
        let (_, dropped) = written(openai_gemini::translate_request, "gemini-3-pro", REFUSE, &body).unwrap();
        assert_eq!(dropped, ["messages[].reasoning_details"]);
    }
}

fn calls(signed: Option<&str>) -> Value {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let mut first = call("a");
    if let Some(signature) = signed {
        first["extra_content"] = json!({"google": {"thought_signature": signature}});
    }
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "sun"});
    asking(json!({"messages": [
        {"role": "user", "content": "w?"},
        {"role": "assistant", "content": null, "tool_calls": [first, call("b")]},
        result("a"), result("b"),
    ]}))
}

/// 29-gemini3-call-without-signature.
#[test]
fn a_call_whose_signature_was_lost_has_the_stand_in_that_google_documents() {
    let signatures = |model: &str, body: &Value| {
        let (sent, _) = written(openai_gemini::translate_request, model, REFUSE, body).unwrap();
        let parts = sent["contents"][1]["parts"].as_array().unwrap().clone();
        let signatures = parts.iter().map(|part| part.get("thoughtSignature").cloned());
        signatures.collect::<Vec<_>>()
    };
    let stand_in = Some(json!("skip_thought_signature_validator"));
    for model in [
        "gemini-3-pro",
        "gemini-3.1-flash",
        "gemini-4-pro",
        "gemini-flash-latest",
    ] {
        assert_eq!(
            signatures(model, &calls(None)),
            [stand_in.clone(), None],
            "{model}"
        );
    }
    assert_eq!(
        signatures("gemini-3-pro", &calls(Some("S"))),
        [Some(json!("S")), None]
    );
    assert_eq!(signatures("gemini-2.5-pro", &calls(None)), [None, None]);
}

/// 31-gemini-image-by-address, 35-gemini-pdf-refused-for-its-name.
#[test]
fn media_at_an_address_are_the_providers_to_fetch() {
    let image = |url: &str| {
        asking(json!({"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": url}}]}]}))
    };
    let sent = |body: &Value| written(openai_gemini::translate_request, "gemini", REFUSE, body);
    for (url, media_type) in [
        ("https://images.example/a.png", "image/png"),
        ("http://images.example/a.WEBP?x=1.gif#y", "image/webp"),
        ("https://images.example/a", "image/jpeg"),
        ("https://images.png", "image/jpeg"),
    ] {
        let (sent, _) = sent(&image(url)).unwrap();
        let part = json!({"fileData": {"mimeType": media_type, "fileUri": url}});
        assert_eq!(sent["contents"][0]["parts"][0], part);
    }
    for kept in [
        "https://generativelanguage.googleapis.com/v1beta/files/abc",
        "https://x@GenerativeLanguage.googleapis.com.:443/v1beta/files/abc",
        "gs://bucket/a.png",
        "file:///etc/passwd",
    ] {
        assert_eq!(
            sent(&image(kept)).unwrap_err().param,
            "messages[0].content[0].image_url.url"
        );
    }
    let refused = written(
        openai_converse::translate_request,
        "nova",
        DROP,
        &image("https://images.example/a.png"),
    );
    assert_eq!(refused.unwrap_err().param, "messages[0].content[0].image_url.url");

    let file = json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"});
    let pdf = asking(json!({"messages": [{"role": "user", "content": [{"type": "file", "file": file}]}]}));
    let (sent, dropped) = sent(&pdf).unwrap();
    assert_eq!(
        sent["contents"][0]["parts"][0]["inlineData"]["mimeType"],
        "application/pdf"
    );
    assert_eq!(dropped, ["messages[].content[].file.filename"]);
}

#[test]
fn pictures_in_a_tools_result_reach_every_provider() {
    let url = format!("data:image/png;base64,{PIXEL}");
    let mut body = calls(None);
    body["messages"][2]["content"] =
        json!([{"type": "text", "text": "shot"}, {"type": "image_url", "image_url": {"url": url}}]);
    let (sent, _) = written(openai_gemini::translate_request, "gemini-3-pro", REFUSE, &body).unwrap();
    let parts = &sent["contents"][2]["parts"];
    assert_eq!(parts[0]["functionResponse"]["response"]["output"], "shot");
    assert_eq!(parts[2]["inlineData"]["data"], PIXEL);
    let (sent, _) = written(openai_anthropic::translate_request, "claude", REFUSE, &body).unwrap();
    assert_eq!(sent["messages"][2]["content"][0]["content"][1]["type"], "image");
    let (sent, _) = written(openai_converse::translate_request, "nova", REFUSE, &body).unwrap();
    let result = &sent["messages"][2]["content"][0]["toolResult"];
    assert_eq!(result["content"][1]["image"]["format"], "png");
}

/// 30-gemini-cache-control.
#[test]
fn a_mark_for_a_cache_is_never_refused() {
    let mark = json!({"type": "ephemeral"});
    let mut body = calls(None);
    body["cache_control"] = mark.clone();
    body["tools"] = json!([{"type": "function", "function": {"name": "f"}, "cache_control": mark}]);
    body["messages"][0] = json!({"role": "user", "cache_control": mark,
        "content": [{"type": "text", "text": "a", "cache_control": mark}]});
    body["messages"][1]["tool_calls"][0]["cache_control"] = mark;
    let (_, dropped) = written(openai_gemini::translate_request, "gemini", REFUSE, &body).unwrap();
    assert_eq!(dropped, ["cache_control"]);
    assert!(written(openai_anthropic::translate_request, "claude", REFUSE, &body).is_ok());
    assert!(written(openai_converse::translate_request, "nova", REFUSE, &body).is_ok());
}

/// 36-converse-tool-history-without-tools.
#[test]
fn a_conversation_with_calls_has_a_tool_at_converse() {
    let (sent, _) = written(openai_converse::translate_request, "nova", REFUSE, &calls(None)).unwrap();
    let tools = sent["toolConfig"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert!(sent["toolConfig"].get("toolChoice").is_none());
    let mut none = calls(None);
    none["tool_choice"] = json!("none");
    let (sent, _) = written(openai_converse::translate_request, "nova", REFUSE, &none).unwrap();
    assert!(sent["toolConfig"]["tools"].is_array());
    none["tools"] = json!([{"type": "function", "function": {"name": "get_weather"}}]);
    let (sent, _) = written(openai_converse::translate_request, "nova", REFUSE, &none).unwrap();
    assert_eq!(
        sent["toolConfig"]["tools"][0]["toolSpec"]["name"],
        "no_tool_available"
    );
    let (sent, _) = written(
        openai_converse::translate_request,
        "nova",
        REFUSE,
        &asking(json!({})),
    )
    .unwrap();
    assert!(sent.get("toolConfig").is_none());
}

/// Converse refuses documents in a turn without text.
#[test]
fn documents_that_nobody_speaks_of_have_a_text_at_converse() {
    let file = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}});
    let of = |content: Value| {
        let body = asking(json!({"messages": [{"role": "user", "content": content}]}));
        let (sent, _) = written(openai_converse::translate_request, "nova", REFUSE, &body).unwrap();
        sent["messages"][0]["content"].as_array().unwrap().len()
    };
    assert_eq!(of(json!([file])), 2);
    assert_eq!(of(json!([file, {"type": "text", "text": "{\"document\":"}])), 2);
    assert_eq!(of(json!("{\"document\":")), 1);
}

#[test]
fn json_without_a_schema_is_an_instruction_where_there_is_no_mode_for_it() {
    let body = asking(json!({"response_format": {"type": "json_object"}}));
    let (sent, _) = written(openai_converse::translate_request, "nova", REFUSE, &body).unwrap();
    assert!(
        sent["system"][0]["text"]
            .as_str()
            .unwrap()
            .contains("JSON object")
    );
}
