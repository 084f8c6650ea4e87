//! A client of Anthropic's messages reaches Responses through chat completions, in both directions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use proofgate_chat_clients::openai_responses;
use proofgate_chat_providers::anthropic_openai;
use proofgate_dialect::{RequestContext, StreamStatus, Target, UntranslatableFieldPolicy};
use responses::{call, events, events_of, message, reasoning, response};
use serde_json::{Value, json};

#[path = "../../chat-clients/tests/shared/responses.rs"]
mod responses;

const CREATED: u64 = 1_750_000_000;
const DROP: UntranslatableFieldPolicy = UntranslatableFieldPolicy::Drop;
const REFUSE: UntranslatableFieldPolicy = UntranslatableFieldPolicy::Refuse;

fn target(model: &str, untranslatable: UntranslatableFieldPolicy) -> Target<'_> {
    Target {
        model,
        max_output_tokens: 4096,
        untranslatable,
    }
}

fn asked() -> RequestContext {
    RequestContext {
        model: "gpt".to_owned(),
        stream: true,
        include_usage: true,
        ..RequestContext::default()
    }
}

/// Returns the request sent for a Messages request, and everything that was left out.
fn by_responses(
    model: &str,
    drop: UntranslatableFieldPolicy,
    body: &Value,
) -> (Value, RequestContext, Vec<&'static str>) {
    let mut chat = Vec::new();
    let target = target(model, drop);
    let asked = anthropic_openai::translate_for_responses(body.to_string().as_bytes(), &target, &mut chat)
        .expect("it is a chat request");
    let mut sent = Vec::new();
    let between =
        openai_responses::translate_request(&chat, &target, &mut sent).expect("it is a request to Responses");
    let dropped = [asked.dropped_fields.clone(), between.dropped_fields].concat();
    (serde_json::from_slice(&sent).unwrap(), asked, dropped)
}

fn whole(provider: &Value, asked: &RequestContext) -> Value {
    let (mut chat, mut message) = (Vec::new(), Vec::new());
    openai_responses::translate_response(provider.to_string().as_bytes(), asked, CREATED, &mut chat).unwrap();
    anthropic_openai::translate_response(&chat, asked, &mut message).unwrap();
    serde_json::from_slice(&message).unwrap()
}

/// Returns the Message that a client assembles from a stream.
fn collected(provider: &Value, asked: &RequestContext) -> Value {
    let mut inner = openai_responses::Stream::new(asked, CREATED);
    let mut outer = anthropic_openai::Stream::new(asked, 25);
    let (mut seen, mut last) = (Vec::new(), StreamStatus::InProgress);
    for event in events_of(provider) {
        let mut chunks = Vec::new();
        inner
            .push_event("", event.to_string().as_bytes(), &mut chunks)
            .unwrap();
        for (name, data) in events(std::str::from_utf8(&chunks).unwrap()) {
            last = outer.push_event(name, data.as_bytes(), &mut seen).unwrap();
        }
    }
    assert_eq!(last, StreamStatus::Finished);
    inner.finish(&mut Vec::new()).unwrap();
    outer.finish(&mut seen).unwrap();
    collect(std::str::from_utf8(&seen).unwrap())
}

fn collect(stream: &str) -> Value {
    let mut message = Value::Null;
    let mut inputs = Vec::<String>::new();
    for (name, data) in events(stream) {
        let event: Value = serde_json::from_str(data).unwrap();
        let at = usize::try_from(event["index"].as_u64().unwrap_or(0)).unwrap();
        match name {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                let blocks = message["content"].as_array_mut().unwrap();
                assert_eq!(blocks.len(), at);
                blocks.push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                for field in ["text", "thinking", "signature"] {
                    if let Some(more) = event["delta"][field].as_str() {
                        let before = message["content"][at][field].as_str().unwrap();
                        message["content"][at][field] = json!(format!("{before}{more}"));
                    }
                }
                inputs[at].push_str(event["delta"]["partial_json"].as_str().unwrap_or_default());
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    for (at, input) in inputs.iter().enumerate().filter(|(_, input)| !input.is_empty()) {
        message["content"][at]["input"] = serde_json::from_str(input).unwrap();
    }
    message
}

/// Returns a request as Claude Code sends it.
fn claude_code(messages: &[Value], stream: bool) -> Value {
    json!({
        "model": "claude", "max_tokens": 32_000, "stream": stream,
        "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1;"},
            {"type": "text", "text": "You are Claude Code", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"},
        "metadata": {"user_id": "u".repeat(100)},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "tools": [{"name": "mcp__a__read", "description": "Reads", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "cache_control": {"type": "ephemeral"}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        "messages": messages,
    })
}

const PIXEL: &str = "iVBORw0KGgo=";

fn kinds(sent: &Value) -> Vec<&str> {
    let items = sent["input"].as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap()).collect()
}

type Answered = fn(&Value, &RequestContext) -> Value;

#[test]
fn reasoning_returns_over_three_turns() {
    for (stream, answered) in [(false, whole as Answered), (true, collected as Answered)] {
        let first = [
            reasoning("rs_1", &["I look \"at\" it", "and then"], "ENC1=="),
            message("Let me look"),
            call("c1", "mcp__a__read", "{\"path\":\"a\"}"),
            call("c2", "mcp__a__read", "{\"path\":\"b\"}"),
        ];
        let second = [
            reasoning("rs_2", &[], "ENC2"),
            reasoning("rs_3", &["Ä third"], "ENC3"),
            call("c3", "mcp__a__read", "{}"),
        ];
        let mut messages = vec![json!({"role": "user", "content": "What is in a and b?"})];

        // First turn: tools and an effort are sent together, and a summary is requested.
        let (sent, asked, dropped) = by_responses("gpt-5.6", REFUSE, &claude_code(&messages, stream));
        assert_eq!(sent["reasoning"], json!({"effort": "high", "summary": "auto"}));
        assert_eq!(sent["tools"][0]["strict"], false);
        assert_eq!(sent["parallel_tool_calls"], false);
        assert_eq!(sent["max_output_tokens"], 32_000);
        assert_eq!(sent.get("stream").is_some(), stream);
        assert_eq!(sent["input"][0]["content"], "You are Claude Code");
        assert!(dropped.contains(&"cache_control") && dropped.contains(&"metadata.user_id"));

        let got = answered(&response(json!(first), json!({})), &asked);
        assert_eq!(got["stop_reason"], "tool_use");
        assert_eq!(got["usage"]["input_tokens"], 5);
        assert_eq!(got["usage"]["output_tokens_details"]["thinking_tokens"], 7);
        let blocks = &got["content"];
        assert_eq!(blocks[0]["thinking"], "I look \"at\" it\n\nand then");
        assert!(blocks[0]["signature"].as_str().unwrap().len() > 20);
        assert_eq!(blocks[1]["text"], "Let me look");
        assert_eq!(blocks[3]["input"], json!({"path": "b"}));
        messages.push(json!({"role": "assistant", "content": blocks}));

        // Second turn: results with an image and a document, each in its own item.
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}]},
            {"type": "tool_result", "tool_use_id": "c2", "content": [
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
                {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}}]},
        ]}));
        let (sent, asked, dropped) = by_responses("gpt-5.6", REFUSE, &claude_code(&messages, stream));
        assert!(!dropped.contains(&"thinking"));
        let turn = ["reasoning", "message", "function_call", "function_call"];
        let results = ["function_call_output", "function_call_output"];
        let expected = [&["message", "message"][..], &turn, &results].concat();
        assert_eq!(kinds(&sent), expected);
        assert_eq!(
            sent["input"][2],
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "ENC1==",
                "summary": [{"type": "summary_text", "text": "I look \"at\" it\n\nand then"}]})
        );
        assert_eq!(
            sent["input"][6]["output"],
            json!([{"type": "input_text", "text": "Error:"}, {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": format!("data:image/png;base64,{PIXEL}"), "detail": "auto"}])
        );
        assert_eq!(
            sent["input"][7]["output"],
            json!([{"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                {"type": "input_file", "file_url": "https://a/b.pdf"}])
        );

        let got = answered(&response(json!(second), json!({})), &asked);
        assert_eq!(got["content"][0]["thinking"], "");
        assert_eq!(got["content"][1]["thinking"], "Ä third");
        messages.push(json!({"role": "assistant", "content": got["content"]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c3", "content": "r"}, {"type": "text", "text": "go on"}]}));

        // Third turn: all reasoning is unchanged and in its original position.
        let (sent, _, _) = by_responses("gpt-5.6", REFUSE, &claude_code(&messages, stream));
        let turn = [
            "reasoning",
            "reasoning",
            "function_call",
            "function_call_output",
            "message",
        ];
        assert_eq!(kinds(&sent), [&expected[..], &turn].concat());
        let reasoning = |at: usize| sent["input"][at].clone();
        assert_eq!(
            reasoning(8),
            json!({"type": "reasoning", "id": "rs_2", "encrypted_content": "ENC2", "summary": []})
        );
        assert_eq!(reasoning(9)["encrypted_content"], "ENC3");
        assert_eq!(reasoning(9)["summary"][0]["text"], "Ä third");
    }
}

#[test]
fn both_ways_give_the_client_the_same_message() {
    let output = json!([
        reasoning("rs_1", &["a", "b"], "E"),
        message("c"),
        message("d"),
        reasoning("rs_2", &["e"], "F"),
        call("c1", "f", "{\"a\":1.50}")
    ]);
    let (_, asked, _) = by_responses(
        "gpt-5.6",
        DROP,
        &claude_code(&[json!({"role": "user", "content": "a"})], true),
    );
    let provider = response(output, json!({}));
    let (mut one, other) = (whole(&provider, &asked), collected(&provider, &asked));
    // A stream keeps the position of text: a whole chat completion cannot express text between thoughts.
    let order = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks
            .map(|block| block["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(order(&one), ["thinking", "thinking", "text", "tool_use"]);
    assert_eq!(order(&other), ["thinking", "text", "thinking", "tool_use"]);
    one["content"].as_array_mut().unwrap().swap(1, 2);
    let texts = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks
            .map(|block| format!("{}{}", block["text"], block["signature"]))
            .collect()
    };
    assert_eq!(texts(&one), texts(&other));
    assert_eq!(one["usage"], other["usage"]);
    assert_eq!(one["stop_reason"], other["stop_reason"]);
}

#[test]
fn thinking_of_others_is_left_out_and_named() {
    for signature in [
        "EqQBCg",
        "",
        "reasoning_details:",
        "reasoning_details:!!",
        "reasoning_details:e30=",
    ] {
        let messages = [
            json!({"role": "user", "content": "a"}),
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "t", "signature": signature}, {"type": "text", "text": "b"}]}),
            json!({"role": "user", "content": "c"}),
        ];
        let (sent, _, dropped) = by_responses("gpt-5.6", REFUSE, &claude_code(&messages, false));
        assert_eq!(kinds(&sent), ["message"; 4]);
        assert!(dropped.contains(&"thinking"), "{signature}");
    }
}

#[test]
fn reasoning_that_came_encrypted_is_read_alone_elsewhere() {
    let got = whole(
        &response(
            json!([reasoning("rs_1", &["so"], "E"), call("c1", "f", "{}")]),
            json!({}),
        ),
        &asked(),
    );
    let messages = [
        json!({"role": "user", "content": "a"}),
        json!({"role": "assistant", "content": got["content"]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r"}]}),
    ];
    let mut chat = Vec::new();
    let mut body = claude_code(&messages, false);
    for field in ["thinking", "output_config"] {
        body.as_object_mut().unwrap().remove(field);
    }
    let target = target("deepseek-reasoner", REFUSE);
    anthropic_openai::translate_request(body.to_string().as_bytes(), &target, &mut chat).unwrap();
    let chat: Value = serde_json::from_slice(&chat).unwrap();
    assert_eq!(chat["messages"][2]["reasoning_content"], "so");
    assert!(chat["messages"][2].get("reasoning_details").is_none());
}

#[test]
fn choices_limits_and_stops_of_messages_are_said() {
    let messages = [json!({"role": "user", "content": "a"})];
    let with = |field: &str, value: Value| {
        let mut body = claude_code(&messages, false);
        body[field] = value;
        body
    };
    let (sent, _, _) = by_responses(
        "gpt-5.6",
        REFUSE,
        &with("tool_choice", json!({"type": "tool", "name": "mcp__a__read"})),
    );
    assert_eq!(
        sent["tool_choice"],
        json!({"type": "function", "name": "mcp__a__read"})
    );
    let (sent, _, _) = by_responses("gpt-5.6", REFUSE, &with("tool_choice", json!({"type": "any"})));
    assert_eq!(sent["tool_choice"], "required");
    let format = json!({"effort": "max", "format": {"type": "json_schema", "schema": {"type": "object"}}});
    let (sent, _, dropped) = by_responses("gpt-5.6", REFUSE, &with("output_config", format));
    assert_eq!(sent["text"]["format"]["name"], "answer");
    assert_eq!(sent["reasoning"]["effort"], "xhigh");
    assert!(dropped.contains(&"output_config.effort"));
    let (sent, _, dropped) = by_responses("gpt-5.6", DROP, &with("stop_sequences", json!(["x"])));
    assert!(sent.get("stop").is_none() && dropped.contains(&"stop_sequences"));
    let mut out = Vec::new();
    let refused = anthropic_openai::translate_for_responses(
        with("stop_sequences", json!(["x"])).to_string().as_bytes(),
        &target("gpt-5.6", REFUSE),
        &mut out,
    );
    assert_eq!(refused.unwrap_err().param, "stop_sequences");
}

#[test]
fn a_failure_reaches_a_client_of_messages_in_its_form() {
    let error = json!({"error": {"message": "slow down", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded"}});
    let (mut chat, mut message) = (Vec::new(), Vec::new());
    openai_responses::translate_error(429, error.to_string().as_bytes(), &mut chat);
    anthropic_openai::translate_error(429, &chat, &mut message);
    let expected = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
    assert_eq!(serde_json::from_slice::<Value>(&message).unwrap(), expected);

    let failed = json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "broke"}}});
    let (mut chunks, mut seen) = (Vec::new(), Vec::new());
    let mut inner = openai_responses::Stream::new(&asked(), CREATED);
    let mut outer = anthropic_openai::Stream::new(&asked(), 25);
    inner
        .push_event("response.failed", failed.to_string().as_bytes(), &mut chunks)
        .unwrap();
    for (name, data) in events(std::str::from_utf8(&chunks).unwrap()) {
        assert_eq!(
            outer.push_event(name, data.as_bytes(), &mut seen),
            Ok(StreamStatus::Failed)
        );
    }
    assert!(std::str::from_utf8(&seen).unwrap().contains("broke"));
}
