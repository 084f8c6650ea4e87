//! The scope of each part of a request, and the message that it belongs to.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use proofgate_json::Workspace;
use proofgate_policy::Scope::{
    self, Assistant, Instructions, Other, ToolArguments, ToolDescription, ToolResult, User,
};
use proofgate_providers::{BodyText, Dialect, ParsedRequest};

fn read(dialect: Dialect, body: &str) -> BodyText {
    let mut text = BodyText::new();
    ParsedRequest::read(dialect, body.as_bytes(), &mut Workspace::new(), &mut text).unwrap();
    text
}

/// Returns the passages of a body: scope, location and text.
fn passages(dialect: Dialect, body: &str) -> Vec<(Scope, String, String)> {
    let text = read(dialect, body);
    let passages = text.passages();
    passages
        .map(|passage| {
            let words = text.text()[passage.range].to_owned();
            (passage.scope, passage.location.to_string(), words)
        })
        .collect()
}

/// Checks the scope, the location and the text of each passage.
fn check(dialect: Dialect, body: &str, expected: &[(Scope, &str, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(scope, place, words)| (*scope, (*place).to_owned(), (*words).to_owned()))
        .collect();
    assert_eq!(passages(dialect, body), expected, "{body}");
}

#[test]
fn the_messages_of_a_chat_are_told_apart_by_role_whatever_stands_first() {
    let body = r#"{"model":"m","user":"u1","messages":[
        {"content":"rules","role":"system"},
        {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
        {"role":"assistant","content":"three","tool_calls":[
            {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
            {"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}],"refusal":"four"},
        {"role":"tool","tool_call_id":"c1","content":"five"},
        {"role":"Wizard","content":"six"}],
        "tools":[{"type":"function","function":{"name":"f","description":"does f"}},
                 {"type":"function","function":{"name":"g"}}],"stop":["end"]}"#;
    check(
        Dialect::Chat,
        body,
        &[
            (Other, "another field", "u1"),
            (Instructions, "messages[0]", "rules"),
            (User, "messages[1]", "one\ntwo"),
            (Assistant, "messages[2]", "three"),
            (ToolArguments, "messages[2]", "c1\nf\n{\"a\":1}"),
            (ToolArguments, "messages[2]", "c2\ng\n{}"),
            (Assistant, "messages[2]", "four"),
            (ToolResult, "messages[3]", "c1\nfive"),
            (User, "messages[4]", "Wizard\nsix"),
            (ToolDescription, "tools[0]", "f\ndoes f"),
            (ToolDescription, "tools[1]", "g"),
            (Other, "another field", "end"),
        ],
    );
}

#[test]
fn what_stands_on_both_sides_of_a_call_is_one_message_and_the_call_another() {
    let body = r#"{"model":"m","messages":[{"role":"assistant","content":"a","tool_calls":[{"id":"b"}],"refusal":"c"}]}"#;
    let text = read(Dialect::Chat, body);
    let numbers: Vec<u32> = text.passages().map(|passage| passage.message).collect();
    assert_eq!(numbers[0], numbers[2]);
    assert_ne!(numbers[0], numbers[1]);
}

#[test]
fn blocks_of_tools_are_messages_of_their_own_wherever_their_type_stands() {
    let body = r#"{"model":"m","max_tokens":5,"system":"rules","messages":[
        {"role":"user","content":"hi"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t","name":"f","input":{"type":"tool_result","q":"x"}}]},
        {"role":"user","content":[{"content":"found","tool_use_id":"t","type":"tool_result"},
            {"type":"tool_result","tool_use_id":"s","content":[{"type":"text","text":"more"}]},
            {"type":"text","text":"go on"}]}],
        "tools":[{"name":"f","description":"does f"}]}"#;
    check(
        Dialect::Messages,
        body,
        &[
            (Instructions, "system", "rules"),
            (User, "messages[0]", "hi"),
            (Assistant, "messages[1]", "hm"),
            (ToolArguments, "messages[1]", "t\nf\ntool_result\nq\nx"),
            (ToolResult, "messages[2]", "found\nt"),
            (ToolResult, "messages[2]", "s\nmore"),
            (User, "messages[2]", "go on"),
            (ToolDescription, "tools[0]", "f\ndoes f"),
        ],
    );
}

#[test]
fn items_of_a_response_are_what_their_type_says() {
    let body = r#"{"model":"m","instructions":"rules","input":[
        {"role":"developer","content":"more rules"},
        {"role":"user","content":[{"type":"input_text","text":"hi"}]},
        {"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
        {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
        {"call_id":"c","output":"found","type":"function_call_output"},
        {"type":"message","role":"assistant","content":"so"}]}"#;
    check(
        Dialect::Responses,
        body,
        &[
            (Instructions, "instructions", "rules"),
            (Instructions, "input[0]", "more rules"),
            (User, "input[1]", "hi"),
            (Assistant, "input[2]", "hm"),
            (ToolArguments, "input[3]", "c\nf\n{}"),
            (ToolResult, "input[4]", "c\nfound"),
            (Assistant, "input[5]", "so"),
        ],
    );
    check(
        Dialect::Responses,
        r#"{"model":"m","input":"hi"}"#,
        &[(User, "input", "hi")],
    );
}

#[test]
fn parts_of_geminis_contents_are_what_their_field_says() {
    let body = r#"{"contents":[
        {"role":"user","parts":[{"text":"hi"}]},
        {"role":"model","parts":[{"text":"so"},{"functionCall":{"name":"f","args":{"functionResponse":"x"}}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"found"}}},{"text":"go on"}]}],
        "systemInstruction":{"parts":[{"text":"rules"}]},
        "tools":[{"functionDeclarations":[{"name":"f","description":"does f"},{"name":"g"}]}]}"#;
    check(
        Dialect::Gemini,
        body,
        &[
            (User, "contents[0]", "hi"),
            (Assistant, "contents[1]", "so"),
            (ToolArguments, "contents[1]", "f\nx"),
            (ToolResult, "contents[2]", "f\nresult\nfound"),
            (User, "contents[2]", "go on"),
            (Instructions, "systemInstruction", "rules"),
            (ToolDescription, "tools[0]", "f\ndoes f"),
            (ToolDescription, "tools[0]", "g"),
        ],
    );
}

#[test]
fn texts_without_a_conversation_are_a_users() {
    for (dialect, body, place) in [
        (Dialect::Embeddings, r#"{"model":"m","input":"hi"}"#, "input"),
        (Dialect::Embeddings, r#"{"model":"m","input":["hi"]}"#, "input[0]"),
        (Dialect::Completions, r#"{"model":"m","prompt":"hi"}"#, "prompt"),
        (Dialect::Images, r#"{"model":"m","prompt":"hi"}"#, "prompt"),
        (
            Dialect::Moderations,
            r#"{"model":"m","input":[{"type":"text","text":"hi"}]}"#,
            "input",
        ),
        (Dialect::Speech, r#"{"model":"m","input":"hi"}"#, "input"),
        (
            Dialect::GeminiEmbedding,
            r#"{"content":{"parts":[{"text":"hi"}]}}"#,
            "content",
        ),
    ] {
        check(dialect, body, &[(User, place, "hi")]);
    }
}

#[test]
fn passages_cover_the_text_and_have_no_string_in_two() {
    let body = r#"{"a":{"b":["c",""]},"model":"m","messages":[{},{"role":"user","content":""},{"role":"assistant"},
        {"role":"tool","content":["d",{"e":"f"}]}],"":"g","tools":[]}"#;
    let text = read(Dialect::Chat, body);
    let mut covered = BTreeMap::new();
    for passage in text.passages() {
        covered.insert(passage.range.start, passage.range.end);
    }
    for (string, _) in text.strings() {
        let (start, end) = covered.range(..=string.start).next_back().unwrap();
        assert!(
            *start <= string.start && string.end <= *end,
            "{string:?} {covered:?}"
        );
    }
    let ends: Vec<usize> = covered.values().copied().collect();
    let begins: Vec<usize> = covered.keys().copied().skip(1).collect();
    assert!(
        begins.iter().zip(&ends).all(|(begin, end)| *begin == end + 1),
        "{covered:?}"
    );
    assert_eq!(ends.last(), Some(&text.text().len()));
}
