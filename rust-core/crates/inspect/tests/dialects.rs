//! In every dialect a response has one outcome, whether it is whole or a stream, and however the stream is split; and a
//! repetition of a text in an event is redacted like the text.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{Denial, ResponseKind};
use proofgate_providers::Dialect;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use support::{Policy, events, named_event, text};

/// Number of texts in a response.
const TEXTS: usize = 3;

/// Splits a text into pieces of these lengths in characters, and a rest.
fn pieces(text: &str, lengths: &[usize]) -> Vec<String> {
    let mut rest: Vec<char> = text.chars().collect();
    let mut pieces: Vec<String> = lengths
        .iter()
        .map(|length| rest.drain(..(*length).min(rest.len())).collect())
        .collect();
    pieces.push(rest.into_iter().collect());
    pieces
}

fn message(texts: &[String]) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [
        {"type": "thinking", "thinking": texts[0], "signature": "EqQB"},
        {"type": "text", "text": texts[1]},
        {"type": "text", "text": texts[2]}]})
}

fn texts_of_message(message: &Value) -> Vec<String> {
    let blocks = message["content"].as_array().unwrap();
    let texts = blocks
        .iter()
        .map(|block| block.get("text").unwrap_or(&block["thinking"]));
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn messages_stream(texts: &[String], lengths: &[usize]) -> String {
    let blocks = [
        (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            "thinking",
        ),
        (json!({"type": "text", "text": ""}), "text"),
        (
            json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}),
            "partial_json",
        ),
    ];
    let mut stream =
        named_event(&json!({"type": "message_start", "message": {"type": "message", "content": []}}));
    for (index, (block, field)) in blocks.iter().enumerate() {
        stream +=
            &named_event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
        for piece in pieces(&texts[index], lengths) {
            let kind = if *field == "partial_json" {
                "input_json"
            } else {
                *field
            };
            let delta = json!({"type": format!("{kind}_delta"), *field: piece});
            stream += &named_event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        stream += &named_event(&json!({"type": "content_block_stop", "index": index}));
    }
    stream
        + &named_event(&json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}))
        + &named_event(&json!({"type": "message_stop"}))
}

/// Returns the texts that the deltas of a stream add up to.
fn texts_of_messages(stream: &[u8]) -> Vec<Vec<String>> {
    let mut texts = vec![String::new(); TEXTS];
    for event in events(stream) {
        let delta = &event["delta"];
        for field in ["thinking", "text", "partial_json"] {
            let piece = delta[field].as_str().unwrap_or_default();
            texts[event["index"].as_u64().unwrap_or(0) as usize].push_str(piece);
        }
    }
    vec![texts]
}

fn items(texts: &[String]) -> [Value; TEXTS] {
    [
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "summary": [{"type": "summary_text", "text": texts[0]}]}),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": texts[1], "annotations": []}]}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": texts[2]}),
    ]
}

fn text_of_item(item: &Value) -> String {
    let found = [
        &item["summary"][0]["text"],
        &item["content"][0]["text"],
        &item["arguments"],
    ];
    found.iter().find_map(|text| text.as_str()).unwrap().to_owned()
}

fn response(texts: &[String]) -> Value {
    json!({"id": "resp_1", "object": "response", "instructions": "open the pod bay doors", "output": items(texts), "tools": []})
}

fn texts_of_response(response: &Value) -> Vec<String> {
    let items = response["output"].as_array().unwrap();
    items.iter().map(text_of_item).collect()
}

fn responses_stream(texts: &[String], lengths: &[usize]) -> String {
    let families = ["reasoning_summary_text", "output_text", "function_call_arguments"];
    let mut stream = named_event(
        &json!({"type": "response.created", "response": response(&[const { String::new() }; TEXTS])}),
    );
    for (index, (family, item)) in families.iter().zip(items(texts)).enumerate() {
        let field = if index == 2 { "arguments" } else { "text" };
        for piece in pieces(&texts[index], lengths) {
            stream += &named_event(
                &json!({"type": format!("response.{family}.delta"), "output_index": index, "delta": piece}),
            );
        }
        let done = format!("response.{family}.done");
        stream += &named_event(&json!({"type": done, "output_index": index, field: texts[index]}));
        stream +=
            &named_event(&json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    stream + &named_event(&json!({"type": "response.completed", "response": response(texts)}))
}

/// Returns the texts that the deltas of a stream add up to, and each of their repetitions.
fn texts_of_responses(stream: &[u8]) -> Vec<Vec<String>> {
    let empty = || vec![String::new(); TEXTS];
    let (mut deltas, mut done, mut items, mut whole) = (empty(), empty(), empty(), empty());
    for event in events(stream) {
        let index = event["output_index"].as_u64().unwrap_or(0) as usize;
        deltas[index].push_str(event["delta"].as_str().unwrap_or_default());
        for field in ["text", "arguments"] {
            done[index].push_str(event[field].as_str().unwrap_or_default());
        }
        if event["item"].is_object() {
            items[index] = text_of_item(&event["item"]);
        }
        if event["type"] == "response.completed" {
            whole = texts_of_response(&event["response"]);
        }
    }
    vec![deltas, done, items, whole]
}

/// Functions that write and read a dialect's responses.
struct Wire {
    dialect: Dialect,
    whole: fn(&[String]) -> Value,
    texts_of_whole: fn(&Value) -> Vec<String>,
    stream: fn(&[String], &[usize]) -> String,
    texts_of_stream: fn(&[u8]) -> Vec<Vec<String>>,
}

const WIRES: [Wire; 2] = [
    Wire {
        dialect: Dialect::Messages,
        whole: message,
        texts_of_whole: texts_of_message,
        stream: messages_stream,
        texts_of_stream: texts_of_messages,
    },
    Wire {
        dialect: Dialect::Responses,
        whole: response,
        texts_of_whole: texts_of_response,
        stream: responses_stream,
        texts_of_stream: texts_of_responses,
    },
];

fn cut<'s>(stream: &'s str, cuts: &[Index]) -> Vec<&'s [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    cuts.push(stream.len());
    cuts.sort_unstable();
    let mut start = 0;
    cuts.iter()
        .map(|&cut| {
            let piece = &stream.as_bytes()[start..cut];
            start = cut;
            piece
        })
        .collect()
}

proptest! {
    #[test]
    fn a_stream_has_the_outcome_of_the_whole_answer(
        texts in prop::collection::vec(text(), TEXTS),
        lengths in prop::collection::vec(0usize..9, 0..8),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
        enforced in any::<bool>(),
    ) {
        for Wire { dialect, whole, texts_of_whole, stream, texts_of_stream } in WIRES {
            let mut policy = if enforced { Policy::new() } else { Policy::dry_run() };
            let body = whole(&texts).to_string();
            let (answer, ended, inspector) = policy.pass_as(dialect, ResponseKind::Unary, &[body.as_bytes()]);
            let stream = stream(&texts, &lengths);
            let (streamed, stream_ended, stream_inspector) =
                policy.pass_as(dialect, ResponseKind::Events, &cut(&stream, &cuts));
            match ended {
                Ok(()) => {
                    prop_assert_eq!(stream_ended, Ok(()));
                    let expected = texts_of_whole(&serde_json::from_slice(&answer).unwrap());
                    for texts in texts_of_stream(&streamed) {
                        prop_assert_eq!(&texts, &expected);
                    }
                    prop_assert_eq!(policy.matched(&stream_inspector), policy.matched(&inspector));
                    prop_assert_eq!(stream_inspector.judgement().score(), inspector.judgement().score());
                    prop_assert_eq!(stream_inspector.is_redacted(), inspector.is_redacted());
                    if !inspector.is_redacted() {
                        prop_assert_eq!(&answer, body.as_bytes());
                        prop_assert_eq!(&streamed, stream.as_bytes());
                    }
                }
                Err(Denial::Blocked { .. }) => {
                    prop_assert!(matches!(stream_ended, Err(Denial::Blocked { .. })), "{:?}", stream_ended);
                    prop_assert!(answer.is_empty());
                    let (again, again_ended, _) = policy.pass_as(dialect, ResponseKind::Events, &[stream.as_bytes()]);
                    prop_assert_eq!((again, again_ended), (streamed, stream_ended));
                }
                Err(stop) => prop_assert!(false, "{:?}", stop),
            }
        }
    }

    #[test]
    fn any_bytes_are_inspected_or_refused(
        tokens in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "data: ", "{\"type\":\"content_block_delta\",\"delta\":{\"text\":\"", "{\"type\":\"response.output_text.delta\",\"delta\":\"",
                "{\"object\":\"response\",\"output\":[{\"text\":\"", "{\"content\":[{\"text\":\"", "sk-abcdef123", "\"}}", "\"}", "\"}]}", "\n\n", "\n", "\r", "[DONE]", ":",
            ])
            .prop_map(|token| token.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..4),
        ], 0..20),
    ) {
        let stream = tokens.concat();
        let mut policy = Policy::new();
        for dialect in [Dialect::Messages, Dialect::Responses, Dialect::Embeddings, Dialect::Moderations, Dialect::CountTokens, Dialect::Images, Dialect::Speech, Dialect::GeminiEmbeddings] {
            for kind in [ResponseKind::Events, ResponseKind::Unary] {
                let (whole, ended, _) = policy.pass_as(dialect, kind, &[&stream]);
                let bytes: Vec<&[u8]> = stream.chunks(1).collect();
                let (cut, cut_ended, inspector) = policy.pass_as(dialect, kind, &bytes);
                prop_assert_eq!((&whole, ended), (&cut, cut_ended));
                if ended.is_ok() && !inspector.is_redacted() {
                    prop_assert_eq!(&whole, &stream);
                }
            }
        }
    }
}
