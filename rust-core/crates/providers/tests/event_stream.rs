//! Frames are decoded as by botocore, however their stream is cut.
//!
//! The vectors are from botocore 1.44.5, tests/unit/test_eventstream.py of its sdist (Apache-2.0), in hexadecimal.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/frames.rs"]
mod frames;

use frames::{crc32, frame, string};
use proofgate_providers::event_stream::{Frame, FrameError, FrameReader, MAX_PAYLOAD_BYTES};
use proptest::prelude::*;

const EMPTY: &str = "000000100000000005c248eb7d98c8ff";
const INT8: &str = "000000170000000729860158046279746502ffc2f869dc";
const INT16: &str = "0000001900000009710e923e0573686f727403ffffb27cb6cc";
const INT32: &str = "0000001d0000000d83e3f0e707696e746567657204ffffffff8b8e12eb";
const INT64: &str = "0000001e0000000e5d4adb8d046c6f6e6705ffffffffffffffff4bc232da";
const PAYLOAD: &str = "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936";
const ONE_STRING: &str = "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1";
const ALL_TYPES: &str = "000000620000005203b5cb9c013000013101013202020133030003013404000000040135050000000000000005013606000562797465730137070004757466380138080000000000000008013909303132333435363738396162636465666335\
3671";
const ERROR: &str = "0000005200000042bf23637e0d3a6d6573736167652d747970650700056572726f720b3a6572726f722d636f6465070004636f64650e3a6572726f722d6d6573736167650700076d6573736167656b6cea3d";
/// A `contentBlockDelta` of ConverseStream.
const DELTA: &str = "0000009f00000057c37babff0b3a6576656e742d74797065070011636f6e74656e74426c6f636b44656c74610d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b22636f6e74656e74426c6f636b496e646578223a302c2264656c7461223a7b2274657874223a224869227d2c2270223a2261626364227df2ace5ff";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap())
        .collect()
}

/// Message type, event type and payload of a frame.
type Seen = (String, String, Vec<u8>);

/// Returns each frame, and how the stream ended.
fn split(pieces: &[&[u8]], most_payload: usize) -> (Vec<Seen>, Result<(), FrameError>) {
    let mut reader = FrameReader::new(most_payload);
    let mut frames = Vec::new();
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => frames.push((
                    frame.message_type.unwrap_or_default().to_owned(),
                    frame.event_type.unwrap_or_default().to_owned(),
                    frame.payload.to_vec(),
                )),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, reader.finish())
}

fn failure(bytes: &[u8]) -> Option<FrameError> {
    split(&[bytes], usize::MAX).1.err()
}

#[test]
fn what_botocore_reads_is_read() {
    for (hex, payload) in [
        (EMPTY, ""),
        (INT8, ""),
        (INT16, ""),
        (INT32, ""),
        (INT64, ""),
        (PAYLOAD, "{'foo':'bar'}"),
        (ONE_STRING, "{'foo':'bar'}"),
        (ALL_TYPES, ""),
    ] {
        let mut reader = FrameReader::new(usize::MAX);
        reader.push(&bytes(hex));
        let expected = Frame {
            payload: payload.as_bytes(),
            ..Frame::default()
        };
        assert_eq!(reader.next_frame(), Ok(Some(expected)), "{hex}");
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!(reader.finish(), Ok(()));
    }
}

#[test]
fn an_error_says_its_code_and_message() {
    let mut reader = FrameReader::new(100);
    reader.push(&bytes(ERROR));
    let frame = reader.next_frame().unwrap().unwrap();
    assert_eq!(frame.message_type, Some("error"));
    assert_eq!(
        (frame.error_code, frame.error_message),
        (Some("code"), Some("message"))
    );
}

#[test]
fn an_event_of_converse_says_what_it_is() {
    let mut reader = FrameReader::new(100);
    reader.push(&bytes(DELTA));
    let expected = Frame {
        message_type: Some("event"),
        event_type: Some("contentBlockDelta"),
        content_type: Some("application/json"),
        payload: br#"{"contentBlockIndex":0,"delta":{"text":"Hi"},"p":"abcd"}"#,
        ..Frame::default()
    };
    assert_eq!(reader.next_frame(), Ok(Some(expected)));
}

#[test]
fn an_exception_says_its_type() {
    let headers = [
        string(":exception-type", "throttlingException"),
        string(":message-type", "exception"),
    ];
    let mut reader = FrameReader::new(100);
    reader.push(&frame(&headers.concat(), b"{}"));
    let frame = reader.next_frame().unwrap().unwrap();
    assert_eq!(frame.message_type, Some("exception"));
    assert_eq!(frame.exception_type, Some("throttlingException"));
}

#[test]
fn what_botocore_refuses_is_refused() {
    for (what, hex, error) in [
        (
            "length",
            "0100001d00000000fd528c5a7b27666f6f273a27626172277dc3653936",
            FrameError::Checksum,
        ),
        (
            "payload",
            "0000001d00000000fd528c5a7b27666f6f273a2762617227 8dc3653936",
            FrameError::Checksum,
        ),
        (
            "headers",
            "0000003d0000002007fd83960c636f6e74656e742b747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1",
            FrameError::Checksum,
        ),
        (
            "headers' length",
            "0000003dff00010207fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1",
            FrameError::Checksum,
        ),
        (
            "a header twice",
            "00000024000000144bb982d004746573740461736466047465737404617364 66f3f47563",
            FrameError::Headers,
        ),
        (
            "headers too long",
            "0000003dff0001021583f5c20c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d2f377f5d",
            FrameError::TooLarge,
        ),
        (
            "payload too long",
            "0180002100000000dd3f33b1",
            FrameError::TooLarge,
        ),
    ] {
        assert_eq!(failure(&bytes(&hex.replace(' ', ""))), Some(error), "{what}");
    }
}

#[test]
fn both_checksums_are_checked_at_every_byte() {
    let whole = bytes(DELTA);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x20;
        assert_eq!(failure(&changed), Some(FrameError::Checksum), "byte {at}");
    }
}

#[test]
fn a_prelude_is_refused_before_its_frame_arrives() {
    let mut reader = FrameReader::new(100);
    reader.push(&frame(b"", &[0; 101])[..12]);
    assert_eq!(reader.next_frame(), Err(FrameError::TooLarge));
    let mut reader = FrameReader::new(101);
    reader.push(&frame(b"", &[0; 101])[..12]);
    assert_eq!(reader.next_frame(), Ok(None));
    assert_eq!(reader.pending(), 12);
}

#[test]
fn a_frame_shorter_than_its_parts_is_refused() {
    let prelude = |length: u32, headers: u32| {
        let mut prelude = [length.to_be_bytes(), headers.to_be_bytes()].concat();
        prelude.extend(crc32(&prelude).to_be_bytes());
        failure(&prelude)
    };
    assert_eq!(prelude(15, 0), Some(FrameError::Lengths));
    assert_eq!(prelude(0, 0), Some(FrameError::Lengths));
    assert_eq!(prelude(36, 21), Some(FrameError::Lengths));
    assert_eq!(prelude(37, 21), Some(FrameError::Truncated));
}

#[test]
fn malformed_headers_are_refused() {
    let text = string(":event-type", "a");
    for (what, headers) in [
        ("cut short", text[..text.len() - 1].to_vec()),
        ("no type", b"\x04test".to_vec()),
        ("unknown type", b"\x04test\x0a".to_vec()),
        ("no text", b"\x0b:event-type\x04\0\0\0\x01".to_vec()),
        ("bytes for a text", b"\x0b:event-type\x06\0\x01a".to_vec()),
        ("not UTF-8", b"\x0b:event-type\x07\0\x01\xff".to_vec()),
        ("twice", [text.clone(), text.clone()].concat()),
    ] {
        assert_eq!(
            failure(&frame(&headers, b"")),
            Some(FrameError::Headers),
            "{what}"
        );
    }
    let many: Vec<u8> = (0..33).flat_map(|number| [1, number, 0]).collect();
    assert_eq!(failure(&frame(&many, b"")), Some(FrameError::TooLarge));
    assert_eq!(failure(&frame(&many[..32 * 3], b"")), None);
}

#[test]
fn an_error_stays() {
    let mut reader = FrameReader::new(100);
    reader.push(&[0; 12]);
    assert_eq!(reader.next_frame(), Err(FrameError::Checksum));
    reader.push(&bytes(DELTA));
    assert_eq!(reader.next_frame(), Err(FrameError::Checksum));
    assert_eq!(reader.finish(), Err(FrameError::Checksum));
    reader.clear();
    reader.push(&bytes(DELTA));
    assert!(reader.next_frame().unwrap().is_some());
}

#[test]
fn a_stream_that_ends_within_a_frame_is_cut_short() {
    let whole = bytes(DELTA);
    for length in 1..whole.len() {
        assert_eq!(
            failure(&whole[..length]),
            Some(FrameError::Truncated),
            "{length} bytes"
        );
    }
    assert_eq!(failure(b""), None);
}

#[test]
fn the_largest_payload_is_read() {
    let largest = frame(b"", &vec![7; MAX_PAYLOAD_BYTES]);
    let (frames, end) = split(&[&largest], usize::MAX);
    assert_eq!((frames[0].2.len(), end), (MAX_PAYLOAD_BYTES, Ok(())));
}

#[test]
fn memory_of_a_large_frame_is_given_back() {
    let mut reader = FrameReader::new(1 << 20);
    reader.push(&frame(b"", &[0; 1 << 20]));
    assert!(reader.next_frame().unwrap().is_some());
    reader.release_memory(1024);
    assert!(reader.capacity() <= 1024);
}

proptest! {
    #[test]
    fn cuts_make_no_difference(
        kinds in prop::collection::vec((0..11usize, prop::collection::vec(any::<u8>(), 0..40)), 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        damaged in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let vectors = [EMPTY, INT8, INT16, INT32, INT64, PAYLOAD, ONE_STRING, ALL_TYPES, ERROR, DELTA];
        let mut stream: Vec<u8> = kinds
            .iter()
            .flat_map(|(kind, payload)| match vectors.get(*kind) {
                Some(hex) => bytes(hex),
                None => frame(&string(":event-type", "metadata"), payload),
            })
            .collect();
        if let (Some(at), false) = (damaged, stream.is_empty()) {
            let at = at.index(stream.len());
            stream[at] ^= 1;
        }
        let whole = split(&[&stream], 4096);
        prop_assert!(damaged.is_some() || (whole.0.len() == kinds.len() && whole.1 == Ok(())));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut begin = 0;
        for cut in cuts.into_iter().chain([stream.len()]) {
            pieces.push(&stream[begin..cut]);
            begin = cut;
        }
        prop_assert_eq!(&split(&pieces, 4096), &whole);
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&split(&single, 4096), &whole);
    }

    #[test]
    fn no_bytes_make_it_panic(stream in prop::collection::vec(any::<u8>(), 0..200), headers in prop::collection::vec(0..12u8, 0..80)) {
        let _ = split(&[&stream], usize::MAX);
        let _ = split(&[&frame(&headers, &stream)], usize::MAX);
    }
}
