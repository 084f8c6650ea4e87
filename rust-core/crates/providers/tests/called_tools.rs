//! The tools that a response calls, in each dialect, whole and as events.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_json::Workspace;
use proofgate_providers::{Dialect, ToolCalls};

/// Index of the choice and of the call, name, whether it is complete, whether it has arguments.
type Call = (u64, u64, &'static str, bool, bool);

#[track_caller]
fn check(dialect: Dialect, document: &str, expected: &[Call]) {
    let mut tools = ToolCalls::default();
    tools
        .read(dialect, document.as_bytes(), &mut Workspace::new())
        .unwrap();
    let found: Vec<_> = tools
        .calls()
        .map(|(called, name)| {
            let (choice, call) = called.call_index;
            (choice, call, name, called.is_complete, called.has_arguments)
        })
        .collect();
    assert_eq!(found, expected, "{document}");
}

/// A call whose name is sent whole.
fn whole(name: &'static str) -> Call {
    (0, 0, name, true, true)
}

#[test]
fn chat_completions_call_functions_and_custom_tools_whole_and_in_pieces() {
    let dialect = Dialect::Chat;
    check(
        dialect,
        r#"{"choices":[{"index":0,"message":{"content":"name","tool_calls":[
            {"id":"a","type":"function","function":{"name":"Bash","arguments":"{}"}},
            {"id":"b","type":"custom","custom":{"name":"patch","input":"x"}}]}}]}"#,
        &[(0, 0, "Bash", false, true), (0, 1, "patch", false, true)],
    );
    check(
        dialect,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":3,"function":{"name":"Ba","arguments":""}}]},"index":2}]}"#,
        &[(2, 3, "Ba", false, false)],
    );
    check(
        dialect,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"name\":\"x\"}"}}]}}]}"#,
        &[(0, 0, "", false, true)],
    );
    check(
        dialect,
        r#"{"choices":[{"index":0,"delta":{"function_call":{"name":"\u0042ash"}}}],"tools":[{"name":"no"}]}"#,
        &[(0, u64::MAX, "Bash", false, false)],
    );
}

#[test]
fn a_choice_that_says_why_it_finished_is_named() {
    let mut tools = ToolCalls::default();
    let document = br#"{"choices":[{"index":4,"delta":{},"finish_reason":"tool_calls"},{"index":1,"finish_reason":null}]}"#;
    tools
        .read(Dialect::Chat, document, &mut Workspace::new())
        .unwrap();
    assert_eq!(tools.finished(), [4]);
}

#[test]
fn messages_call_in_blocks_of_a_message_and_of_events() {
    let dialect = Dialect::Messages;
    check(
        dialect,
        r#"{"type":"message","content":[{"type":"text","text":"name"},
            {"type":"tool_use","id":"t","name":"Bash","input":{"name":"inner"}}]}"#,
        &[whole("Bash")],
    );
    check(
        dialect,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"Bash","input":{}}}"#,
        &[whole("Bash")],
    );
    check(
        dialect,
        r#"{"type":"message_start","message":{"content":[{"type":"server_tool_use","name":"web_search"}]}}"#,
        &[whole("web_search")],
    );
    check(
        dialect,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"name\":"}}"#,
        &[],
    );
}

#[test]
fn responses_call_by_name_or_by_the_type_of_an_item() {
    let dialect = Dialect::Responses;
    check(
        dialect,
        r#"{"object":"response","tools":[{"type":"function","name":"offered"}],"output":[
            {"type":"message","content":[{"type":"output_text","text":"name"}]},
            {"type":"function_call","name":"Bash","arguments":"{}"},
            {"name":"patch","type":"custom_tool_call"},
            {"type":"shell_call","action":{"commands":["ls"]}},
            {"type":"local_shell_call","action":{}},{"type":"computer_call","action":{}}]}"#,
        &[
            whole("Bash"),
            whole("patch"),
            whole("shell"),
            whole("local_shell"),
            whole("computer"),
        ],
    );
    check(
        dialect,
        r#"{"type":"response.created","response":{"tools":[{"name":"offered"}],"output":[]}}"#,
        &[],
    );
    check(
        dialect,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"Bash","arguments":""}}"#,
        &[whole("Bash")],
    );
    check(
        dialect,
        r#"{"type":"response.completed","response":{"output":[{"type":"function_call","name":"Bash"}]}}"#,
        &[whole("Bash")],
    );
    check(
        dialect,
        r#"{"type":"response.function_call_arguments.done","name":"Bash","arguments":"{}"}"#,
        &[whole("Bash")],
    );
}

#[test]
fn gemini_calls_in_the_parts_of_candidates() {
    check(
        Dialect::Gemini,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"name"},
            {"functionCall":{"name":"Bash","args":{"name":"inner"}}},{"function_call":{"name":"b"}}]}}]}"#,
        &[whole("Bash"), whole("b")],
    );
}

#[test]
fn a_tool_of_a_group_has_its_name_alone_and_with_that_of_the_group() {
    // Codex puts the tools of each server in a namespace.
    check(
        Dialect::Responses,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","namespace":"mcp__github","name":"push"}}"#,
        &[whole("push"), whole("mcp__github__push")],
    );
    let grouped = [whole("push"), whole("github__push"), whole("mcp__github__push")];
    check(
        Dialect::Responses,
        r#"{"output":[{"type":"mcp_call","server_label":"github","name":"push"}]}"#,
        &grouped,
    );
    check(
        Dialect::Responses,
        r#"{"output":[{"type":"mcp_approval_request","name":"push","server_label":"github"}]}"#,
        &grouped,
    );
    check(
        Dialect::Messages,
        r#"{"content":[{"type":"mcp_tool_use","id":"m","name":"push","server_name":"github"}]}"#,
        &grouped,
    );
}

#[test]
fn documents_in_a_list_are_read_as_each_of_them() {
    check(
        Dialect::Gemini,
        r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},
            {"candidates":[{"content":{"parts":[{"functionCall":{"name":"Bash"}}]}},
                {"content":{"parts":[{"functionCall":{"name":"a"}},{"functionCall":{"name":"b"}}]}}]}]"#,
        &[whole("Bash"), whole("a"), whole("b")],
    );
}

#[test]
fn documents_that_are_no_objects_and_other_dialects_call_nothing() {
    check(Dialect::Chat, "[1]", &[]);
    check(Dialect::Chat, r#"{"error":{"message":"x"},"choices":7}"#, &[]);
    let document = r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"Bash"}}]}}]}"#;
    check(Dialect::Embeddings, document, &[]);
    let mut tools = ToolCalls::default();
    // Some readers use the first of two equal keys, some the last.
    let twice = r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"a","name":"b"}}]}}]}"#;
    for malformed in ["{", twice] {
        let read = tools.read(Dialect::Chat, malformed.as_bytes(), &mut Workspace::new());
        assert!(read.is_err(), "{malformed}");
    }
}
