//! Inspection of responses in Anthropic's Messages format.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{Denial, ResponseKind};
use proofgate_providers::Dialect;
use serde_json::{Value, json};
use support::{LIMIT, Policy, events, named_event, rules};

const KEY: &str = "sk-abcdef123";
const REDACTED: &str = "[redacted:key]";

fn pass(kind: ResponseKind, answer: &str) -> (String, Result<(), Denial>) {
    let (out, ended, _) = Policy::new().pass_as(Dialect::Messages, kind, &[answer.as_bytes()]);
    (String::from_utf8(out).unwrap(), ended)
}

fn start(index: usize, block: &Value) -> String {
    named_event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: usize, delta: &Value) -> String {
    named_event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn stop(index: usize) -> String {
    named_event(&json!({"type": "content_block_stop", "index": index}))
}

/// Returns a stream with one block, whose deltas have `pieces` in the field `field`.
fn stream(block: &Value, kind: &str, field: &str, pieces: &[&str]) -> String {
    let deltas = pieces
        .iter()
        .map(|piece| delta(0, &json!({"type": kind, field: piece})));
    named_event(&json!({"type": "message_start", "message": {"type": "message", "content": []}}))
        + &start(0, block)
        + &named_event(&json!({"type": "ping"}))
        + &deltas.collect::<String>()
        + &stop(0)
        + &named_event(&json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}))
        + &named_event(&json!({"type": "message_stop"}))
}

/// Returns the concatenated deltas of a stream in the field `field`.
fn joined(stream: &str, field: &str) -> String {
    let events = events(stream.as_bytes());
    let pieces = events.iter().filter_map(|event| event["delta"][field].as_str());
    pieces.collect()
}

#[test]
fn a_key_that_is_split_over_two_deltas_is_redacted() {
    for (block, kind, field) in [
        (json!({"type": "text", "text": ""}), "text_delta", "text"),
        (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            "thinking_delta",
            "thinking",
        ),
        (
            json!({"type": "tool_use", "id": "t", "name": "look", "input": {}}),
            "input_json_delta",
            "partial_json",
        ),
        (
            json!({"type": "compaction", "content": null}),
            "compaction_delta",
            "content",
        ),
        (json!({"type": "unheard_of"}), "unheard_of_delta", "news"),
    ] {
        let (out, ended) = pass(
            ResponseKind::Events,
            &stream(&block, kind, field, &["my sk-abc", "def123", " is it"]),
        );
        assert_eq!(ended, Ok(()));
        let expected = stream(&block, kind, field, &["my [redacted:key]", "", " is it"]);
        assert_eq!(out, expected);
    }
}

#[test]
fn what_a_block_starts_with_and_its_deltas_are_one_text() {
    let events = |first: &str, second: &str| {
        start(0, &json!({"type": "text", "text": first}))
            + &delta(0, &json!({"type": "text_delta", "text": second}))
    };
    let (out, ended) = pass(ResponseKind::Events, &events("sk-abc", "def123 "));
    assert_eq!((out, ended), (events(REDACTED, " "), Ok(())));
}

#[test]
fn a_phrase_that_is_split_over_deltas_denies_the_answer() {
    let block = json!({"type": "text", "text": ""});
    let pieces = ["A story. ", "Then: open the ", "pod bay ", "doors! ", "The end."];
    let (out, ended) = pass(
        ResponseKind::Events,
        &stream(&block, "text_delta", "text", &pieces),
    );
    assert!(matches!(ended, Err(Denial::Blocked { by_score: false, .. })));
    assert_eq!(joined(&out, "text"), "A story. ");
}

#[test]
fn blocks_are_texts_of_their_own() {
    let answer = json!({"type": "message", "content": [{"type": "text", "text": "open the pod"}, {"type": "text", "text": "bay doors"}]});
    assert_eq!(pass(ResponseKind::Unary, &answer.to_string()).1, Ok(()));
    let text = |index, text: &str| delta(index, &json!({"type": "text_delta", "text": text}));
    let stream = text(0, "open the pod ") + &stop(0) + &text(1, "bay doors") + &stop(1);
    assert_eq!(pass(ResponseKind::Events, &stream), (stream.clone(), Ok(())));
}

#[test]
fn every_string_of_a_message_is_inspected() {
    for block in [
        json!({"type": "text", "text": KEY}),
        json!({"type": "text", "text": "", "citations": [{"type": "char_location", "cited_text": KEY}]}),
        json!({"type": "thinking", "thinking": KEY, "signature": "s"}),
        json!({"type": "tool_use", "id": "t", "name": KEY, "input": {}}),
        json!({"type": "tool_use", "id": "t", "name": "f", "input": {"a": [{"id": KEY}]}}),
        json!({"type": "tool_use", "id": "t", "name": "f", "input": {KEY: 1}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "t", "content": [{"type": "web_search_result", "title": KEY}]}),
        json!({"type": "mcp_tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": KEY}]}),
        json!({"type": "unheard_of", "data": KEY}),
    ] {
        for answer in [
            (
                ResponseKind::Unary,
                json!({"type": "message", "content": [block]}).to_string(),
            ),
            (ResponseKind::Events, start(0, &block) + &stop(0)),
            (
                ResponseKind::Events,
                named_event(&json!({"type": "message_start", "message": {"content": [block]}})),
            ),
        ] {
            let (out, ended) = pass(answer.0, &answer.1);
            assert_eq!((out, ended), (answer.1.replace(KEY, REDACTED), Ok(())));
        }
    }
    let details = json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"explanation": KEY}}});
    let citation =
        json!({"type": "citations_delta", "citation": {"type": "char_location", "cited_text": KEY}});
    for event in [named_event(&details), delta(0, &citation)] {
        assert_eq!(
            pass(ResponseKind::Events, &event),
            (event.replace(KEY, REDACTED), Ok(()))
        );
    }
}

#[test]
fn what_a_tool_is_called_with_stays_json() {
    let config = json!({"budgetMilliseconds": 10_000, "rules": [
        {"id": "key", "reason": "A key.", "view": "Text", "regex": r"\bsk-[a-z0-9]{6,40}\b", "score": 10, "action": "Redact"},
        {"id": "card", "reason": "A card.", "view": "Text", "regex": r"\b4[0-9]{15}\b", "score": 10, "action": "Redact"}]});
    let input = r#"{"sk-abcdef1":1,"sk-abcdef2":{"note":"a \"quoted\" sk-abcdef3\n"},"card":4111111111111111,"nested":"{\"card\": 4111111111111111}"}"#;
    let answer = format!(
        r#"{{"type":"message","content":[{{"type":"tool_use","id":"sk-abcdef9","name":"pay","input":{input}}}]}}"#
    );
    let block = format!(
        "data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"tool_use\",\"id\":\"sk-abcdef9\",\"name\":\"pay\",\"input\":{input}}}}}\n\n"
    );
    let expected = json!({"[redacted:key]": 1, "[redacted:key]#2": {"note": "a \"quoted\" [redacted:key]\n"}, "card": "[redacted:card]", "nested": "{\"card\": \"[redacted:card]\"}"});
    let mut policy = Policy::of(&config, None);
    let (out, ended, _) = policy.pass_as(Dialect::Messages, ResponseKind::Unary, &[answer.as_bytes()]);
    assert_eq!(ended, Ok(()));
    let out: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(out["content"][0]["input"], expected);
    assert_eq!(out["content"][0]["id"], "sk-abcdef9");
    let (out, ended, _) = policy.pass_as(Dialect::Messages, ResponseKind::Events, &[block.as_bytes()]);
    assert_eq!(ended, Ok(()));
    assert_eq!(events(&out)[0]["content_block"]["input"], expected);
}

#[test]
fn a_redacted_argument_in_a_stream_is_json_when_it_is_put_together() {
    let block = json!({"type": "tool_use", "id": "t", "name": "look", "input": {}});
    let pieces = ["", "{\"key\": \"s", "k-abcd", "ef123\", \"n\": 1", "}"];
    let (out, ended) = pass(
        ResponseKind::Events,
        &stream(&block, "input_json_delta", "partial_json", &pieces),
    );
    assert_eq!(ended, Ok(()));
    let input: Value = serde_json::from_str(&joined(&out, "partial_json")).unwrap();
    assert_eq!(input, json!({"key": REDACTED, "n": 1}));
}

#[test]
fn signatures_and_what_is_encrypted_pass_byte_for_byte() {
    // A rule would match them.
    let secret = "sk-abcdef123/\\u002b\\/==";
    let blocks = format!(
        r#"{{"type":"thinking","thinking":"sk-abcdef123","signature":"{secret}"}},{{"data":"{secret}","type":"redacted_thinking"}},
        {{"type":"web_search_tool_result","tool_use_id":"{secret}","content":[{{"encrypted_content":"{secret}","title":"sk-abcdef123"}}]}},
        {{"type":"text","text":"","citations":[{{"encrypted_index":"{secret}"}}]}},{{"type":"compaction","content":null,"encrypted_content":"{secret}"}}"#
    );
    let answer = format!(r#"{{"id":"{secret}","type":"message","content":[{blocks}]}}"#);
    let expected = answer.replace("\"sk-abcdef123\"", "\"[redacted:key]\"");
    assert_eq!(pass(ResponseKind::Unary, &answer), (expected, Ok(())));
    let events = format!(
        "data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"redacted_thinking\",\"data\":\"{secret}\"}}}}\n\n\
         data: {{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{{\"type\":\"signature_delta\",\"signature\":\"{secret}\"}}}}\n\n\
         data: {{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{{\"type\":\"compaction_delta\",\"content\":\"\",\"encrypted_content\":\"{secret}\"}}}}\n\n"
    );
    assert_eq!(pass(ResponseKind::Events, &events), (events.clone(), Ok(())));
}

#[test]
fn what_is_of_no_known_shape_is_one_text() {
    for document in [
        json!({"type": "error", "error": {"type": "api_error", "message": format!("bad {KEY}")}}),
        json!({"type": "unheard_of", "index": 0, "news": {"deep": [KEY]}}),
        json!({"error": {"message": KEY}}),
    ] {
        let body = document.to_string();
        assert_eq!(
            pass(ResponseKind::Unary, &body),
            (body.replace(KEY, REDACTED), Ok(()))
        );
        let event = format!("event: error\ndata: {document}\n\n");
        assert_eq!(
            pass(ResponseKind::Events, &event),
            (event.replace(KEY, REDACTED), Ok(()))
        );
    }
}

#[test]
fn the_end_of_a_block_does_not_hold_back_the_next_one() {
    let first = delta(0, &json!({"type": "thinking_delta", "thinking": "it is g"}));
    let events = [
        first,
        stop(0),
        start(1, &json!({"type": "tool_use", "name": "look", "input": {}})),
        delta(1, &json!({"type": "input_json_delta", "partial_json": "{ "})),
        delta(1, &json!({"type": "input_json_delta", "partial_json": "\"go"})),
    ];
    let mut policy = Policy::new();
    let mut inspector =
        proofgate_inspect::ResponseInspector::new(Dialect::Messages, ResponseKind::Events, LIMIT);
    let mut out = Vec::new();
    for event in &events {
        policy.push(&mut inspector, event.as_bytes(), &mut out).unwrap();
    }
    assert_eq!(String::from_utf8(out).unwrap(), events[..4].concat());
}

#[test]
fn a_citation_does_not_cut_the_text_that_it_interrupts() {
    let text = |piece: &str| delta(0, &json!({"type": "text_delta", "text": piece}));
    let citation = delta(
        0,
        &json!({"type": "citations_delta", "citation": {"cited_text": "words"}}),
    );
    let stream = text("sk-abc") + &citation + &text("def123 ") + &stop(0);
    let (out, ended) = pass(ResponseKind::Events, &stream);
    assert_eq!(
        (out, ended),
        (text(REDACTED) + &citation + &text(" ") + &stop(0), Ok(()))
    );
}

#[test]
fn an_answer_of_many_blocks_and_citations_is_inspected() {
    let citation = json!({"type": "char_location", "cited_text": "words", "document_title": "title"});
    let block = json!({"type": "text", "text": "a sentence ", "citations": [citation, citation]});
    let mut blocks = vec![block; 400];
    blocks.push(json!({"type": "text", "text": KEY}));
    let answer = json!({"type": "message", "content": blocks}).to_string();
    let mut policy = Policy::new();
    let redacted = (answer.replace(KEY, REDACTED).into_bytes(), Ok(()));
    let mut inspector =
        proofgate_inspect::ResponseInspector::new(Dialect::Messages, ResponseKind::Unary, 10 * LIMIT);
    let mut out = Vec::new();
    policy.push(&mut inspector, answer.as_bytes(), &mut out).unwrap();
    let ended = policy.finish(&mut inspector, &mut out);
    assert_eq!((out, ended), redacted);

    let stream: String = (0..400)
        .map(|index| delta(index, &json!({"type": "text_delta", "text": "a sentence"})) + &stop(index))
        .collect();
    assert_eq!(pass(ResponseKind::Events, &stream), (stream.clone(), Ok(())));
}

#[test]
fn many_texts_of_a_whole_answer_are_judged_in_slices() {
    let blocks: Vec<Value> = (0..2_000)
        .map(|_| json!({"type": "text", "text": "An ordinary sentence of the answer."}))
        .collect();
    let answer = json!({"type": "message", "content": blocks}).to_string();
    let mut policy = Policy::of(&rules(), None);
    let mut inspector =
        proofgate_inspect::ResponseInspector::new(Dialect::Messages, ResponseKind::Unary, 10 * LIMIT);
    let (mut out, mut steps) = (Vec::new(), 0);
    policy.push(&mut inspector, answer.as_bytes(), &mut out).unwrap();
    let slice = std::time::Duration::from_secs(1);
    while policy.finish_step(&mut inspector, slice, &mut out).unwrap() == proofgate_policy::Step::Pending {
        steps += 1;
        assert!(inspector.capacity() > answer.len() + 2_000 * 35);
    }
    assert!(steps >= 5, "{steps}");
    assert_eq!(out, answer.as_bytes());
    inspector.release_memory(1000);
    assert!(inspector.capacity() < 10_000, "{}", inspector.capacity());
}
