//! Tools: their names at the provider, and their calls.

use super::*;

fn namespace() -> Value {
    json!({"type": "namespace", "name": "mcp__docs", "description": "Documents.", "tools": [
        {"type": "function", "name": "search", "description": "Finds.", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}},
        {"type": "custom", "name": "query", "description": "Asks."}]})
}

fn call(name: &str, arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

/// Returns the item for a call of this function, which must be the same in a whole answer and in a stream.
fn told(tools: Value, name: &str, arguments: &str) -> Value {
    let asked = asked_with(tools);
    let mut items = whole(call(name, arguments), "tool_calls", &asked).unwrap()["output"].clone();
    let deltas = [
        json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": ""}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}),
    ];
    let streamed = receive(&chunks(&deltas, "tool_calls"), &asked);
    assert_eq!(streamed.output(), *items.as_array().unwrap());
    assert_eq!(items.as_array().unwrap().len(), 1);
    items[0].take()
}

#[test]
fn functions_of_a_namespace_have_its_name_before_theirs() {
    let (sent, asked) = translated(&with(json!("x"), json!({"tools": [namespace()]}))).unwrap();
    assert_eq!(asked.dropped_fields, Vec::<&str>::new());
    assert_eq!(sent["tools"][0]["function"]["name"], "mcp__docs__search");
    assert_eq!(
        sent["tools"][0]["function"]["description"],
        "Documents.\n\nFinds."
    );
    assert_eq!(sent["tools"][1]["function"]["name"], "mcp__docs__query");
    let item = told(json!([namespace()]), "mcp__docs__search", r#"{"q":"a"}"#);
    assert_eq!(
        item,
        json!({"id": "fc_chatcmpl-1_0", "type": "function_call", "status": "completed", "call_id": "c1", "name": "search",
            "namespace": "mcp__docs", "arguments": "{\"q\":\"a\"}"})
    );
    let item = told(json!([namespace()]), "mcp__docs__query", r#"{"input":"select"}"#);
    assert_eq!(
        (&item["name"], &item["namespace"], &item["input"]),
        (&json!("query"), &json!("mcp__docs"), &json!("select"))
    );
}

#[test]
fn a_call_in_a_namespace_is_sent_by_the_same_name_in_later_turns() {
    let items = json!([
        {"type": "function_call", "call_id": "c1", "name": "search", "namespace": "mcp__docs", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ]);
    for tools in [json!([namespace()]), json!([])] {
        let sent = sent(&with(items.clone(), json!({"tools": tools})));
        assert_eq!(
            sent["messages"][0]["tool_calls"][0]["function"]["name"],
            "mcp__docs__search"
        );
    }
}

#[test]
fn a_custom_tool_is_a_function_of_one_string() {
    let tools = json!([{"type": "custom", "name": "apply_patch", "description": "Patches.", "format":
        {"type": "grammar", "syntax": "lark", "definition": "start: \"*** Begin Patch\" LF"}}]);
    let (sent, asked) = translated(&with(json!("x"), json!({"tools": tools}))).unwrap();
    assert_eq!(asked.dropped_fields, ["tools[].format"]);
    let function = &sent["tools"][0]["function"];
    assert_eq!(function["parameters"]["required"], json!(["input"]));
    let grammar = function["parameters"]["properties"]["input"]["description"]
        .as_str()
        .unwrap();
    assert!(grammar.ends_with("start: \"*** Begin Patch\" LF"), "{grammar}");
    let item = told(
        tools.clone(),
        "apply_patch",
        r#"{"input":"*** Begin\n\"x\" \u00e9"}"#,
    );
    assert_eq!(
        item,
        json!({"id": "ctc_chatcmpl-1_0", "type": "custom_tool_call", "status": "completed", "call_id": "c1", "name": "apply_patch",
            "input": "*** Begin\n\"x\" é"})
    );
    // Models get the name or the form wrong.
    assert_eq!(
        told(tools.clone(), "apply_patch", r#"{"patch":"*** Begin"}"#)["input"],
        "*** Begin"
    );
    assert_eq!(
        told(tools.clone(), "apply_patch", "*** Begin")["input"],
        "*** Begin"
    );
    assert_eq!(told(tools, "apply_patch", "")["input"], "");
}

#[test]
fn calls_of_custom_tools_and_their_results_are_sent_back() {
    let items = json!([
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "apply_patch", "input": "a \"b\"\n", "status": "completed"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Success."},
    ]);
    let sent = sent(&with(items, json!({})));
    assert_eq!(
        sent["messages"][0]["tool_calls"][0]["function"]["arguments"],
        r#"{"input":"a \"b\"\n"}"#
    );
    assert_eq!(
        sent["messages"][1],
        json!({"role": "tool", "tool_call_id": "c1", "content": "Success."})
    );
}

#[test]
fn tools_of_openais_that_the_client_runs_are_functions() {
    let tools = json!([{"type": "local_shell"}, {"type": "shell", "environment": {"type": "local"}}, {"type": "apply_patch"},
        {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]);
    let sent = sent(&with(json!("x"), json!({"tools": tools})));
    let names: Vec<&str> = sent["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["local_shell", "shell", "apply_patch", "tool_search"]);
    assert_eq!(
        told(
            tools.clone(),
            "local_shell",
            "{\"command\": [\"ls\",\n \"-l\"], \"timeout_ms\": 5}"
        ),
        json!({"id": "lsh_chatcmpl-1_0", "type": "local_shell_call", "status": "completed", "call_id": "c1", "action":
            {"type": "exec", "command": ["ls", "-l"], "env": {}, "timeout_ms": 5, "user": null, "working_directory": null}})
    );
    assert_eq!(
        told(tools.clone(), "shell", r#"{"commands":["ls"]}"#),
        json!({"id": "sh_chatcmpl-1_0", "type": "shell_call", "status": "completed", "call_id": "c1",
            "action": {"commands": ["ls"], "timeout_ms": null, "max_output_length": null}, "environment": {"type": "local"}})
    );
    assert_eq!(
        told(
            tools.clone(),
            "apply_patch",
            r#"{"type":"create_file","path":"a","diff":"+b"}"#
        )["operation"],
        json!({"type": "create_file", "path": "a", "diff": "+b"})
    );
    let item = told(tools.clone(), "tool_search", r#"{"query":"agents"}"#);
    assert_eq!(
        (&item["type"], &item["execution"]),
        (&json!("tool_search_call"), &json!("client"))
    );
    assert_eq!(item["arguments"], json!({"query": "agents"}));
    // A call that does not fit its tool is sent as a call of the function that the model named.
    let item = told(tools, "apply_patch", r#"{"file":"a"}"#);
    assert_eq!(
        (&item["type"], &item["name"]),
        (&json!("function_call"), &json!("apply_patch"))
    );
}

#[test]
fn their_calls_and_results_are_sent_back() {
    let items = json!([
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "status": "completed", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}},
        {"type": "apply_patch_call", "call_id": "c3", "status": "completed", "operation": {"type": "delete_file", "path": "a"}},
        {"type": "local_shell_call_output", "id": "lsh_1", "output": "a"},
        {"type": "shell_call_output", "call_id": "c2", "output": [{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        {"type": "apply_patch_call_output", "call_id": "c3", "status": "failed", "output": "no such file"},
    ]);
    let messages = &sent(&with(items, json!({})))["messages"];
    let arguments = |call: usize| {
        messages[0]["tool_calls"][call]["function"]["arguments"]
            .as_str()
            .unwrap()
    };
    assert_eq!(arguments(0), r#"{"command":["ls"],"env":{}}"#);
    assert_eq!(arguments(1), r#"{"commands":["ls"]}"#);
    assert_eq!(arguments(2), r#"{"path":"a","type":"delete_file"}"#);
    assert_eq!(
        messages[1],
        json!({"role": "tool", "tool_call_id": "c1", "content": "a"})
    );
    let outputs: Value = serde_json::from_str(messages[2]["content"].as_str().unwrap()).unwrap();
    assert_eq!(outputs[0]["stdout"], "a\n");
    assert_eq!(messages[3]["content"], "The patch failed.\nno such file");
}

#[test]
fn tools_that_a_search_found_can_be_called() {
    let items = json!([
        {"role": "user", "content": "delegate"},
        {"type": "tool_search_call", "call_id": "c1", "execution": "client", "status": "completed", "arguments": {"query": "agents"}},
        {"type": "tool_search_output", "call_id": "c1", "execution": "client", "status": "completed", "tools": [namespace()]},
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "more", "parameters": null}]},
    ]);
    let search = json!([{"type": "tool_search", "execution": "client", "parameters": {"type": "object", "properties": {}}}]);
    let sent = sent(&with(items, json!({"tools": search})));
    let names: Vec<&str> = sent["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["tool_search", "mcp__docs__search", "mcp__docs__query", "more"]
    );
    assert_eq!(
        sent["messages"][1]["tool_calls"][0]["function"]["arguments"],
        r#"{"query":"agents"}"#
    );
    assert_eq!(
        sent["messages"][2]["content"],
        "These tools can be called now: mcp__docs__search, mcp__docs__query."
    );
}

#[test]
fn a_choice_names_the_function_that_is_sent() {
    let tools = json!([{"type": "function", "name": "f", "parameters": {}}, {"type": "custom", "name": "c"}, {"type": "shell"}, namespace()]);
    let function = |name: &str| json!({"type": "function", "function": {"name": name}});
    for (choice, expected) in [
        (json!("none"), json!("none")),
        (json!({"type": "function", "name": "f"}), function("f")),
        (json!({"type": "custom", "name": "c"}), function("c")),
        (json!({"type": "shell"}), function("shell")),
        (
            json!({"type": "function", "name": "search", "namespace": "mcp__docs"}),
            function("mcp__docs__search"),
        ),
        (
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}]}),
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function("f")]}}),
        ),
    ] {
        assert_eq!(
            sent(&with(json!("x"), json!({"tools": tools, "tool_choice": choice})))["tool_choice"],
            expected
        );
    }
    for choice in [
        json!({"type": "web_search_preview"}),
        json!({"type": "mcp", "server_label": "s"}),
        json!({"type": "function", "name": "no"}),
    ] {
        assert_eq!(
            refused(&with(json!("x"), json!({"tools": tools, "tool_choice": choice}))).0,
            "tool_choice"
        );
    }
    assert_eq!(
        sent(&with(json!("x"), json!({"tool_choice": "auto"}))).get("tool_choice"),
        None
    );
    assert_eq!(
        refused(&with(json!("x"), json!({"tool_choice": "required"}))).0,
        "tool_choice"
    );
}

#[test]
fn a_provider_of_chat_is_sent_the_tools_alone_that_are_allowed() {
    let body = with(
        json!("x"),
        json!({"tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "g"}],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]}}),
    );
    let mut out = Vec::new();
    translate_for_chat(body.to_string().as_bytes(), &target(REFUSE), &mut out).unwrap();
    let sent: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(sent["tools"].as_array().unwrap().len(), 1);
    assert_eq!(sent["tool_choice"], "required");
}

#[test]
fn what_needs_openai_is_refused() {
    for tool in [
        json!({"type": "computer"}),
        json!({"type": "shell", "environment": {"type": "container_auto"}}),
    ] {
        assert!(
            refused(&with(json!("x"), json!({"tools": [tool]})))
                .0
                .starts_with("tools[0]")
        );
    }
}

#[test]
fn tools_without_end_are_refused() {
    let tools: Vec<Value> = (0..1025)
        .map(|number| json!({"type": "function", "name": format!("f{number}")}))
        .collect();
    assert_eq!(refused(&with(json!("x"), json!({"tools": tools}))).0, "tools");
    // A tool that is found repeatedly is one tool.
    let found =
        json!({"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function", "name": "f"}]});
    let sent = sent(&with(Value::Array(vec![found; 2000]), json!({})));
    assert_eq!(sent["tools"].as_array().unwrap().len(), 1);
}
