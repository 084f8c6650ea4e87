//! Images and speech: reading their requests and responses, and the end of their streams.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_json::Workspace;
use proofgate_providers::{
    BadRequest, Dialect, DocumentKind, EventMeaning, Field, GeneratedText, Usage, UsageReader,
};

#[path = "support/reading.rs"]
mod reading;

use reading::read;

fn generated(dialect: Dialect, document: &str) -> (DocumentKind, Vec<String>) {
    let mut text = GeneratedText::new();
    let shape = text
        .read(dialect, document.as_bytes(), &mut Workspace::new())
        .unwrap();
    let parts = text.parts().iter().map(|part| text.value(part).to_owned());
    (shape, parts.collect())
}

#[test]
fn the_texts_of_a_request_are_read_and_the_names_of_its_fields_are_not() {
    let body = r#"{"model":"m","prompt":"a cat","n":2,"size":"1024x1024","quality":"high","user":"u1"}"#;
    let (call, text) = read(Dialect::Images, body).unwrap();
    assert_eq!(
        (call.model.as_ref(), call.choice_count, call.stream),
        ("m", 2, false)
    );
    assert_eq!(text, "a cat\n1024x1024\nhigh\nu1");

    let body =
        r#"{"model":"m","input":"Hi","instructions":"softly","voice":{"id":"v1"},"stream_format":"sse"}"#;
    let (call, text) = read(Dialect::Speech, body).unwrap();
    assert!(call.stream);
    assert_eq!(text, "Hi\nsoftly\nv1\nsse");
    for format in [r#""audio""#, "null"] {
        let body = format!(r#"{{"model":"m","input":"Hi","voice":"alloy","stream_format":{format}}}"#);
        assert!(!read(Dialect::Speech, &body).unwrap().0.stream);
    }
}

#[test]
fn what_cannot_be_served_is_refused_by_name() {
    for (dialect, body, refused) in [
        (Dialect::Images, r#"{"prompt":"a cat"}"#, BadRequest::MissingModel),
        (
            Dialect::Images,
            r#"{"model":"m","prompt":"a","n":2,"stream":true}"#,
            BadRequest::MultipleImagesInStream,
        ),
        (
            Dialect::Speech,
            r#"{"model":"m","input":"a","stream_format":true}"#,
            BadRequest::InvalidField(Field::StreamFormat),
        ),
        (
            Dialect::Speech,
            r#"{"model":"m","input":"a","Stream_Format":"sse"}"#,
            BadRequest::AmbiguousName("stream_format"),
        ),
    ] {
        assert_eq!(read(dialect, body).err(), Some(refused), "{body}");
    }
}

#[test]
fn the_text_of_an_answer_is_what_is_no_picture_and_no_recording() {
    let whole = r#"{"created":1,"data":[{"b64_json":"QUJD","revised_prompt":"a tabby"},{"url":"https://h/1"}],"quality":"high"}"#;
    let texts = ["a tabby", "https://h/1", "high"].map(str::to_owned).to_vec();
    assert_eq!(generated(Dialect::Images, whole), (DocumentKind::Known, texts));
    let event =
        r#"{"type":"image_generation.completed","b64_json":"QUJD","revised_prompt":"a tabby","usage":{}}"#;
    assert_eq!(
        generated(Dialect::Images, event),
        (DocumentKind::Known, vec!["a tabby".to_owned()])
    );
    let event = r#"{"type":"speech.audio.delta","audio":"QUJD"}"#;
    assert_eq!(generated(Dialect::Speech, event), (DocumentKind::Known, vec![]));
    for dialect in [Dialect::Images, Dialect::Speech] {
        for other in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"data":[],"type":"speech.audio.done","error":"no"}"#,
        ] {
            assert_eq!(
                generated(dialect, other),
                (DocumentKind::Other, vec![]),
                "{other}"
            );
        }
    }
}

#[test]
fn a_stream_ends_with_its_whole_image_or_with_the_end_of_its_speech() {
    use EventMeaning::{Failure, Part, SuccessfulEnd};
    for (dialect, data, meaning) in [
        (
            Dialect::Images,
            r#"{"type":"image_generation.partial_image","b64_json":"error"}"#,
            Part,
        ),
        (
            Dialect::Images,
            r#"{"type":"image_generation.completed","b64_json":"QQ=="}"#,
            SuccessfulEnd,
        ),
        (
            Dialect::Images,
            r#"{"type":"error","error":{"message":"no"}}"#,
            Failure,
        ),
        (Dialect::Images, r#"{"error":{"message":"no"}}"#, Failure),
        (
            Dialect::Speech,
            r#"{"type":"speech.audio.delta","audio":"QQ=="}"#,
            Part,
        ),
        (Dialect::Speech, r#"{"type":"speech.audio.done"}"#, SuccessfulEnd),
        (Dialect::Speech, r#"{"type":"error","message":"no"}"#, Failure),
    ] {
        let event = format!("data: {data}\n\n");
        assert_eq!(
            EventMeaning::classify(dialect, event.as_bytes()),
            meaning,
            "{data}"
        );
    }
}

#[test]
fn a_huge_event_is_known_by_its_begin() {
    use EventMeaning::{Failure, Part, SuccessfulEnd};
    for (dialect, begin, meaning) in [
        (
            Dialect::Images,
            "event: image_generation.completed\ndata: {\"b64_json\":\"QQ",
            SuccessfulEnd,
        ),
        (
            Dialect::Images,
            "data: {\"type\": \"image_generation.completed\",\"b64_json\":\"QQ",
            SuccessfulEnd,
        ),
        (
            Dialect::Images,
            "event: image_generation.partial_image\ndata: {\"b64_json\":\"QQ",
            Part,
        ),
        (
            Dialect::Images,
            "data: {\"type\":\"image_generation.partial_image\",\"b64_json\":\"QQ",
            Part,
        ),
        (
            Dialect::Images,
            "data: {\"b64_json\":\"image_generation.completed",
            Part,
        ),
        (Dialect::Images, "data: { \"error\" : {\"message\":\"xx", Failure),
        (Dialect::Chat, "data: {\"error\":{\"message\":\"xx", Failure),
        (Dialect::Chat, "data: {\"error\":\"xx", Failure),
        (Dialect::Chat, "data: {\"error\":null,\"choices\":[{\"", Part),
        (Dialect::Chat, "data: {\"choices\":[{\"error\":{\"", Part),
        (
            Dialect::Messages,
            "event: error\ndata: {\"error\":{\"message\":\"xx",
            Failure,
        ),
        (
            Dialect::Messages,
            "data: {\"type\":\"error\",\"error\":{\"message\":\"xx",
            Failure,
        ),
        (
            Dialect::Responses,
            "event: response.failed\ndata: {\"response\":{\"",
            Failure,
        ),
        (
            Dialect::Responses,
            "data: {\"type\":\"response.completed\",\"response\":{\"",
            SuccessfulEnd,
        ),
        (
            Dialect::Transcriptions,
            "data: {\"type\":\"transcript.text.done\",\"text\":\"xx",
            SuccessfulEnd,
        ),
    ] {
        assert_eq!(
            EventMeaning::classify_prefix(dialect, begin.as_bytes()),
            meaning,
            "{begin}"
        );
    }
}

const USAGE: &str = r#""usage":{"input_tokens":9,"output_tokens":4160,"total_tokens":4169,"input_tokens_details":{"text_tokens":9,"image_tokens":0}}"#;

#[test]
fn the_usage_of_an_image_is_read_behind_all_of_it_however_it_comes() {
    let expected = Some(Usage {
        prompt_tokens: 9,
        completion_tokens: 4160,
        ..Usage::default()
    });
    let data = "QUJD".repeat(50_000);
    let whole = format!(r#"{{"created":1,"data":[{{"b64_json":"{data}"}}],{USAGE}}}"#);
    let mut reader = UsageReader::new(Dialect::Images);
    for piece in whole.as_bytes().chunks(1000) {
        reader.push(piece);
    }
    assert_eq!(reader.usage(), expected);

    let event =
        format!("data: {{\"type\":\"image_generation.completed\",\"b64_json\":\"{data}\",{USAGE}}}\n\n");
    reader.reset(Dialect::Images);
    reader.push_event(event.as_bytes());
    assert_eq!(reader.usage(), expected);
    reader.reset(Dialect::Images);
    for part in event.as_bytes().chunks(1000) {
        reader.push_fragment(part);
    }
    assert_eq!(reader.usage(), expected);
}

#[test]
fn the_usage_of_speech_is_in_the_last_event_of_a_stream_and_not_in_a_recording() {
    let mut reader = UsageReader::new(Dialect::Speech);
    reader.push(format!("{{{USAGE}}}").as_bytes());
    assert_eq!(reader.usage(), None);
    reader.push_event(b"data: {\"type\":\"speech.audio.delta\",\"audio\":\"QQ==\"}\n\n");
    reader.push_event(format!("data: {{\"type\":\"speech.audio.done\",{USAGE}}}\n\n").as_bytes());
    assert_eq!(reader.usage().map(|usage| usage.completion_tokens), Some(4160));
}
