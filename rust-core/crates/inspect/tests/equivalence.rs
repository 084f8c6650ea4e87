//! A response has one outcome, whether it is whole or a stream, and however the stream is split.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;

use proofgate_inspect::{Denial, ResponseKind};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use support::{Policy, text};

/// The texts of a response: contents of two choices, and arguments of two tool calls of the first.
const TEXTS: usize = 4;

/// Writes a JSON string in which every character whose number is divisible by `every` is escaped.
fn written(text: &str, every: usize) -> String {
    let mut out = String::from("\"");
    for (index, character) in text.chars().enumerate() {
        if index % every == 0 || character < ' ' || matches!(character, '"' | '\\') {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04X}"));
            }
        } else {
            out.push(character);
        }
    }
    out + "\""
}

fn whole(texts: &[String], every: usize) -> String {
    let text = |index: usize| written(&texts[index], every);
    let call = |index: usize| {
        format!(
            r#"{{"id":"c","type":"function","function":{{"name":"f","arguments":{}}}}}"#,
            text(index)
        )
    };
    format!(
        r#"{{"choices":[{{"index":0,"message":{{"content":{},"tool_calls":[{},{}]}}}},{{"message":{{"content":{}}},"index":1}}]}}"#,
        text(0),
        call(2),
        call(3),
        text(1)
    )
}

/// Returns one event with a piece of one text.
fn event(index: usize, piece: &str, every: usize, end: &str) -> String {
    let piece = written(piece, every);
    let choices = match index {
        0 => format!(r#"{{"index":0,"delta":{{"content":{piece}}}}}"#),
        1 => format!(r#"{{"delta":{{"content":{piece}}},"index":1}}"#),
        _ => {
            let call = index - 2;
            format!(
                r#"{{"index":0,"delta":{{"tool_calls":[{{"function":{{"arguments":{piece}}},"index":{call}}}]}}}}"#
            )
        }
    };
    format!("data: {{\"choices\":[{choices}]}}{end}{end}")
}

/// Splits the texts into events: `order` has the next text, and its number of characters. Texts of
/// the first choice come one after the other, as providers send them: if an earlier text is not
/// complete, it comes instead.
fn stream(texts: &[String], order: &[(usize, usize)], every: usize, end: &str) -> String {
    let mut rest: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
    let all = [0, 2, 3, 1].map(|index| (index, usize::MAX));
    let mut stream = String::new();
    for (index, length) in order.iter().copied().chain(all) {
        let current = [0, 2]
            .into_iter()
            .find(|index| !rest[*index].is_empty())
            .unwrap_or(3);
        let index = if index == 1 || length == usize::MAX {
            index
        } else {
            current
        };
        let length = length.min(rest[index].len());
        let piece: String = rest[index].drain(..length).collect();
        stream.push_str(&event(index, &piece, every, end));
    }
    stream + "data: [DONE]" + end + end
}

fn texts_of_whole(body: &[u8]) -> BTreeMap<usize, String> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let first = &body["choices"][0]["message"];
    let found = [
        &first["content"],
        &body["choices"][1]["message"]["content"],
        &first["tool_calls"][0]["function"]["arguments"],
        &first["tool_calls"][1]["function"]["arguments"],
    ];
    found
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .enumerate()
        .collect()
}

fn texts_of_stream(stream: &[u8]) -> BTreeMap<usize, String> {
    let mut texts: BTreeMap<usize, String> = (0..TEXTS).map(|index| (index, String::new())).collect();
    let stream = String::from_utf8(stream.to_vec()).unwrap();
    for data in stream
        .split(['\r', '\n'])
        .filter_map(|line| line.strip_prefix("data: "))
    {
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            continue;
        };
        let choice = &event["choices"][0];
        let call = &choice["delta"]["tool_calls"][0];
        let (index, text) = match &call["index"] {
            Value::Null => (
                choice["index"].as_u64().unwrap() as usize,
                &choice["delta"]["content"],
            ),
            call_index => (
                2 + call_index.as_u64().unwrap() as usize,
                &call["function"]["arguments"],
            ),
        };
        texts.get_mut(&index).unwrap().push_str(text.as_str().unwrap());
    }
    texts
}

proptest! {
    #[test]
    fn a_stream_has_the_outcome_of_the_whole_answer(
        texts in prop::collection::vec(text(), TEXTS),
        order in prop::collection::vec((0..TEXTS, 0usize..9), 0..24),
        every in prop::sample::select(vec![1usize, 3, 1000]),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
        enforced in any::<bool>(),
    ) {
        let mut policy = if enforced { Policy::new() } else { Policy::dry_run() };
        let body = whole(&texts, every);
        let (answer, ended, inspector) = policy.pass(ResponseKind::Unary, &[body.as_bytes()]);

        let stream = stream(&texts, &order, every, end);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.push(stream.len());
        cuts.sort_unstable();
        let mut start = 0;
        let pieces: Vec<&[u8]> = cuts.iter().map(|&cut| { let piece = &stream.as_bytes()[start..cut]; start = cut; piece }).collect();
        let (streamed, stream_ended, stream_inspector) = policy.pass(ResponseKind::Events, &pieces);

        match ended {
            Ok(()) => {
                prop_assert_eq!(stream_ended, Ok(()));
                prop_assert_eq!(texts_of_stream(&streamed), texts_of_whole(&answer));
                prop_assert_eq!(policy.matched(&stream_inspector), policy.matched(&inspector));
                prop_assert_eq!(stream_inspector.judgement().score(), inspector.judgement().score());
                prop_assert_eq!(stream_inspector.judgement().would_block(), inspector.judgement().would_block());
                prop_assert_eq!(stream_inspector.is_redacted(), inspector.is_redacted());
                if !inspector.is_redacted() {
                    prop_assert_eq!(&answer, body.as_bytes());
                    prop_assert_eq!(&streamed, stream.as_bytes());
                }
            }
            Err(Denial::Blocked { .. }) => {
                prop_assert!(matches!(stream_ended, Err(Denial::Blocked { .. })), "{:?}", stream_ended);
                prop_assert!(answer.is_empty());
                // Splits between reads change nothing, not even how far a denied stream came.
                let (again, again_ended, _) = policy.pass(ResponseKind::Events, &[stream.as_bytes()]);
                prop_assert_eq!((again, again_ended), (streamed, stream_ended));
            }
            Err(stop) => prop_assert!(false, "{:?}", stop),
        }
    }

    #[test]
    fn any_bytes_are_inspected_or_refused(
        tokens in prop::collection::vec(prop_oneof![
            prop::sample::select(vec!["data: ", "{\"choices\":[", "{\"delta\":{\"content\":\"", "sk-abcdef123", "\"}}", "]}", "\n\n", "\n", "\r", "[DONE]", ":"])
                .prop_map(|token| token.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..4),
        ], 0..20),
    ) {
        let stream = tokens.concat();
        let mut policy = Policy::new();
        for kind in [ResponseKind::Events, ResponseKind::Unary] {
            let (whole, ended, _) = policy.pass(kind, &[&stream]);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            let (cut, cut_ended, inspector) = policy.pass(kind, &bytes);
            prop_assert_eq!((&whole, ended), (&cut, cut_ended));
            if ended.is_ok() && !inspector.is_redacted() {
                prop_assert_eq!(&whole, &stream);
            }
        }
    }
}

#[test]
fn a_dragon_is_flagged_in_the_whole_answer_and_in_the_stream() {
    let texts = ["a dra", "", "", ""].map(str::to_owned);
    let mut policy = Policy::new();
    let texts_with_dragon = [
        texts[0].clone() + "gon",
        String::new(),
        String::new(),
        String::new(),
    ];
    let body = whole(&texts_with_dragon, 1000);
    let (_, _, inspector) = policy.pass(ResponseKind::Unary, &[body.as_bytes()]);
    let stream = stream(&texts_with_dragon, &[(0, 5)], 1000, "\n");
    let (_, _, streamed) = policy.pass(ResponseKind::Events, &[stream.as_bytes()]);
    assert_eq!(json!(policy.matched(&inspector)), json!(["dragon"]));
    assert_eq!(policy.matched(&streamed), policy.matched(&inspector));
}
