//! Streamed answers.

use super::*;

fn text(text: &str) -> Value {
    json!({"content": text})
}

fn begin(index: u64, id: &str, name: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]})
}

fn arguments(index: u64, fragment: &str) -> Value {
    json!({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
}

#[test]
fn a_text_is_told_in_the_order_of_openais_events() {
    let received = receive(
        &chunks(
            &[
                json!({"role": "assistant", "content": ""}),
                text("Hel"),
                text("lo"),
            ],
            "stop",
        ),
        &asked(),
    );
    assert_eq!(received.last, Ok(StreamStatus::Finished));
    assert_eq!(
        received.types(),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for event in received.events().iter().skip(3).take(5) {
        assert_eq!(
            (&event["item_id"], &event["output_index"], &event["content_index"]),
            (&json!("msg_chatcmpl-1_0"), &json!(0), &json!(0))
        );
    }
    assert_eq!(received.of_type("response.output_text.done")[0]["text"], "Hello");
    let response = received.response();
    assert_eq!(response["status"], "completed");
    assert_eq!(
        response["usage"],
        json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15})
    );
    assert_eq!(received.usage.unwrap().cache_read, 4);
    assert_eq!(
        received.output()[0],
        received.of_type("response.output_item.done")[0]["item"]
    );
    assert_eq!(received.events()[0]["response"]["output"], json!([]));
}

#[test]
fn thinking_is_a_summary_with_a_part_for_each_block() {
    let detail = |detail: Value| json!({"reasoning_details": [detail]});
    let deltas = [
        json!({"reasoning_content": "a", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}]}),
        json!({"reasoning_content": "b", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b"}]}),
        detail(json!({"type": "reasoning.text", "index": 0, "signature": "S1"})),
        detail(json!({"type": "reasoning.encrypted", "index": 1, "data": "D"})),
        json!({"reasoning_content": "c", "reasoning_details": [{"type": "reasoning.text", "index": 2, "text": "c", "signature": "S2"}]}),
        text("So."),
    ];
    let received = receive(&chunks(&deltas, "stop"), &asked());
    let part = [
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
    ];
    let types = received.types();
    assert_eq!(
        types[2..9],
        [
            "response.output_item.added",
            part[0],
            part[1],
            part[1],
            part[2],
            part[3],
            part[0]
        ]
    );
    assert_eq!(types[9..12], [part[1], part[2], part[3]]);
    let output = received.output();
    let texts: Vec<&Value> = output[0]["summary"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["text"])
        .collect();
    assert_eq!(texts, ["ab", "c"]);
    assert_eq!(
        output[0]["encrypted_content"],
        r#"proofgate-1:{"details":[{"type":"reasoning.text","index":0,"summary":0,"signature":"S1"},{"type":"reasoning.encrypted","index":1,"data":"D"},{"type":"reasoning.text","index":2,"summary":1,"signature":"S2"}]}"#
    );
}

#[test]
fn calls_that_come_one_beside_another_are_told_apart() {
    let deltas = [
        text("Look."),
        begin(0, "c1", "f"),
        begin(1, "c2", "g"),
        arguments(1, "{\"b\""),
        arguments(0, "{\"a\":"),
        arguments(1, ":2}"),
        arguments(0, "1}"),
    ];
    let received = receive(&chunks(&deltas, "tool_calls"), &asked());
    let output = received.output();
    assert_eq!(output[1]["arguments"], "{\"a\":1}");
    assert_eq!(output[2]["arguments"], "{\"b\":2}");
    for (index, item) in output.iter().enumerate() {
        let of_item = |event: &&Value| event["output_index"] == index;
        let events = received.events();
        for event in events
            .iter()
            .filter(of_item)
            .filter(|event| event.get("item_id").is_some())
        {
            assert_eq!(event["item_id"], item["id"]);
        }
        let deltas: String = events
            .iter()
            .filter(of_item)
            .filter_map(|event| event["delta"].as_str().map(str::to_owned))
            .collect();
        let said = item["arguments"].as_str().unwrap_or("Look.");
        assert_eq!(deltas, said);
    }
    assert_eq!(received.of_type("response.function_call_arguments.done").len(), 2);
}

// NousResearch/hermes-agent#8259, open-webui#22235, vercel/ai#16507, tontinton/maki#785
#[test]
fn a_name_that_comes_in_pieces_or_again_is_one_name() {
    let asked = asked_with(json!([{"type": "custom", "name": "apply_patch"}]));
    let say = |name: Value, arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"name": name, "arguments": arguments}}]});
    for (tool, input) in [("read_file", "{\"input\":\"a\"}"), ("apply_patch", "a")] {
        let (begun, rest) = tool.split_at(5);
        for names in [
            vec![json!(tool)],
            vec![json!(begun), json!(rest)],
            vec![json!(tool), json!(""), Value::Null],
            vec![json!(""), json!(tool)],
            vec![Value::Null, json!(begun), json!(""), json!(rest)],
            vec![json!(tool), json!(tool)],
            vec![json!(begun), json!(tool)],
        ] {
            let mut deltas = vec![begin(0, "c1", "")];
            deltas.extend(names.iter().map(|name| say(name.clone(), "")));
            deltas.push(say(json!(tool), "{\"input\":"));
            deltas.push(say(json!(""), "\"a\"}"));
            let output = receive(&chunks(&deltas, "tool_calls"), &asked).output();
            assert_eq!(output.len(), 1, "{names:?}");
            let item = &output[0];
            let given = item.get("arguments").or(item.get("input")).unwrap();
            assert_eq!((&item["name"], given), (&json!(tool), &json!(input)), "{names:?}");
        }
    }
}

#[test]
fn items_are_told_in_their_order_also_where_a_call_has_no_arguments_yet() {
    let deltas = [
        begin(0, "c1", "f"),
        text("So."),
        begin(1, "c2", "g"),
        begin(2, "c3", "h"),
        arguments(2, "{}"),
        arguments(0, "{}"),
    ];
    let received = receive(&chunks(&deltas, "tool_calls"), &asked());
    let added = received.of_type("response.output_item.added");
    let indexes: Vec<_> = added.iter().map(|event| event["output_index"].clone()).collect();
    assert_eq!(indexes, [0, 1, 2, 3]);
    let names: Vec<_> = added.iter().map(|event| event["item"]["name"].clone()).collect();
    assert_eq!(names, [json!("f"), Value::Null, json!("g"), json!("h")]);
}

#[test]
fn a_custom_tool_is_told_its_text() {
    let asked = asked_with(json!([{"type": "custom", "name": "apply_patch"}]));
    let deltas = [
        begin(0, "c1", "apply_patch"),
        arguments(0, "{\"input\":\"a\\"),
        arguments(0, "nb\"}"),
    ];
    let received = receive(&chunks(&deltas, "tool_calls"), &asked);
    assert_eq!(
        received.types()[2..6],
        [
            "response.output_item.added",
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done",
            "response.output_item.done"
        ]
    );
    assert_eq!(
        received.of_type("response.custom_tool_call_input.delta")[0]["delta"],
        "a\nb"
    );
    assert_eq!(received.output()[0]["input"], "a\nb");
}

#[test]
fn what_is_cut_is_incomplete() {
    let received = receive(
        &chunks(
            &[text("So"), begin(0, "c", "f"), arguments(0, "{\"a\"")],
            "length",
        ),
        &asked(),
    );
    assert_eq!(received.last, Ok(StreamStatus::Finished));
    assert_eq!(received.types().last().unwrap(), "response.incomplete");
    let response = received.response();
    assert_eq!(
        response["incomplete_details"],
        json!({"reason": "max_output_tokens"})
    );
    assert_eq!(response["output"][1]["status"], "incomplete");
    let received = receive(
        &chunks(&[text("So"), json!({"refusal": "No."})], "content_filter"),
        &asked(),
    );
    assert_eq!(received.response()["output"][0]["status"], "incomplete");
    assert_eq!(
        received.types()[6..12],
        [
            "response.content_part.done",
            "response.content_part.added",
            "response.refusal.delta",
            "response.refusal.done",
            "response.content_part.done",
            "response.output_item.done",
        ]
    );
}

#[test]
fn a_body_that_ended_well_is_whole_without_done() {
    let mut data = chunks(&[text("Hi")], "stop");
    data.pop();
    assert_eq!(receive(&data, &asked()).last, Ok(StreamStatus::Finished));
    data.truncate(1);
    let received = receive(&data, &asked());
    assert!(received.last.is_err());
    assert_eq!(received.types().last().unwrap(), "response.failed");
    assert_eq!(received.response()["status"], "failed");
}

#[test]
fn a_failure_in_the_middle_is_told_with_its_code() {
    for (error, code) in [
        (
            json!({"message": "slow \"down\"", "type": "rate_limit_error"}),
            "rate_limit_exceeded",
        ),
        (
            json!({"message": "slow \"down\"", "code": "context_length_exceeded"}),
            "context_length_exceeded",
        ),
        (
            json!({"message": "slow \"down\"", "code": 529}),
            "server_is_overloaded",
        ),
        (
            json!({"message": "slow \"down\"", "type": "api_error"}),
            "server_error",
        ),
    ] {
        let data = [
            chunks(&[text("Hi")], "stop")[0].clone(),
            json!({"error": error}).to_string(),
        ];
        let received = receive(&data, &asked());
        assert_eq!(received.last, Ok(StreamStatus::Failed));
        let failed = received.response();
        assert_eq!(failed["error"], json!({"code": code, "message": "slow \"down\""}));
    }
    let received = receive(
        &[json!({"error": {"message": "no", "code": 401}}).to_string()],
        &asked(),
    );
    assert_eq!(received.types(), ["error"]);
    assert_eq!(
        received.events()[0]["message"],
        "The provider stopped with an error."
    );
}

#[test]
fn what_is_kept_of_an_answer_is_bounded() {
    let piece = "x".repeat(1 << 20);
    let received = receive(&chunks(&vec![text(&piece); 9], "stop"), &asked());
    assert_eq!(received.last, Err(ResponseError::TooLarge));
    assert_eq!(received.types().last().unwrap(), "response.failed");
    let calls: Vec<Value> = (0..129)
        .map(|index| begin(index, &format!("c{index}"), "f"))
        .collect();
    assert_eq!(
        receive(&chunks(&calls, "tool_calls"), &asked()).last,
        Err(ResponseError::TooLarge)
    );
}

#[test]
fn signatures_that_stand_alone_have_an_item() {
    let extra = json!({"google": {"thought_signature": "G="}});
    let deltas = [
        text("Look."),
        json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}]}),
        json!({"content": null, "extra_content": extra}),
    ];
    let output = receive(&chunks(&deltas, "tool_calls"), &asked()).output();
    let types: Vec<&str> = output.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["message", "reasoning", "function_call", "reasoning"]);
    let mut items = output;
    items.push(json!({"type": "function_call_output", "call_id": "c1", "output": "done"}));
    let sent = sent(&with(Value::Array(items), json!({})));
    assert_eq!(sent["messages"][0]["extra_content"], extra);
    assert_eq!(sent["messages"][0]["tool_calls"][0]["extra_content"], extra);
}

#[test]
fn a_picture_is_the_result_of_a_call_and_the_user_shows_it_later() {
    let images = json!([{"type": "image_url", "image_url": {"url": PIXEL}}]);
    let received = receive(
        &chunks(
            &[text("Here."), json!({"content": null, "images": images})],
            "stop",
        ),
        &asked(),
    );
    let output = received.output();
    let data = PIXEL.split_once(',').unwrap().1;
    assert_eq!(
        output[1],
        json!({"id": "ig_chatcmpl-1_1", "type": "image_generation_call", "status": "completed", "output_format": "png", "result": data})
    );
    assert_eq!(
        received.of_type("response.image_generation_call.completed").len(),
        1
    );
    let mut items = output;
    items.push(json!({"role": "user", "content": "smaller"}));
    let sent = sent(&with(Value::Array(items), json!({})));
    assert_eq!(
        sent["messages"][1],
        json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]})
    );
}
