//! Conversations that have changed their provider: content that the gateway wrote for another
//! provider is removed.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use proofgate_chat_providers::reasoning_removal::{strip_gateway_items, strip_unsigned_thinking};
use serde_json::{Value, json};

const SEALED: &str = "reasoning_details:eyJkYXRhIjoiZCJ9";

fn items(input: Value, is_passed: bool) -> Option<(Value, Vec<&'static str>)> {
    let body = json!({"model": "m", "input": input, "store": false}).to_string();
    let mut out = b"before".to_vec();
    let names = strip_gateway_items(body.as_bytes(), is_passed, &mut out);
    let Some(names) = names else {
        assert_eq!(out, b"before");
        return None;
    };
    let written: Value = serde_json::from_slice(&out[6..]).unwrap();
    assert_eq!(
        (&written["model"], &written["store"]),
        (&json!("m"), &json!(false))
    );
    Some((written["input"].clone(), names))
}

fn messages(model: &str, thinking: Value, messages: Value) -> Option<(Value, Value)> {
    let body = json!({"model": "m", "thinking": thinking, "messages": messages, "max_tokens": 9}).to_string();
    let mut out = Vec::new();
    let names = strip_unsigned_thinking(body.as_bytes(), model, &mut out)?;
    assert_eq!(names, ["thinking"]);
    let written: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(written["max_tokens"], 9);
    Some((written["messages"].clone(), written["thinking"].clone()))
}

#[test]
fn a_reference_to_thoughts_that_were_never_stored_is_left_out_wherever_it_goes() {
    let said = json!({"role": "user", "content": "Hi"});
    for id in ["rs_abc_0", "rs_chatcmpl-12_3", "rs_a_b_12"] {
        let reference = json!({"type": "item_reference", "id": id});
        for is_passed in [true, false] {
            let left = items(json!([said, reference, said]), is_passed).unwrap();
            assert_eq!(left, (json!([said, said]), vec!["item_reference"]));
        }
    }
}

#[test]
fn a_reference_to_what_a_provider_keeps_stays() {
    for id in [
        "rs_68af4030baa48193b0b43b4c2a176a1a",
        "rs_1",
        "msg_abc_0",
        "rs__0",
        "rs_a_b",
        "rs_a_12345",
    ] {
        assert_eq!(
            items(json!([{"type": "item_reference", "id": id}]), true),
            None,
            "{id}"
        );
    }
}

#[test]
fn thoughts_of_our_form_go_to_no_provider_as_they_are() {
    let said = json!({"role": "user", "content": "Hi"});
    let ours =
        json!({"type": "reasoning", "id": "rs_a_0", "summary": [], "encrypted_content": "proofgate-1:{}"});
    let theirs = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    let (left, names) = items(json!([said, ours, theirs, said]), true).unwrap();
    assert_eq!(
        (left, names),
        (json!([said, theirs, said]), vec!["input[].encrypted_content"])
    );
    assert_eq!(
        items(json!([said, ours, theirs]), false),
        None,
        "it is translated"
    );
}

#[test]
fn what_is_no_such_request_is_not_changed() {
    for body in [
        "",
        "3",
        "{",
        "{\"input\":\"item_reference rs_a_0\"}",
        "{\"input\":[3,\"rs_a_0\"]}",
    ] {
        assert_eq!(
            strip_gateway_items(body.as_bytes(), true, &mut Vec::new()),
            None,
            "{body}"
        );
        assert_eq!(
            strip_unsigned_thinking(body.as_bytes(), "claude", &mut Vec::new()),
            None,
            "{body}"
        );
    }
    // A text that quotes them is only text.
    let text =
        json!([{"role": "user", "content": "{\"type\":\"item_reference\",\"id\":\"rs_a_0\"} proofgate-1:"}]);
    assert_eq!(items(text, true), None);
}

#[test]
fn thinking_that_the_provider_has_not_signed_is_left_out() {
    let ask = json!({"role": "user", "content": "Hi"});
    let text = json!({"type": "text", "text": "Hello"});
    let signed = json!({"type": "thinking", "thinking": "t", "signature": "Eq=="});
    let sealed = json!({"type": "thinking", "thinking": "t", "signature": SEALED});
    let unsigned = json!({"type": "thinking", "thinking": "t", "signature": ""});
    let bare = json!({"type": "thinking", "thinking": "t"});
    let turn = |blocks: Value| json!([ask, {"role": "assistant", "content": blocks}, ask]);
    for foreign in [&sealed, &unsigned, &bare] {
        let (left, thinking) = messages(
            "claude-5",
            json!({"type": "enabled"}),
            turn(json!([foreign, signed, text])),
        )
        .unwrap();
        assert_eq!(
            (left, thinking),
            (turn(json!([signed, text])), json!({"type": "enabled"}))
        );
        let (left, _) = messages("claude-5", Value::Null, turn(json!([foreign]))).unwrap();
        assert_eq!(left, json!([ask, ask]));
    }
    // Other vendors of the API do not sign thinking.
    assert_eq!(
        messages("kimi-k3", Value::Null, turn(json!([unsigned, bare, text]))),
        None
    );
    assert!(messages("kimi-k3", Value::Null, turn(json!([sealed, text]))).is_some());
    assert_eq!(
        messages("claude-5", Value::Null, turn(json!([signed, text]))),
        None
    );
}

#[test]
fn a_turn_of_tools_goes_on_without_a_budget_of_thinking() {
    let ask = json!({"role": "user", "content": "Hi"});
    let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}});
    let result =
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]});
    let sealed = json!({"type": "thinking", "thinking": "t", "signature": SEALED});
    let history = json!([ask, {"role": "assistant", "content": [sealed, call]}, result]);
    let enabled = json!({"type": "enabled", "budget_tokens": 1024});
    let (left, thinking) = messages("claude-5", enabled.clone(), history.clone()).unwrap();
    assert_eq!(left[1]["content"], json!([call]));
    assert_eq!(thinking, json!({"type": "disabled"}));
    let adaptive = json!({"type": "adaptive"});
    assert_eq!(
        messages("claude-5", adaptive.clone(), history.clone()).unwrap().1,
        adaptive
    );
    // After the user's next message none of it is needed.
    let mut over = history.as_array().unwrap().clone();
    over.extend([json!({"role": "assistant", "content": "Done"}), ask]);
    assert_eq!(
        messages("claude-5", enabled.clone(), over.into()).unwrap().1,
        enabled
    );
}
