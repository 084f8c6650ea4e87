//! Calls of guarded tools in responses: no part of them is released.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use proofgate_inspect::{
    CallGuard, Denial, GuardAction, GuardedTools, ReadBuffers, ResponseInspector, ResponseKind,
};
use proofgate_providers::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{LIMIT, Policy, named_event};

/// The output of a response, how it ended, and the called entries: denied, approved.
type Passed = (String, Result<(), Denial>, Option<usize>, Option<usize>);

fn pass(
    (dialect, kind): (Dialect, ResponseKind),
    approved: &[usize],
    action: GuardAction,
    pieces: &[&[u8]],
) -> Passed {
    let mut policy = Policy::of(&json!({"rules": []}), None);
    let tools = Arc::new(GuardedTools::new(["Bash", "mcp__github__*"]));
    let mut inspector = ResponseInspector::new(dialect, kind, LIMIT);
    inspector.set_call_guard(CallGuard::new(tools, approved.iter().copied(), action));
    let Policy {
        engine,
        profile,
        scratch,
    } = &mut policy;
    let (mut reading, mut out) = (ReadBuffers::default(), Vec::new());
    let mut ended = Ok(());
    for piece in pieces {
        ended = ended.and_then(|()| inspector.push(engine, profile, scratch, &mut reading, piece, &mut out));
    }
    ended = ended.and_then(|()| inspector.finish(engine, profile, scratch, &mut reading, &mut out));
    let guard = inspector.call_guard().unwrap();
    let called = (guard.guarded_call(), guard.approved_call());
    (String::from_utf8(out).unwrap(), ended, called.0, called.1)
}

fn event(document: &Value) -> String {
    format!("data: {document}\n\n")
}

fn chat(delta: &Value) -> String {
    event(&json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn chat_call(index: u64, function: &Value) -> String {
    chat(&json!({"tool_calls": [{"index": index, "function": function}]}))
}

/// Returns for each dialect the part of a stream before a call, and the call with the rest.
fn streams(tool: &str) -> Vec<(Dialect, String, String)> {
    let finish = event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
    let block = json!({"type": "tool_use", "id": "t", "name": tool, "input": {}});
    let input = json!({"type": "input_json_delta", "partial_json": "{\"command\":\"ls\"}"});
    let item = json!({"type": "function_call", "name": tool, "arguments": ""});
    let part = json!({"functionCall": {"name": tool, "args": {"command": "ls"}}});
    vec![
        (
            Dialect::Chat,
            chat(&json!({"content": "Let me look."})),
            chat_call(0, &json!({"name": tool, "arguments": ""}))
                + &chat_call(0, &json!({"arguments": "{\"command\":\"ls\"}"}))
                + &finish
                + "data: [DONE]\n\n",
        ),
        (
            Dialect::Messages,
            named_event(&json!({"type": "message_start", "message": {"type": "message", "content": []}})),
            named_event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
                + &named_event(&json!({"type": "content_block_delta", "index": 0, "delta": input}))
                + &named_event(&json!({"type": "message_stop"})),
        ),
        (
            Dialect::Responses,
            named_event(&json!({"type": "response.created", "response": {"output": []}})),
            named_event(&json!({"type": "response.output_item.added", "output_index": 0, "item": item}))
                + &named_event(&json!({"type": "response.completed", "response": {"output": [item]}})),
        ),
        (
            Dialect::Gemini,
            event(
                &json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Let me look."}]}}]}),
            ),
            event(
                &json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}),
            ),
        ),
    ]
}

/// Returns for each dialect a whole response with a call.
fn wholes(tool: &str) -> Vec<(Dialect, String)> {
    let function = json!({"name": tool, "arguments": "{}"});
    let message =
        json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]});
    let block = json!({"type": "tool_use", "id": "t", "name": tool, "input": {}});
    let item = json!({"type": "function_call", "name": tool, "arguments": "{}"});
    let part = json!({"functionCall": {"name": tool, "args": {}}});
    vec![
        (
            Dialect::Chat,
            json!({"choices": [{"index": 0, "message": message}]}),
        ),
        (Dialect::Messages, json!({"type": "message", "content": [block]})),
        (
            Dialect::Responses,
            json!({"object": "response", "output": [item]}),
        ),
        (
            Dialect::Gemini,
            json!({"candidates": [{"content": {"parts": [part]}}]}),
        ),
    ]
    .into_iter()
    .map(|(dialect, document)| (dialect, document.to_string()))
    .collect()
}

#[test]
fn nothing_of_a_whole_answer_leaves_that_calls_a_guarded_tool() {
    for (tool, entry) in [("Bash", 0), ("mcp__github__push", 1)] {
        for (dialect, answer) in wholes(tool) {
            let form = (dialect, ResponseKind::Unary);
            let passed = pass(form, &[], GuardAction::Deny, &[answer.as_bytes()]);
            assert_eq!(
                passed,
                (String::new(), Err(Denial::GuardedCall), Some(entry), None),
                "{dialect:?}"
            );
        }
    }
    for (dialect, answer) in wholes("Read") {
        let form = (dialect, ResponseKind::Unary);
        let passed = pass(form, &[], GuardAction::Deny, &[answer.as_bytes()]);
        assert_eq!(passed, (answer, Ok(()), None, None), "{dialect:?}");
    }
}

#[test]
fn what_is_approved_or_only_observed_leaves_and_is_noted() {
    for (dialect, answer) in wholes("Bash") {
        let form = (dialect, ResponseKind::Unary);
        let passed = pass(form, &[0], GuardAction::Deny, &[answer.as_bytes()]);
        assert_eq!(passed, (answer.clone(), Ok(()), None, Some(0)));
        let passed = pass(form, &[], GuardAction::Observe, &[answer.as_bytes()]);
        assert_eq!(passed, (answer, Ok(()), Some(0), None));
    }
}

#[test]
fn of_a_stream_nothing_of_the_call_leaves_however_it_is_cut() {
    for (dialect, before, call) in streams("Bash") {
        let stream = before.clone() + &call;
        for at in 0..stream.len() {
            let (one, two) = stream.as_bytes().split_at(at);
            let passed = pass(
                (dialect, ResponseKind::Events),
                &[],
                GuardAction::Deny,
                &[one, two],
            );
            assert_eq!(
                passed,
                (before.clone(), Err(Denial::GuardedCall), Some(0), None),
                "{dialect:?} {at}"
            );
        }
    }
    for (dialect, before, call) in streams("Read") {
        let stream = before + &call;
        let passed = pass(
            (dialect, ResponseKind::Events),
            &[],
            GuardAction::Deny,
            &[stream.as_bytes()],
        );
        assert_eq!(passed, (stream, Ok(()), None, None), "{dialect:?}");
    }
}

#[test]
fn a_name_in_pieces_is_one_name_wherever_it_is_cut() {
    for name in ["Bash", "mcp__github__push"] {
        for at in 0..=name.len() {
            let (begin, rest) = name.split_at(at);
            let stream = chat_call(1, &json!({"name": begin}))
                + &chat_call(1, &json!({"name": rest}))
                + &chat_call(1, &json!({"arguments": "{}"}));
            let form = (Dialect::Chat, ResponseKind::Events);
            let (out, ended, ..) = pass(form, &[], GuardAction::Deny, &[stream.as_bytes()]);
            assert_eq!((&*out, ended), ("", Err(Denial::GuardedCall)), "{begin}|{rest}");
        }
    }
}

#[test]
fn a_name_in_pieces_is_found_behind_another_call_of_the_same_index() {
    let form = (Dialect::Chat, ResponseKind::Events);
    for other in ["Read", "Bar", "Ba"] {
        let before = chat_call(0, &json!({"name": other, "arguments": "{}"}));
        let call = chat_call(0, &json!({"name": "Ba", "arguments": ""}))
            + &chat_call(0, &json!({"name": "sh", "arguments": ""}))
            + &chat_call(0, &json!({"arguments": "{}"}));
        let stream = before.clone() + &call;
        let (out, ended, ..) = pass(form, &[], GuardAction::Deny, &[stream.as_bytes()]);
        assert_eq!((out, ended), (before, Err(Denial::GuardedCall)), "{other}");
    }
}

#[test]
fn a_stream_that_is_one_list_is_looked_into() {
    let part = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
    let call = part(json!({"functionCall": {"name": "Bash", "args": {}}}));
    let list = json!([part(json!({"text": "Let me look."})), call]).to_string();
    let form = (Dialect::Gemini, ResponseKind::Unary);
    let (out, ended, ..) = pass(form, &[], GuardAction::Deny, &[list.as_bytes()]);
    assert_eq!((&*out, ended), ("", Err(Denial::GuardedCall)));
    let text = "[no list";
    let passed = pass(form, &[], GuardAction::Deny, &[text.as_bytes()]);
    assert_eq!(passed, (text.to_owned(), Ok(()), None, None));
}

#[test]
fn a_tool_of_a_namespace_is_guarded_by_its_joined_name() {
    let item =
        json!({"type": "function_call", "namespace": "mcp__github", "name": "push", "arguments": "{}"});
    let answer = json!({"object": "response", "output": [item]}).to_string();
    let form = (Dialect::Responses, ResponseKind::Unary);
    let (out, ended, called, _) = pass(form, &[], GuardAction::Deny, &[answer.as_bytes()]);
    assert_eq!((&*out, ended, called), ("", Err(Denial::GuardedCall), Some(1)));
}

#[test]
fn a_call_is_held_only_while_its_name_can_become_that_of_a_guarded_tool() {
    let form = (Dialect::Chat, ResponseKind::Events);
    let mut inspector = ResponseInspector::new(form.0, form.1, LIMIT);
    let tools = Arc::new(GuardedTools::new(["Bash"]));
    inspector.set_call_guard(CallGuard::new(tools, [], GuardAction::Deny));
    let mut policy = Policy::of(&json!({"rules": []}), None);
    let mut reading = ReadBuffers::default();
    let mut leaves = |event: &str| {
        let mut out = Vec::new();
        let Policy {
            engine,
            profile,
            scratch,
        } = &mut policy;
        let pushed = inspector.push(engine, profile, scratch, &mut reading, event.as_bytes(), &mut out);
        pushed.map(|()| out.len() == event.len())
    };
    assert_eq!(
        leaves(&chat_call(0, &json!({"name": "Read", "arguments": ""}))),
        Ok(true)
    );
    assert_eq!(leaves(&chat_call(0, &json!({"arguments": ""}))), Ok(true));
    // Nothing is released before it, not even a text.
    assert_eq!(leaves(&chat_call(1, &json!({"name": "Ba"}))), Ok(false));
    assert_eq!(leaves(&chat(&json!({"content": "x"}))), Ok(false));
    // Everything is released together.
    assert_eq!(leaves(&chat_call(1, &json!({"arguments": "{"}))), Ok(false));
    assert_eq!(leaves(&chat_call(1, &json!({"arguments": "}"}))), Ok(true));
    assert_eq!(leaves(&chat_call(2, &json!({"name": "Bas"}))), Ok(false));
    let finish = event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
    assert_eq!(leaves(&finish), Ok(false));
    assert_eq!(leaves(&chat(&json!({"content": "x"}))), Ok(true));
    // Some clients use the last name.
    assert_eq!(
        leaves(&chat_call(1, &json!({"name": "Bash"}))),
        Err(Denial::GuardedCall)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However a stream's events and names are split, a guarded call is found and no byte of its first event is released;
    /// calls of other tools are passed on unchanged.
    #[test]
    fn guarded_calls_are_found_in_every_stream(
        tools in prop::collection::vec(prop_oneof!["Bash", "Ba", "BashOutput", "mcp__github__[a-z]{0,6}", "[A-Z][a-z]{0,8}"], 1..5),
        cuts in prop::collection::vec(0_usize..20, 5),
        splits in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let guarded = |tool: &str| tool.eq_ignore_ascii_case("bash") || tool.to_lowercase().starts_with("mcp__github__");
        let mut before = String::new();
        let mut stream = String::new();
        let mut is_found = false;
        for (index, (tool, cut)) in (0..).zip(tools.iter().zip(&cuts)) {
            // A piece that is by itself a guarded name counts as one: some clients use the first piece, or the last.
            let (begin, rest) = tool.split_at((*cut).min(tool.len()));
            let call = chat_call(index, &json!({"name": begin}))
                + &chat_call(index, &json!({"name": rest, "arguments": ""}))
                + &chat_call(index, &json!({"arguments": "{}"}));
            is_found |= guarded(tool) || guarded(begin) || guarded(rest);
            if !is_found {
                before.push_str(&call);
            }
            stream.push_str(&call);
        }
        let mut splits: Vec<usize> = splits.iter().map(|split| split.index(stream.len())).collect();
        splits.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for split in splits {
            pieces.push(&stream.as_bytes()[from..split]);
            from = split;
        }
        pieces.push(&stream.as_bytes()[from..]);
        let form = (Dialect::Chat, ResponseKind::Events);
        let (out, ended, ..) = pass(form, &[], GuardAction::Deny, &pieces);
        prop_assert_eq!(ended.is_err(), is_found);
        prop_assert!(stream.starts_with(&out));
        if is_found {
            prop_assert_eq!(out, before);
        } else {
            prop_assert_eq!(out, stream);
        }
    }
}
