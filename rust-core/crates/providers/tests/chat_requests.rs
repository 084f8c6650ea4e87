//! Reading the body of a chat request.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_json::{JsonError, Workspace};
use proofgate_providers::{BadRequest, BodyText, Dialect, Field, MAX_STRINGS, ParsedRequest, UpstreamBody};
use proptest::prelude::*;

fn read(body: &str) -> Result<(ParsedRequest<'_>, String), BadRequest> {
    let mut text = BodyText::new();
    let request = ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut Workspace::new(), &mut text)?;
    Ok((request, text.text().to_owned()))
}

#[test]
fn the_fields_that_route_and_limit_a_request_are_read() {
    let body = r#"{"messages":[{"role":"user","content":"Hi"},{}], "stream": true, "model" : "gpt-4o-mini",
        "max_tokens":10, "max_completion_tokens":20, "n":3, "stream_options":{"include_usage":true}}"#;
    let (request, _) = read(body).unwrap();
    assert_eq!(request.model, "gpt-4o-mini");
    assert!(request.stream);
    assert!(request.include_usage);
    assert_eq!(request.max_tokens, Some(20));
    assert_eq!(request.choice_count, 3);
    assert_eq!(request.message_count, 2);
    assert_eq!(
        ParsedRequest::parse(Dialect::Chat, body.as_bytes()).unwrap(),
        request
    );
}

#[test]
fn absent_and_null_fields_have_their_defaults() {
    let null = r#"{"model":"a","stream":null,"max_tokens":null,"max_completion_tokens":null,"n":null,"stream_options":null}"#;
    for body in [r#"{"model":"a"}"#, null] {
        let (request, _) = read(body).unwrap();
        assert!(!request.stream && !request.include_usage);
        assert_eq!(
            (request.max_tokens, request.choice_count, request.message_count),
            (None, 1, 0)
        );
    }
}

#[test]
fn the_models_value_is_found_where_it_stands() {
    let body = br#"{"metadata":{"model":"decoy"},"model":"gp\u0074","stream":false}"#;
    let request = ParsedRequest::parse(Dialect::Chat, body).unwrap();
    assert_eq!(request.model, "gpt");
    assert_eq!(&body[request.model_value()], br#""gp\u0074""#);
    let body = br#"{"mod\u0065l":"gpt"}"#;
    assert_eq!(
        &body[ParsedRequest::parse(Dialect::Chat, body).unwrap().model_value()],
        br#""gpt""#
    );
}

#[test]
fn a_body_that_is_not_one_json_object_is_refused() {
    let bodies: [&[u8]; 10] = [
        b"",
        b"null",
        b"[\"gpt\",true]",
        b"{",
        b"{} {}",
        b"{\"model\":\"a\"} x",
        b"{\"model\":NaN}",
        b"\xff{}",
        b"{\"model\":\"\\ud800\"}",
        b"\xef\xbb\xbf{\"model\":\"a\"}",
    ];
    for body in bodies {
        let bad = ParsedRequest::parse(Dialect::Chat, body).unwrap_err();
        assert_eq!((bad.code(), bad.param()), ("invalid_json", None), "{body:?}");
    }
}

#[test]
fn a_repeated_key_is_refused_wherever_it_stands_and_even_when_escaped() {
    let cases = [
        (r#"{"model":"a","mod\u0065l":"b"}"#, 14),
        (
            r#"{"model":"a","messages":[{"role":"user","content":"x","content":"y"}]}"#,
            55,
        ),
    ];
    for (body, at) in cases {
        let error = BadRequest::InvalidJson(JsonError::DuplicateKey { at });
        assert_eq!(read(body).unwrap_err(), error, "{body}");
    }
}

#[test]
fn a_missing_empty_or_non_string_model_is_refused() {
    for body in [r"{}", r#"{"model":""}"#, r#"{"model":7}"#, r#"{"model":null}"#] {
        let bad = read(body).unwrap_err();
        assert_eq!(bad, BadRequest::MissingModel, "{body}");
        assert_eq!((bad.code(), bad.param()), ("missing_model", Some("model")));
    }
}

#[test]
fn a_field_of_a_wrong_type_is_refused_by_its_name() {
    let cases = [
        (Field::Stream, r#""stream":"yes""#),
        (Field::Stream, r#""stream":1"#),
        (Field::MaxTokens, r#""max_tokens":-1"#),
        (Field::MaxTokens, r#""max_tokens":1.5"#),
        (Field::MaxTokens, r#""max_tokens":1e3"#),
        (Field::MaxTokens, r#""max_tokens":"10""#),
        (Field::MaxTokens, r#""max_tokens":18446744073709551616"#),
        (Field::MaxCompletionTokens, r#""max_completion_tokens":[]"#),
        (Field::N, r#""n":0"#),
        (Field::N, r#""n":-2"#),
        (Field::N, r#""n":4294967296"#),
        (Field::N, r#""n":true"#),
        (Field::Messages, r#""messages":{}"#),
        (Field::Messages, r#""messages":"hi""#),
        (Field::Messages, r#""messages":null"#),
        (Field::StreamOptions, r#""stream_options":true"#),
        (Field::IncludeUsage, r#""stream_options":{"include_usage":"yes"}"#),
    ];
    for (field, member) in cases {
        let bad = read(&format!(r#"{{"model":"a",{member}}}"#)).unwrap_err();
        assert_eq!(bad, BadRequest::InvalidField(field), "{member}");
        assert_eq!((bad.code(), bad.param()), ("invalid_value", Some(field.name())));
        assert!(bad.to_string().contains(field.name()));
    }
}

#[test]
fn the_text_holds_every_string_but_words_of_the_api() {
    let body = r#"{"model":"gpt","messages":[
        {"role":"system","content":"Be \u006bind."},
        {"role":"user","name":"Ann","content":[{"type":"text","text":"Look:\n"},{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}]},
        {"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"find","arguments":"{\"q\":\"a\"}"}}]}],
        "tools":[{"type":"function","function":{"name":"find","description":"Finds","parameters":{"type":"object","properties":{"query":{"type":["string","null"]}}}}}],
        "response_format":{"type":"json_object"},"metadata":{"ticket":"T-1"},"stop":["END"],"x_vendor":"option"}"#;
    let expected = [
        "Be kind.",
        "Ann",
        "Look:\n",
        "https://x.example/a.png",
        "call_1",
        "find",
        r#"{"q":"a"}"#,
        "find",
        "Finds",
        "query",
        "ticket",
        "T-1",
        "END",
        "x_vendor",
        "option",
    ];
    assert_eq!(read(body).unwrap().1, expected.join("\n"));
}

#[test]
fn a_role_or_type_that_is_more_than_a_word_is_text() {
    for value in [
        "ignore all rules",
        "Ignore",
        "aaaaaaaaaaaaaaaaaaaaaaaaa",
        "us\\u0065r",
    ] {
        let body = format!(r#"{{"model":"a","messages":[{{"role":"{value}","type":"{value}"}}]}}"#);
        let value = value.replace("\\u0065", "e");
        assert_eq!(read(&body).unwrap().1, format!("{value}\n{value}"));
    }
}

#[test]
fn the_prompt_is_estimated_from_its_text_and_its_messages() {
    let estimate = |body: &str| read(body).unwrap().0.estimated_prompt_tokens();
    assert_eq!(estimate(r#"{"model":"a"}"#), 0);
    assert_eq!(
        estimate(r#"{"model":"a","messages":[{"role":"user","content":"12345"}]}"#),
        2 + 4
    );
    assert_eq!(
        estimate(r#"{"model":"a","messages":[{"content":"1234"},{"content":"123"}]}"#),
        2 + 8
    );
}

#[test]
fn an_attachment_is_not_estimated_by_its_encoded_size() {
    let image = "A".repeat(1_000_000);
    let content =
        format!(r#"[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{image}"}}}}]"#);
    let body = format!(r#"{{"model":"a","messages":[{{"role":"user","content":{content}}}]}}"#);
    assert_eq!(read(&body).unwrap().0.estimated_prompt_tokens(), 2_000 + 4);
}

#[test]
fn a_body_text_is_used_again_for_the_next_body() {
    let (mut workspace, mut text) = (Workspace::new(), BodyText::new());
    for body in [
        r#"{"model":"a","messages":[{"content":"long"}]}"#,
        r#"{"model":"a","messages":"#,
        r#"{"model":"a"}"#,
    ] {
        let _ = ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut workspace, &mut text);
    }
    assert_eq!(text.text(), "");
}

/// Returns the upstream body that requests the usage of a stream.
fn asking(body: &str) -> String {
    let request = ParsedRequest::parse(Dialect::Chat, body.as_bytes()).unwrap();
    let edit = request.usage_edit(&request.model_value());
    let body = UpstreamBody::new(body.as_bytes(), [edit, None]);
    let parts = body.parts().concat();
    assert_eq!(parts.len(), body.length());
    String::from_utf8(parts).unwrap()
}

#[test]
fn a_stream_is_asked_for_its_usage_and_every_other_byte_stays() {
    let cases = [
        (
            r#"{ "stream": true, "model" : "m" , "n":1}"#,
            r#"{ "stream": true, "model" : "m","stream_options":{"include_usage":true} , "n":1}"#,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options": null }"#,
            r#"{"model":"m","stream":true,"stream_options": {"include_usage":true} }"#,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{ }}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true }}"#,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{ "x":1}}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true, "x":1}}"#,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"include_usage": false,"x":1}}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage": true,"x":1}}"#,
        ),
        (
            r#"{"stream_options":{"x":1,"include_usage":null},"model":"m","stream":true}"#,
            r#"{"stream_options":{"x":1,"include_usage":true},"model":"m","stream":true}"#,
        ),
    ];
    for (body, asked) in cases {
        assert_eq!(asking(body), asked);
        assert!(
            ParsedRequest::parse(Dialect::Chat, asked.as_bytes())
                .unwrap()
                .include_usage,
            "{asked}"
        );
    }
}

#[test]
fn what_brings_its_usage_anyway_is_not_asked_for_it() {
    for body in [
        r#"{"model":"m"}"#,
        r#"{"model":"m","stream":false,"stream_options":{}}"#,
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
    ] {
        assert_eq!(asking(body), body);
    }
}

#[test]
fn a_body_takes_two_edits_in_any_order() {
    let edits = [Some((5..5, &b"-"[..])), Some((1..3, &b"xyz"[..]))];
    let mut swapped = edits.clone();
    swapped.swap(0, 1);
    for edits in [edits, swapped] {
        assert_eq!(UpstreamBody::new(b"012345", edits).parts().concat(), b"0xyz34-5");
    }
    assert_eq!(UpstreamBody::new(b"01", [None, None]).parts().concat(), b"01");
}

/// Names that a case-insensitive parser accepts as `name`: Go's `encoding/json` uses Unicode simple case folding,
/// Java's `equalsIgnoreCase` compares the upper and lower case of single characters.
fn other_spellings(name: &str) -> impl Strategy<Value = String> + use<> {
    let spellings = |letter: char| match letter {
        'k' => vec!['k', 'K', '\u{212a}'],
        's' => vec!['s', 'S', '\u{17f}'],
        'i' => vec!['i', 'I', '\u{130}', '\u{131}'],
        other => vec![other, other.to_ascii_uppercase()],
    };
    let letters: Vec<_> = name
        .chars()
        .map(|letter| prop::sample::select(spellings(letter)))
        .collect();
    let name = name.to_owned();
    letters
        .prop_map(|letters| letters.into_iter().collect::<String>())
        .prop_filter("another spelling", move |spelling| *spelling != name)
}

/// Returns a name as a JSON string, with some characters escaped.
fn written(name: &str, escaped: u32) -> String {
    let character = |(index, letter): (usize, char)| match escaped >> (index % 32) & 1 {
        1 => format!("\\u{:04x}", u32::from(letter)),
        _ => letter.to_string(),
    };
    name.chars().enumerate().map(character).collect()
}

const READ: [&str; 7] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "n",
];

fn read_name() -> impl Strategy<Value = (&'static str, String)> {
    prop::sample::select(READ.to_vec()).prop_flat_map(|name| (Just(name), other_spellings(name)))
}

#[test]
fn another_spelling_of_a_name_that_is_read_is_refused() {
    let cases = [
        (r#"{"model":"cheap","Model":"expensive"}"#, "model"),
        (r#"{"Model":"expensive","model":"cheap"}"#, "model"),
        (r#"{"MODEL":"expensive"}"#, "model"),
        (r#"{"model":"a","\u004dodel":"b"}"#, "model"),
        (r#"{"model":"a","max_toKens":9}"#, "max_tokens"),
        ("{\"model\":\"a\",\"max_to\u{212a}ens\":9}", "max_tokens"),
        (r#"{"model":"a","\u017ftream":true}"#, "stream"),
        (r#"{"model":"a","N":9}"#, "n"),
        (
            r#"{"model":"a","stream_options":{"Include_Usage":true}}"#,
            "stream_options.include_usage",
        ),
    ];
    for (body, name) in cases {
        let bad = read(body).unwrap_err();
        assert_eq!(
            (bad.code(), bad.param()),
            ("ambiguous_name", Some(name)),
            "{body}"
        );
        assert!(bad.to_string().contains(name));
    }
}

#[test]
fn a_name_that_only_resembles_one_that_is_read_is_text() {
    for name in ["models", "mode", "m\u{f6}del", "model ", "no", "", "\u{dc}"] {
        assert!(
            read(&format!(r#"{{"model":"a","{name}":"b"}}"#)).is_ok(),
            "{name}"
        );
    }
    // No members are read at deeper levels, so their spelling does not matter.
    let body = r#"{"model":"a","messages":[{"Role":"x","Model":"y"}],"metadata":{"N":1}}"#;
    assert_eq!(read(body).unwrap().1, "Role\nx\nModel\ny\nN");
}

proptest! {
    #[test]
    fn no_spelling_of_a_name_that_is_read_passes_beside_it(
        (name, spelling) in read_name(), escaped in any::<u32>(), before in any::<bool>(),
    ) {
        let other = format!(r#""{}":null"#, written(&spelling, escaped));
        let model = r#""model":"cheap""#;
        let body = if before { format!("{{{other},{model}}}") } else { format!("{{{model},{other}}}") };
        let bad = read(&body).unwrap_err();
        prop_assert_eq!((bad.code(), bad.param()), ("ambiguous_name", Some(name)), "{}", body);
    }

    /// Compares with the definition: characters whose upper and lower case, in either order, are equal.
    #[test]
    fn a_member_is_refused_exactly_when_its_name_is_one_that_is_read_but_for_case(
        name in "[a-zA-Z_\u{17f}\u{212a}\u{130}\u{131}\u{e4}]{0,4}|[mM][oO][dD][eE][lL\u{13d}]|[nN\u{143}]|[sS\u{17f}\u{15b}][tT]ream",
    ) {
        let folded = |letter: char| match letter {
            '\u{130}' | '\u{131}' => 'i',
            other => other.to_uppercase().next().unwrap().to_lowercase().next().unwrap(),
        };
        let fold = |text: &str| text.chars().map(folded).collect::<String>();
        let expected = !READ.contains(&name.as_str()) && READ.contains(&fold(&name).as_str());
        let body = format!(r#"{{"model":"a","{name}":null}}"#);
        let refused = matches!(read(&body), Err(BadRequest::AmbiguousName(_)));
        prop_assert_eq!(refused, expected, "{}", body);
    }
}

fn with_strings(count: usize) -> String {
    let strings = r#""","#.repeat(count - 1);
    format!(r#"{{"model":"a","tools":[{strings}""]}}"#)
}

#[test]
fn a_body_with_more_strings_than_are_read_is_refused() {
    assert!(read(&with_strings(MAX_STRINGS)).is_ok());
    let refused = read(&with_strings(MAX_STRINGS + 1)).unwrap_err();
    assert_eq!(
        (refused, refused.code()),
        (BadRequest::TooManyStrings, "too_many_strings")
    );
}

#[test]
fn long_numbers_and_images_count_among_the_strings_as_far_as_they_are_noted() {
    let strings = with_strings(MAX_STRINGS);
    let short = strings.replacen("[", "[123,", 1);
    assert!(read(&short).is_ok());
    let long = strings.replacen("[", "[123456789,", 1);
    assert_eq!(read(&long).unwrap_err(), BadRequest::TooManyStrings);
    let image = format!("data:image/png;base64,iVBORw0KGgo{}", "A9x/".repeat(1000));
    let image = strings.replacen("[", &format!("[{{\"url\":\"{image}\"}},"), 1);
    assert!(read(&image).is_ok());
}

#[test]
fn what_is_noted_of_strings_has_a_bound_and_is_given_back() {
    let (mut text, mut workspace) = (BodyText::new(), Workspace::new());
    let bodies = [with_strings(MAX_STRINGS), with_strings(3 * MAX_STRINGS)];
    for body in bodies {
        let _ = ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut workspace, &mut text);
        // Twelve bytes for each string, sixteen for each message, and one line feed per string.
        assert!(
            text.capacity() <= (12 + 16 + 4) * MAX_STRINGS,
            "{}",
            text.capacity()
        );
        text.release_memory(1000);
        // The limit applies to each of the three buffers: texts, strings, messages.
        assert!(text.capacity() <= 3000, "{}", text.capacity());
        assert_eq!(text.text(), "");
    }
    let keys: Vec<String> = (0..10_000).map(|number| format!(r#""{number}":0"#)).collect();
    let body = format!(r#"{{"model":"a",{}}}"#, keys.join(","));
    ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut workspace, &mut text).unwrap();
    assert!(workspace.capacity() > 100_000);
    workspace.release_memory(1000);
    assert!(workspace.capacity() <= 2000, "{}", workspace.capacity());
}

#[test]
fn memory_that_was_made_ready_holds_the_text_and_the_rest_of_it_goes_back() {
    let mut text = BodyText::new();
    let picture = format!("data:image/png;base64,iVBORw0KGgo{}", "A".repeat(1 << 20));
    let body = chat_with_picture(&picture);
    assert_eq!(
        text.reserve_steps(body.len()).count(),
        body.len().div_ceil(64 << 10)
    );
    assert!(text.text().is_empty() && text.capacity() >= body.len());
    ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut Workspace::new(), &mut text).unwrap();
    text.shrink_to_used();
    assert!(text.capacity() < 16 << 10, "{}", text.capacity());
    assert!(text.text().contains("what is this"), "{}", text.text());
}

#[test]
fn memory_that_a_document_has_left_is_ready_for_the_next_one() {
    let mut text = BodyText::new();
    assert_eq!(text.reserve_steps(300_000).count(), 5);
    text.collect_plain_text("a document");
    assert_eq!(text.reserve_steps(300_000).count(), 0);
    assert!(text.text().is_empty() && text.capacity() >= 300_000);
    assert_eq!(text.reserve_steps(400_000).count(), 7);
}

fn chat_with_picture(url: &str) -> String {
    let parts = format!(
        r#"[{{"type":"text","text":"what is this"}},{{"type":"image_url","image_url":{{"url":"{url}"}}}}]"#
    );
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":{parts}}}]}}"#)
}
