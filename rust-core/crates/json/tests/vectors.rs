//! Documents that a strict reader accepts, and documents that it refuses, each for one reason.

use proofgate_json::{Event, JsonError, Reader, Workspace};

fn read(document: &[u8]) -> Result<usize, JsonError> {
    let mut workspace = Workspace::new();
    let mut reader = Reader::new(document, &mut workspace)?;
    let mut events = 0;
    while reader.next()?.is_some() {
        events += 1;
    }
    Ok(events)
}

#[test]
fn valid_documents_are_read() {
    let documents: [&[u8]; 26] = [
        b"null",
        b"true",
        b" false\r\n",
        b"0",
        b"-0",
        b"10",
        b"-1.5e+10",
        b"0e1",
        b"1E400",
        b"123456789012345678901234567890",
        br#""""#,
        br#""\"\\\/\b\f\n\r\t""#,
        br#""\u0000\u001F\u00e9\uFFFF""#,
        br#""\ud83d\ude00""#,
        br#""\uDBFF\uDFFF""#,
        "\"\u{7f}\u{e9}\u{2028}\u{1f600}\"".as_bytes(),
        b"[]",
        b"[ ]",
        b"[[],[[]],{}]",
        b"[1,\t2 ,\n3]",
        b"{}",
        b"{\t}",
        br#"{"":0}"#,
        br#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#,
        br#"{"a":1,"A":2,"a ":3}"#,
        br#"{ "a" : 1 , "b" : 2 }"#,
    ];
    for document in documents {
        assert!(read(document).is_ok(), "{}", String::from_utf8_lossy(document));
    }
}

#[test]
fn what_breaks_a_rule_is_refused_at_its_byte() {
    use JsonError::*;
    let cases: &[(&[u8], JsonError)] = &[
        // no value, or an incomplete one
        (b"", UnexpectedEnd { at: 0 }),
        (b" \n", UnexpectedEnd { at: 2 }),
        (b"[", UnexpectedEnd { at: 1 }),
        (b"[1", UnexpectedEnd { at: 2 }),
        (b"[1,", UnexpectedEnd { at: 3 }),
        (b"{", UnexpectedEnd { at: 1 }),
        (br#"{"a""#, UnexpectedEnd { at: 4 }),
        (br#"{"a":"#, UnexpectedEnd { at: 5 }),
        (br#"{"a":1,"#, UnexpectedEnd { at: 7 }),
        (br#"""#, UnexpectedEnd { at: 1 }),
        (br#""abc"#, UnexpectedEnd { at: 4 }),
        (br#""\"#, UnexpectedEnd { at: 2 }),
        (br#""\u12"#, UnexpectedEnd { at: 5 }),
        (br#""\ud83d"#, UnexpectedEnd { at: 7 }),
        (br#""\ud83d\"#, UnexpectedEnd { at: 8 }),
        (br#""\ud83d\u"#, UnexpectedEnd { at: 9 }),
        // structure
        (b"[1,]", UnexpectedByte { at: 3 }),
        (b"[,1]", UnexpectedByte { at: 1 }),
        (b"[1 2]", UnexpectedByte { at: 3 }),
        (b"[1}", UnexpectedByte { at: 2 }),
        (b"]", UnexpectedByte { at: 0 }),
        (b"}", UnexpectedByte { at: 0 }),
        (b"{]", UnexpectedByte { at: 1 }),
        (br#"{"a":1,}"#, UnexpectedByte { at: 7 }),
        (br#"{"a":1]"#, UnexpectedByte { at: 6 }),
        (br#"{,"a":1}"#, UnexpectedByte { at: 1 }),
        (br#"{"a",1}"#, UnexpectedByte { at: 4 }),
        (br#"{"a":}"#, UnexpectedByte { at: 5 }),
        (br#"{"a"::1}"#, UnexpectedByte { at: 5 }),
        (b"{1:1}", UnexpectedByte { at: 1 }),
        (b"{a:1}", UnexpectedByte { at: 1 }),
        (b"{'a':1}", UnexpectedByte { at: 1 }),
        (b"[1:2]", UnexpectedByte { at: 2 }),
        // literals
        (b"nul", UnexpectedByte { at: 0 }),
        (b"True", UnexpectedByte { at: 0 }),
        (b"truee", TrailingData { at: 4 }),
        (b"NaN", UnexpectedByte { at: 0 }),
        (b"Infinity", UnexpectedByte { at: 0 }),
        (b"-Infinity", InvalidNumber { at: 0 }),
        // numbers
        (b"01", TrailingData { at: 1 }),
        (b"[01]", UnexpectedByte { at: 2 }),
        (b"-", InvalidNumber { at: 0 }),
        (b"-a", InvalidNumber { at: 0 }),
        (b"+1", UnexpectedByte { at: 0 }),
        (b".5", UnexpectedByte { at: 0 }),
        (b"1.", InvalidNumber { at: 0 }),
        (b"[1.e1]", InvalidNumber { at: 1 }),
        (b"1e", InvalidNumber { at: 0 }),
        (b"1e+", InvalidNumber { at: 0 }),
        (b"0x10", TrailingData { at: 1 }),
        (b"1_000", TrailingData { at: 1 }),
        // strings
        (b"\"a\nb\"", ControlCharacter { at: 2 }),
        (b"\"\x00\"", ControlCharacter { at: 1 }),
        (
            b"\"0123456789012345678901234567890123456789\x1f\"",
            ControlCharacter { at: 41 },
        ),
        (br#""\a""#, InvalidEscape { at: 1 }),
        (br#""\'""#, InvalidEscape { at: 1 }),
        (br#""x\x41""#, InvalidEscape { at: 2 }),
        (br#""\u00g0""#, InvalidEscape { at: 1 }),
        (br#""\u+123""#, InvalidEscape { at: 1 }),
        (br#""\ud83d""#, LoneSurrogate { at: 1 }),
        (br#""\ude00""#, LoneSurrogate { at: 1 }),
        (br#""\ud83d\ud83d""#, LoneSurrogate { at: 1 }),
        (br#""\ud83dx""#, LoneSurrogate { at: 1 }),
        (br#""\ud83d\n""#, LoneSurrogate { at: 1 }),
        (br#"{"\udc00":1}"#, LoneSurrogate { at: 2 }),
        // encoding
        (b"\xef\xbb\xbf{}", UnexpectedByte { at: 0 }),
        (b"\"\xff\"", InvalidUtf8 { at: 1 }),
        (b"\"\xc0\xaf\"", InvalidUtf8 { at: 1 }),
        (b"\"\xed\xa0\x80\"", InvalidUtf8 { at: 1 }),
        (b"[\"\xe2\x82\"]", InvalidUtf8 { at: 2 }),
        // other kinds of white space, comments
        (b"\x0c1", UnexpectedByte { at: 0 }),
        ("\u{a0}1".as_bytes(), UnexpectedByte { at: 0 }),
        (b"/**/1", UnexpectedByte { at: 0 }),
        (b"1//", TrailingData { at: 1 }),
        (b"{} {}", TrailingData { at: 3 }),
        (b"1\x00", TrailingData { at: 1 }),
        // keys
        (br#"{"a":1,"a":1}"#, DuplicateKey { at: 8 }),
        (br#"{"a":1,"\u0061":1}"#, DuplicateKey { at: 8 }),
        (br#"{"\u0061\n":1,"a\u000A":1}"#, DuplicateKey { at: 15 }),
        (br#"[{"x":{"y":1,"z":2,"y":3}}]"#, DuplicateKey { at: 20 }),
        (br#"{"":1,"":1}"#, DuplicateKey { at: 7 }),
    ];
    for (document, error) in cases {
        assert_eq!(
            read(document),
            Err(*error),
            "{}",
            String::from_utf8_lossy(document)
        );
        assert!(error.offset() <= document.len());
    }
}

#[test]
fn nesting_is_counted_in_objects_and_arrays() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(nested(64).as_bytes()).is_ok());
    assert_eq!(read(nested(65).as_bytes()), Err(JsonError::TooDeep { at: 64 }));
    assert_eq!(
        read("[".repeat(1_000_000).as_bytes()),
        Err(JsonError::TooDeep { at: 64 })
    );
    let mut workspace = Workspace::new();
    let mut reader = Reader::new(br#"{"a":[]}"#, &mut workspace)
        .unwrap()
        .with_max_depth(1);
    reader.read_event().unwrap();
    reader.read_event().unwrap();
    assert_eq!(reader.read_event(), Err(JsonError::TooDeep { at: 5 }));
}

/// `{"k0":…,"k1":…}` with `count` keys, then `last`.
fn object(count: usize, last: &str) -> String {
    let keys: Vec<String> = (0..count).map(|key| format!("\"k{key}\":{{\"k\":0}},")).collect();
    format!("{{{}{last}}}", keys.concat())
}

#[test]
fn a_repeated_key_is_found_in_an_object_of_any_size() {
    for count in [1, 5, 22, 23, 24, 25, 26, 1000, 100_000] {
        assert!(read(object(count, r#""x":1"#).as_bytes()).is_ok(), "{count} keys");
        for (again, written) in [
            ("k0", "k0"),
            ("k0", r"\u006b0"),
            (&format!("k{}", count - 1), &format!(r"k{}", count - 1)),
        ] {
            let document = object(count, &format!("\"{written}\":1"));
            let second = document.len() - 4 - written.len();
            let error = JsonError::DuplicateKey { at: second };
            assert_eq!(
                read(document.as_bytes()),
                Err(error),
                "{again} again after {count} keys"
            );
        }
    }
}

#[test]
fn escaped_keys_of_a_large_object_are_compared_by_their_values() {
    let escaped: String = (0..500).map(|key| format!(r#""\u{key:04x}":0,"#)).collect();
    assert!(read(format!("{{{escaped}\"x\\u0001\":0}}").as_bytes()).is_ok());
    let error = JsonError::DuplicateKey {
        at: 2 + escaped.len(),
    };
    assert_eq!(read(format!("{{{escaped}\"\\b\":0}}").as_bytes()), Err(error));
}

#[test]
fn a_workspace_serves_one_document_after_another_even_after_an_error() {
    let mut workspace = Workspace::new();
    for document in [
        r#"{"a":{"b":["#,
        r#"{"a":{"b":[]}}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":1}"#,
    ] {
        let read = |workspace: &mut Workspace| {
            let mut reader = Reader::from_text(document, workspace)?;
            while reader.next()?.is_some() {}
            reader.finish()
        };
        assert_eq!(read(&mut workspace), read(&mut Workspace::new()), "{document}");
    }
}

#[test]
fn strings_and_numbers_come_as_they_stand_with_their_place() {
    let document = r#" {"k\u0065y" : ["caf\u00e9 \ud83d\ude00", -1.50E+2]}"#;
    let mut workspace = Workspace::new();
    let mut reader = Reader::from_text(document, &mut workspace).unwrap();
    let mut buffer = String::new();
    assert_eq!(reader.read_event(), Ok(Event::ObjectStart));
    let Ok(Event::Key(key)) = reader.read_event() else {
        panic!("a key")
    };
    assert_eq!((key.raw(), key.is_escaped()), (r"k\u0065y", true));
    assert_eq!(key.decode(&mut buffer), "key");
    assert_eq!(&document[key.range()], key.raw());
    assert_eq!(reader.read_event(), Ok(Event::ArrayStart));
    let Ok(Event::String(string)) = reader.read_event() else {
        panic!("a string")
    };
    assert_eq!(string.decode(&mut buffer), "caf\u{e9} \u{1f600}");
    assert_eq!(&document[string.range()], string.raw());
    assert_eq!(reader.read_event(), Ok(Event::Number("-1.50E+2")));
    assert_eq!(reader.read_event(), Ok(Event::ArrayEnd));
    assert_eq!(reader.read_event(), Ok(Event::ObjectEnd));
    assert_eq!(reader.next(), Ok(None));
    assert!(reader.read_event().is_err());
}

#[test]
fn a_skipped_value_is_checked_like_any_other() {
    let mut workspace = Workspace::new();
    let mut reader = Reader::from_text(r#"[{"a":[1,{}]},2,{"b":1,"b":2}]"#, &mut workspace).unwrap();
    assert_eq!(reader.read_event(), Ok(Event::ArrayStart));
    let object = reader.read_event().unwrap();
    reader.skip(object).unwrap();
    let number = reader.read_event().unwrap();
    assert_eq!(number, Event::Number("2"));
    reader.skip(number).unwrap();
    let object = reader.read_event().unwrap();
    assert_eq!(reader.skip(object), Err(JsonError::DuplicateKey { at: 24 }));
}

#[test]
fn a_reader_that_is_left_early_says_so() {
    let mut workspace = Workspace::new();
    let mut reader = Reader::from_text("[1]", &mut workspace).unwrap();
    reader.read_event().unwrap();
    assert!(matches!(reader.finish(), Err(JsonError::UnexpectedEnd { .. })));
}
