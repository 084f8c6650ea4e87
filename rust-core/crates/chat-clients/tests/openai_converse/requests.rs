//! Conversations as they are sent to Converse.

use proofgate_chat_clients::openai_converse::{translate_request, translate_response};
use proofgate_dialect::UntranslatableFieldPolicy;
use serde_json::{Value, json};

use crate::{CREATED, asked, chat, sent, sent_with, target, user};

// mlflow/mlflow#25788, #24296, agentgateway/agentgateway PR#1358, #2318, elastic/kibana#284682
#[test]
fn results_of_tools_and_turns_of_one_role_become_one_turn_with_the_results_first() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let sent = sent(&chat(json!({"messages": [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "s"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "c"},
        {"role": "assistant", "tool_calls": [call("1"), call("2")]},
        {"role": "user", "content": "d"},
        {"role": "tool", "tool_call_id": "1", "content": "one"},
        {"role": "tool", "tool_call_id": "2", "content": "two"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "e"},
    ]})))
    .unwrap();
    let result = |id: &str, text: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": text}]}});
    let used = |id: &str| json!({"toolUse": {"toolUseId": id, "name": "f", "input": {}}});
    assert_eq!(
        sent,
        json!({
            "messages": [
                {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
                {"role": "assistant", "content": [{"text": "c"}, used("1"), used("2")]},
                {"role": "user", "content": [result("1", "one"), result("2", "two"), {"text": "d"}, {"text": "e"}]},
            ],
            "system": [{"text": "s"}],
            "toolConfig": sent["toolConfig"],
        })
    );
}

// elastic/kibana#277821: Converse refuses a conversation with tool calls without `toolConfig`.
#[test]
fn tool_choice_none_leaves_a_tool_that_is_not_to_be_called_where_the_conversation_has_calls() {
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let mut body = chat(json!({"tools": tools, "tool_choice": "none"}));
    assert!(sent(&body).unwrap().get("toolConfig").is_none());
    body["messages"] = json!([
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "a"},
    ]);
    let sent = sent(&body).unwrap();
    let tools = sent["toolConfig"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["toolSpec"]["name"], "no_tool_available");
}

#[test]
fn an_id_that_converse_refuses_is_replaced_alike_in_call_and_result() {
    let long = "x".repeat(65);
    for id in ["a b", "", "call|fc", &long, "é"] {
        let body = chat(json!({"messages": [
            {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": id, "content": "a"},
        ]}));
        let sent = sent(&body).unwrap();
        let given = sent["messages"][0]["content"][0]["toolUse"]["toolUseId"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            sent["messages"][1]["content"][0]["toolResult"]["toolUseId"],
            given
        );
        assert!((1..=64).contains(&given.len()), "{given}");
        assert!(
            given
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte)),
            "{given}"
        );
    }
}

#[test]
fn documents_have_names_that_converse_allows_and_none_twice() {
    let names = ["a (2).pdf", "a.pdf", "a.pdf", "../a\n: $", "\u{1F4C4}.pdf", "x"];
    let data = "data:application/pdf;base64,JVBERi0=";
    let parts: Vec<Value> = names
        .iter()
        .map(|name| json!({"type": "file", "file": {"filename": name, "file_data": data}}))
        .chain([json!({"type": "file", "file": {"filename": "y".repeat(300), "file_data": data}})])
        .collect();
    let sent = sent(&chat(user(json!(parts)))).unwrap();
    let blocks = sent["messages"][0]["content"].as_array().unwrap();
    let mut given: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["document"]["name"].as_str())
        .collect();
    assert_eq!(given[..3], ["a (2)", "a", "a (3)"]);
    for name in &given {
        assert!((1..=200).contains(&name.len()) && !name.contains("  "), "{name}");
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b" -()[]".contains(&byte)),
            "{name}"
        );
    }
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), names.len() + 1);
}

// BerriAI/litellm#12695
#[test]
fn cache_control_survives_as_a_cache_point_behind_what_it_marks() {
    let mark = json!({"type": "ephemeral"});
    let body = chat(json!({"messages": [
        {"role": "system", "content": [{"type": "text", "text": "s", "cache_control": mark}]},
        {"role": "user", "content": "u", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "t", "cache_control": mark}]},
    ]}));
    let sent = sent(&body).unwrap();
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(sent["system"], json!([{"text": "s"}, point]));
    assert_eq!(
        sent["messages"][0]["content"][1],
        json!({"cachePoint": {"type": "default", "ttl": "5m"}})
    );
    assert_eq!(sent["messages"][2]["content"][1], point);
}

// maximhq/bifrost#5638, #6342, BerriAI/litellm#16893
#[test]
fn reasoning_returns_byte_for_byte_with_its_signature() {
    let said = r#"{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"a \u00e9\n","signature":"S+/="}}},{"reasoningContent":{"redactedContent":"cg=="}},{"text":"b"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}"#;
    let mut out = Vec::new();
    translate_response(said.as_bytes(), &asked(), CREATED, &mut out).unwrap();
    let heard = String::from_utf8(out).unwrap();
    let begin = heard.find(r#"{"role""#).unwrap();
    let message = &heard[begin..heard.find(r#","logprobs""#).unwrap()];
    let body = format!(r#"{{"model":"claude","messages":[{message},{{"role":"user","content":"c"}}]}}"#);
    let mut sent = Vec::new();
    translate_request(
        body.as_bytes(),
        &target(UntranslatableFieldPolicy::Refuse),
        &mut sent,
    )
    .unwrap();
    let content = &said[said.find(r#""content":"#).unwrap()..said.find("]}").unwrap()];
    assert!(String::from_utf8(sent).unwrap().contains(content));
}

#[test]
fn reasoning_whose_signature_is_lost_is_never_made_into_a_block() {
    let body = chat(json!({"messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "reasoning_content": "r"},
        {"role": "user", "content": "c"},
    ]}));
    let (sent, asked) = sent_with(&body, UntranslatableFieldPolicy::Refuse).unwrap();
    assert_eq!(sent["messages"][1]["content"], json!([{"text": "b"}]));
    assert_eq!(asked.dropped_fields, ["messages[].reasoning_content"]);
}
