//! Inspection of responses in OpenAI's Responses format.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{Denial, ResponseKind};
use proofgate_providers::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{Policy, events, named_event};

const KEY: &str = "sk-abcdef123";
const REDACTED: &str = "[redacted:key]";

fn pass(kind: ResponseKind, answer: &str) -> (String, Result<(), Denial>) {
    let (out, ended, _) = Policy::new().pass_as(Dialect::Responses, kind, &[answer.as_bytes()]);
    (String::from_utf8(out).unwrap(), ended)
}

fn event(kind: &str, fields: &Value) -> Value {
    let mut event = json!({"type": format!("response.{kind}"), "output_index": 0, "item_id": "item_1"});
    let fields = fields.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(fields);
    event
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [
        {"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
}

fn call(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": arguments})
}

fn response(item: &Value) -> Value {
    json!({"id": "resp_1", "object": "response", "instructions": "Say sk-ghijkl456", "output": [item], "tools": [], "metadata": {}})
}

/// Returns a streamed response with one message, whose text arrives in `pieces`.
fn stream(pieces: &[&str], text: &str) -> String {
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let deltas = pieces.iter().map(|piece| {
        event(
            "output_text.delta",
            &json!({"content_index": 0, "delta": piece, "logprobs": [], "obfuscation": "q7"}),
        )
    });
    let mut events = vec![event(
        "created",
        &json!({"response": {"object": "response", "output": []}}),
    )];
    events.push(event(
        "output_item.added",
        &json!({"item": {"type": "message", "content": []}}),
    ));
    events.extend(deltas);
    events.push(event(
        "output_text.done",
        &json!({"content_index": 0, "text": text, "logprobs": []}),
    ));
    events.push(event(
        "content_part.done",
        &json!({"content_index": 0, "part": part}),
    ));
    events.push(event("output_item.done", &json!({"item": message(text)})));
    events.push(event("completed", &json!({"response": response(&message(text))})));
    events.iter().map(named_event).collect()
}

#[test]
fn a_key_that_is_split_over_two_deltas_is_redacted_there_and_wherever_it_is_repeated() {
    let (out, ended) = pass(
        ResponseKind::Events,
        &stream(&["my sk-abc", "def123", " is it"], "my sk-abcdef123 is it"),
    );
    let expected = stream(&["my [redacted:key]", "", " is it"], "my [redacted:key] is it");
    assert_eq!((out, ended), (expected, Ok(())));
}

#[test]
fn every_kind_of_delta_is_redacted_across_two_events_and_in_its_repetition() {
    for (family, field) in [
        ("output_text", "text"),
        ("refusal", "refusal"),
        ("reasoning_text", "text"),
        ("reasoning_summary_text", "text"),
        ("function_call_arguments", "arguments"),
        ("custom_tool_call_input", "input"),
        ("mcp_call_arguments", "arguments"),
        ("code_interpreter_call_code", "code"),
        ("audio.transcript", "transcript"),
        ("unheard_of", "news"),
    ] {
        let events = |first: &str, second: &str, whole: &str| {
            [
                event(&format!("{family}.delta"), &json!({"delta": first})),
                event(&format!("{family}.delta"), &json!({"delta": second})),
                event(&format!("{family}.done"), &json!({field: whole})),
            ]
            .iter()
            .map(named_event)
            .collect::<String>()
        };
        let (out, ended) = pass(
            ResponseKind::Events,
            &events("a sk-abc", "def123", "a sk-abcdef123"),
        );
        let expected = events("a [redacted:key]", "", "a [redacted:key]");
        assert_eq!((out, ended), (expected, Ok(())), "{family}");
    }
}

#[test]
fn a_phrase_that_is_split_over_deltas_denies_the_answer() {
    let (out, ended) = pass(
        ResponseKind::Events,
        &stream(&["A story. ", "open the pod ", "bay doors"], ""),
    );
    assert!(matches!(ended, Err(Denial::Blocked { by_score: false, .. })));
    assert!(out.contains("A story. ") && !out.contains("open"), "{out}");
}

#[test]
fn a_phrase_that_only_a_repetition_holds_denies_the_answer() {
    let (out, ended) = pass(
        ResponseKind::Events,
        &stream(&["A story. "], "open the pod bay doors"),
    );
    assert!(matches!(ended, Err(Denial::Blocked { .. })));
    assert!(!out.contains("open"), "{out}");
}

#[test]
fn every_string_of_the_output_is_inspected() {
    for item in [
        message(KEY),
        json!({"type": "message", "content": [{"type": "refusal", "refusal": KEY}]}),
        json!({"type": "message", "content": [{"type": "output_text", "text": "", "annotations": [{"type": "url_citation", "title": KEY}]}]}),
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": KEY}]}),
        json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": KEY}]}),
        call(KEY),
        json!({"type": "function_call", "name": KEY}),
        json!({"type": "mcp_call", "arguments": "{}", "output": KEY}),
        json!({"type": "code_interpreter_call", "code": KEY, "outputs": [{"type": "logs", "logs": KEY}]}),
        json!({"type": "web_search_call", "action": {"type": "search", "query": KEY}}),
        json!({"type": "unheard_of", "deep": [{"deeper": KEY}]}),
    ] {
        let body = response(&item).to_string();
        assert_eq!(
            pass(ResponseKind::Unary, &body),
            (body.replace(KEY, REDACTED), Ok(()))
        );
        for event in [
            event("output_item.done", &json!({"item": item})),
            event("incomplete", &json!({"response": response(&item)})),
        ] {
            let stream = named_event(&event);
            assert_eq!(
                pass(ResponseKind::Events, &stream),
                (stream.replace(KEY, REDACTED), Ok(()))
            );
        }
    }
    let failed = json!({"object": "response", "status": "failed", "error": {"message": KEY}, "output": []})
        .to_string();
    assert_eq!(
        pass(ResponseKind::Unary, &failed),
        (failed.replace(KEY, REDACTED), Ok(()))
    );
    let helped = json!({"object": "response", "output": [], "output_text": KEY}).to_string();
    assert_eq!(
        pass(ResponseKind::Unary, &helped),
        (helped.replace(KEY, REDACTED), Ok(()))
    );
}

#[test]
fn what_a_response_repeats_of_its_request_passes_as_it_came() {
    let body = json!({"object": "response", "instructions": KEY, "output": [message("Hi")], "metadata": {"k": KEY}, "tools": [{"description": KEY}]}).to_string();
    assert_eq!(pass(ResponseKind::Unary, &body), (body.clone(), Ok(())));
}

#[test]
fn arguments_of_a_call_stay_json() {
    let arguments = r#"{"sk-abcdef1": 1, "sk-abcdef2": {"note": "a \"quoted\" sk-abcdef3\n"}}"#;
    let expected =
        json!({"[redacted:key]": 1, "[redacted:key]#2": {"note": "a \"quoted\" [redacted:key]\n"}});
    let of = |call: &Value| serde_json::from_str::<Value>(call["arguments"].as_str().unwrap()).unwrap();
    let (out, ended) = pass(ResponseKind::Unary, &response(&call(arguments)).to_string());
    assert_eq!(ended, Ok(()));
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(of(&out["output"][0]), expected);

    let stream: String = [
        event("function_call_arguments.done", &json!({"arguments": arguments})),
        event("output_item.done", &json!({"item": call(arguments)})),
        event("completed", &json!({"response": response(&call(arguments))})),
    ]
    .iter()
    .map(named_event)
    .collect();
    let (out, ended) = pass(ResponseKind::Events, &stream);
    assert_eq!(ended, Ok(()));
    let events = events(out.as_bytes());
    assert_eq!(of(&events[0]), expected);
    assert_eq!(of(&events[1]["item"]), expected);
    assert_eq!(of(&events[2]["response"]["output"][0]), expected);
}

#[test]
fn streamed_arguments_are_json_when_they_are_put_together() {
    let pieces = ["{\"key\": \"s", "k-abcd", "ef123\", \"n\": 1", "}"];
    let deltas =
        pieces.map(|piece| named_event(&event("function_call_arguments.delta", &json!({"delta": piece}))));
    let whole = named_event(&event(
        "function_call_arguments.done",
        &json!({"arguments": pieces.concat()}),
    ));
    let (out, ended) = pass(ResponseKind::Events, &(deltas.concat() + &whole));
    assert_eq!(ended, Ok(()));
    let events = events(out.as_bytes());
    let joined: String = events
        .iter()
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert_eq!(joined, "{\"key\": \"[redacted:key]\", \"n\": 1}");
    assert_eq!(events[4]["arguments"], joined);
}

#[test]
fn what_is_encrypted_and_the_names_of_the_api_pass_byte_for_byte() {
    let secret = "sk-abcdef123/\\u002b\\/==";
    let item = format!(
        r#"{{"id":"{secret}","call_id":"{secret}","type":"{secret}","encrypted_content":"{secret}","summary":[{{"text":"sk-abcdef123"}}]}}"#
    );
    let body = format!(r#"{{"id":"{secret}","object":"response","output":[{item}]}}"#);
    let redacted = |text: &str| text.replace("\"sk-abcdef123\"", "\"[redacted:key]\"");
    assert_eq!(pass(ResponseKind::Unary, &body), (redacted(&body), Ok(())));
    let event = format!(
        "data: {{\"type\":\"response.output_item.done\",\"item_id\":\"{secret}\",\"obfuscation\":\"{secret}\",\"item\":{item}}}\n\n"
    );
    assert_eq!(pass(ResponseKind::Events, &event), (redacted(&event), Ok(())));
}

#[test]
fn only_what_is_redacted_loses_its_log_probabilities() {
    let tokens = json!([{"token": "x", "bytes": [120], "logprob": -0.1, "top_logprobs": []}]);
    let delta = |text: &str, logprobs: &Value| {
        named_event(&event(
            "output_text.delta",
            &json!({"delta": text, "logprobs": logprobs}),
        ))
    };
    let part =
        |text: &str, logprobs: &Value| json!({"type": "output_text", "text": text, "logprobs": logprobs});
    let whole = |text: &str, logprobs: &Value| {
        [
            event("output_text.done", &json!({"text": text, "logprobs": logprobs})),
            event("content_part.done", &json!({"part": part(text, logprobs)})),
            event(
                "completed",
                &json!({"response": {"output": [{"content": [part(text, logprobs)]}]}}),
            ),
        ]
        .iter()
        .map(named_event)
        .collect::<String>()
    };
    let stream = delta("see ", &tokens)
        + &delta("sk-abc", &tokens)
        + &delta("def123", &tokens)
        + &whole("see sk-abcdef123", &tokens)
        + &whole("see there", &tokens);
    let none = json!([]);
    let expected = delta("see ", &tokens)
        + &delta(REDACTED, &none)
        + &delta("", &none)
        + &whole("see [redacted:key]", &none)
        + &whole("see there", &tokens);
    assert_eq!(pass(ResponseKind::Events, &stream), (expected, Ok(())));

    let body = |text: &str, logprobs: &Value| {
        json!({"object": "response", "output": [{"content": [part(text, logprobs)]}]}).to_string()
    };
    assert_eq!(
        pass(ResponseKind::Unary, &body(KEY, &tokens)),
        (body(REDACTED, &none), Ok(()))
    );
    let clean = body("see there", &tokens);
    assert_eq!(pass(ResponseKind::Unary, &clean), (clean.clone(), Ok(())));
}

#[test]
fn what_is_of_no_known_shape_is_one_text() {
    for document in [
        json!({"type": "error", "code": "server_error", "message": format!("bad {KEY}")}),
        json!({"type": "unheard_of", "news": [KEY]}),
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
fn items_that_come_side_by_side_are_both_redacted() {
    let delta = |item: usize, piece: &str| {
        named_event(
            &json!({"type": "response.function_call_arguments.delta", "output_index": item, "delta": piece}),
        )
    };
    let stream = delta(0, "sk-abc") + &delta(1, "sk-ghi") + &delta(0, "def123 ") + &delta(1, "jkl456 ");
    let expected = delta(0, REDACTED) + &delta(1, REDACTED) + &delta(0, " ") + &delta(1, " ");
    assert_eq!(pass(ResponseKind::Events, &stream), (expected, Ok(())));
}

#[test]
fn answers_without_generated_text_pass_and_their_errors_are_inspected() {
    for (dialect, answer) in [
        (
            Dialect::Embeddings,
            json!({"object": "list", "data": [{"embedding": [0.5], "index": 0}], "model": KEY}),
        ),
        (
            Dialect::Moderations,
            json!({"id": KEY, "results": [{"flagged": true}]}),
        ),
        (Dialect::CountTokens, json!({"input_tokens": 123_456_789})),
    ] {
        let body = answer.to_string();
        let (out, ended, _) = Policy::new().pass_as(dialect, ResponseKind::Unary, &[body.as_bytes()]);
        assert_eq!((out, ended), (body.into_bytes(), Ok(())));
        let error = json!({"error": {"message": KEY}}).to_string();
        let (out, ended, _) = Policy::new().pass_as(dialect, ResponseKind::Unary, &[error.as_bytes()]);
        assert_eq!((out, ended), (error.replace(KEY, REDACTED).into_bytes(), Ok(())));
    }
}

/// Parts of arguments: redacted text alone, in a key, across a key and its value, after an escape.
fn members() -> impl Strategy<Value = Vec<(String, Value)>> {
    let text = prop::sample::select(vec![
        KEY,
        "ann",
        "smith",
        "Ann Smith",
        "x \"y\"",
        "a\nb",
        "",
        "\u{e9}",
    ]);
    let texts = prop::collection::vec(text, 1..3).prop_map(|texts| texts.join(" "));
    let value = prop_oneof![
        texts.clone().prop_map(Value::from),
        Just(json!(17)),
        Just(json!(null)),
        texts.clone().prop_map(|text| json!({"deep": [text]})),
    ];
    prop::collection::vec((texts, value), 0..5)
}

proptest! {
    #[test]
    fn what_is_redacted_in_fragments_stands_in_no_event_that_repeats_them(
        members in members(),
        cuts in prop::collection::vec(1usize..9, 0..30),
    ) {
        let arguments = Value::Object(members.into_iter().collect()).to_string();
        let (mut rest, mut stream) = (arguments.chars().collect::<Vec<_>>(), String::new());
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let piece: String = rest.drain(..cut.min(rest.len())).collect();
            stream += &named_event(&event("function_call_arguments.delta", &json!({"delta": piece})));
        }
        for whole in [
            event("function_call_arguments.done", &json!({"arguments": arguments})),
            event("output_item.done", &json!({"item": call(&arguments)})),
            event("completed", &json!({"response": response(&call(&arguments))})),
        ] {
            stream += &named_event(&whole);
        }
        let (out, ended) = pass(ResponseKind::Events, &stream);
        prop_assert_eq!(ended, Ok(()));
        let events = events(out.as_bytes());
        let pieces: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
        let [.., done, item, completed] = &events[..] else { panic!("{events:?}") };
        let wholes = [&done["arguments"], &item["item"]["arguments"], &completed["response"]["output"][0]["arguments"]];
        for whole in wholes.map(|whole| whole.as_str().unwrap()) {
            prop_assert!(serde_json::from_str::<Value>(whole).unwrap().is_object());
            for text in [whole, &pieces] {
                let text = text.to_lowercase();
                prop_assert!(!text.contains(KEY) && !text.contains("ann smith"), "{}", text);
            }
        }
    }
}
