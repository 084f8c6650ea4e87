//! Parts of a body's text are replaced; every other byte is unchanged.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Range;

use proofgate_json::Workspace;
use proofgate_providers::{BodyText, Dialect, ParsedRequest};
use proptest::prelude::*;

/// Replaces each of `words` in the text of `body`.
fn rewrite(body: &str, words: &[(&str, &str)]) -> String {
    let mut text = BodyText::new();
    ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut Workspace::new(), &mut text).unwrap();
    let mut edits: Vec<(Range<usize>, &str)> = Vec::new();
    for (word, replacement) in words {
        let start = text.text().find(word).unwrap();
        edits.push((start..start + word.len(), replacement));
    }
    let mut out = Vec::new();
    let model = text.rewrite(body.as_bytes(), &edits, &mut out);
    let out = String::from_utf8(out).unwrap();
    assert_eq!(
        model,
        ParsedRequest::parse(Dialect::Chat, out.as_bytes())
            .unwrap()
            .model_value()
    );
    out
}

#[test]
fn a_part_of_a_string_is_replaced_and_nothing_else() {
    assert_eq!(
        rewrite(
            r#" {"messages":[{"content" : "my key is AKIA1, ok?"}],"model":"a" } "#,
            &[("AKIA1", "[redacted]")]
        ),
        r#" {"messages":[{"content" : "my key is [redacted], ok?"}],"model":"a" } "#
    );
}

#[test]
fn escapes_around_and_inside_a_part_are_kept_or_replaced_as_a_whole() {
    let body = r#"{"model":"a","messages":[{"content":"\u00e9\n\"secret\" \ud83d\ude00 caf\u00e9 end\\"}]}"#;
    assert_eq!(
        rewrite(body, &[("secret", "x"), ("\u{1f600} caf\u{e9}", "y")]),
        r#"{"model":"a","messages":[{"content":"\u00e9\n\"x\" y end\\"}]}"#
    );
    assert_eq!(
        rewrite(body, &[("\u{e9}\n\"", "<"), ("end\\", ">")]),
        r#"{"model":"a","messages":[{"content":"<secret\" \ud83d\ude00 caf\u00e9 >"}]}"#
    );
}

#[test]
fn a_part_that_spans_strings_leaves_the_syntax_between_them() {
    let body = r#"{"model":"a","messages":[{"content":["one two","","three","four five"]}]}"#;
    assert_eq!(
        rewrite(body, &[("two\n\nthree\nfour", "[gone]")]),
        r#"{"model":"a","messages":[{"content":["one [gone]","",""," five"]}]}"#
    );
}

#[test]
fn keys_are_replaced_like_values() {
    assert_eq!(
        rewrite(
            r#"{"metadata":{"k\u0065y AKIA1":"v"},"model":"a"}"#,
            &[("AKIA1", "x")]
        ),
        r#"{"metadata":{"k\u0065y x":"v"},"model":"a"}"#
    );
}

#[test]
fn a_replacement_is_escaped() {
    assert_eq!(
        rewrite(r#"{"model":"a","user":"bob"}"#, &[("bob", "\"\\\n\u{1}\u{e9}")]),
        "{\"model\":\"a\",\"user\":\"\\\"\\\\\\n\\u0001\u{e9}\"}"
    );
}

#[test]
fn ranges_that_overlap_cut_characters_or_leave_the_text_do_no_harm() {
    let body = "{\"model\":\"a\",\"user\":\"\u{e9}\u{e9} end\"}";
    let mut text = BodyText::new();
    ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut Workspace::new(), &mut text).unwrap();
    let mut out = Vec::new();
    text.rewrite(
        body.as_bytes(),
        &[
            (1..2, "x"),
            (1..3, "y"),
            (6..100, "z"),
            (200..300, "w"),
            (Range { start: 3, end: 2 }, "v"),
        ],
        &mut out,
    );
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\"model\":\"a\",\"user\":\"xy ez\"}"
    );
}

#[test]
fn the_text_of_any_document_is_collected_and_can_be_rewritten() {
    let mut text = BodyText::new();
    let body = br#"{"error":{"message":"bad \u006bey","code":null}}"#;
    text.collect(body, &mut Workspace::new()).unwrap();
    assert_eq!(text.text(), "error\nmessage\nbad key\ncode");
    let mut out = Vec::new();
    text.rewrite(body, &[(18..21, "x")], &mut out);
    assert_eq!(out, br#"{"error":{"message":"bad x","code":null}}"#);

    text.collect_plain_text("no JSON \\u0041");
    assert_eq!(text.text(), "no JSON \\u0041");
    text.rewrite(text.text().as_bytes(), &[(3..7, "-")], &mut out);
    assert_eq!(out, b"no - \\u0041");
}

/// Returns a string as JSON, with some characters escaped unnecessarily.
fn written(text: &str, escaped: &[bool]) -> String {
    let mut out = String::from("\"");
    for (index, character) in text.chars().enumerate() {
        let escape = escaped
            .get(index % escaped.len().max(1))
            .copied()
            .unwrap_or(false);
        if escape || character < ' ' || matches!(character, '"' | '\\') {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out + "\""
}

proptest! {
    #[test]
    fn the_text_of_a_rewritten_body_is_the_rewritten_text(
        strings in prop::collection::vec("[a-z\n\"\\\\\u{e9}\u{1f600}]{0,12}", 1..6),
        escaped in prop::collection::vec(any::<bool>(), 1..8),
        cuts in prop::collection::btree_set(0usize..60, 0..8),
    ) {
        let values: Vec<String> = strings.iter().map(|text| written(text, &escaped)).collect();
        let body = format!("{{\"stop\":[{}],\"model\":\"m\"}}", values.join(", "));
        let mut text = BodyText::new();
        let mut workspace = Workspace::new();
        ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut workspace, &mut text).unwrap();
        prop_assert_eq!(text.text(), strings.join("\n"));

        let whole = text.text().to_owned();
        let cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= whole.len() && whole.is_char_boundary(cut)).collect();
        let edits: Vec<(Range<usize>, &str)> = cuts.chunks_exact(2).map(|pair| (pair[0]..pair[1], "<\u{e9}>")).collect();
        let mut out = Vec::new();
        let model = text.rewrite(body.as_bytes(), &edits, &mut out);
        let request = ParsedRequest::read(Dialect::Chat, &out, &mut workspace, &mut text).unwrap();
        prop_assert_eq!(model, request.model_value());

        // The same for each string: the first piece of an edit is replaced, further pieces are removed.
        let mut start = 0;
        let mut expected = Vec::new();
        let mut used = vec![false; edits.len()];
        for string in &strings {
            let mut result = String::new();
            let mut at = 0;
            for (index, (range, replacement)) in edits.iter().enumerate() {
                let (from, to) = (range.start.max(start), range.end.min(start + string.len()));
                if from < to {
                    result.push_str(&string[at..from - start]);
                    if !std::mem::replace(&mut used[index], true) {
                        result.push_str(replacement);
                    }
                    at = to - start;
                }
            }
            result.push_str(&string[at..]);
            expected.push(result);
            start += string.len() + 1;
        }
        prop_assert_eq!(text.text(), expected.join("\n"));
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..100), edits in prop::collection::vec((0usize..99, 0usize..99), 0..5)) {
        let mut text = BodyText::new();
        let _ = ParsedRequest::read(Dialect::Chat, &body, &mut Workspace::new(), &mut text);
        let edits: Vec<(Range<usize>, &str)> = edits.into_iter().map(|(start, end)| (start..end, "x")).collect();
        let mut out = Vec::new();
        text.rewrite(&body, &edits, &mut out);
    }
}
