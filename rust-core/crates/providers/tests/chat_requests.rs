//! What is read from the body of a chat request.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_json::{JsonError, Workspace};
use proofgate_providers::{BadRequest, BodyText, ChatRequest, Field};

fn read(body: &str) -> Result<(ChatRequest<'_>, String), BadRequest> {
    let mut text = BodyText::new();
    let request = ChatRequest::read(body.as_bytes(), &mut Workspace::new(), &mut text)?;
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
    assert_eq!(request.n, 3);
    assert_eq!(request.messages, 2);
    assert_eq!(ChatRequest::parse(body.as_bytes()).unwrap(), request);
}

#[test]
fn absent_and_null_fields_have_their_defaults() {
    let null = r#"{"model":"a","stream":null,"max_tokens":null,"max_completion_tokens":null,"n":null,"stream_options":null}"#;
    for body in [r#"{"model":"a"}"#, null] {
        let (request, _) = read(body).unwrap();
        assert!(!request.stream && !request.include_usage);
        assert_eq!((request.max_tokens, request.n, request.messages), (None, 1, 0));
    }
}

#[test]
fn the_models_value_is_found_where_it_stands() {
    let body = br#"{"metadata":{"model":"decoy"},"model":"gp\u0074","stream":false}"#;
    let request = ChatRequest::parse(body).unwrap();
    assert_eq!(request.model, "gpt");
    assert_eq!(&body[request.model_value()], br#""gp\u0074""#);
    let body = br#"{"mod\u0065l":"gpt"}"#;
    assert_eq!(
        &body[ChatRequest::parse(body).unwrap().model_value()],
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
        let bad = ChatRequest::parse(body).unwrap_err();
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
        let _ = ChatRequest::read(body.as_bytes(), &mut workspace, &mut text);
    }
    assert_eq!(text.text(), "");
}
