//! Custom tools of chat completions for providers that have only functions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use proofgate_chat_clients::{openai_anthropic, openai_converse, openai_gemini};
use proofgate_chat_providers::chat_custom_tools;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Target, UntranslatableFieldPolicy};
use proptest::prelude::*;
use serde_json::{Value, json};

const PATCH: &str = "*** Begin Patch\n+ \"a\" \\ \u{1f600}\n*** End Patch";

fn custom() -> Value {
    json!({"type": "custom", "custom": {"name": "apply_patch", "description": "Patches \"files\".",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"a\"\n"}}}})
}

fn function() -> Value {
    json!({"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}})
}

fn asking(fields: Value) -> Value {
    let mut body =
        json!({"model": "m", "temperature": 0.50, "messages": [{"role": "user", "content": "\"custom\""}]});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    body
}

fn rewritten(body: &Value) -> (Value, RequestContext) {
    let mut out = Vec::new();
    let asked = chat_custom_tools::translate_request(body.to_string().as_bytes(), &mut out).unwrap();
    (serde_json::from_slice(&out).unwrap(), asked)
}

#[test]
fn a_custom_tool_is_a_function_of_one_string_that_tells_its_grammar() {
    let body = asking(json!({"stream": true, "tools": [function(), custom()]}));
    let (sent, asked) = rewritten(&body);
    assert_eq!(
        (sent["tools"][0].clone(), &sent["temperature"]),
        (function(), &json!(0.5))
    );
    let patch = &sent["tools"][1]["function"];
    assert_eq!(patch["name"], "apply_patch");
    assert_eq!(
        patch["description"],
        "Patches \"files\".\n\nCall it with one string, input, which is the whole text."
    );
    let input = &patch["parameters"]["properties"]["input"];
    assert_eq!(
        input["description"],
        "The whole text, as it is. It has to match this Lark grammar:\nstart: \"a\"\n"
    );
    assert_eq!(patch["parameters"]["required"], json!(["input"]));
    assert_eq!(
        (asked.custom_tools, asked.stream),
        (vec!["apply_patch".to_owned()], true)
    );
    assert_eq!(asked.dropped_fields, ["tools[].custom.format"]);
}

#[test]
fn calls_and_choices_of_custom_tools_are_those_of_functions() {
    let named = json!({"type": "custom", "custom": {"name": "apply_patch"}});
    let call = json!({"id": "c1", "type": "custom", "custom": {"name": "apply_patch", "input": PATCH}});
    let body = asking(
        json!({"tools": [custom(), function()], "tool_choice": named, "messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Done"}]}),
    );
    let (sent, _) = rewritten(&body);
    let function_named = json!({"type": "function", "function": {"name": "apply_patch"}});
    assert_eq!(sent["tool_choice"], function_named);
    let call = &sent["messages"][1]["tool_calls"][0];
    assert_eq!((&call["id"], &call["type"]), (&json!("c1"), &json!("function")));
    let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"input": PATCH}));
    let weather = json!({"type": "function", "function": {"name": "weather"}});
    let allowed =
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named, weather]}});
    let (sent, _) = rewritten(&asking(
        json!({"tools": [custom(), function()], "tool_choice": allowed}),
    ));
    assert_eq!(
        sent["tool_choice"]["allowed_tools"]["tools"],
        json!([function_named, weather])
    );
}

#[test]
fn a_request_without_custom_tools_passes_byte_for_byte() {
    for body in [
        r#"{"model":"m", "temperature":1.0,"messages":[{"role":"user","content":"\"custom\""}] }"#,
        r#"{"messages": 3}"#,
        "[",
        "",
    ] {
        let mut out = Vec::new();
        let asked = chat_custom_tools::translate_request(body.as_bytes(), &mut out).unwrap();
        assert_eq!((out, asked.custom_tools.len()), (body.as_bytes().to_vec(), 0));
    }
}

#[test]
fn a_custom_tool_with_the_name_of_a_function_is_refused() {
    let same = json!({"type": "custom", "custom": {"name": "weather"}});
    let body = asking(json!({"tools": [function(), same]})).to_string();
    let mut out = b"kept".to_vec();
    let refused = chat_custom_tools::translate_request(body.as_bytes(), &mut out).unwrap_err();
    assert_eq!(
        (refused.param.as_ref(), out),
        ("tools[1].custom.name", b"kept".to_vec())
    );
}

#[test]
fn each_provider_that_has_functions_alone_is_sent_one() {
    let body = asking(json!({"tools": [custom()]}));
    let (chat, _) = rewritten(&body);
    let target = Target {
        model: "claude-sonnet-4-5",
        max_output_tokens: 100,
        untranslatable: UntranslatableFieldPolicy::Refuse,
    };
    let chat = chat.to_string();
    for (writer, place) in [
        (
            openai_anthropic::translate_request as fn(&[u8], &Target<'_>, &mut Vec<u8>) -> _,
            "/tools/0/name",
        ),
        (
            openai_gemini::translate_request,
            "/tools/0/functionDeclarations/0/name",
        ),
        (
            openai_converse::translate_request,
            "/toolConfig/tools/0/toolSpec/name",
        ),
    ] {
        let mut out = Vec::new();
        writer(chat.as_bytes(), &target, &mut out).unwrap();
        let sent: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(sent.pointer(place), Some(&json!("apply_patch")), "{sent}");
    }
}

fn asked() -> RequestContext {
    RequestContext {
        custom_tools: vec!["apply_patch".into()],
        ..RequestContext::default()
    }
}

/// Returns a message of Anthropic's with both kinds of calls.
fn message() -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [
        {"type": "text", "text": "Now."},
        {"type": "tool_use", "id": "t1", "name": "apply_patch", "input": {"input": PATCH}},
        {"type": "tool_use", "id": "t2", "name": "weather", "input": {"city": "Oslo"}},
    ], "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 9, "output_tokens": 2}})
}

#[test]
fn calls_of_an_answer_are_those_of_custom_tools_again() {
    let (mut chat, mut out) = (Vec::new(), Vec::new());
    openai_anthropic::translate_response(message().to_string().as_bytes(), &asked(), 1, &mut chat).unwrap();
    chat_custom_tools::translate_response(&chat, &asked(), &mut out).unwrap();
    let answer: Value = serde_json::from_slice(&out).unwrap();
    let calls = &answer["choices"][0]["message"]["tool_calls"];
    assert_eq!(
        calls[0],
        json!({"id": "t1", "type": "custom", "custom": {"name": "apply_patch", "input": PATCH}})
    );
    assert_eq!(
        (&calls[1]["type"], &calls[1]["id"]),
        (&json!("function"), &json!("t2"))
    );
    assert_eq!(answer["choices"][0]["message"]["content"], "Now.");
    let refused = chat_custom_tools::translate_response(b"{}", &asked(), &mut out);
    assert!(matches!(refused, Err(ResponseError::Malformed(_))));
}

/// Returns a chunk with a fragment of the call at this index.
fn chunk(index: u64, begin: Option<(&str, &str)>, arguments: &str) -> String {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if let Some((id, name)) = begin {
        call["id"] = id.into();
        call["type"] = "function".into();
        call["function"]["name"] = name.into();
    }
    json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": [call]},
        "finish_reason": null}]})
    .to_string()
}

fn streamed(chunks: &[String]) -> Vec<Value> {
    let mut stream = chat_custom_tools::Stream::new(&asked());
    let mut out = Vec::new();
    for chunk in chunks {
        assert_eq!(
            stream.push_event(chunk.as_bytes(), &mut out).unwrap(),
            StreamStatus::InProgress
        );
    }
    assert_eq!(
        stream.push_event(b"[DONE]", &mut out).unwrap(),
        StreamStatus::Finished
    );
    let out = String::from_utf8(out).unwrap();
    let (events, done) = out.rsplit_once("data: [DONE]\n\n").unwrap();
    assert_eq!(done, "");
    events
        .split_terminator("\n\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

/// Returns the members of a custom call, as a client assembles them.
fn collected(events: &[Value], index: u64) -> (String, String, String) {
    let (mut id, mut name, mut input) = (String::new(), String::new(), String::new());
    let calls = events
        .iter()
        .flat_map(|event| event["choices"][0]["delta"]["tool_calls"].as_array().unwrap());
    for call in calls.filter(|call| call["index"] == index) {
        assert!(call.get("function").is_none(), "{call}");
        id.push_str(call["id"].as_str().unwrap_or_default());
        name.push_str(call["custom"]["name"].as_str().unwrap_or_default());
        input.push_str(call["custom"]["input"].as_str().unwrap_or_default());
    }
    (id, name, input)
}

proptest! {
    #[test]
    fn the_text_of_a_streamed_call_is_whole_however_it_is_cut(
        text in "\\PC{0,40}", cuts in prop::collection::vec(0usize..80, 0..6)
    ) {
        let arguments = json!({"input": text}).to_string();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| arguments.is_char_boundary(*cut)).collect();
        cuts.sort_unstable();
        let mut chunks = vec![chunk(0, Some(("w", "weather")), "{}"), chunk(1, Some(("c1", "apply_patch")), "")];
        let mut at = 0;
        for cut in cuts.into_iter().chain([arguments.len()]) {
            chunks.push(chunk(1, None, arguments.get(at..cut).unwrap()));
            at = cut;
        }
        let events = streamed(&chunks);
        prop_assert_eq!(collected(&events, 1), ("c1".into(), "apply_patch".into(), text));
        let weather = &events[0]["choices"][0]["delta"]["tool_calls"][0];
        prop_assert_eq!(weather["function"]["name"].as_str(), Some("weather"));
    }
}

#[test]
fn an_error_in_a_stream_is_its_end_and_passes() {
    let mut stream = chat_custom_tools::Stream::new(&asked());
    let mut out = Vec::new();
    let error = br#"{"error":{"message":"full"}}"#;
    assert_eq!(stream.push_event(error, &mut out).unwrap(), StreamStatus::Failed);
    assert_eq!(out, [b"data: ", &error[..], b"\n\n"].concat());
    assert!(stream.push_event(b"no chunk", &mut out).is_err());
}

#[test]
fn a_call_that_never_ends_is_not_held_without_end() {
    let mut stream = chat_custom_tools::Stream::new(&asked());
    let mut out = Vec::new();
    stream
        .push_event(
            chunk(0, Some(("c", "apply_patch")), "{\"input\":\"").as_bytes(),
            &mut out,
        )
        .unwrap();
    let piece = chunk(0, None, &"a".repeat(1 << 19));
    let last = (0..3)
        .map(|_| stream.push_event(piece.as_bytes(), &mut out))
        .last();
    assert_eq!(last, Some(Err(ResponseError::TooLarge)));
}
