//! Responses requests translated through chat completions for other providers, and their streamed answers translated back.

use proofgate_chat_clients::{openai_anthropic, openai_converse, openai_gemini};
use proofgate_dialect::EventKind;

use super::*;

type Writer = fn(&[u8], &Target<'_>, &mut Vec<u8>) -> Result<RequestContext, UntranslatableRequest>;

const WRITERS: [(&str, Writer); 3] = [
    ("claude-sonnet-4-5", openai_anthropic::translate_request),
    ("gemini-3-pro", openai_gemini::translate_request),
    (
        "anthropic.claude-sonnet-4-5-v1:0",
        openai_converse::translate_request,
    ),
];

/// Returns the request sent in the end, and the contexts of both writers.
fn chained(
    writer: Writer,
    model: &str,
    body: &Value,
) -> Result<(Value, RequestContext, RequestContext), UntranslatableRequest> {
    let target = Target {
        model,
        ..target(REFUSE)
    };
    let (mut chat, mut out) = (Vec::new(), Vec::new());
    let asked = translate_request(body.to_string().as_bytes(), &target, &mut chat)?;
    let inner = writer(&chat, &target, &mut out)?;
    Ok((serde_json::from_slice(&out).unwrap(), asked, inner))
}

fn golden(case: &str) -> Value {
    let path = format!(
        "{}/tests/golden/responses_openai/{case}/request.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn what_clients_send_by_default_is_taken_by_all() {
    for (model, writer) in WRITERS {
        for case in [
            "codex_first_turn",
            "codex_second_turn",
            "agents_sdk_turn",
            "ai_sdk_second_turn",
        ] {
            let chained = chained(writer, model, &golden(case));
            assert!(chained.is_ok(), "{model}: {case}: {chained:?}");
        }
    }
}

#[test]
fn claude_is_given_its_thinking_and_the_pictures_of_tools() {
    let (sent, _, _) = chained(
        openai_anthropic::translate_request,
        "claude-sonnet-4-5",
        &golden("codex_second_turn"),
    )
    .unwrap();
    let messages = sent["messages"].as_array().unwrap();
    let turn = messages[1]["content"].as_array().unwrap();
    assert_eq!(
        turn[0],
        json!({"type": "thinking", "thinking": "I look", "signature": "Sig=="})
    );
    let calls: Vec<&Value> = turn
        .iter()
        .filter(|block| block["type"] == "tool_use")
        .map(|block| &block["name"])
        .collect();
    assert_eq!(
        calls,
        [
            "exec_command",
            "apply_patch",
            "multi_agent__spawn_agent",
            "tool_search"
        ]
    );
    let results = messages[2]["content"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    assert_eq!(results[0]["content"][1]["type"], "image");
    assert_eq!(
        sent["system"][0]["text"],
        "You are a coding agent.\n\n<skills_instructions>\nNone.\n</skills_instructions>"
    );
}

/// Pushes the written output of the inner stream.
fn relay(chat: &[u8], stream: &mut Stream, out: &mut Vec<u8>) {
    for (name, data) in events(std::str::from_utf8(chat).unwrap()) {
        stream.push_event(&name, data.as_bytes(), out).unwrap();
    }
}

fn received(stream: Stream, out: Vec<u8>) -> Received {
    Received {
        text: String::from_utf8(out).unwrap(),
        last: Ok(StreamStatus::Finished),
        usage: stream.usage(),
    }
}

/// Repeats the request with the answer and the results of its calls, and returns the request that
/// is sent.
fn next_turn(writer: Writer, model: &str, first: &Value, output: &[Value]) -> Value {
    let mut next = first.clone();
    let mut items = vec![json!({"role": "user", "content": "hi"})];
    items.extend(output.iter().cloned());
    for item in output {
        let kind = match item["type"].as_str().unwrap() {
            "function_call" => "function_call_output",
            "custom_tool_call" => "custom_tool_call_output",
            _ => continue,
        };
        items.push(json!({"type": kind, "call_id": item["call_id"], "output": "done"}));
    }
    next["input"] = Value::Array(items);
    chained(writer, model, &next).unwrap().0
}

fn tools() -> Value {
    json!({"stream": true, "tools": [
        {"type": "custom", "name": "apply_patch"},
        {"type": "namespace", "name": "docs", "description": "d", "tools": [{"type": "function", "name": "search", "parameters": {"type": "object", "properties": {}}}]}]})
}

#[test]
fn an_answer_of_claude_comes_back_and_goes_on() {
    let body = with(json!("hi"), tools());
    let (_, asked, inner) = chained(openai_anthropic::translate_request, "claude-sonnet-4-5", &body).unwrap();
    let answer = [
        json!({"type": "message_start", "message": {"id": "msg_9", "usage": {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Let me"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": " see."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "EqQB"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I patch."}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "apply_patch", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"input\": \"***"}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": " x\"}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "toolu_2", "name": "docs__search", "input": {}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ];
    let mut from = openai_anthropic::Stream::new(&inner, CREATED);
    let mut stream = Stream::new(&asked, CREATED);
    let mut out = Vec::new();
    for event in &answer {
        let mut chat = Vec::new();
        from.push_event(
            event["type"].as_str().unwrap(),
            event.to_string().as_bytes(),
            &mut chat,
        )
        .unwrap();
        relay(&chat, &mut stream, &mut out);
    }
    let received = received(stream, out);
    assert_eq!(received.types().last().unwrap(), "response.completed");
    let output = received.output();
    let types: Vec<&str> = output.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["reasoning", "message", "custom_tool_call", "function_call"]
    );
    assert_eq!(output[2]["input"], "*** x");
    assert_eq!(
        (
            &output[3]["name"],
            &output[3]["namespace"],
            &output[3]["arguments"]
        ),
        (&json!("search"), &json!("docs"), &json!("{}"))
    );
    assert_eq!(received.response()["usage"]["input_tokens"], 10);
    assert_eq!(
        received.response()["usage"]["input_tokens_details"]["cached_tokens"],
        3
    );

    let next = next_turn(
        openai_anthropic::translate_request,
        "claude-sonnet-4-5",
        &body,
        &output,
    );
    assert_eq!(
        next["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "Let me see.", "signature": "EqQB"},
            {"type": "text", "text": "I patch."},
            {"type": "tool_use", "id": "toolu_1", "name": "apply_patch", "input": {"input": "*** x"}},
            {"type": "tool_use", "id": "toolu_2", "name": "docs__search", "input": {}},
        ])
    );
}

#[test]
fn an_answer_of_gemini_comes_back_and_goes_on() {
    let body = with(json!("hi"), tools());
    let (_, asked, inner) = chained(openai_gemini::translate_request, "gemini-3-pro", &body).unwrap();
    let answer = [
        json!({"responseId": "r1", "candidates": [{"content": {"role": "model", "parts": [{"text": "Hm.", "thought": true}]}}]}),
        json!({"responseId": "r1", "candidates": [{"content": {"role": "model", "parts": [
            {"functionCall": {"id": "f1", "name": "docs__search", "args": {}}, "thoughtSignature": "Sg=="},
            {"functionCall": {"name": "apply_patch", "args": {"input": "***"}}}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 6, "thoughtsTokenCount": 2, "totalTokenCount": 13}}),
    ];
    let mut from = openai_gemini::Stream::new(&inner, CREATED);
    let mut stream = Stream::new(&asked, CREATED);
    let mut out = Vec::new();
    for event in &answer {
        let mut chat = Vec::new();
        from.push_event("", event.to_string().as_bytes(), &mut chat)
            .unwrap();
        relay(&chat, &mut stream, &mut out);
    }
    let mut chat = Vec::new();
    from.finish(&mut chat).unwrap();
    relay(&chat, &mut stream, &mut out);
    let received = received(stream, out);
    assert_eq!(received.types().last().unwrap(), "response.completed");
    assert_eq!(
        received.response()["usage"]["output_tokens_details"]["reasoning_tokens"],
        2
    );
    let next = next_turn(
        openai_gemini::translate_request,
        "gemini-3-pro",
        &body,
        &received.output(),
    );
    let parts = next["contents"][1]["parts"].as_array().unwrap();
    let calls: Vec<&Value> = parts
        .iter()
        .filter(|part| part.get("functionCall").is_some())
        .collect();
    assert_eq!(calls[0]["functionCall"]["name"], "docs__search");
    assert_eq!(calls[0]["thoughtSignature"], "Sg==");
    assert_eq!(calls[1]["functionCall"]["args"], json!({"input": "***"}));
}

#[test]
fn an_answer_of_converse_comes_back_and_goes_on() {
    let model = "anthropic.claude-sonnet-4-5-v1:0";
    let body = with(json!("hi"), tools());
    let (_, asked, inner) = chained(openai_converse::translate_request, model, &body).unwrap();
    let answer = [
        ("messageStart", json!({"role": "assistant"})),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Let me."}}}),
        ),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "Sig"}}}),
        ),
        ("contentBlockStop", json!({"contentBlockIndex": 0})),
        (
            "contentBlockStart",
            json!({"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "docs__search"}}}),
        ),
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{\"q\":1}"}}}),
        ),
        ("contentBlockStop", json!({"contentBlockIndex": 1})),
        ("messageStop", json!({"stopReason": "tool_use"})),
        (
            "metadata",
            json!({"usage": {"inputTokens": 5, "outputTokens": 6, "totalTokens": 11}, "metrics": {"latencyMs": 1}}),
        ),
    ];
    let mut from = openai_converse::Stream::new(&inner, CREATED);
    let mut stream = Stream::new(&asked, CREATED);
    let mut out = Vec::new();
    for (name, event) in &answer {
        let mut chat = Vec::new();
        from.push_event(EventKind::Event, name, event.to_string().as_bytes(), &mut chat)
            .unwrap();
        relay(&chat, &mut stream, &mut out);
    }
    let received = received(stream, out);
    assert_eq!(received.types().last().unwrap(), "response.completed");
    let next = next_turn(
        openai_converse::translate_request,
        model,
        &body,
        &received.output(),
    );
    let blocks = &next["messages"][1]["content"];
    assert_eq!(
        blocks[0]["reasoningContent"]["reasoningText"],
        json!({"text": "Let me.", "signature": "Sig"})
    );
    assert_eq!(
        blocks[1]["toolUse"],
        json!({"toolUseId": "t1", "name": "docs__search", "input": {"q": 1}})
    );
}

#[test]
fn a_failure_of_the_provider_is_told_as_one_of_openais() {
    let (_, asked, inner) = chained(
        openai_anthropic::translate_request,
        "claude-sonnet-4-5",
        &with(json!("hi"), json!({"stream": true})),
    )
    .unwrap();
    let mut from = openai_anthropic::Stream::new(&inner, CREATED);
    let mut stream = Stream::new(&asked, CREATED);
    let mut out = Vec::new();
    for event in [
        json!({"type": "message_start", "message": {"id": "msg_9", "usage": {"input_tokens": 7}}}),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ] {
        let mut chat = Vec::new();
        from.push_event(
            event["type"].as_str().unwrap(),
            event.to_string().as_bytes(),
            &mut chat,
        )
        .unwrap();
        relay(&chat, &mut stream, &mut out);
    }
    let received = received(stream, out);
    assert_eq!(received.types().last().unwrap(), "response.failed");
    assert_eq!(received.response()["error"]["message"], "Overloaded");
    let (mut chat, mut told) = (Vec::new(), Vec::new());
    openai_anthropic::translate_error(
        429,
        br#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
        &mut chat,
    );
    translate_error(429, &chat, &mut told);
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(told["error"]["message"], "slow");
    assert_eq!(told["error"]["code"], "rate_limit_exceeded");
}

#[test]
fn who_asks_for_a_summary_of_reasoning_is_shown_geminis_thoughts() {
    for (model, reasoning, config) in [
        (
            "gemini-3-pro-preview",
            json!({"effort": "high", "summary": "auto"}),
            json!({"includeThoughts": true, "thinkingLevel": "HIGH"}),
        ),
        (
            "gemini-2.5-flash-lite",
            json!({"summary": "auto"}),
            json!({"includeThoughts": true, "thinkingBudget": -1}),
        ),
        (
            "gemini-2.5-flash",
            json!({"effort": "none", "summary": "auto"}),
            json!({"thinkingBudget": 0}),
        ),
        ("gemini-3-pro-preview", json!({"summary": null}), Value::Null),
        ("gemini-2.0-flash", json!({"summary": "auto"}), Value::Null),
    ] {
        let body = json!({"model": "m", "input": "Hi", "reasoning": reasoning}).to_string();
        let target = Target {
            model,
            ..target(REFUSE)
        };
        let (mut chat, mut out) = (Vec::new(), Vec::new());
        let asked = translate_for_gemini(body.as_bytes(), &target, &mut chat).unwrap();
        openai_gemini::translate_request(&chat, &target, &mut out).unwrap();
        let sent: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            sent["generationConfig"]["thinkingConfig"], config,
            "{model} {reasoning}"
        );
        let is_lost = asked.dropped_fields.contains(&"reasoning.summary");
        assert_eq!(is_lost, model == "gemini-2.0-flash", "{model} {reasoning}");
    }
}
