//! Values that a policy masked in a request are restored in a streamed response, however the stream is split.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_inspect::{Denial, Masks, ReadBuffers, ResponseInspector, ResponseKind};
use proofgate_providers::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{LIMIT, Policy, chunk, contents, events, named_event};

const PAIRS: [(&str, &str); 6] = [
    ("[A_1]", "ann@a.example"),
    ("[A_10]", "Grüße"),
    ("X", "y"),
    ("XX", "zebra"),
    ("aab", "1"),
    ("ü-ö", "é"),
];

/// Sends a stream through an inspector that restores masks; `policy`: its rules see the masks.
fn pass(
    policy: &mut Policy,
    dialect: Dialect,
    pairs: &[(&str, &str)],
    pieces: &[&[u8]],
) -> (Vec<u8>, Result<(), Denial>) {
    let Policy {
        engine,
        profile,
        scratch,
    } = policy;
    let mut inspector = ResponseInspector::new(dialect, ResponseKind::Events, LIMIT);
    inspector.set_masks(Masks::new(pairs.iter().copied()).unwrap());
    let (mut reading, mut out) = (ReadBuffers::default(), Vec::new());
    for piece in pieces {
        if let Err(denial) = inspector.push(engine, profile, scratch, &mut reading, piece, &mut out) {
            return (out, Err(denial));
        }
    }
    let ended = inspector.finish(engine, profile, scratch, &mut reading, &mut out);
    (out, ended)
}

/// Rules that find nothing.
fn idle() -> Policy {
    Policy::of(&json!({"rules": []}), None)
}

/// Returns the text with its masks restored: of those that begin at the same position, the longest.
fn unmasked(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let fitting = PAIRS.iter().filter(|(mask, _)| rest.starts_with(mask));
        match fitting.max_by_key(|(mask, _)| mask.len()) {
            Some((mask, original)) => {
                out.push_str(original);
                rest = &rest[mask.len()..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// A dialect, how its events carry a piece of a text, and where the text is in the event.
type Brings = (Dialect, fn(&str) -> String, &'static str);

const DIALECTS: [Brings; 7] = [
    (Dialect::Chat, |piece| chunk(piece), "/choices/0/delta/content"),
    (
        Dialect::Chat,
        |piece| {
            let call = json!({"index": 0, "function": {"arguments": piece}});
            format!(
                "data: {}\n\n",
                json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
            )
        },
        "/choices/0/delta/tool_calls/0/function/arguments",
    ),
    (
        Dialect::Messages,
        |piece| {
            named_event(
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}),
            )
        },
        "/delta/text",
    ),
    (
        Dialect::Messages,
        |piece| {
            named_event(
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}),
            )
        },
        "/delta/partial_json",
    ),
    (
        Dialect::Responses,
        |piece| {
            named_event(
                &json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "i", "delta": piece}),
            )
        },
        "/delta",
    ),
    (
        Dialect::Responses,
        |piece| {
            named_event(
                &json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "i", "delta": piece}),
            )
        },
        "/delta",
    ),
    (
        Dialect::Gemini,
        |piece| {
            let candidate = json!({"index": 0, "content": {"role": "model", "parts": [{"text": piece}]}});
            format!("data: {}\n\n", json!({"candidates": [candidate]}))
        },
        "/candidates/0/content/parts/0/text",
    ),
];

proptest! {
    #[test]
    fn a_mask_is_put_back_however_the_stream_cuts_it(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "[A_1]", "[A_10]", "[A_", "1", "0]", "]", "X", "XX", "aab", "a", "ü-ö", "ü", "-", " ", "\"", "\\", "{\"k\":\"", "\n", "é",
        ]), 0..16),
        cuts in prop::collection::vec(1usize..4, 0..60),
        (dialect, brings, place) in prop::sample::select(DIALECTS.to_vec()),
        bytes in 1usize..200,
    ) {
        let text = tokens.concat();
        let (mut stream, mut rest) = (String::new(), text.chars().collect::<Vec<_>>());
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let piece: String = rest.drain(..cut.min(rest.len())).collect();
            stream.push_str(&brings(&piece));
        }
        let pieces: Vec<&[u8]> = stream.as_bytes().chunks(bytes).collect();
        let (out, ended) = pass(&mut idle(), dialect, &PAIRS, &pieces);
        prop_assert_eq!(ended, Ok(()));
        let arrived = events(&out);
        let arrived: String = arrived.iter().map(|event| event.pointer(place).unwrap().as_str().unwrap()).collect();
        prop_assert_eq!(arrived, unmasked(&text));
    }
}

#[test]
fn only_what_may_be_the_beginning_of_a_mask_is_held_and_not_longer_than_it_may() {
    let mut policy = idle();
    let Policy {
        engine,
        profile,
        scratch,
    } = &mut policy;
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Events, LIMIT);
    inspector.set_masks(Masks::new(PAIRS.into_iter()).unwrap());
    let mut arrived = |piece: &str| {
        let mut out = Vec::new();
        let reading = &mut ReadBuffers::default();
        inspector
            .push(
                engine,
                profile,
                scratch,
                reading,
                chunk(piece).as_bytes(),
                &mut out,
            )
            .unwrap();
        contents(&out)
    };
    assert_eq!(arrived("Hello "), ["Hello "]);
    assert_eq!(arrived("[A"), [""; 0]);
    assert_eq!(arrived("_1"), [""; 0], "it may be either of two");
    assert_eq!(arrived("]."), ["ann@a.example", "", "."]);
    assert_eq!(arrived("see [A"), [""; 0]);
    assert_eq!(arrived(" b"), ["see [A", " b"], "it was none");
}

#[test]
fn an_event_without_a_mask_leaves_byte_for_byte_as_it_came() {
    let stream =
        ": hb\n\ndata:{ \"choices\" : [{\"index\":0,\"delta\":{\"content\":\"\\u0041nn [B\"}}]}\r\n\r\n"
            .to_owned()
            + "data: {\"usage\":{}}\n\ndata: [DONE]\n\n";
    let (out, ended) = pass(&mut idle(), Dialect::Chat, &PAIRS, &[stream.as_bytes()]);
    assert_eq!((String::from_utf8(out).unwrap(), ended), (stream, Ok(())));
}

#[test]
fn a_text_that_an_event_repeats_whole_has_its_masks_put_back_too() {
    let delta = |piece| {
        named_event(
            &json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "i", "delta": piece}),
        )
    };
    let done = named_event(
        &json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "item_id": "i", "text": "to [A_1]"}),
    );
    let stream = delta("to [A_") + &delta("1]") + &done;
    let (out, ended) = pass(&mut idle(), Dialect::Responses, &PAIRS, &[stream.as_bytes()]);
    assert_eq!(ended, Ok(()));
    let found: Vec<Value> = events(&out);
    assert_eq!(found[0]["delta"], "to ann@a.example");
    assert_eq!(found[1]["delta"], "");
    assert_eq!(found[2]["text"], "to ann@a.example");
}

#[test]
fn the_arguments_of_a_whole_call_stay_json() {
    let call = json!({"functionCall": {"name": "f", "args": {"to": "[A_1]", "X": 1}}});
    let stream = format!(
        "data: {}\n\n",
        json!({"candidates": [{"content": {"parts": [call]}}]})
    );
    let (out, ended) = pass(&mut idle(), Dialect::Gemini, &PAIRS, &[stream.as_bytes()]);
    assert_eq!(ended, Ok(()));
    let args = &events(&out)[0]["candidates"][0]["content"]["parts"][0]["functionCall"]["args"];
    assert_eq!(*args, json!({"to": "ann@a.example", "y": 1}));
}

#[test]
fn rules_see_the_mask_and_what_they_replace_a_part_of_stays_away() {
    let pairs = [("gold-1", "plain"), ("[A_1]", "ann smith")];
    let redact = json!({"rules": [
        {"id": "metal", "reason": "A metal.", "literals": ["gold"], "score": 1, "action": "Redact"},
        {"id": "name", "reason": "A name.", "literals": ["ann smith"], "score": 1, "action": "Redact"},
    ]});
    for cuts in 1..8 {
        let text = "a gold-1 by [A_1] ends";
        let stream: String = text
            .as_bytes()
            .chunks(cuts)
            .map(|piece| chunk(std::str::from_utf8(piece).unwrap()))
            .collect();
        let (out, ended) = pass(
            &mut Policy::of(&redact, None),
            Dialect::Chat,
            &pairs,
            &[stream.as_bytes()],
        );
        assert_eq!(ended, Ok(()));
        assert_eq!(contents(&out).concat(), "a [redacted:metal]-1 by ann smith ends");
    }
}

#[test]
fn a_stream_that_repeats_a_mask_grows_no_more_than_it_may() {
    let original = "x".repeat(1000);
    let stream = chunk("[A_1]").repeat(1000);
    let (out, ended) = pass(
        &mut idle(),
        Dialect::Chat,
        &[("[A_1]", &original)],
        &[stream.as_bytes()],
    );
    assert_eq!(ended, Ok(()));
    assert!(out.len() > stream.len() && out.len() <= stream.len() + 32 * 1024);
    assert_eq!(contents(&out).last().unwrap(), "[A_1]");
}

#[test]
fn what_json_would_have_to_escape_stays_masked() {
    assert!(Masks::new([("[A_1]", "two\nlines"), ("", "x")].into_iter()).is_none());
}
