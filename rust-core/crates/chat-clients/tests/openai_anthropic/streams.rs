use proofgate_chat_clients::openai_anthropic::Stream;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Usage};
use serde_json::{Value, json};

use super::{CREATED, asked, events, sent};

/// Returns the output for these events, and how the stream ended.
fn streamed(data: &[Value]) -> (String, Result<StreamStatus, ResponseError>, Option<Usage>) {
    let mut stream = Stream::new(&asked(), CREATED);
    let mut out = Vec::new();
    let mut step = Ok(StreamStatus::InProgress);
    for data in data {
        step = stream.push_event("", data.to_string().as_bytes(), &mut out);
        if step.is_err() {
            break;
        }
    }
    (String::from_utf8(out).unwrap(), step, stream.usage())
}

fn chunks(received: &str) -> Vec<Value> {
    let data = events(received).into_iter().filter(|(_, data)| *data != "[DONE]");
    data.map(|(_, data)| serde_json::from_str(data).expect("a chunk is JSON"))
        .collect()
}

fn begin() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 5, "output_tokens": 1}}})
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn call(index: u64, id: &str) -> Value {
    block(
        index,
        json!({"type": "tool_use", "id": id, "name": "f", "input": {}}),
    )
}

fn fragment(index: u64, json: &str) -> Value {
    let delta = json!({"type": "input_json_delta", "partial_json": json});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text(index: u64, text: &str) -> Value {
    let delta = json!({"type": "text_delta", "text": text});
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    [
        json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

/// The calls of a stream by their index: ids and arguments.
fn calls(received: &str) -> Vec<(String, String)> {
    let mut calls: Vec<(String, String)> = Vec::new();
    for chunk in chunks(received) {
        for call in chunk["choices"][0]["delta"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            calls.resize(calls.len().max(index + 1), <_>::default());
            calls[index].0 += call["id"].as_str().unwrap_or_default();
            calls[index].1 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
    }
    calls
}

fn finish_reason(received: &str) -> Value {
    let mut reasons = chunks(received)
        .into_iter()
        .map(|chunk| chunk["choices"][0]["finish_reason"].clone());
    reasons.rfind(|reason| !reason.is_null()).unwrap_or_default()
}

/// BerriAI/litellm#5231, maximhq/bifrost#1961.
#[test]
fn two_calls_behind_a_text_have_the_indexes_0_and_1() {
    let mut data = vec![
        begin(),
        block(0, json!({"type": "text", "text": ""})),
        text(0, "Hm"),
        stop(0),
    ];
    data.extend([call(1, "a"), fragment(1, "{\"x\":"), fragment(1, "1}"), stop(1)]);
    data.extend([call(2, "b"), fragment(2, "{}"), stop(2)]);
    data.extend(end("tool_use"));
    let (received, step, _) = streamed(&data);
    assert_eq!(step, Ok(StreamStatus::Finished));
    let expected = [
        ("a".to_owned(), "{\"x\":1}".to_owned()),
        ("b".to_owned(), "{}".to_owned()),
    ];
    assert_eq!(calls(&received), expected);
}

/// praxis-proxy/ai#266.
#[test]
fn fragments_of_two_open_calls_go_each_to_its_own() {
    let mut data = vec![begin(), call(0, "a"), call(1, "b")];
    data.extend([
        fragment(1, "{\"b\":"),
        fragment(0, "{\"a\":"),
        fragment(1, "2}"),
        fragment(0, "1}"),
    ]);
    data.extend([stop(0), stop(1)]);
    data.extend(end("tool_use"));
    let expected = [
        ("a".to_owned(), "{\"a\":1}".to_owned()),
        ("b".to_owned(), "{\"b\":2}".to_owned()),
    ];
    assert_eq!(calls(&streamed(&data).0), expected);
}

/// litellm#18238, #25836; maximhq/bifrost#3638, #6123.
#[test]
fn a_text_and_a_call_are_both_told_and_an_empty_text_is_not() {
    let mut data = vec![
        begin(),
        block(0, json!({"type": "text", "text": "A"})),
        text(0, ""),
        text(0, "B"),
        stop(0),
    ];
    data.extend([call(1, "a"), fragment(1, "{}"), stop(1)]);
    data.extend(end("tool_use"));
    let (received, ..) = streamed(&data);
    let content: Vec<Value> = chunks(&received)
        .into_iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"].get("content").cloned())
        .collect();
    // The first one is the chunk with the role.
    assert_eq!(content, ["", "A", "B"]);
    assert_eq!(calls(&received).len(), 1);
    assert_eq!(finish_reason(&received), "tool_calls");
}

/// vercel/ai#14847, litellm#19028.
#[test]
fn a_call_without_fragments_has_an_empty_object_and_a_cut_one_is_an_error() {
    let with = |fragments: &[Value]| {
        let mut data = vec![begin(), call(0, "a")];
        data.extend_from_slice(fragments);
        data.push(stop(0));
        data.extend(end("tool_use"));
        streamed(&data)
    };
    assert_eq!(calls(&with(&[]).0)[0].1, "{}");
    assert_eq!(calls(&with(&[fragment(0, "")]).0)[0].1, "{}");
    let (received, step, _) = with(&[fragment(0, "{\"a\": \"}")]);
    assert!(matches!(step, Err(ResponseError::Malformed(_))));
    assert_eq!(finish_reason(&received), Value::Null);
    assert!(!received.contains("[DONE]"));
}

#[test]
fn a_call_that_was_cut_before_its_arguments_does_not_look_like_one_without() {
    let mut data = vec![begin(), call(0, "a")];
    data.extend(end("max_tokens"));
    let (received, ..) = streamed(&data);
    assert_eq!(calls(&received)[0].1, "");
    assert_eq!(finish_reason(&received), "length");
}

#[test]
fn input_that_is_told_with_the_begin_of_a_call_is_not_lost_and_not_doubled() {
    let with = |fragments: &[Value]| {
        let mut data = vec![begin()];
        data.push(block(
            0,
            json!({"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}),
        ));
        data.extend_from_slice(fragments);
        data.push(stop(0));
        data.extend(end("tool_use"));
        calls(&streamed(&data).0)[0].1.clone()
    };
    assert_eq!(with(&[]), "{\"a\":1}");
    assert_eq!(with(&[fragment(0, "{\"a\":1}")]), "{\"a\":1}");
}

/// envoyproxy/ai-gateway#2279, PR#2236, #2290.
#[test]
fn later_usage_replaces_earlier_and_may_come_alone() {
    let delta =
        |usage: Value| json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
    let start = |usage: Value| json!({"type": "message_start", "message": {"id": "m", "usage": usage}});
    let both = [
        start(json!({"input_tokens": 20, "cache_read_input_tokens": 3, "output_tokens": 1})),
        delta(json!({"output_tokens": 4})),
        delta(json!({"input_tokens": 30, "output_tokens": 8})),
    ];
    let expected = Usage {
        input: 33,
        cache_read: 3,
        output: 8,
        ..Usage::default()
    };
    assert_eq!(streamed(&both).2, Some(expected));
    let alone = [
        start(Value::Null),
        delta(json!({"input_tokens": 30, "output_tokens": 8})),
    ];
    let expected = Usage {
        input: 30,
        output: 8,
        ..Usage::default()
    };
    assert_eq!(streamed(&alone).2, Some(expected));
}

/// litellm#39703, #32086, #20347, #4562, PR#32159; Wei-Shaw/sub2api#1471.
#[test]
fn a_failure_is_one_error_and_nothing_good_comes_behind_it() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let mut data = vec![begin(), error.clone(), error, text(0, "late")];
    data.extend(end("end_turn"));
    let (received, step, _) = streamed(&data);
    assert_eq!(step, Ok(StreamStatus::Failed));
    let events = events(&received);
    assert_eq!(events.len(), 2, "a chunk with the role, and the error");
    let error: Value = serde_json::from_str(events[1].1).unwrap();
    assert_eq!(error["error"]["message"], "Overloaded");
    assert_eq!(error["error"]["code"], "server_is_overloaded");
    assert!(!received.contains("[DONE]") && finish_reason(&received).is_null());
}

#[test]
fn an_error_that_is_not_made_like_one_fails_the_answer_still() {
    for (name, data) in [
        ("error", "<html>"),
        ("", r#"{"type":"error","message":"m"}"#),
        ("error", ""),
    ] {
        let (mut stream, mut out) = (Stream::new(&asked(), CREATED), Vec::new());
        assert_eq!(
            stream.push_event(name, data.as_bytes(), &mut out),
            Ok(StreamStatus::Failed)
        );
        assert!(out.starts_with(b"data: {\"error\":{\"message\":\""));
    }
}

/// litellm PR#28899, #40887.
#[test]
fn the_first_chunk_has_the_role() {
    let (received, ..) = streamed(&[begin()]);
    assert_eq!(chunks(&received)[0]["choices"][0]["delta"]["role"], "assistant");
}

/// maximhq/bifrost#5638, #6342.
#[test]
fn the_signature_stands_with_its_thinking() {
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let (received, ..) = streamed(&[
        begin(),
        block(0, thinking.clone()),
        delta(0, json!({"type": "thinking_delta", "thinking": "a"})),
        delta(0, json!({"type": "signature_delta", "signature": "s0"})),
        stop(0),
        block(1, json!({"type": "redacted_thinking", "data": "d"})),
        stop(1),
        block(2, thinking),
        delta(2, json!({"type": "signature_delta", "signature": "s2"})),
    ]);
    let details: Vec<Value> = chunks(&received)
        .into_iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["reasoning_details"].get(0).cloned())
        .collect();
    assert_eq!(
        details,
        [
            json!({"type": "reasoning.text", "index": 0, "text": "a"}),
            json!({"type": "reasoning.text", "index": 0, "signature": "s0"}),
            json!({"type": "reasoning.encrypted", "index": 1, "data": "d"}),
            json!({"type": "reasoning.text", "index": 2, "signature": "s2"}),
        ]
    );
}

/// maximhq/bifrost#5638, #6342.
#[test]
fn thinking_that_a_client_has_put_together_returns_byte_for_byte() {
    let stream = include_str!("../golden/openai_anthropic/stream_thinking_refused/received.sse");
    let fragments: Vec<Value> = chunks(stream)
        .into_iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["reasoning_details"].get(0).cloned())
        .collect();
    let join = |name: &str| {
        fragments
            .iter()
            .filter_map(|fragment| fragment[name].as_str())
            .collect::<String>()
    };
    let (thinking, signature) = (join("text"), join("signature"));
    let detail = json!({"type": "reasoning.text", "index": 0, "text": thinking, "signature": signature});
    for details in [vec![detail], fragments] {
        let message = json!({"role": "assistant", "content": "Hi", "reasoning_details": details});
        let sent = sent(&json!({"model": "gpt", "messages": [message]}));
        let block = json!({"type": "thinking", "thinking": thinking, "signature": signature});
        assert_eq!(sent["messages"][0]["content"][0], block);
    }
}

/// maximhq/bifrost#2786.
#[test]
fn each_fragment_of_a_long_input_is_told_at_once() {
    let mut stream = Stream::new(&asked(), CREATED);
    let mut out = Vec::new();
    for data in [begin(), call(0, "a")] {
        stream
            .push_event("", data.to_string().as_bytes(), &mut out)
            .unwrap();
    }
    for _ in 0..1000 {
        out.clear();
        stream
            .push_event("", fragment(0, "\"aaaa\",").to_string().as_bytes(), &mut out)
            .unwrap();
        assert!(!out.is_empty());
    }
}

#[test]
fn only_a_client_that_asks_for_usage_gets_it() {
    let mut data = vec![begin()];
    data.extend(end("end_turn"));
    let received = |include_usage| {
        let mut stream = Stream::new(
            &RequestContext {
                include_usage,
                ..asked()
            },
            CREATED,
        );
        let mut out = Vec::new();
        for data in &data {
            stream
                .push_event("", data.to_string().as_bytes(), &mut out)
                .unwrap();
        }
        chunks(&String::from_utf8(out).unwrap())
    };
    let with = received(true);
    assert_eq!(with.last().unwrap()["choices"], json!([]));
    assert_eq!(with.last().unwrap()["usage"]["total_tokens"], 14);
    assert!(
        with[..with.len() - 1]
            .iter()
            .all(|chunk| chunk.get("usage") == Some(&Value::Null))
    );
    assert!(received(false).iter().all(|chunk| chunk.get("usage").is_none()));
}

#[test]
fn a_stream_that_ends_before_its_end_has_failed() {
    let mut stream = Stream::new(&asked(), CREATED);
    let mut out = Vec::new();
    stream
        .push_event("", begin().to_string().as_bytes(), &mut out)
        .unwrap();
    assert_eq!(stream.finish(&mut out), Err(ResponseError::Failed("ended early")));
}

#[test]
fn what_is_not_known_is_passed_over() {
    let mut data = vec![json!({"type": "future", "delta": "text", "index": "x"}), begin()];
    data.extend([block(0, json!({"type": "future", "text": 1})), stop(0)]);
    data.push(block(1, json!({"type": "text", "text": ""})));
    data.push(json!({"type": "content_block_delta", "index": 1, "delta": {"type": "future", "text": {}}}));
    data.extend(end("a_new_reason"));
    let (received, step, _) = streamed(&data);
    assert_eq!(step, Ok(StreamStatus::Finished));
    assert_eq!(finish_reason(&received), "stop");
}

#[test]
fn more_open_blocks_than_are_kept_end_the_stream() {
    let mut data = vec![begin()];
    data.extend((0..65).map(|index| call(index, "a")));
    assert_eq!(streamed(&data).1, Err(ResponseError::TooLarge));
}
