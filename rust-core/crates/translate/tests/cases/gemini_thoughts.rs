//! A client of Anthropic's messages that requests thinking from Gemini receives the thoughts and sends them back.

use super::*;
use proofgate_translate::StreamStatus;

/// Returns the Gemini request for a Messages request with these fields, and the fields left out.
fn sent(model: &str, fields: Value) -> (Value, Vec<&'static str>) {
    let mut body = asking(fields);
    body["max_tokens"] = json!(32_000);
    let (chat, mut dropped) = written(anthropic_openai::translate_for_gemini, model, DROP, &body).unwrap();
    let (sent, more) = written(openai_gemini::translate_request, model, DROP, &chat).unwrap();
    dropped.extend(more);
    (sent, dropped)
}

fn asked() -> RequestContext {
    RequestContext {
        model: "claude".into(),
        stream: true,
        include_usage: true,
        returns_signatures: true,
        ..RequestContext::default()
    }
}

#[test]
fn who_asks_gemini_to_think_is_shown_its_thoughts() {
    let budget = json!({"type": "enabled", "budget_tokens": 4096});
    let adaptive = json!({"type": "adaptive"});
    for (model, fields, config) in [
        (
            "gemini-2.5-flash",
            json!({"thinking": budget}),
            json!({"includeThoughts": true, "thinkingBudget": 8192}),
        ),
        (
            "gemini-2.5-flash-lite",
            json!({"thinking": adaptive}),
            json!({"includeThoughts": true, "thinkingBudget": -1}),
        ),
        (
            "gemini-2.5-flash",
            json!({"thinking": adaptive, "output_config": {"effort": "low"}}),
            json!({"includeThoughts": true, "thinkingBudget": 1024}),
        ),
        (
            "gemini-3-pro-preview",
            json!({"thinking": budget}),
            json!({"includeThoughts": true, "thinkingLevel": "LOW"}),
        ),
        (
            "gemini-3.5-flash",
            json!({"thinking": adaptive}),
            json!({"includeThoughts": true}),
        ),
        (
            "gemini-3.5-flash",
            json!({"thinking": {"type": "enabled", "budget_tokens": 4096, "display": "omitted"}}),
            json!({"thinkingLevel": "MEDIUM"}),
        ),
        (
            "gemini-3.5-flash",
            json!({"thinking": {"type": "adaptive", "display": "omitted"}}),
            Value::Null,
        ),
        (
            "gemini-3.5-flash",
            json!({"thinking": {"type": "disabled"}}),
            Value::Null,
        ),
        ("gemini-3.5-flash", json!({}), Value::Null),
    ] {
        let (sent, dropped) = sent(model, fields.clone());
        assert_eq!(
            sent["generationConfig"]["thinkingConfig"], config,
            "{model} {fields}"
        );
        assert!(dropped.is_empty(), "{model} {fields}: {dropped:?}");
    }
}

#[test]
fn a_gemini_that_does_not_think_is_not_asked_to() {
    for fields in [
        json!({"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        json!({"thinking": {"type": "adaptive"}}),
    ] {
        let (sent, dropped) = sent("gemini-2.0-flash", fields);
        assert_eq!(sent["generationConfig"].get("thinkingConfig"), None);
        assert_eq!(dropped, ["thinking"]);
    }
    let chat = asking(json!({"reasoning_effort": "high"}));
    let (sent, dropped) = written(
        openai_gemini::translate_request,
        "gemini-2.0-flash",
        REFUSE,
        &chat,
    )
    .unwrap();
    assert_eq!(sent.get("generationConfig"), None);
    assert_eq!(dropped, ["reasoning_effort"]);
}

/// Events of an answer: thoughts in two events, followed by a signed call.
fn events() -> [Value; 3] {
    let event = |parts: Value| json!({"responseId": "r", "candidates": [{"content": {"parts": parts}}]});
    let mut last =
        event(json!([{"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"}]));
    last["candidates"][0]["finishReason"] = json!("STOP");
    [
        event(json!([{"text": "I call ", "thought": true}])),
        event(json!([{"text": "\"f\"", "thought": true}])),
        last,
    ]
}

fn whole() -> Value {
    let parts: Vec<Value> = events()
        .iter()
        .flat_map(|event| {
            event["candidates"][0]["content"]["parts"]
                .as_array()
                .unwrap()
                .clone()
        })
        .collect();
    let gemini =
        json!({"responseId": "r", "candidates": [{"finishReason": "STOP", "content": {"parts": parts}}]});
    let (mut chat, mut message) = (Vec::new(), Vec::new());
    openai_gemini::translate_response(gemini.to_string().as_bytes(), &asked(), 1, &mut chat).unwrap();
    anthropic_openai::translate_response(&chat, &asked(), &mut message).unwrap();
    serde_json::from_slice(&message).unwrap()
}

#[test]
fn what_gemini_thought_is_thinking_and_is_its_own_again_in_the_next_turn() {
    let message = whole();
    let content = message["content"].as_array().unwrap();
    assert_eq!(
        (&content[0]["type"], &content[0]["thinking"]),
        (&json!("thinking"), &json!("I call \"f\""))
    );
    assert!(
        content[0]["signature"]
            .as_str()
            .unwrap()
            .starts_with("reasoning_details:")
    );
    assert_eq!(content.len(), 2);
    assert_eq!(content[1]["type"], "tool_use");
    let result = json!({"type": "tool_result", "tool_use_id": content[1]["id"], "content": "rain"});
    let (sent, dropped) = sent(
        "gemini-3-pro-preview",
        json!({
            "thinking": {"type": "adaptive"},
            "messages": [
                {"role": "user", "content": "w?"},
                {"role": "assistant", "content": content},
                {"role": "user", "content": [result]},
            ],
        }),
    );
    let parts = &sent["contents"][1]["parts"];
    assert_eq!(parts[0], json!({"text": "I call \"f\"", "thought": true}));
    assert_eq!(parts[1]["functionCall"]["args"], json!({"a": 1}));
    assert_eq!(parts[1]["thoughtSignature"], "c2ln");
    assert!(dropped.is_empty(), "{dropped:?}");
}

#[test]
fn streamed_thoughts_are_the_thinking_of_the_whole_answer() {
    let mut inner = openai_gemini::Stream::new(&asked(), 1);
    let mut outer = anthropic_openai::Stream::new(&asked(), 25);
    let (mut chunks, mut seen) = (Vec::new(), Vec::new());
    for event in events() {
        inner
            .push_event("", event.to_string().as_bytes(), &mut chunks)
            .unwrap();
    }
    assert_eq!(inner.finish(&mut chunks).unwrap(), StreamStatus::Finished);
    for chunk in String::from_utf8(chunks).unwrap().split("\n\n") {
        if let Some(data) = chunk.strip_prefix("data: ") {
            outer.push_event("", data.as_bytes(), &mut seen).unwrap();
        }
    }
    outer.finish(&mut seen).unwrap();
    let seen = String::from_utf8(seen).unwrap();
    let (mut thinking, mut signature, mut kinds) = (String::new(), String::new(), Vec::new());
    for data in seen.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(data).unwrap();
        thinking.push_str(event["delta"]["thinking"].as_str().unwrap_or_default());
        signature.push_str(event["delta"]["signature"].as_str().unwrap_or_default());
        kinds.extend(event["content_block"]["type"].as_str().map(str::to_owned));
    }
    let whole = &whole()["content"][0];
    assert_eq!(
        (&json!(thinking), &json!(signature)),
        (&whole["thinking"], &whole["signature"])
    );
    assert_eq!(kinds, ["thinking", "tool_use"]);
}

#[test]
fn what_gemini_signs_returns_where_it_showed_no_thoughts() {
    let said = json!([{"text": "Now."}, {"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "g"}}]);
    let gemini =
        json!({"responseId": "r", "candidates": [{"finishReason": "STOP", "content": {"parts": said}}]});
    let (mut chat, mut message) = (Vec::new(), Vec::new());
    openai_gemini::translate_response(gemini.to_string().as_bytes(), &asked(), 1, &mut chat).unwrap();
    anthropic_openai::translate_response(&chat, &asked(), &mut message).unwrap();
    let message: Value = serde_json::from_slice(&message).unwrap();
    let kinds: Vec<_> = message["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(kinds, ["text", "thinking", "tool_use", "tool_use"]);
    let (sent, dropped) = sent(
        "gemini-3-pro-preview",
        json!({"thinking": {"type": "adaptive"}, "messages": [
            {"role": "user", "content": "w?"}, {"role": "assistant", "content": message["content"]}, {"role": "user", "content": "?"}]}),
    );
    let parts = sent["contents"][1]["parts"].as_array().unwrap();
    let signatures: Vec<_> = parts.iter().map(|part| part.get("thoughtSignature")).collect();
    assert_eq!(signatures, [None, Some(&json!("c2ln")), None]);
    assert!(dropped.is_empty(), "{dropped:?}");
    let unasked = RequestContext {
        returns_signatures: false,
        ..asked()
    };
    let mut message = Vec::new();
    anthropic_openai::translate_response(&chat, &unasked, &mut message).unwrap();
    assert!(!String::from_utf8(message).unwrap().contains("thinking"));
}
