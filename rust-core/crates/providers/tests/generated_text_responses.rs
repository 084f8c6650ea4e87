//! Generated text in OpenAI's Responses, which has the same key in the deltas of a stream.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_json::Workspace;
use proofgate_providers::{Dialect, DocumentKind, GeneratedText};
use proptest::prelude::*;
use support::keyed;

fn read(document: &str) -> (DocumentKind, Vec<(String, String)>) {
    support::read(Dialect::Responses, document)
}

fn pieces(document: &str) -> Vec<(String, String)> {
    support::pieces(Dialect::Responses, document)
}

#[test]
fn every_string_of_the_output_is_generated_but_names_of_the_api_and_what_is_encrypted() {
    let answer = r#"{"id":"resp_1","object":"response","status":"completed","error":null,"instructions":"obey","output":[
        {"type":"reasoning","id":"rs_1","encrypted_content":"gAAA","summary":[{"type":"summary_text","text":"S"}]},
        {"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[
          {"type":"output_text","text":"H\u0069","logprobs":[{"token":"H\u0069","bytes":[72]}],"annotations":[{"type":"url_citation","title":"T"}]},
          {"type":"refusal","refusal":"no"}]},
        {"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{}"},
        {"type":"unheard_of","notes":["a",{"deep":"b"}]}],
        "output_text":"Hi","tools":[{"type":"function","description":"d"}],"metadata":{"k":"v"},"text":{"format":{"type":"text"}}}"#;
    let expected = [
        ("0/summary/0/text", "S"),
        ("1/content/0/text", "Hi"),
        ("1/content/0/annotations/0/title", "T"),
        ("1/content/1/refusal", "no"),
        ("2/name", "look"),
        ("2/arguments", "{}"),
        ("3/notes/0", "a"),
        ("3/notes/1/deep", "b"),
        ("output_text", "Hi"),
    ];
    assert_eq!(read(answer), (DocumentKind::Known, keyed(&expected)));
    assert!(pieces(answer).is_empty());
}

#[test]
fn what_a_response_repeats_of_its_request_is_left_out_wherever_it_says_what_it_is() {
    let answer = r#"{"instructions":"obey","input":[{"content":"q"}],"output":[{"content":[{"text":"Hi"}]}],"tools":[{"name":"t"}],"object":"response"}"#;
    assert_eq!(
        read(answer),
        (DocumentKind::Known, keyed(&[("0/content/0/text", "Hi")]))
    );
}

#[test]
fn the_error_of_a_failed_response_is_text() {
    let answer = r#"{"object":"response","status":"failed","error":{"code":"server_error","message":"sorry"},"output":[]}"#;
    let expected = [("error/code", "server_error"), ("error/message", "sorry")];
    assert_eq!(read(answer), (DocumentKind::Known, keyed(&expected)));
}

#[test]
fn deltas_name_the_texts_that_a_whole_response_names() {
    let cases = [
        ("output_text.delta", "0/content/1/text"),
        ("refusal.delta", "0/content/1/refusal"),
        ("reasoning_text.delta", "0/content/1/text"),
        ("reasoning_summary_text.delta", "0/summary/2/text"),
        ("function_call_arguments.delta", "0/arguments"),
        ("mcp_call_arguments.delta", "0/arguments"),
        ("custom_tool_call_input.delta", "0/input"),
        ("code_interpreter_call_code.delta", "0/code"),
        ("audio.transcript.delta", "0/audio.transcript/1/2/delta"),
        ("unheard_of.delta", "0/unheard_of/1/2/delta"),
    ];
    for (name, key) in cases {
        let event = format!(
            r#"{{"type":"response.{name}","item_id":"i","output_index":0,"content_index":1,"summary_index":2,"delta":"x","obfuscation":"zzz","logprobs":[],"sequence_number":4}}"#
        );
        assert_eq!(
            read(&event),
            (DocumentKind::Known, keyed(&[(key, "x")])),
            "{event}"
        );
        assert_eq!(pieces(&event), keyed(&[(key, "x")]), "{event}");
        // The fields may come in any order.
        let turned = format!(
            r#"{{"summary_index":2,"delta":"x","content_index":1,"output_index":0,"type":"response.{name}"}}"#
        );
        assert_eq!(pieces(&turned), keyed(&[(key, "x")]), "{turned}");
    }
}

#[test]
fn a_delta_that_is_an_object_brings_a_text_for_each_of_its_strings() {
    let event = r#"{"type":"response.shell_call_output_content.delta","output_index":1,"command_index":2,"delta":{"stdout":"a","stderr":"b"}}"#;
    let expected = [
        ("1/shell_call_output_content/2/delta/stdout", "a"),
        ("1/shell_call_output_content/2/delta/stderr", "b"),
    ];
    assert_eq!(pieces(event), keyed(&expected));
}

#[test]
fn a_recording_and_the_names_of_an_event_are_no_text() {
    for event in [
        r#"{"type":"response.audio.delta","delta":"UklGRg"}"#,
        r#"{"type":"response.in_progress","response":{"object":"response","instructions":"obey","output":[]}}"#,
        r#"{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1","sequence_number":4}"#,
    ] {
        assert_eq!(read(event), (DocumentKind::Known, vec![]), "{event}");
    }
}

#[test]
fn what_repeats_a_text_is_a_text_of_its_own() {
    let message = r#"{"type":"message","id":"m","status":"completed","role":"assistant","content":[{"type":"output_text","text":"x"}]}"#;
    let cases = [
        (r#""type":"response.output_text.done","text":"x""#.to_owned(), "3/response.output_text.done/text"),
        (r#""type":"response.refusal.done","refusal":"x""#.to_owned(), "3/response.refusal.done/refusal"),
        (
            r#""type":"response.function_call_arguments.done","arguments":"x""#.to_owned(),
            "3/response.function_call_arguments.done/arguments",
        ),
        (
            r#""type":"response.custom_tool_call_input.done","input":"x""#.to_owned(),
            "3/response.custom_tool_call_input.done/input",
        ),
        (
            r#""type":"response.code_interpreter_call_code.done","code":"x""#.to_owned(),
            "3/response.code_interpreter_call_code.done/code",
        ),
        (
            r#""type":"response.content_part.done","part":{"type":"output_text","text":"x"}"#.to_owned(),
            "3/response.content_part.done/part/text",
        ),
        (
            format!(r#""type":"response.output_item.done","item":{message}"#),
            "3/response.output_item.done/item/content/0/text",
        ),
        (
            format!(r#""type":"response.completed","response":{{"object":"response","tools":[{{"name":"t"}}],"output":[{message}]}}"#),
            "3/response.completed/response/output/0/content/0/text",
        ),
        (
            r#""type":"response.output_text.annotation.added","annotation":{"type":"url_citation","title":"x"}"#.to_owned(),
            "3/response.output_text.annotation.added/annotation/title",
        ),
        (r#""type":"response.unheard_of","news":"x""#.to_owned(), "3/response.unheard_of/news"),
    ];
    for (fields, key) in cases {
        let event = format!(r#"{{"output_index":3,"content_index":0,{fields}}}"#);
        assert_eq!(
            read(&event),
            (DocumentKind::Known, keyed(&[(key, "x")])),
            "{event}"
        );
        assert!(pieces(&event).is_empty(), "{event}");
    }
}

#[test]
fn arguments_that_are_an_object_are_read_with_their_keys() {
    let event = r#"{"arguments":{"id":"a"},"type":"response.mcp_call_arguments.done","output_index":1}"#;
    let key = "1/response.mcp_call_arguments.done/arguments/id";
    assert_eq!(
        read(event),
        (DocumentKind::Known, keyed(&[(key, "id"), (key, "a")]))
    );
    let item = r#"{"object":"response","output":[{"type":"mcp_call","arguments":{"id":"a"}}]}"#;
    let key = "0/arguments/id";
    assert_eq!(
        read(item),
        (DocumentKind::Known, keyed(&[(key, "id"), (key, "a")]))
    );
}

#[test]
fn an_event_that_says_done_finishes_its_item() {
    let finished = |event| support::finished(Dialect::Responses, event);
    assert_eq!(
        finished(r#"{"type":"response.output_text.done","output_index":4,"text":""}"#),
        [4]
    );
    assert_eq!(
        finished(r#"{"output_index":2,"type":"response.output_item.done","item":{}}"#),
        [2]
    );
    assert!(finished(r#"{"type":"response.output_text.delta","output_index":4,"delta":""}"#).is_empty());
    // Text without an item finishes with an event without an item.
    assert_eq!(
        finished(r#"{"type":"response.audio.transcript.done"}"#),
        [u64::MAX]
    );
}

#[test]
fn log_probabilities_are_found_wherever_they_stand() {
    for event in [
        r#"{"type":"response.output_text.delta","delta":"x","logprobs":[{"token":"x"}]}"#,
        r#"{"type":"response.content_part.done","part":{"text":"x","logprobs":[{"token":"x"}]}}"#,
        r#"{"type":"response.completed","response":{"output":[{"content":[{"text":"x","logprobs":[{"token":"x"}]}]}]}}"#,
        r#"{"object":"response","output":[{"content":[{"text":"x","logprobs":[{"token":"x"}]}]}]}"#,
    ] {
        let mut generated = GeneratedText::new();
        generated
            .read(Dialect::Responses, event.as_bytes(), &mut Workspace::new())
            .unwrap();
        let found: Vec<&str> = generated
            .logprobs()
            .iter()
            .map(|range| &event[range.clone()])
            .collect();
        assert_eq!(found, [r#"[{"token":"x"}]"#], "{event}");
        assert_eq!(generated.parts().len(), 1, "{event}");
    }
}

#[test]
fn what_is_no_response_and_no_event_of_one_has_another_shape() {
    for document in [
        r#"{"type":"error","code":"server_error","message":"no","param":null,"sequence_number":3}"#,
        r#"{"error":{"message":"no","type":"invalid_request_error"}}"#,
        r#"{"id":"resp_1","object":"response","deleted":true}"#,
        r#"{"object":"list","output":[{"text":"x"}]}"#,
        r#"{"object":"response","type":"response.output_text.delta","output":[],"delta":"x"}"#,
        r#"{"object":"response","type":"unheard_of","output":[]}"#,
        r#"{"choices":[{"message":{"content":"x"}}]}"#,
        "[]",
    ] {
        assert_eq!(read(document), (DocumentKind::Other, vec![]), "{document}");
    }
}

#[test]
fn what_is_noted_of_a_response_of_many_parts_has_a_bound() {
    let strings = r#""a","#.repeat(1 << 20);
    for document in [
        format!(r#"{{"object":"response","output":[{strings}"a"]}}"#),
        format!(r#"{{"delta":[{strings}"a"],"type":"response.unheard_of.delta","output_index":1}}"#),
    ] {
        let mut generated = GeneratedText::new();
        generated
            .read(Dialect::Responses, document.as_bytes(), &mut Workspace::new())
            .unwrap();
        assert!(generated.overflowed());
        assert!(generated.capacity() < 12 << 20, "{}", generated.capacity());
    }
}

proptest! {
    #[test]
    fn the_pieces_of_a_stream_add_up_to_the_whole_response(deltas in prop::collection::vec((0usize..2, 0usize..2, "[a-z \u{e9}]{0,6}"), 0..20)) {
        let mut whole = vec![vec![String::new(); 2]; 2];
        let mut streamed = vec![vec![String::new(); 2]; 2];
        for (item, part, text) in &deltas {
            whole[*item][*part].push_str(text);
            let event = format!(r#"{{"type":"response.output_text.delta","output_index":{item},"content_index":{part},"delta":"{text}"}}"#);
            for (key, value) in pieces(&event) {
                prop_assert_eq!(&key, &format!("{item}/content/{part}/text"));
                streamed[*item][*part].push_str(&value);
            }
        }
        let items: Vec<String> = whole.iter().map(|parts| {
            let parts: Vec<String> = parts.iter().map(|text| format!(r#"{{"type":"output_text","text":"{text}"}}"#)).collect();
            format!(r#"{{"type":"message","content":[{}]}}"#, parts.join(","))
        }).collect();
        let answer = read(&format!(r#"{{"object":"response","output":[{}]}}"#, items.join(",")));
        let expected = streamed.iter().enumerate().flat_map(|(item, parts)| {
            parts.iter().enumerate().map(move |(part, text)| (format!("{item}/content/{part}/text"), text.clone()))
        }).collect();
        prop_assert_eq!(answer, (DocumentKind::Known, expected));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = GeneratedText::new().read(Dialect::Responses, &bytes, &mut Workspace::new());
    }
}
