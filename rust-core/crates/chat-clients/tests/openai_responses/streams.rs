use super::*;

fn begun() -> Value {
    json!({"type": "response.created", "response": {"id": "resp_1", "created_at": 5, "status": "in_progress", "output": []}})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": response(json!([]), json!({}))})
}

#[test]
fn a_stream_is_its_chunks_and_its_usage() {
    let got = streamed(&events_of(&response(json!([message("Hello")]), json!({}))));
    assert_eq!((got.last, got.end), (Ok(StreamStatus::Finished), Ok(())));
    assert_eq!(got.joined("content"), "Hello");
    let chunks = got.chunks();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["id"] == "resp_1" && chunk["created"] == 1_760_000_000)
    );
    let last = &chunks[chunks.len() - 1];
    assert_eq!(
        (&last["choices"], &last["usage"]["total_tokens"]),
        (&json!([]), &json!(42))
    );
    assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "stop");
    assert!(got.text.ends_with("data: [DONE]\n\n"));
    assert_eq!(got.usage.map(|usage| usage.cache_read), Some(20));
}

/// The parts of a chat completion that streams and whole answers share.
fn whole(deltas: &Streamed) -> Value {
    let (mut calls, mut details) = (Vec::<Value>::new(), Vec::<Value>::new());
    for delta in deltas.deltas() {
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let at = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
            if at == calls.len() {
                let mut call = piece.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
                continue;
            }
            for (kind, argument) in [("function", "arguments"), ("custom", "input")] {
                if let Some(more) = piece[kind][argument].as_str() {
                    let before = calls[at][kind][argument].as_str().unwrap();
                    calls[at][kind][argument] = json!(format!("{before}{more}"));
                }
            }
        }
        for piece in delta["reasoning_details"].as_array().into_iter().flatten() {
            match details.last_mut().filter(|last| last["index"] == piece["index"]) {
                Some(last) => {
                    let text = format!(
                        "{}{}",
                        last["summary"].as_str().unwrap(),
                        piece["summary"].as_str().unwrap()
                    );
                    last["summary"] = json!(text);
                }
                None => details.push(piece.clone()),
            }
        }
    }
    json!({"content": deltas.joined("content"), "refusal": deltas.joined("refusal"),
        "reasoning_content": deltas.joined("reasoning_content"), "tool_calls": calls, "reasoning_details": details})
}

#[test]
fn a_stream_says_what_the_whole_answer_says() {
    let refused = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No \u{1f600}"}]});
    let custom = json!({"type": "custom_tool_call", "call_id": "c3", "name": "g", "input": "x\ny"});
    for output in [
        json!([
            reasoning("rs_1", &["one", "two"], "E"),
            message("a"),
            reasoning("rs_2", &["three"], "F"),
            message("b"),
            call("c1", "f", "{\"a\":[1]}"),
            call("c2", "f", "{}"),
            custom
        ]),
        json!([reasoning("rs_1", &[], "E"), message("a")]),
        json!([refused]),
    ] {
        let body = response(output, json!({}));
        let got = streamed(&events_of(&body));
        let mut expected = received(&body).unwrap().0["choices"][0]["message"].clone();
        expected.as_object_mut().unwrap().remove("role");
        for (field, empty) in [
            ("content", json!("")),
            ("refusal", json!("")),
            ("reasoning_content", json!("")),
            ("tool_calls", json!([])),
            ("reasoning_details", json!([])),
        ] {
            if expected[field].is_null() {
                expected[field] = empty;
            }
        }
        assert_eq!(whole(&got), expected);
    }
}

#[test]
fn parallel_calls_may_come_interleaved() {
    let added = |index: u64, id: &str| json!({"type": "response.output_item.added", "output_index": index, "item": {"type": "function_call", "call_id": id, "name": "f", "arguments": ""}});
    let delta = |index: u64, text: &str| json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": text});
    let got = streamed(&[
        begun(),
        added(1, "a"),
        added(2, "b"),
        delta(2, "{\"b\":"),
        delta(1, "{\"a\":1"),
        delta(2, "2}"),
        delta(1, "}"),
        completed(),
    ]);
    assert_eq!(got.last, Ok(StreamStatus::Finished));
    let calls = &whole(&got)["tool_calls"];
    assert_eq!(calls[0]["function"]["arguments"], "{\"a\":1}");
    assert_eq!(calls[1]["function"]["arguments"], "{\"b\":2}");
    assert!(got.text.contains("\"finish_reason\":\"tool_calls\""));
}

#[test]
fn what_no_delta_brought_is_written_with_the_end_of_its_item() {
    let output = json!([
        reasoning("rs_1", &["one"], "E"),
        message("a"),
        call("c1", "f", "{\"a\":1}"),
        call("c2", "f", "")
    ]);
    let body = response(output, json!({}));
    let events = events_of(&body);
    let events: Vec<_> = events
        .into_iter()
        .filter(|event| !event["type"].as_str().unwrap().contains("delta"))
        .filter(|event| !event["type"].as_str().unwrap().contains("arguments"))
        .collect();
    let got = whole(&streamed(&events));
    assert_eq!(
        (&got["content"], &got["reasoning_content"]),
        (&json!("a"), &json!("one"))
    );
    assert_eq!(got["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
    assert_eq!(got["tool_calls"][1]["function"]["arguments"], "{}");
    assert_eq!(got["reasoning_details"].as_array().unwrap().len(), 2);
}

#[test]
fn a_stream_that_was_cut_says_why() {
    for (reason, expected) in [
        ("max_output_tokens", "length"),
        ("content_filter", "content_filter"),
    ] {
        let fields = json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
        let got = streamed(&events_of(&response(json!([call("c", "f", "{\"a")]), fields)));
        assert_eq!((&got.last, &got.end), (&Ok(StreamStatus::Finished), &Ok(())));
        assert!(got.text.contains(&format!("\"finish_reason\":\"{expected}\"")));
    }
    let got = streamed(&events_of(&response(json!([call("c", "f", "{\"a")]), json!({}))));
    assert!(
        matches!(got.last, Err(ResponseError::Malformed(_))),
        "{:?}",
        got.last
    );
}

#[test]
fn a_failure_ends_the_stream() {
    let failed = json!({"code": "rate_limit_exceeded", "message": "slow down"});
    let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null, "sequence_number": 3});
    let nested = json!({"type": "error", "error": {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "slow down"}});
    let of_response = json!({"type": "response.failed", "response": response(json!([]), json!({"status": "failed", "error": failed}))});
    for event in [flat, nested, of_response] {
        let got = streamed(&[begun(), event.clone()]);
        assert_eq!(got.last, Ok(StreamStatus::Failed), "{event}");
        assert!(got.end.is_err());
        let said = got.chunks().pop().unwrap();
        assert_eq!(
            said["error"],
            json!({"message": "slow down", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded"})
        );
        assert!(!got.text.contains("[DONE]"));
    }
}

#[test]
fn a_stream_without_its_end_is_an_error() {
    let mut events = events_of(&response(json!([message("Hello")]), json!({})));
    events.pop();
    let got = streamed(&events);
    assert_eq!(
        (got.last, got.end),
        (
            Ok(StreamStatus::InProgress),
            Err(ResponseError::Failed("ended early"))
        )
    );
    assert!(!got.text.contains("finish_reason\":\"stop"));
}

#[test]
fn unknown_events_and_a_trailing_mark_say_nothing() {
    let mut events = events_of(&response(json!([message("Hello")]), json!({})));
    let expected = streamed(&events).text;
    events.insert(
        2,
        json!({"type": "response.rate_limits", "output_index": "x", "delta": 3}),
    );
    events.insert(3, json!({"type": "keepalive", "sequence_number": 3}));
    events.insert(4, json!({"type": "response.output_item.added", "output_index": 9, "item": {"type": "web_search_call", "id": "w"}}));
    events.insert(
        5,
        json!({"type": "response.web_search_call.searching", "output_index": 9}),
    );
    events.push(json!({"type": "response.completed"}));
    let got = streamed(&events);
    assert_eq!(got.text, expected);
    let mut stream = Stream::new(&asked(), CREATED);
    let mut out = Vec::new();
    assert_eq!(
        stream.push_event("", b"[DONE]", &mut out),
        Ok(StreamStatus::InProgress)
    );
    assert!(out.is_empty());
}

#[test]
fn citations_and_probabilities_are_streamed() {
    let token = json!({"token": "a", "logprob": -0.5, "top_logprobs": []});
    let added = |index: u64| json!({"type": "response.output_item.added", "output_index": index, "item": {"type": "message", "content": []}});
    let delta = |index: u64, text: &str| json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text, "logprobs": [token]});
    let annotation =
        json!({"type": "url_citation", "start_index": 0, "end_index": 1, "title": "T", "url": "https://t"});
    let got = streamed(&[
        begun(),
        added(0),
        delta(0, "ab"),
        added(1),
        delta(1, "cd"),
        json!({"type": "response.output_text.annotation.added", "output_index": 1, "content_index": 0, "annotation": annotation}),
        completed(),
    ]);
    assert_eq!(got.joined("content"), "ab\n\ncd");
    assert!(
        got.chunks()
            .iter()
            .any(|chunk| chunk["choices"][0]["logprobs"]["content"] == json!([token]))
    );
    let cited = got
        .deltas()
        .into_iter()
        .find(|delta| delta.get("annotations").is_some())
        .unwrap();
    assert_eq!(cited["annotations"][0]["url_citation"]["start_index"], 4);
}

#[test]
fn what_makes_no_sense_is_an_error_and_what_is_too_much_is_not_kept() {
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "a"});
    assert!(matches!(
        streamed(std::slice::from_ref(&delta)).last,
        Err(ResponseError::Malformed(_))
    ));
    assert!(matches!(
        streamed(&[begun(), delta]).last,
        Err(ResponseError::Malformed(_))
    ));
    let broken = json!({"type": "response.output_text.delta", "output_index": 0, "delta": 3});
    assert!(matches!(
        streamed(&[begun(), broken]).last,
        Err(ResponseError::Malformed(_))
    ));
    let mut many = vec![begun()];
    many.extend((0..200).map(|index| json!({"type": "response.output_item.added", "output_index": index, "item": {"type": "message"}})));
    assert_eq!(streamed(&many).last, Err(ResponseError::TooLarge));
    let long = json!({"type": "response.created", "response": {"id": "x".repeat(1000)}});
    assert_eq!(streamed(&[long]).last, Err(ResponseError::TooLarge));
}
