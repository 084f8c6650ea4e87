//! Generated text in a response, which has the same key in the events of a stream.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use proofgate_json::Workspace;
use proofgate_providers::{Dialect, DocumentKind, GeneratedText};
use proptest::prelude::*;

fn read(document: &str) -> (DocumentKind, Vec<(String, String)>) {
    let mut generated = GeneratedText::new();
    let shape = generated
        .read(Dialect::Chat, document.as_bytes(), &mut Workspace::new())
        .unwrap();
    let parts = generated.parts().iter().map(|part| {
        let mut key = String::new();
        generated.write_key(part, &mut key);
        (key, generated.value(part).to_owned())
    });
    (shape, parts.collect())
}

fn keyed(parts: &[(&str, &str)]) -> Vec<(String, String)> {
    parts
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn every_string_below_a_message_is_generated_but_role_type_and_id() {
    let answer = r#"{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[
        {"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"H\u0069","refusal":null,
          "tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"g","arguments":"[]"}}]}},
        {"message":{"content":[{"type":"text","text":"part"}]},"index":1},
        {"text":"legacy","index":2}],
        "usage":{"prompt_tokens":1}}"#;
    let expected = [
        ("0/content", "Hi"),
        ("0/tool_calls/0/function/name", "f"),
        ("0/tool_calls/0/function/arguments", "{}"),
        ("0/tool_calls/1/function/name", "g"),
        ("0/tool_calls/1/function/arguments", "[]"),
        ("1/content/0/text", "part"),
        ("2/text", "legacy"),
    ];
    assert_eq!(read(answer), (DocumentKind::Known, keyed(&expected)));
}

#[test]
fn arguments_that_are_an_object_can_have_any_name() {
    let answer =
        r#"{"choices":[{"message":{"function_call":{"name":"f","arguments":{"id":"a","role":"b"}}}}]}"#;
    let expected = [
        ("0/function_call/name", "f"),
        ("0/function_call/arguments/id", "a"),
        ("0/function_call/arguments/role", "b"),
    ];
    assert_eq!(read(answer), (DocumentKind::Known, keyed(&expected)));
}

#[test]
fn choices_that_finished_are_known_by_their_index() {
    let mut text = GeneratedText::new();
    let answer = br#"{"choices":[{"finish_reason":"stop","index":3},{"finish_reason":null,"index":1},{"delta":{"content":"x"},"index":2}]}"#;
    text.read(Dialect::Chat, answer, &mut Workspace::new()).unwrap();
    assert_eq!(text.finished().collect::<Vec<_>>(), [3]);
    assert_eq!(text.choice_index(&text.parts()[0]), 2);
}

#[test]
fn events_name_the_texts_that_a_whole_answer_names() {
    let cases = [
        (
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"H"}}]}"#,
            keyed(&[("0/content", "H")]),
        ),
        // The index may come after the content that it belongs to.
        (
            r#"{"choices":[{"delta":{"content":"x"},"index":3}]}"#,
            keyed(&[("3/content", "x")]),
        ),
        (
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"{"},"index":1}]}}]}"#,
            keyed(&[("0/tool_calls/1/function/arguments", "{")]),
        ),
        (
            r#"{"choices":[{"index":12,"text":"t"}]}"#,
            keyed(&[("12/text", "t")]),
        ),
        (r#"{"choices":[],"usage":{"prompt_tokens":1}}"#, vec![]),
        (
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            vec![],
        ),
    ];
    for (event, parts) in cases {
        assert_eq!(read(event), (DocumentKind::Known, parts), "{event}");
    }
}

#[test]
fn names_in_keys_cannot_be_mistaken_for_steps() {
    let event = r#"{"choices":[{"delta":{"a/b":"1","a":{"b":"2"},"~":"3","\u0063":"4"}}]}"#;
    let expected = [("0/a~1b", "1"), ("0/a/b", "2"), ("0/~0", "3"), ("0/c", "4")];
    assert_eq!(read(event).1, keyed(&expected));
}

#[test]
fn what_has_no_choices_has_another_shape() {
    for document in [
        r#"{"error":{"message":"no"}}"#,
        r#"{"choices":null}"#,
        "[]",
        "\"text\"",
        "7",
        r#"{"a":{"choices":[]}}"#,
    ] {
        assert_eq!(read(document), (DocumentKind::Other, vec![]), "{document}");
    }
}

#[test]
fn parts_and_logprobs_are_found_where_they_stand() {
    let event = r#"{"choices":[{"logprobs": {"content":[{"token":"\u0048i"}]} ,"delta":{"content":"\u0048i"}},{"logprobs":null}]}"#;
    let mut generated = GeneratedText::new();
    generated
        .read(Dialect::Chat, event.as_bytes(), &mut Workspace::new())
        .unwrap();
    let part = &generated.parts()[0];
    assert_eq!(&event[part.location.raw.clone()], r"\u0048i");
    assert!(part.location.has_escapes);
    let logprobs: Vec<&str> = generated
        .logprobs()
        .iter()
        .map(|range| &event[range.clone()])
        .collect();
    assert_eq!(logprobs, [r#" {"content":[{"token":"\u0048i"}]}"#]);
}

#[test]
fn broken_documents_are_refused() {
    let mut generated = GeneratedText::new();
    for document in [
        "",
        "{",
        r#"{"choices":[{]}"#,
        r#"{"choices":[]} x"#,
        r#"{"choices":[],"choices":[]}"#,
    ] {
        assert!(
            generated
                .read(Dialect::Chat, document.as_bytes(), &mut Workspace::new())
                .is_err(),
            "{document}"
        );
    }
}

proptest! {
    #[test]
    fn the_pieces_of_a_stream_add_up_to_the_whole_answer(pieces in prop::collection::vec((0u8..3, 0u8..3, "[a-z \u{e9}]{0,6}"), 0..20)) {
        let mut whole: BTreeMap<(u8, u8), String> = BTreeMap::new();
        let mut streamed: BTreeMap<String, String> = BTreeMap::new();
        for (choice, call, text) in &pieces {
            whole.entry((*choice, *call)).or_default().push_str(text);
            let event = format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"function":{{"arguments":"{text}"}},"index":{call}}}]}},"index":{choice}}}]}}"#);
            for (key, value) in read(&event).1 {
                streamed.entry(key).or_default().push_str(&value);
            }
        }
        let mut answer: BTreeMap<String, String> = BTreeMap::new();
        for choice in 0..3 {
            let calls: Vec<String> = (0..3).map(|call| {
                let text = whole.get(&(choice, call)).cloned().unwrap_or_default();
                format!(r#"{{"function":{{"arguments":"{text}"}}}}"#)
            }).collect();
            let document = format!(r#"{{"choices":[{{"message":{{"tool_calls":[{}]}},"index":{choice}}}]}}"#, calls.join(","));
            answer.extend(read(&document).1.into_iter().filter(|(_, value)| !value.is_empty()));
        }
        streamed.retain(|_, value| !value.is_empty());
        prop_assert_eq!(streamed, answer);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = GeneratedText::new().read(Dialect::Chat, &bytes, &mut Workspace::new());
    }
}

#[test]
fn what_is_noted_of_an_answer_of_many_parts_has_a_bound_and_is_given_back() {
    let (mut generated, mut workspace) = (GeneratedText::new(), Workspace::new());
    for (count, overflowed) in [(10_000, false), (1 << 20, true)] {
        let strings = r#""a","#.repeat(count);
        let document = format!(r#"{{"choices":[{{"message":{{"content":[{strings}"a"]}}}}]}}"#);
        assert_eq!(
            generated
                .read(Dialect::Chat, document.as_bytes(), &mut workspace)
                .unwrap(),
            DocumentKind::Known
        );
        assert_eq!(generated.overflowed(), overflowed);
        assert!(generated.capacity() < 10 << 20, "{}", generated.capacity());
    }
    generated.release_memory(1000);
    assert!(generated.capacity() <= 5000, "{}", generated.capacity());
    assert_eq!(
        read(r#"{"choices":[{"text":"a"}]}"#),
        (DocumentKind::Known, keyed(&[("0/text", "a")]))
    );
}
