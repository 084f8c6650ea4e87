//! Streamed answers, as the client receives them.

use super::*;

fn call(index: &str, id: &str, name: &str, arguments: &str) -> String {
    let arguments = Value::from(arguments);
    format!(
        r#"{{"tool_calls":[{{"index":{index},"id":{id},"function":{{"name":{name},"arguments":{arguments}}}}}]}}"#
    )
}

#[test]
fn the_message_starts_at_once_with_an_estimate_that_the_end_corrects() {
    let mut stream = Stream::new(&asked(), ESTIMATE);
    let mut out = Vec::new();
    let first = br#"{"id":"c1","choices":[{"delta":{"role":"assistant","content":""}}]}"#;
    assert_eq!(
        stream.push_event("", first, &mut out),
        Ok(StreamStatus::InProgress)
    );
    let events = events(std::str::from_utf8(&out).unwrap());
    assert_eq!(events.len(), 1);
    assert_eq!(
        json(events[0].1.as_bytes())["message"]["usage"]["input_tokens"],
        ESTIMATE
    );
}

// ai-gateway#2352, litellm#41067, #31069, vercel/ai#17326
#[test]
fn input_is_never_reported_as_nothing() {
    let received = receive(&chunks(&[r#"{"content":"some text"}"#], "stop"));
    assert_eq!(
        received.of_type("message_delta")[0]["usage"]["input_tokens"],
        ESTIMATE
    );
    assert_eq!(received.of_type("message_delta")[0]["usage"]["output_tokens"], 3);
    assert_eq!(received.usage, None);
}

// bifrost#3638, #6123, litellm#34692
#[test]
fn an_answer_of_calls_has_no_empty_text_and_ends_with_tool_use() {
    let call = call("0", r#""t""#, r#""f""#, "{}");
    let received = receive(&chunks(&[r#"{"role":"assistant","content":""}"#, &call], "stop"));
    assert_eq!(received.blocks().len(), 1);
    assert_eq!(received.stop_reason(), "tool_use");
}

// praxis-proxy/ai#266
#[test]
fn fragments_that_alternate_go_to_their_own_blocks() {
    let deltas = [
        call("0", r#""a""#, r#""f""#, ""),
        call("1", r#""b""#, r#""g""#, r#"{"b":"#),
        call("0", "null", "null", r#"{"a":"#),
        call("1", "null", "null", "2}"),
        call("0", "null", "null", "1}"),
    ];
    let received = receive(&chunks(&deltas.each_ref().map(|delta| &delta[..]), "tool_calls"));
    let blocks = received.blocks();
    assert_eq!(
        (&blocks[0].0["id"], &blocks[0].1[..]),
        (&Value::from("a"), r#"{"a":1}"#)
    );
    assert_eq!(
        (&blocks[1].0["id"], &blocks[1].1[..]),
        (&Value::from("b"), r#"{"b":2}"#)
    );
}

// BerriAI/litellm#5231, maximhq/bifrost#1961
#[test]
fn whole_calls_of_one_index_are_calls_of_their_own() {
    for index in ["0", "null"] {
        let deltas = [
            call(index, r#""a""#, r#""f""#, r#"{"n":1}"#),
            call(index, r#""b""#, r#""f""#, r#"{"n":2}"#),
            call(index, "null", r#""f""#, r#"{"n":3}"#),
        ];
        let received = receive(&chunks(&deltas.each_ref().map(|delta| &delta[..]), "tool_calls"));
        let blocks = received.blocks();
        assert_eq!(
            blocks.iter().map(|block| &block.1[..]).collect::<Vec<_>>(),
            [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]
        );
        assert_eq!(blocks[2].0["id"], "c1_2");
    }
}

/// The names in the chunks of one call, the first of them with its id; the arguments follow.
const NAMES_OF_CALLS: [&[&str]; 7] = [
    &[r#""read_file""#],
    &[r#""read""#, r#""_file""#],
    &[r#""read_file""#, r#""""#, "null"],
    &[r#""""#, r#""read_file""#],
    &["null", r#""read_""#, r#""""#, r#""file""#],
    &[r#""read_file""#, r#""read_file""#, r#""read_file""#],
    &[r#""read""#, r#""read_file""#],
];

// NousResearch/hermes-agent#8259, open-webui#22235, vercel/ai#16507, tontinton/maki#785
#[test]
fn a_name_that_comes_in_pieces_or_again_is_one_name() {
    for names in NAMES_OF_CALLS {
        for repeats in [false, true] {
            let id = |at| if at == 0 || repeats { r#""t""# } else { "null" };
            let mut deltas: Vec<String> = names
                .iter()
                .enumerate()
                .map(|(at, name)| call("0", id(at), name, ""))
                .collect();
            let last = if repeats { r#""read_file""# } else { r#""""# };
            deltas.push(call("0", id(1), last, r#"{"a":"#));
            deltas.push(call("0", id(1), last, "1}"));
            let received = receive(&chunks(
                &deltas.iter().map(|delta| &delta[..]).collect::<Vec<_>>(),
                "tool_calls",
            ));
            let blocks = received.blocks();
            assert_eq!(blocks.len(), 1, "{names:?}");
            let told = (&blocks[0].0["id"], &blocks[0].0["name"], &blocks[0].1[..]);
            assert_eq!(
                told,
                (&Value::from("t"), &Value::from("read_file"), r#"{"a":1}"#),
                "{names:?}"
            );
        }
    }
    // A call without arguments, followed by another one.
    let deltas = [
        call("0", r#""a""#, r#""read""#, ""),
        call("0", "null", r#""_file""#, ""),
        call("1", r#""b""#, r#""f""#, "{}"),
    ];
    let received = receive(&chunks(&deltas.each_ref().map(|delta| &delta[..]), "tool_calls"));
    let names: Vec<_> = received
        .blocks()
        .iter()
        .map(|block| block.0["name"].clone())
        .collect();
    assert_eq!(names, ["read_file", "f"]);
}

// litellm#18238, #25836
#[test]
fn a_chunk_with_text_and_a_call_loses_neither() {
    let delta = r#"{"content":"Let me look.","tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]}"#;
    let blocks = receive(&chunks(&[delta, r#"{"content":"Done."}"#], "stop")).blocks();
    assert_eq!(
        blocks.iter().map(|block| &block.1[..]).collect::<Vec<_>>(),
        ["Let me look.", "{}", "Done."]
    );
}

// vercel/ai#14847, litellm#19028
#[test]
fn a_truncated_call_is_an_error_and_one_without_arguments_is_none() {
    let received = receive(&chunks(
        &[&call("0", r#""t""#, r#""f""#, r#"{"a":"#)],
        "tool_calls",
    ));
    assert!(received.last.is_err());
    assert_eq!(received.of_type("error").len(), 1);
    assert!(received.of_type("message_delta").is_empty());
    for arguments in ["", "null"] {
        let received = receive(&chunks(
            &[&call("0", r#""t""#, r#""f""#, arguments)],
            "tool_calls",
        ));
        assert_eq!(received.last, Ok(StreamStatus::Finished));
        assert_eq!(received.blocks()[0].1, "");
    }
}

#[test]
fn a_call_waits_for_its_id_and_gets_one_if_none_comes() {
    let nameless = r#"{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}"#;
    let late = r#"{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"}"}}]}"#;
    let blocks = receive(&chunks(&[nameless, late], "stop")).blocks();
    assert_eq!((&blocks[0].0["id"], &blocks[0].1[..]), (&Value::from("t"), "{}"));
    let blocks = receive(&chunks(&[&call("0", "null", r#""f""#, "{}")], "stop")).blocks();
    assert_eq!(blocks[0].0["id"], "c1_0");
    assert!(receive(&chunks(&[nameless], "stop")).last.is_err());
}

// bifrost#2786
#[test]
fn a_held_call_keeps_the_stream_alive() {
    let deltas = [
        call("0", r#""a""#, r#""f""#, r#"{"#),
        call("1", r#""b""#, r#""g""#, r#"{"b":"#),
        call("1", "null", "null", "2}"),
        call("0", "null", "null", "}"),
    ];
    let received = receive(&chunks(&deltas.each_ref().map(|delta| &delta[..]), "tool_calls"));
    assert_eq!(received.of_type("ping").len(), 2);
}

#[test]
fn more_than_may_be_held_is_too_large() {
    let long = "x".repeat(1 << 18);
    let mut deltas = vec![call("0", r#""a""#, r#""f""#, "{")];
    deltas.extend((0..5).map(|_| call("1", r#""b""#, r#""g""#, &format!("{{\"{long}"))));
    let deltas: Vec<_> = deltas.iter().map(|delta| &delta[..]).collect();
    assert_eq!(
        receive(&chunks(&deltas, "stop")).last,
        Err(ResponseError::TooLarge)
    );
    let mut mixed = vec![call("0", r#""a""#, r#""f""#, "{")];
    mixed.extend((0..150).flat_map(|_| [r#"{"content":"a"}"#.to_owned(), r#"{"reasoning":"b"}"#.to_owned()]));
    let mixed: Vec<_> = mixed.iter().map(|delta| &delta[..]).collect();
    assert_eq!(
        receive(&chunks(&mixed, "stop")).last,
        Err(ResponseError::TooLarge)
    );
    let many: Vec<_> = (0..200)
        .map(|at| call(&at.to_string(), r#""a""#, r#""f""#, "{}"))
        .collect();
    let many: Vec<_> = many.iter().map(|delta| &delta[..]).collect();
    assert_eq!(receive(&chunks(&many, "stop")).last, Err(ResponseError::TooLarge));
}

#[test]
fn the_open_block_may_be_of_any_length() {
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(3 << 20));
    assert_eq!(
        receive(&chunks(&[&long, &long], "stop")).last,
        Ok(StreamStatus::Finished)
    );
}

// litellm#39703, #32086, #20347, #4562
#[test]
fn a_failure_is_one_error_and_no_end() {
    let error = "data: {\"error\":{\"message\":\"m\",\"code\":500}}\n\ndata: {\"error\":{\"message\":\"n\"}}\n\ndata: [DONE]\n\n";
    let begun = chunks(&[r#"{"content":"a"}"#], "stop").replace("data: [DONE]\n\n", error);
    let received = receive(&begun);
    assert_eq!(received.last, Ok(StreamStatus::Failed));
    assert_eq!(received.of_type("error").len(), 1);
    assert!(received.of_type("message_delta").is_empty());
    assert!(received.of_type("message_stop").is_empty());
    assert_eq!(received.end, Err(ResponseError::Failed("ended early")));
    assert_eq!(receive(error).of_type("message_start").len(), 0);
}

// Wei-Shaw/sub2api#1471
#[test]
fn an_error_stands_between_events() {
    let text =
        receive("data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choi\n\n")
            .text;
    assert!(text.contains("\n\nevent: error\n"));
    assert!(text.ends_with("}}\n\n"));
}

#[test]
fn an_answer_without_its_good_end_failed() {
    let whole = chunks(&[r#"{"content":"a"}"#], "stop");
    let without_done = receive(whole.trim_end_matches("data: [DONE]\n\n"));
    assert_eq!(without_done.end, Err(ResponseError::Failed("ended early")));
    assert_eq!(without_done.of_type("error").len(), 1);
    let without_reason = receive("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n");
    assert_eq!(without_reason.last, Err(ResponseError::Failed("ended early")));
    assert_eq!(without_reason.of_type("error").len(), 1);
    assert_eq!(receive("").of_type("error").len(), 1);
}

#[test]
fn a_reason_and_a_usage_in_every_chunk_do_not_end_the_answer() {
    let chunk = |text: &str, output: u64| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{output}}}}}\n\n"
        )
    };
    let received = receive(&(chunk("a", 1) + &chunk("b", 2) + &chunk("c", 3) + "data: [DONE]\n\n"));
    assert_eq!(received.blocks()[0].1, "abc");
    assert_eq!(received.of_type("message_delta")[0]["usage"]["output_tokens"], 3);
    assert_eq!(received.usage.unwrap().input, 7);
}

// ROCm/ATOM#1711, OmniRoute#9750, Portkey-AI/gateway#1338, envoyproxy/ai-gateway#2279
#[test]
fn usage_counts_once_wherever_it_stands() {
    let usage = r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#;
    let places = [
        format!(r#"{{"usage":{usage}}}"#),
        format!(r#"{{"choices":[],"usage":{usage}}}"#),
        format!(r#"{{"choices":null,"usage":{usage}}}"#),
        format!(r#"{{"choices":[{{"delta":{{}}}}],"usage":{usage}}}"#),
        format!(r#"{{"choices":[{{"delta":null}}],"x_groq":{{"usage":{usage}}},"usage":null}}"#),
        format!(r#"{{"choices":[],"x_groq":{{"usage":{usage}}},"usage":{usage}}}"#),
    ];
    for place in places {
        let end = format!("data: {place}\n\ndata: [DONE]\n\n");
        let received = receive(&chunks(&[r#"{"content":"a"}"#], "stop").replace("data: [DONE]\n\n", &end));
        let usage = Usage {
            input: 7,
            output: 3,
            ..Usage::default()
        };
        assert_eq!(received.usage, Some(usage), "{place}");
        assert_eq!(received.of_type("message_delta")[0]["usage"]["output_tokens"], 3);
    }
}

#[test]
fn errors_of_kin_are_errors() {
    for error in [
        r#"{"error":{"message":"m","type":"server_error"}}"#,
        r#"{"error":"m","error_type":"overloaded"}"#,
        r#"{"object":"error","message":"m","code":503}"#,
        r#"{"x_groq":{"error":"m"},"choices":[]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"message":"m"}}]}"#,
    ] {
        let received = receive(&format!("data: {error}\n\n"));
        assert_eq!(received.last, Ok(StreamStatus::Failed), "{error}");
        assert_eq!(received.of_type("error")[0]["error"]["message"], "m");
    }
    assert_eq!(
        receive("event: error\ndata: oops\n\n").last,
        Ok(StreamStatus::Failed)
    );
    let null = receive(&chunks(&[r#"{"content":"a"},"error":null"#], "stop"));
    assert_eq!(null.last, Ok(StreamStatus::Finished));
}

// mnfst/llm-gateway#2053
#[test]
fn what_is_no_chunk_says_nothing() {
    let mut stream = Stream::new(&asked(), ESTIMATE);
    let mut out = Vec::new();
    assert_eq!(stream.push_event("", b"", &mut out), Ok(StreamStatus::InProgress));
    assert_eq!(
        stream.push_event("ping", b"now", &mut out),
        Ok(StreamStatus::InProgress)
    );
    assert!(out.is_empty());
}

#[test]
fn a_whole_message_counts_where_no_pieces_came() {
    let message = r#"data: {"id":"c1","choices":[{"message":{"content":"all"},"finish_reason":"stop"}]}"#;
    assert_eq!(
        receive(&format!("{message}\n\ndata: [DONE]\n\n")).blocks()[0].1,
        "all"
    );
    let pieces = chunks(&[r#"{"content":"al"}"#, r#"{"content":"l"}"#], "stop");
    let repeated = pieces.replace("data: [DONE]", &format!("{message}\n\ndata: [DONE]"));
    let blocks = receive(&repeated).blocks();
    assert_eq!((blocks.len(), &blocks[0].1[..]), (1, "all"));
}

#[test]
fn a_message_waits_for_the_id_that_azures_first_chunk_lacks() {
    let filters = "data: {\"id\":\"\",\"choices\":[],\"prompt_filter_results\":[]}\n\n";
    let received = receive(&(filters.to_owned() + &chunks(&[r#"{"content":"a"}"#], "stop")));
    assert_eq!(received.of_type("message_start")[0]["message"]["id"], "c1");
}

#[test]
fn encrypted_reasoning_ends_a_block_of_thinking_with_its_signature() {
    let received = receive(&chunks(
        &[
            r#"{"reasoning_content":"a","reasoning_details":[{"type":"reasoning.summary","index":0,"summary":"a"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"id":"rs_1","data":"E1"}]}"#,
            r#"{"reasoning_content":"b"}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","index":3,"id":"rs_2","data":"E2"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","index":4,"id":"rs_3","data":"E3"}]}"#,
            r#"{"content":"so"}"#,
        ],
        "stop",
    ));
    assert_eq!(received.end, Ok(()));
    let starts = received.of_type("content_block_start");
    let kinds: Vec<_> = starts
        .iter()
        .map(|start| start["content_block"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["thinking", "thinking", "thinking", "text"]);
    let signatures: Vec<_> = received
        .of_type("content_block_delta")
        .into_iter()
        .filter(|delta| delta["delta"]["type"] == "signature_delta")
        .map(|delta| delta["index"].clone())
        .collect();
    assert_eq!(signatures, [0, 1, 2]);
}

#[test]
fn encrypted_reasoning_is_held_within_the_bound() {
    let data = "E".repeat(1 << 20);
    let delta = format!(r#"{{"reasoning_details":[{{"type":"reasoning.encrypted","data":"{data}"}}]}}"#);
    let received = receive(&chunks(&[&delta], "stop"));
    assert_eq!(received.last, Err(ResponseError::TooLarge));
}
