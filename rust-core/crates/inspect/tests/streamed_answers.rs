//! Inspection of a streamed response.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{Denial, ResponseInspector, ResponseKind};
use proofgate_providers::Dialect;
use serde_json::{Value, json};
use support::{LIMIT, Policy, chunk, contents};

fn pass(stream: &str) -> (String, Result<(), Denial>) {
    let (out, ended, _) = Policy::new().pass(ResponseKind::Events, &[stream.as_bytes()]);
    (String::from_utf8(out).unwrap(), ended)
}

#[test]
fn a_clean_stream_leaves_as_it_came() {
    let stream = ": hello\n\nevent: a\r\ndata:{\"choices\":[]}\r\n\r\n".to_owned()
        + &chunk("Once upon ")
        + &chunk("a ti\u{e9}me\n")
        + "data: {\"choices\":[],\"usage\":{}}\n\ndata: [DONE]\n\n";
    assert_eq!(pass(&stream), (stream.clone(), Ok(())));
}

#[test]
fn prose_is_held_back_by_hardly_more_than_its_last_word() {
    let mut policy = Policy::new();
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Events, LIMIT);
    let words = "it was a bright cold day in april and the clocks were striking thirteen";
    let (mut sent, mut out) = (0, Vec::new());
    for word in words.split_inclusive(' ') {
        policy
            .push(&mut inspector, chunk(word).as_bytes(), &mut out)
            .unwrap();
        sent += 1;
        assert!(
            sent - contents(&out).len() <= 3,
            "{sent} sent, {} arrived",
            contents(&out).len()
        );
    }
}

/// The blank arrives with the next word, as models write.
#[test]
fn a_word_leaves_with_its_event_unless_something_can_begin_with_it() {
    let mut policy = Policy::new();
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Events, LIMIT);
    let words = "It was a bright cold day in April and the clocks were striking thirteen.";
    let (mut sent, mut out, mut late) = (0, Vec::new(), Vec::new());
    for word in words.split(' ') {
        let event = chunk(&format!(" {word}"));
        policy.push(&mut inspector, event.as_bytes(), &mut out).unwrap();
        sent += 1;
        if contents(&out).len() < sent {
            late.push(word);
        }
    }
    // Base64 of a text can begin with these, or a key with their last letter.
    assert_eq!(
        late,
        ["It", "was", "a", "bright", "cold", "and", "clocks", "striking"]
    );
}

#[test]
fn a_match_over_several_events_is_replaced_in_the_first_and_removed_from_the_others() {
    let stream: String = ["Key: s", "k-abc", "def", "123, ok?"].map(chunk).concat();
    let (out, ended) = pass(&stream);
    assert_eq!(ended, Ok(()));
    assert_eq!(contents(out.as_bytes()), ["Key: [redacted:key]", "", "", ", ok?"]);
    assert_eq!(out, ["Key: [redacted:key]", "", "", ", ok?"].map(chunk).concat());
}

#[test]
fn a_disguised_match_over_several_events_is_cut_out_as_it_stands() {
    let pieces = [
        ("by A*", "by [redacted:name]"),
        ("nn ", ""),
        ("\n\n", ""),
        ("  Sm<", ""),
        ("/b>i&#1", ""),
        ("16;h", ""),
        (" \n  <b", " \n  <b"),
        ("> x", "> x"),
    ];
    let stream: String = pieces.iter().map(|(piece, _)| chunk(piece)).collect();
    let (out, ended) = pass(&stream);
    assert_eq!(ended, Ok(()));
    assert_eq!(contents(out.as_bytes()), pieces.map(|(_, expected)| expected));
}

/// The stream of a model that writes blank lines until its end is relayed.
#[test]
fn endless_white_space_passes_where_nothing_is_undecided() {
    let stream =
        chunk("Done.") + &chunk(&" \n".repeat(2_000)).repeat(30) + &chunk("gold") + "data: [DONE]\n\n";
    assert_eq!(pass(&stream), (stream.clone(), Ok(())));
}

#[test]
fn endless_white_space_inside_a_match_ends_the_stream() {
    let stream = chunk("by ") + &chunk("Ann") + &chunk(&" \n".repeat(2_000)).repeat(30) + &chunk("Smith");
    let (out, ended) = pass(&stream);
    assert!(ended.is_err());
    assert_eq!(out, chunk("by "));
}

#[test]
fn escapes_at_the_edges_of_a_redaction_stay_whole() {
    let escaped = r#"data: {"choices":[{"index":0,"delta":{"content":"\u00e9\"sk-\u0061bc"}}]}"#;
    let rest = r#"data: {"choices":[{"index":0,"delta":{"content":"def12\u0033\" \ud83d\ude00"}}]}"#;
    let (out, ended) = pass(&format!("{escaped}\n\n{rest}\n\n"));
    assert_eq!(ended, Ok(()));
    let expected = r#"data: {"choices":[{"index":0,"delta":{"content":"\u00e9\"[redacted:key]"}}]}"#;
    let expected_rest = r#"data: {"choices":[{"index":0,"delta":{"content":"\" \ud83d\ude00"}}]}"#;
    assert_eq!(out, format!("{expected}\n\n{expected_rest}\n\n"));
}

#[test]
fn events_keep_their_order_while_one_is_held() {
    let call = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"plain words \"}}]}\n\n";
    let mut policy = Policy::new();
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Events, LIMIT);
    let mut out = Vec::new();
    let held = chunk("sk-abcdef");
    for event in [&held, call, ": ping\n\n"] {
        policy.push(&mut inspector, event.as_bytes(), &mut out).unwrap();
        assert!(out.is_empty());
    }
    policy
        .push(&mut inspector, chunk(" done. ").as_bytes(), &mut out)
        .unwrap();
    let released = format!("{}{call}: ping\n\n", chunk("[redacted:key]"));
    assert!(String::from_utf8(out).unwrap().starts_with(&released));
}

#[test]
fn the_text_before_a_denied_one_has_left_and_nothing_of_it_follows() {
    let stream: String = ["A story. ", "Then: open the ", "pod bay ", "doors! ", "The end."]
        .map(chunk)
        .concat();
    let (out, ended) = pass(&stream);
    assert!(matches!(ended, Err(Denial::Blocked { by_score: false, .. })));
    assert_eq!(contents(out.as_bytes()), ["A story. "]);
}

#[test]
fn a_match_that_the_end_decides_is_found() {
    let (out, ended) = pass(&chunk("the key sk-abcdef123"));
    assert_eq!(
        (contents(out.as_bytes()), ended),
        (vec!["the key [redacted:key]".to_owned()], Ok(()))
    );
}

#[test]
fn an_event_without_its_empty_line_is_inspected_too() {
    let stream = chunk("sk-abcdef123");
    let (out, ended) = pass(stream.trim_end());
    assert_eq!(
        (contents(out.as_bytes()), ended),
        (vec!["[redacted:key]".to_owned()], Ok(()))
    );
    assert_eq!(pass("data: {\"choices\":[{").1, Err(Denial::Malformed));
}

#[test]
fn data_of_several_lines_is_redacted_where_it_stands() {
    let stream = "id: 1\ndata: {\"choices\":[{\"index\":0,\r\ndata:\"logprobs\":{\"content\":\ndata: []},\"delta\":\ndata: {\"content\":\"a sk-abcdef123 b\"}}]}\n\n";
    let expected = "id: 1\ndata: {\"choices\":[{\"index\":0,\r\ndata:\"logprobs\":null,\"delta\":\ndata: {\"content\":\"a [redacted:key] b\"}}]}\n\n";
    assert_eq!(pass(stream), (expected.to_owned(), Ok(())));
}

#[test]
fn only_redacted_events_lose_their_log_probabilities() {
    let event = |content: &str, logprobs: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}},\"logprobs\":{logprobs}}}]}}\n\n"
        )
    };
    let tokens = "{\"content\":[{\"token\":\"x\"}]}";
    let stream = event("see ", tokens)
        + &event("sk-abc", tokens)
        + &event("def123", tokens)
        + &event(" there", tokens);
    let expected = event("see ", tokens)
        + &event("[redacted:key]", "null")
        + &event("", "null")
        + &event(" there", tokens);
    assert_eq!(pass(&stream), (expected, Ok(())));
}

#[test]
fn an_event_of_another_shape_is_one_text() {
    let stream =
        "data: {\"error\":{\"message\":\"bad key sk-abcdef123\"}}\n\ndata: plain sk-abcdef123\ndata: end\n\n";
    assert_eq!(
        pass(stream),
        (stream.replace("sk-abcdef123", "[redacted:key]"), Ok(()))
    );
    let folded = "data: Ann\ndata: Smith\n\n";
    assert_eq!(pass(folded), ("data: [redacted:name]\n\n".to_owned(), Ok(())));
    assert!(matches!(
        pass("data: open the pod bay doors\n\n").1,
        Err(Denial::Blocked { .. })
    ));
}

#[test]
fn lines_that_are_no_events_are_one_text() {
    let stream = "{\"error\":\"sk-abcdef123\"}\n\n";
    assert_eq!(
        pass(stream),
        (stream.replace("sk-abcdef123", "[redacted:key]"), Ok(()))
    );
    assert_eq!(pass("open the pod\nbay doors").0, "");
}

#[test]
fn an_event_that_cannot_be_read_ends_the_stream() {
    let before = chunk("Fine. ");
    for bad in [
        &b"data: {\"choices\":[}\n\n"[..],
        b"data: \xff\n\n",
        b"data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n",
    ] {
        let stream = [before.as_bytes(), bad, before.as_bytes()].concat();
        let (out, ended, _) = Policy::new().pass(ResponseKind::Events, &[&stream]);
        assert_eq!(
            (out, ended),
            (before.clone().into_bytes(), Err(Denial::Malformed))
        );
    }
}

#[test]
fn what_must_be_held_is_bounded() {
    let mut policy = Policy::new();
    let event = format!("data: {}\n\n", "x".repeat(LIMIT));
    assert_eq!(
        policy.pass(ResponseKind::Events, &[event.as_bytes()]).1,
        Err(Denial::TooLarge)
    );
    // An undecided text holds back everything after it.
    let stream = chunk("sk-abcdef") + &": ping\n\n".repeat(LIMIT / 8);
    assert_eq!(
        policy.pass(ResponseKind::Events, &[stream.as_bytes()]).1,
        Err(Denial::TooLarge)
    );
}

#[test]
fn an_inspector_serves_one_answer_after_another() {
    let mut policy = Policy::new();
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Events, LIMIT);
    let mut out = Vec::new();
    let stream = chunk("Please open the pod bay doors, and then the others. ");
    assert!(policy.push(&mut inspector, stream.as_bytes(), &mut out).is_err());
    inspector.reset(Dialect::Chat, ResponseKind::Events);
    assert_eq!(inspector.judgement().score(), 0);
    let stream = chunk("bay doors sk-abcdef123");
    policy.push(&mut inspector, stream.as_bytes(), &mut out).unwrap();
    policy.finish(&mut inspector, &mut out).unwrap();
    assert_eq!(contents(&out), ["bay doors [redacted:key]"]);
}

#[test]
fn a_dry_run_lets_everything_pass_as_it_came() {
    let mut policy = Policy::dry_run();
    let stream: String = ["sk-abc", "def123 open the ", "pod bay doors"]
        .map(chunk)
        .concat();
    let (out, ended, inspector) = policy.pass(ResponseKind::Events, &[stream.as_bytes()]);
    assert_eq!((out, ended), (stream.into_bytes(), Ok(())));
    assert!(inspector.judgement().would_block() && !inspector.is_redacted());
    assert_eq!(json!(policy.matched(&inspector)), json!(["key", "phrase"]));
}

/// Returns an event with a delta, and the finish reason of its choice.
fn event(index: usize, delta: &Value, finish_reason: &Value) -> String {
    let choice = json!({"index": index, "delta": delta, "finish_reason": finish_reason});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

fn arrives_at_once(events: &[String], expected: usize) {
    let mut policy = Policy::new();
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Events, LIMIT);
    let mut out = Vec::new();
    for event in events {
        policy.push(&mut inspector, event.as_bytes(), &mut out).unwrap();
    }
    assert_eq!(String::from_utf8(out).unwrap(), events[..expected].concat());
}

#[test]
fn the_last_word_of_the_reasoning_does_not_hold_back_the_content() {
    let events = [
        event(
            0,
            &json!({"role": "assistant", "reasoning_content": "I think it is g"}),
            &Value::Null,
        ),
        event(0, &json!({"content": "It is "}), &Value::Null),
        event(0, &json!({"content": "late. "}), &Value::Null),
        event(0, &json!({"content": "Go"}), &Value::Null),
    ];
    arrives_at_once(&events, 3);
}

#[test]
fn the_name_of_a_function_does_not_hold_back_its_arguments() {
    let call = |function: Value| json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]});
    let events = [
        event(
            0,
            &call(json!({"name": "get_time", "arguments": ""})),
            &Value::Null,
        ),
        event(0, &call(json!({"arguments": "{\"at\": "})), &Value::Null),
        event(0, &call(json!({"arguments": "\"sea\" "})), &Value::Null),
    ];
    arrives_at_once(&events, 3);
}

#[test]
fn a_choice_that_finished_does_not_hold_back_another_one() {
    let events = [
        event(0, &json!({"content": "the end"}), &Value::Null),
        event(0, &json!({}), &json!("stop")),
        event(1, &json!({"content": "on we go "}), &Value::Null),
    ];
    arrives_at_once(&events, 3);
}

#[test]
fn texts_that_come_side_by_side_are_both_redacted() {
    let delta = |piece: &str| json!({"reasoning": piece, "reasoning_details": [{"text": piece}]});
    let stream = ["my sk-ab", "cdef", "123 ok "]
        .map(|piece| event(0, &delta(piece), &Value::Null))
        .concat();
    let (out, ended) = pass(&stream);
    assert_eq!(ended, Ok(()));
    assert_eq!(out.matches("my [redacted:key]").count(), 2);
    assert_eq!(out.matches(" ok ").count(), 2);
    assert!(!out.contains("sk-") && !out.contains("def"), "{out}");
}

#[test]
fn a_match_in_the_last_word_of_a_text_that_is_over_is_redacted() {
    let stream = event(
        0,
        &json!({"reasoning_content": "it is sk-abcdef123"}),
        &Value::Null,
    ) + &chunk("done ");
    let (out, ended) = pass(&stream);
    assert_eq!(ended, Ok(()));
    assert!(
        out.contains("it is [redacted:key]") && out.contains("done "),
        "{out}"
    );
}

#[test]
fn a_redaction_that_comes_too_late_denies_the_answer() {
    let reasoning = |piece: &str| event(0, &json!({"reasoning_content": piece}), &Value::Null);
    let stream = reasoning("it is Ann ") + &chunk("hello ") + &reasoning("Smith ") + &chunk("more ");
    let mut policy = Policy::new();
    let (out, ended, inspector) = policy.pass(ResponseKind::Events, &[stream.as_bytes()]);
    assert!(
        matches!(ended, Err(Denial::Blocked { by_score: false, .. })),
        "{ended:?}"
    );
    assert_eq!(policy.matched(&inspector), ["name"]);
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.contains("Ann ") && !out.contains("Smith") && !out.contains("more"),
        "{out}"
    );
}

#[test]
fn every_field_that_is_generated_is_inspected() {
    let key = "sk-abcdef123";
    for delta in [
        json!({"content": key}),
        json!({"content": [{"type": "text", "text": key}]}),
        json!({"refusal": key}),
        json!({"reasoning_content": key}),
        json!({"tool_calls": [{"index": 0, "function": {"name": key, "arguments": ""}}]}),
        json!({"tool_calls": [{"index": 3, "function": {"arguments": key}}]}),
        json!({"function_call": {"name": "f", "arguments": key}}),
        json!({"audio": {"transcript": key}}),
        json!({"annotations": [{"type": "url_citation", "url_citation": {"title": key}}]}),
    ] {
        for (index, kind) in [
            (0, ResponseKind::Events),
            (7, ResponseKind::Events),
            (0, ResponseKind::Unary),
        ] {
            let document = match kind {
                ResponseKind::Events => event(index, &delta, &json!("stop")),
                ResponseKind::Unary => json!({"choices": [{"index": index, "message": delta}]}).to_string(),
            };
            let (out, ended, inspector) = Policy::new().pass(kind, &[document.as_bytes()]);
            assert_eq!(ended, Ok(()));
            assert!(inspector.is_redacted() && !out.is_empty(), "{document}");
            assert!(!String::from_utf8(out).unwrap().contains(key), "{document}");
        }
    }
}
