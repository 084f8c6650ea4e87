//! Generated text in Anthropic's messages, which has the same key in the events of a stream.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_json::Workspace;
use proofgate_providers::{Dialect, DocumentKind, GeneratedText, PartEncoding};
use proptest::prelude::*;
use support::keyed;

fn read(document: &str) -> (DocumentKind, Vec<(String, String)>) {
    support::read(Dialect::Messages, document)
}

fn pieces(document: &str) -> Vec<(String, String)> {
    support::pieces(Dialect::Messages, document)
}

#[test]
fn every_string_of_the_blocks_is_generated_but_names_of_the_api_and_what_is_encrypted() {
    let answer = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[
        {"type":"thinking","thinking":"h\u006dm","signature":"EqQB"},
        {"data":"EmwK","type":"redacted_thinking"},
        {"type":"text","text":"Hi","citations":[{"type":"web_search_result_location","cited_text":"quoted","url":"https://a.example","encrypted_index":"Eo8B"}]},
        {"type":"tool_use","id":"toolu_1","name":"look","input":{"city":"Oslo","type":"fast","days":[{"id":"mon"}]}},
        {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"T","encrypted_content":"Eq8C"}]},
        {"type":"unheard_of","notes":["a",{"deep":"b"}],"data":"c"}],
        "stop_reason":"refusal","stop_sequence":"END","stop_details":{"type":"refusal","explanation":"no"},"usage":{"service_tier":"standard"}}"#;
    let expected = [
        ("0/thinking", "hmm"),
        ("2/text", "Hi"),
        ("2/citations/0/cited_text", "quoted"),
        ("2/citations/0/url", "https://a.example"),
        ("3/name", "look"),
        ("3/input/city", "city"),
        ("3/input/city", "Oslo"),
        ("3/input/type", "type"),
        ("3/input/type", "fast"),
        ("3/input/days", "days"),
        ("3/input/days/0/id", "id"),
        ("3/input/days/0/id", "mon"),
        ("4/content/0/title", "T"),
        ("5/notes/0", "a"),
        ("5/notes/1/deep", "b"),
        ("5/data", "c"),
        ("stop_details/explanation", "no"),
    ];
    assert_eq!(read(answer), (DocumentKind::Known, keyed(&expected)));
    assert!(pieces(answer).is_empty());
}

#[test]
fn what_a_tool_is_called_with_is_read_with_its_keys_and_long_numbers() {
    let answer = r#"{"content":[{"type":"tool_use","input":{"card":4111111111111111,"days":3}}]}"#;
    let mut generated = GeneratedText::new();
    generated
        .read(Dialect::Messages, answer.as_bytes(), &mut Workspace::new())
        .unwrap();
    let parts: Vec<_> = generated
        .parts()
        .iter()
        .map(|part| (part.encoding, &answer[part.location.raw.clone()]))
        .collect();
    let expected = [
        (PartEncoding::Key, "card"),
        (PartEncoding::Number, "4111111111111111"),
        (PartEncoding::Key, "days"),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn events_name_the_texts_that_a_whole_answer_names() {
    let cases = [
        (
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"H"}}"#,
            ("2/text", "H"),
        ),
        (
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"i"}}"#,
            ("2/text", "i"),
        ),
        // The fields may come in any order.
        (
            r#"{"delta":{"thinking":"hm","type":"thinking_delta"},"index":1,"type":"content_block_delta"}"#,
            ("1/thinking", "hm"),
        ),
        (
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}"#,
            ("3/partial_json", r#"{"a"#),
        ),
        (
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"C","encrypted_content":"Ep"}}"#,
            ("0/content", "C"),
        ),
        (
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"unheard_of_delta","news":"n"}}"#,
            ("0/news", "n"),
        ),
    ];
    for (event, part) in cases {
        assert_eq!(read(event), (DocumentKind::Known, keyed(&[part])), "{event}");
        assert_eq!(pieces(event), keyed(&[part]), "{event}");
    }
}

#[test]
fn what_comes_at_once_in_an_event_is_a_text_of_its_own() {
    let cases = [
        (
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"look","input":{}}}"#,
            ("1/name", "look"),
        ),
        (
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"T"}]}}"#,
            ("1/content/0/title", "T"),
        ),
        (
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"q"}}}"#,
            ("1/citation/cited_text", "q"),
        ),
        (
            r#"{"type":"message_start","message":{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}]}}"#,
            ("0/text", "x"),
        ),
        (
            r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":"END","stop_details":{"type":"refusal","explanation":"no"}},"usage":{}}"#,
            ("0/stop_details/explanation", "no"),
        ),
    ];
    for (event, part) in cases {
        assert_eq!(read(event), (DocumentKind::Known, keyed(&[part])), "{event}");
        assert!(pieces(event).is_empty(), "{event}");
    }
}

#[test]
fn signatures_and_events_without_content_bring_no_text() {
    for event in [
        r#"{"type":"ping"}"#,
        r#"{"type":"message_stop"}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"EmwK"}}"#,
    ] {
        assert_eq!(read(event), (DocumentKind::Known, vec![]), "{event}");
    }
}

#[test]
fn a_block_that_stops_is_finished() {
    let finished = |event| support::finished(Dialect::Messages, event);
    assert_eq!(finished(r#"{"index":4,"type":"content_block_stop"}"#), [4]);
    assert!(finished(r#"{"type":"ping"}"#).is_empty());
}

#[test]
fn what_is_no_message_and_no_event_of_one_has_another_shape() {
    for document in [
        r#"{"type":"error","error":{"type":"overloaded_error","message":"no"}}"#,
        r#"{"error":{"message":"no","type":"invalid_request_error"}}"#,
        r#"{"type":"message","content":[],"error":{"message":"no"}}"#,
        r#"{"type":"unheard_of","content":[{"type":"text","text":"x"}]}"#,
        r#"{"type":"message","content":"x"}"#,
        r#"{"choices":[{"message":{"content":"x"}}]}"#,
        r#"{"input_tokens":3}"#,
        "[]",
    ] {
        assert_eq!(read(document), (DocumentKind::Other, vec![]), "{document}");
    }
}

#[test]
fn pictures_are_no_text() {
    let picture = format!("iVBORw0KGgoA{}", "AKF/9+zQ".repeat(400));
    let answer = format!(r#"{{"content":[{{"type":"image","source":{{"data":"{picture}"}}}}]}}"#);
    assert_eq!(read(&answer), (DocumentKind::Known, vec![]));
}

#[test]
fn what_is_noted_of_a_message_of_many_parts_has_a_bound() {
    let strings = r#""a","#.repeat(1 << 20);
    let document = format!(r#"{{"content":[{{"input":[{strings}"a"]}}]}}"#);
    let mut generated = GeneratedText::new();
    generated
        .read(Dialect::Messages, document.as_bytes(), &mut Workspace::new())
        .unwrap();
    assert!(generated.overflowed());
    assert!(generated.capacity() < 12 << 20, "{}", generated.capacity());
}

proptest! {
    #[test]
    fn the_pieces_of_a_stream_add_up_to_the_whole_message(pieces_of_blocks in prop::collection::vec((0usize..3, "[a-z \u{e9}]{0,6}"), 0..20)) {
        let (mut whole, mut streamed) = (vec![String::new(); 3], vec![String::new(); 3]);
        for (block, text) in &pieces_of_blocks {
            whole[*block].push_str(text);
            let event = format!(r#"{{"type":"content_block_delta","index":{block},"delta":{{"type":"text_delta","text":"{text}"}}}}"#);
            for (key, value) in pieces(&event) {
                prop_assert_eq!(&key, &format!("{block}/text"));
                streamed[*block].push_str(&value);
            }
        }
        let blocks: Vec<String> = whole.iter().map(|text| format!(r#"{{"type":"text","text":"{text}"}}"#)).collect();
        let answer = read(&format!(r#"{{"type":"message","content":[{}]}}"#, blocks.join(",")));
        let expected = (0..3).map(|block| (format!("{block}/text"), streamed[block].clone())).collect();
        prop_assert_eq!(answer, (DocumentKind::Known, expected));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = GeneratedText::new().read(Dialect::Messages, &bytes, &mut Workspace::new());
    }
}

#[test]
fn words_that_are_joined_as_base64_could_be_are_text() {
    let words = format!("Qk0\\n{}", "the\\nsecret\\nis\\nout\\n".repeat(100));
    let answer = format!(
        r#"{{"type":"message","content":[{{"type":"text","text":"{words}"}},{{"type":"tool_use","name":"f","input":{{"data":"{words}"}}}}]}}"#
    );
    let texts = read(&answer).1;
    let words = words.replace("\\n", "\n");
    for key in ["0/text", "1/input/data"] {
        assert!(
            texts.contains(&(key.to_owned(), words.clone())),
            "{key}: {texts:?}"
        );
    }
}
