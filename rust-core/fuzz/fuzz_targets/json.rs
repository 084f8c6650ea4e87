//! The JSON reader accepts what serde_json accepts, less what two parsers could read differently, and every string
//! that it hands out stands where it says and survives being written again. A name equals another but for its case when
//! upper and lower case of their characters are the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_json::{Event, JsonError, Reader, Str, StrSegment, Workspace, equals_ignore_case, escape_into};
use serde::de::IgnoredAny;
use std::cell::RefCell;

#[derive(Default)]
struct Buffers {
    string: Workspace,
    decoded: String,
    again: String,
    written: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<(Workspace, Buffers)> = RefCell::default();
}

fn check(bytes: &[u8], text: Str<'_>, buffers: &mut Buffers) {
    assert_eq!(&bytes[text.range()], text.raw().as_bytes());
    assert_eq!(
        (bytes[text.range().start - 1], bytes[text.range().end]),
        (b'"', b'"')
    );
    let covered: usize = text
        .segments()
        .map(|piece| match piece {
            StrSegment::Plain(plain) => plain.len(),
            StrSegment::Escape { length, .. } => length,
        })
        .sum();
    assert_eq!(covered, text.raw().len());
    let plainly = text.segments().flat_map(|piece| {
        let (plain, escape) = match piece {
            StrSegment::Plain(plain) => (plain, None),
            StrSegment::Escape { decoded, .. } => ("", Some(decoded)),
        };
        plain.chars().chain(escape)
    });
    assert!(plainly.eq(text.decode(&mut buffers.decoded).chars()));

    let Buffers {
        string,
        decoded,
        again,
        written,
        ..
    } = buffers;
    let decoded = text.decode(decoded);
    written.clear();
    written.push(b'"');
    escape_into(decoded, written);
    written.push(b'"');
    let mut reader = Reader::new(written, string).expect("it is UTF-8");
    match reader.read_event() {
        Ok(Event::String(reread)) => assert_eq!(reread.decode(again), decoded),
        other => panic!("{other:?}"),
    }
}

/// The character that `cases` consists of, if it is one.
fn single(mut cases: impl Iterator<Item = char>) -> Option<char> {
    cases.next().filter(|_| cases.next().is_none())
}

fn fold(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|letter| match letter {
        '\u{130}' | '\u{131}' => 'i',
        other => {
            let upper = single(other.to_uppercase()).unwrap_or(other);
            single(upper.to_lowercase()).unwrap_or(upper)
        }
    })
}

fn compare(name: Str<'_>, decoded: &mut String) {
    let name = name.decode(decoded);
    for wanted in ["model", "stream_options", "max_tokens", "n"] {
        assert_eq!(equals_ignore_case(name, wanted), fold(name).eq(wanted.chars()));
    }
}

fn read(bytes: &[u8], document: &mut Workspace, buffers: &mut Buffers) -> Result<(), JsonError> {
    let mut reader = Reader::new(bytes, document)?;
    while let Some(event) = reader.next()? {
        match event {
            Event::Key(text) => {
                check(bytes, text, buffers);
                compare(text, &mut buffers.decoded);
            }
            Event::String(text) => check(bytes, text, buffers),
            _ => {}
        }
    }
    reader.finish()
}

fuzz_target!(|bytes: &[u8]| {
    BUFFERS.with_borrow_mut(|(document, buffers)| {
        let theirs =
            std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
        match read(bytes, document, buffers) {
            Ok(()) => assert!(theirs, "serde_json refuses it"),
            // serde_json looks at no surrogate that it skips, keeps the last of repeated keys and goes deeper.
            Err(
                JsonError::LoneSurrogate { .. } | JsonError::DuplicateKey { .. } | JsonError::TooDeep { .. },
            ) => {}
            Err(error) => {
                assert!(!theirs, "serde_json accepts it: {error}");
                assert!(error.offset() <= bytes.len());
            }
        }
    });
});
