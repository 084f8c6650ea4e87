//! A stream is split into the same events however it is cut.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_providers::{Dialect, EventReader, EventTooLarge, ResponseStart, ResponseStartReader};
use proptest::prelude::*;

/// The bytes, the data, and whether there are unknown fields, of one event.
type Seen = (Vec<u8>, Option<Vec<u8>>, bool);

fn split(pieces: &[&[u8]], limit: usize) -> Result<Vec<Seen>, EventTooLarge> {
    let mut reader = EventReader::new(limit);
    let mut events = Vec::new();
    for piece in pieces {
        reader.push(piece);
        while let Some(event) = reader.next_event()? {
            events.push((
                event.raw.to_vec(),
                event.data.map(<[u8]>::to_vec),
                event.has_unknown_fields,
            ));
        }
    }
    if let Some(event) = reader.finish()? {
        events.push((
            event.raw.to_vec(),
            event.data.map(<[u8]>::to_vec),
            event.has_unknown_fields,
        ));
    }
    assert!(reader.finish()?.is_none());
    Ok(events)
}

fn data(stream: &str) -> Vec<Option<String>> {
    let events = split(&[stream.as_bytes()], 1000).unwrap();
    events
        .into_iter()
        .map(|(_, data, _)| data.map(|data| String::from_utf8(data).unwrap()))
        .collect()
}

fn some(data: &str) -> Option<String> {
    Some(data.to_owned())
}

#[test]
fn an_empty_line_ends_an_event_whatever_ends_a_line() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = format!("data: a{end}{end}data:b{end}id: 7{end}{end}data: [DONE]{end}{end}");
        assert_eq!(data(&stream), [some("a"), some("b"), some("[DONE]")], "{end:?}");
    }
}

#[test]
fn data_lines_are_joined_and_one_space_is_dropped() {
    assert_eq!(data("data:  a\ndata\ndata:b\nevent: x\n\n"), [some(" a\n\nb")]);
}

#[test]
fn comments_and_other_fields_are_no_data() {
    assert_eq!(
        data(": ping\n\nretry: 10\n\n\nevent: a\n\n"),
        [None, None, None, None]
    );
    let events = split(&[b"{\"error\":1}\n\ndatum: x\n\n:c\n\n"], 1000).unwrap();
    assert_eq!(
        events.iter().map(|event| event.2).collect::<Vec<_>>(),
        [true, true, false]
    );
}

#[test]
fn what_follows_the_last_empty_line_is_an_event_too() {
    assert_eq!(data("data: a\n\ndata: b"), [some("a"), some("b")]);
    assert_eq!(data("data: a\r"), [some("a")]);
    assert_eq!(data("data: a\n"), [some("a")]);
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_field() {
    assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), [some("a"), None]);
}

#[test]
fn an_event_beyond_the_limit_is_refused_as_soon_as_that_is_known() {
    assert!(split(&[b"data: 12345678\n\n"], 16).is_ok());
    for stream in [
        &b"data: 123456789\n\n"[..],
        b"data: 1\n\ndata: 1234567890123",
        b"1234567\r2345678\r3",
    ] {
        assert_eq!(split(&[stream], 16), Err(EventTooLarge { limit: 16 }));
    }
}

#[test]
fn an_offset_in_joined_data_is_found_in_its_line() {
    let mut reader = EventReader::new(100);
    reader.push(b"id: 1\ndata: ab\r\ndata:cd\r\n\r\n");
    let event = reader.next_event().unwrap().unwrap();
    let joined = event.data.unwrap();
    assert_eq!(joined, b"ab\ncd");
    for (offset, byte) in joined.iter().enumerate().filter(|(_, byte)| **byte != b'\n') {
        assert_eq!(event.raw[event.raw_offset(offset)], *byte);
    }
    assert_eq!(&event.raw[..event.raw_offset(2)], b"id: 1\ndata: ab");
    assert_eq!(&event.raw[..event.raw_offset(5)], b"id: 1\ndata: ab\r\ndata:cd");
}

#[test]
fn a_cleared_reader_begins_anew() {
    let mut reader = EventReader::new(100);
    reader.push(b"data: a\n\ndata: b");
    reader.next_event().unwrap().unwrap();
    assert_eq!(reader.pending(), 7);
    reader.clear();
    reader.push(b"\xef\xbb\xbfdata: c\n\n");
    assert_eq!(reader.next_event().unwrap().unwrap().data, Some(&b"c"[..]));
    assert!(reader.next_event().unwrap().is_none());
}

proptest! {
    #[test]
    fn cuts_make_no_difference_and_no_byte_is_lost(
        tokens in prop::collection::vec(prop::sample::select(vec!["data:", "data: ", "x", "\n", "\r", "\r\n", "\n\n", ":", "id: 1", "\u{feff}", "foo", " "]), 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let stream = tokens.concat().into_bytes();
        let whole = split(&[&stream], 1000).unwrap();
        prop_assert_eq!(whole.iter().flat_map(|event| event.0.clone()).collect::<Vec<_>>(), stream.clone());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.push(stream.len());
        cuts.sort_unstable();
        let mut start = 0;
        let pieces: Vec<&[u8]> = cuts.iter().map(|&cut| { let piece = &stream[start..cut]; start = cut; piece }).collect();
        prop_assert_eq!(split(&pieces, 1000).unwrap(), whole);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(split(&bytes, 20), split(&[&stream], 20));
    }
}

#[test]
fn a_stream_begins_with_a_failure_also_behind_a_byte_order_mark() {
    let event = b"data: {\"error\":{\"message\":\"no room\",\"code\":503}}\n\n";
    for mark in ["", "\u{feff}"] {
        let begin = [mark.as_bytes(), event].concat();
        let found = ResponseStartReader::new(Dialect::Chat).inspect(&begin, false);
        assert!(
            matches!(found, ResponseStart::Failure { .. }),
            "{mark:?}: {found:?}"
        );
    }
}
