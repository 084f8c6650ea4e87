//! Events of a message, encoded as Amazon's frames and decoded again.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "support/frames.rs"]
mod frames;

use proofgate_providers::event_stream::FrameReader;
use proofgate_providers::{Dialect, FrameDecoder, FrameWriter};
use proptest::prelude::*;

const STREAM: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n: hb\n\
event: ping\ndata: {\"type\":\"ping\"}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"caf\u{e9}\"}}\n\n\
event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const WITHOUT_PINGS: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n\
event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"caf\u{e9}\"}}\n\n\
event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn framed(pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let (mut writer, mut out) = (FrameWriter::default(), Vec::new());
    for piece in pieces {
        writer.push(piece.as_ref(), &mut out);
    }
    writer.finish(&mut out);
    assert_eq!(writer.pending(), 0);
    out
}

fn read(frames: &[u8]) -> String {
    let mut events = FrameDecoder::new(Dialect::Invoke, 1 << 20);
    events.push(frames);
    let mut out = Vec::new();
    while events.next_event(&mut out).unwrap() {}
    String::from_utf8(out).unwrap()
}

#[test]
fn an_event_is_the_frame_that_bedrock_sends_for_it() {
    let event = r#"{"type":"message_stop"}"#;
    let written = framed([format!("event: message_stop\ndata: {event}\n\n")]);
    let expected = frames::event("chunk", r#"{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdG9wIn0="}"#);
    assert_eq!(written, expected);
}

#[test]
fn the_last_event_may_lack_its_empty_line() {
    assert_eq!(framed([&STREAM[..STREAM.len() - 1]]), framed([STREAM]));
}

#[test]
fn an_error_is_an_exception_with_its_words() {
    for (kind, name) in [
        ("overloaded_error", "throttlingException"),
        ("rate_limit_error", "throttlingException"),
        ("invalid_request_error", "validationException"),
        ("timeout_error", "modelStreamErrorException"),
        ("api_error", "internalServerException"),
    ] {
        let event = format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"So \\\"it\\\" is\"}}}}\n\n"
        );
        let written = framed([event]);
        let mut reader = FrameReader::new(1 << 20);
        reader.push(&written);
        let frame = reader.next_frame().unwrap().unwrap();
        assert_eq!(
            (frame.message_type, frame.exception_type),
            (Some("exception"), Some(name))
        );
        assert_eq!(frame.payload, br#"{"message":"So \"it\" is"}"#);
    }
}

proptest! {
    #[test]
    fn however_a_stream_is_cut_its_frames_are_the_same(size in 1..STREAM.len()) {
        let cut = framed(STREAM.as_bytes().chunks(size));
        prop_assert_eq!(&cut, &framed([STREAM]));
        prop_assert_eq!(read(&cut), WITHOUT_PINGS);
    }
}
