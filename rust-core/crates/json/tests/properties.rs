//! Properties that hold for any bytes: results agree with serde_json, and nothing unexpected happens.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail")]

use proofgate_json::{Event, JsonError, Reader, StrSegment, Workspace, escape_into};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

fn read(document: &[u8]) -> Result<(), JsonError> {
    let mut workspace = Workspace::new();
    let mut reader = Reader::new(document, &mut workspace)?;
    while reader.next()?.is_some() {}
    reader.finish()
}

/// Builds a value from events, for comparison with serde_json.
fn build(reader: &mut Reader<'_, '_>, event: Event<'_>) -> Result<Value, JsonError> {
    let decoded = |text: proofgate_json::Str<'_>| text.decode(&mut String::new()).to_owned();
    Ok(match event {
        Event::Null => Value::Null,
        Event::Bool(value) => Value::Bool(value),
        Event::Number(number) => serde_json::from_str(number).unwrap(),
        Event::String(text) => Value::String(decoded(text)),
        Event::ArrayStart => {
            let mut values = Vec::new();
            loop {
                match reader.read_event()? {
                    Event::ArrayEnd => break Value::Array(values),
                    event => values.push(build(reader, event)?),
                }
            }
        }
        Event::ObjectStart => {
            let mut values = serde_json::Map::new();
            loop {
                match reader.read_event()? {
                    Event::Key(key) => {
                        let event = reader.read_event()?;
                        values.insert(decoded(key), build(reader, event)?);
                    }
                    Event::ObjectEnd => break Value::Object(values),
                    other => panic!("{other:?} in an object"),
                }
            }
        }
        other => panic!("{other:?} as a value"),
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ -~]{0,80}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 10, |value| {
        prop_oneof![
            prop::collection::vec(value.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("[a-c\\\\\"\u{e9}]{0,3}|[a-z]{8,12}", value, 0..40)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Documents, valid and damaged, built from tokens that matter to a JSON parser.
fn fragments() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\":", "\"a\":1", "\\", "\\u", "\\ud83d", "\\ude00",
        "\\n", "0", "-", "1", ".5", "e+1", "E", "true", "false", "null", "nul", " ", "\n", "\t", "\u{7f}",
        "\u{1}", "\u{e9}", "/", "a",
    ]);
    prop::collection::vec(token, 0..14).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn a_document_is_accepted_exactly_when_serde_json_accepts_it(document in fragments()) {
        let theirs = serde_json::from_str::<IgnoredAny>(&document).is_ok();
        match read(document.as_bytes()) {
            // serde_json skips surrogates unchecked, and keeps the last of duplicate keys.
            Err(JsonError::LoneSurrogate { .. } | JsonError::DuplicateKey { .. }) => {}
            ours => prop_assert_eq!(ours.is_ok(), theirs, "{}: {:?}", document, ours),
        }
    }

    #[test]
    fn an_edited_document_is_accepted_exactly_when_serde_json_accepts_it(
        value in any_value(), pretty in any::<bool>(), at in any::<prop::sample::Index>(), byte in prop::sample::select(b" \",:{}[]\\0-eu1\n\x01".to_vec()),
    ) {
        let mut document = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
        let at = at.index(document.len());
        document[at] = byte;
        let theirs = std::str::from_utf8(&document).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
        match read(&document) {
            Err(JsonError::LoneSurrogate { .. } | JsonError::DuplicateKey { .. }) => {}
            ours => prop_assert_eq!(ours.is_ok(), theirs, "{}: {:?}", String::from_utf8_lossy(&document), ours),
        }
    }

    #[test]
    fn values_are_read_as_serde_json_reads_them(value in any_value(), pretty in any::<bool>()) {
        let document = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let mut workspace = Workspace::new();
        let mut reader = Reader::from_text(&document, &mut workspace).unwrap();
        let first = reader.read_event().unwrap();
        let ours = build(&mut reader, first).unwrap();
        reader.finish().unwrap();
        prop_assert_eq!(ours, serde_json::from_str::<Value>(&document).unwrap());
    }

    #[test]
    fn any_bytes_are_read_or_refused(document in prop::collection::vec(any::<u8>(), 0..200)) {
        let theirs = std::str::from_utf8(&document).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
        prop_assert_eq!(read(&document).is_ok(), theirs);
    }

    #[test]
    fn a_string_survives_escaping_and_its_pieces_cover_it(text in any::<String>()) {
        let mut document = vec![b'"'];
        escape_into(&text, &mut document);
        document.push(b'"');
        let mut workspace = Workspace::new();
        let mut reader = Reader::new(&document, &mut workspace).unwrap();
        let Event::String(string) = reader.read_event().unwrap() else { panic!("a string") };
        let mut buffer = String::new();
        prop_assert_eq!(string.decode(&mut buffer), text.as_str());
        prop_assert_eq!(string.range(), 1..document.len() - 1);
        let covered: usize = string.segments().map(|piece| match piece {
            StrSegment::Plain(plain) => plain.len(),
            StrSegment::Escape { length, .. } => length,
        }).sum();
        prop_assert_eq!(covered, string.raw().len());
    }

    #[test]
    fn a_special_byte_is_found_wherever_it_stands(length in 0usize..200, at in any::<prop::sample::Index>(), byte in 0u8..0x20) {
        let mut document = vec![b'x'; length + 2];
        document[0] = b'"';
        document[length + 1] = b'"';
        prop_assert!(read(&document).is_ok());
        if length > 0 {
            let at = 1 + at.index(length);
            document[at] = byte;
            prop_assert_eq!(read(&document), Err(JsonError::ControlCharacter { at }));
        }
    }
}
