//! Tools, tool choices and calls.

use super::Provider::{Anthropic, Converse, Gemini, Responses};
use super::*;

fn tool(fields: Value) -> Value {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let function = with(json!({"name": "f", "parameters": schema}), &fields);
    json!({"tools": [{"type": "function", "function": function}]})
}

/// Returns a request with the functions `f` and `g`.
fn choosing(choice: Value) -> Value {
    let function = |name: &str| json!({"type": "function", "function": {"name": name}});
    json!({"tools": [function("f"), function("g")], "tool_choice": choice})
}

fn allowing(mode: &str, names: &[&str]) -> Value {
    let tools: Vec<Value> = names
        .iter()
        .map(|name| json!({"type": "function", "function": {"name": name}}))
        .collect();
    choosing(json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}))
}

pub fn probes() -> Vec<Probe> {
    let custom = json!({"type": "custom", "custom": {"name": "c"}});
    let parallel = |parallel: bool| with(tool(json!({})), &json!({"parallel_tool_calls": parallel}));
    let mut probes = vec![
        passes(json!({"tools": []})),
        passes(tool(json!({}))),
        passes(tool(json!({"parameters": {}}))),
        passes(tool(json!({"parameters": null, "description": "d"}))),
        passes(tool(json!({"strict": false}))),
        harmless(tool(json!({"strict": true})), "tools[].function.strict")
            .but(Passes, &[Anthropic, Converse, Responses]),
        harmless(tool(json!({"new_field": 1})), OTHERS),
        harmless(
            tool(json!({"cache_control": {"type": "ephemeral"}})),
            "cache_control",
        )
        .but(Passes, &[Anthropic, Converse]),
        impossible(tool(json!({"name": ""})), "tools[0].function.name"),
        impossible(tool(json!({"name": null})), "tools[0].function.name"),
        impossible(tool(json!({"parameters": "{}"})), "tools[0].function.parameters"),
        impossible(json!({"tools": [custom]}), "tools[0].type").but(Passes, &[Responses]),
        impossible(json!({"tools": [{"type": "function"}]}), "tools[0].type"),
        impossible(json!({"tools": [{"function": {"name": "f"}}]}), "tools[0].type"),
        harmless(json!({"tools": [{"type": "web_search"}]}), "tools[].type"),
        impossible(json!({"tools": "f"}), "tools"),
        passes(json!({"parallel_tool_calls": true})),
        passes(json!({"parallel_tool_calls": false})),
        passes(parallel(true)),
        lossy(parallel(false), "parallel_tool_calls").but(Passes, &[Anthropic, Responses]),
        passes(json!({"functions": []})),
        impossible(json!({"functions": [{"name": "f"}]}), "functions"),
        impossible(json!({"function_call": "auto"}), "function_call"),
    ];
    probes.extend(choices());
    probes
}

fn choices() -> Vec<Probe> {
    vec![
        passes(json!({"tool_choice": "auto"})),
        passes(json!({"tool_choice": "none"})),
        impossible(json!({"tool_choice": "required"}), "tool_choice"),
        passes(choosing(json!("none"))),
        passes(choosing(json!("required"))),
        impossible(choosing(json!("sometimes")), "tool_choice"),
        passes(choosing(json!({"type": "function", "function": {"name": "g"}}))),
        impossible(
            choosing(json!({"type": "function", "function": {"name": "h"}})),
            "tool_choice.function.name",
        ),
        impossible(choosing(json!({"type": "file_search"})), "tool_choice.type"),
        passes(allowing("auto", &["f"])),
        passes(allowing("required", &["f", "g"])),
        harmless(allowing("auto", &["f", "h"]), "tool_choice"),
        impossible(allowing("auto", &["h"]), "tool_choice.allowed_tools.tools"),
        impossible(allowing("never", &["f"]), "tool_choice.allowed_tools.mode"),
    ]
}

/// Returns a conversation with a call and the tool's result.
fn called(call: Value, result: Value) -> Value {
    let call = with(
        json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}),
        &call,
    );
    let result = with(
        json!({"role": "tool", "tool_call_id": "c", "content": "1"}),
        &result,
    );
    json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}, result]})
}

fn arguments(arguments: &str) -> Value {
    called(
        json!({"function": {"name": "f", "arguments": arguments}}),
        json!({}),
    )
}

pub fn calls() -> Vec<Probe> {
    let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]);
    let audio = json!([{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}]);
    let path = "messages[1].tool_calls[0].function.arguments";
    let mut probes = vec![
        passes(called(json!({}), json!({}))),
        passes(called(json!({"index": 0, "type": null}), json!({"name": "f"}))),
        passes(arguments("")),
        passes(arguments(" ")),
        harmless(called(json!({"new_field": 1}), json!({})), OTHERS),
        harmless(
            called(json!({"cache_control": {"type": "ephemeral"}}), json!({})),
            "cache_control",
        )
        .but(Passes, &[Anthropic]),
        harmless(
            called(
                json!({"extra_content": {"google": {"thought_signature": "s"}}}),
                json!({}),
            ),
            "messages[].extra_content",
        )
        .but(Passes, &[Gemini]),
        impossible(
            called(json!({"id": null}), json!({})),
            "messages[1].tool_calls[0].id",
        ),
        impossible(
            called(json!({"function": null}), json!({})),
            "messages[1].tool_calls[0].function.name",
        ),
        impossible(
            called(
                json!({"type": "custom", "custom": {"name": "f", "input": "a"}}),
                json!({}),
            ),
            "messages[1].tool_calls[0].type",
        )
        .but(Passes, &[Responses]),
        impossible(
            called(json!({"type": "shell"}), json!({})),
            "messages[1].tool_calls[0].type",
        ),
        impossible(
            called(json!({}), json!({"tool_call_id": null})),
            "messages[2].tool_call_id",
        ),
        passes(called(json!({}), json!({"content": null}))),
        passes(called(json!({}), json!({"content": image}))),
        impossible(
            called(json!({}), json!({"content": audio})),
            "messages[2].content[0].type",
        )
        .but(Passes, &[Gemini]),
        harmless(called(json!({}), json!({"reasoning": "r"})), OTHERS),
    ];
    // Responses accepts any text.
    for text in ["{\"a\":", "[1]", "null", "{} {}"] {
        probes.push(impossible(arguments(text), path).but(Passes, &[Responses]));
    }
    probes
}
