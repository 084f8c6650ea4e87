//! Frames of Bedrock's streams become the events that they represent.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/frames.rs"]
mod frames;

use frames::{carried, event, exception, frame, string};
use proofgate_providers::event_stream::FrameError;
use proofgate_providers::{Dialect, FrameDecoder, Usage, UsageReader};
use proptest::prelude::*;

/// Returns all events of a stream that arrives in these pieces.
fn read<'p>(dialect: Dialect, pieces: impl IntoIterator<Item = &'p [u8]>) -> Result<String, FrameError> {
    let mut frames = FrameDecoder::new(dialect, 1 << 20);
    let mut out = Vec::new();
    for piece in pieces {
        frames.push(piece);
        while frames.next_event(&mut out)? {}
    }
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn an_event_of_converse_is_one_of_its_name() {
    let frames = [
        event("messageStart", r#"{"role":"assistant"}"#),
        event("metadata", "{\n\"usage\": {\r\n}}"),
    ];
    assert_eq!(
        read(Dialect::Converse, [&frames.concat()[..]]).unwrap(),
        "event: messageStart\ndata: {\"role\":\"assistant\"}\n\nevent: metadata\ndata: { \"usage\": {  }}\n\n"
    );
}

#[test]
fn what_a_model_streams_is_carried_in_base64_and_padded() {
    let message_stop = r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":9}}"#;
    assert_eq!(
        read(Dialect::Invoke, [&carried(message_stop)[..]]).unwrap(),
        format!("event: message_stop\ndata: {message_stop}\n\n")
    );
}

#[test]
fn exceptions_and_errors_have_names_that_no_event_has() {
    let error = [
        string(":message-type", "error"),
        string(":error-code", "InternalError"),
        string(":error-message", "An \"error\"\n\nevent: message_stop"),
    ];
    for dialect in [Dialect::Converse, Dialect::Invoke] {
        let frames = [
            exception("throttlingException", r#"{"message":"Slow down"}"#),
            frame(&error.concat(), b""),
        ];
        assert_eq!(
            read(dialect, [&frames.concat()[..]]).unwrap(),
            "event: exception:throttlingException\ndata: {\"message\":\"Slow down\"}\n\n\
             event: exception:InternalError\ndata: {\"message\":\"An \\\"error\\\"\\n\\nevent: message_stop\"}\n\n"
        );
    }
}

#[test]
fn a_frame_that_says_nothing_readable_is_refused() {
    let no_type = frame(&string(":event-type", "messageStop"), b"{}");
    let cases = [
        (
            Dialect::Converse,
            event("message\n\nevent", "{}"),
            FrameError::Headers,
        ),
        (Dialect::Converse, event("exception:x", "{}"), FrameError::Headers),
        (Dialect::Converse, event("", "{}"), FrameError::Headers),
        (Dialect::Converse, no_type, FrameError::Headers),
        (Dialect::Invoke, event("chunk", "{}"), FrameError::Payload),
        (
            Dialect::Invoke,
            event("chunk", r#"{"bytes":"e30"}"#),
            FrameError::Payload,
        ),
        (Dialect::Invoke, carried("{}"), FrameError::Payload),
        (
            Dialect::Invoke,
            carried(r#"{"type":"a\nb"}"#),
            FrameError::Payload,
        ),
        (Dialect::Invoke, carried("[]"), FrameError::Payload),
    ];
    for (dialect, frame, error) in cases {
        assert_eq!(read(dialect, [&frame[..]]), Err(error), "{frame:?}");
    }
}

#[test]
fn events_of_unknown_types_say_nothing() {
    let frame = event("initial-response", "{}");
    let said = read(Dialect::Invoke, [&frame[..]]).unwrap();
    assert_eq!(said, "event: initial-response\ndata: \n\n");
}

#[test]
fn a_buffer_can_be_lent_only_while_nothing_waits_in_it() {
    let frame = event("messageStart", "{}");
    let mut frames = FrameDecoder::new(Dialect::Converse, 100);
    frames.push(&frame[..20]);
    assert!(!frames.next_event(&mut Vec::new()).unwrap());
    assert_eq!(frames.max_size_after(5), 25);
    assert!(frames.idle_buffer().is_none());
    frames.push(&frame[20..]);
    assert!(frames.next_event(&mut Vec::new()).unwrap());
    assert!(frames.idle_buffer().unwrap().is_empty());
}

#[test]
fn the_usage_of_bedrock_counts_what_came_from_a_cache_once() {
    let usage = |dialect, answer: &str| {
        let mut reader = UsageReader::new(dialect);
        reader.push(answer.as_bytes());
        reader.usage()
    };
    let counts = |prompt_tokens, completion_tokens, cached_prompt_tokens, cache_write_tokens| {
        Some(Usage {
            prompt_tokens,
            completion_tokens,
            cached_prompt_tokens,
            cache_write_tokens,
            ..Usage::default()
        })
    };
    let converse = |usage: &str| format!(r#"{{"output":{{"message":{{}}}},"usage":{usage},"metrics":{{}}}}"#);
    for (said, expected) in [
        (
            r#"{"inputTokens":3,"outputTokens":5,"totalTokens":8}"#,
            counts(3, 5, 0, 0),
        ),
        (
            r#"{"inputTokens":3,"outputTokens":5,"totalTokens":18,"cacheReadInputTokens":4,"cacheWriteInputTokens":6}"#,
            counts(13, 5, 4, 6),
        ),
        (
            r#"{"inputTokens":10,"outputTokens":5,"totalTokens":15,"cacheReadInputTokens":4}"#,
            counts(10, 5, 4, 0),
        ),
    ] {
        assert_eq!(usage(Dialect::Converse, &converse(said)), expected, "{said}");
        let mut reader = UsageReader::new(Dialect::Converse);
        let metadata = event("metadata", &format!(r#"{{"usage":{said}}}"#));
        reader.push_event(read(Dialect::Converse, [&metadata[..]]).unwrap().as_bytes());
        assert_eq!(reader.usage(), expected, "{said}");
    }
    let message =
        r#"{"type":"message","usage":{"input_tokens":1,"cache_read_input_tokens":2,"output_tokens":4}}"#;
    assert_eq!(usage(Dialect::Invoke, message), counts(3, 4, 2, 0));
}

proptest! {
    #[test]
    fn cuts_make_no_difference(size in 1usize..50) {
        let frames = [
            carried(r#"{"type":"message_start","message":{}}"#),
            carried(r#"{"type":"message_stop"}"#),
            exception("validationException", "{}"),
        ]
        .concat();
        prop_assert_eq!(read(Dialect::Invoke, frames.chunks(size)), read(Dialect::Invoke, [&frames[..]]));
    }

    #[test]
    fn no_payload_makes_it_panic_or_write_a_line_of_its_own(payload in prop::collection::vec(any::<u8>(), 0..200), chunk: bool) {
        let headers = [
            string(":event-type", if chunk { "chunk" } else { "metadata" }),
            string(":message-type", "event"),
        ];
        let mut frames = FrameDecoder::new(if chunk { Dialect::Invoke } else { Dialect::Converse }, 1 << 20);
        frames.push(&frame(&headers.concat(), &payload));
        let mut out = Vec::new();
        if let Ok(written) = frames.next_event(&mut out) {
            prop_assert!(written);
            prop_assert_eq!(out.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count(), 3);
        }
    }
}
