//! Refused requests, and the field that the error names.

use proofgate_chat_clients::openai_converse::translate_request;
use proofgate_dialect::UntranslatableFieldPolicy;
use serde_json::{Value, json};

use crate::{chat, refused, sent, sent_with, target, user};

#[test]
fn what_would_change_the_meaning_is_refused_by_name_even_where_fields_are_dropped() {
    let call = |call: Value| json!({"messages": [{"role": "assistant", "tool_calls": [call]}]});
    let image = |url: &str| user(json!([{"type": "image_url", "image_url": {"url": url}}]));
    let file = |file: Value| user(json!([{"type": "text", "text": "a"}, {"type": "file", "file": file}]));
    let arguments = |text: &str| {
        call(json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": text}}))
    };
    for (fields, param) in [
        (json!({"n": 2}), "n"),
        (json!({"audio": {"voice": "alloy", "format": "wav"}}), "audio"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"web_search_options": {}}), "web_search_options"),
        (json!({"functions": [{"name": "f"}]}), "functions"),
        (json!({"moderation": {"model": "omni"}}), "moderation"),
        (
            json!({"response_format": {"type": "grammar"}}),
            "response_format.type",
        ),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "response_format.json_schema.schema",
        ),
        (
            json!({"tools": [{"type": "custom", "custom": {"name": "a"}}]}),
            "tools[0].type",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "a.b"}}]}),
            "tools[0].function.name",
        ),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (
            json!({"tools": [{"type": "function", "function": {"name": "g"}}],
                "tool_choice": {"type": "function", "function": {"name": "f"}}}),
            "tool_choice.function.name",
        ),
        (json!({"max_tokens": "a lot"}), "max_tokens"),
        (json!({"temperature": true}), "temperature"),
        (json!({"messages": []}), "messages"),
        (
            json!({"messages": [{"role": "system", "content": "Be."}]}),
            "messages",
        ),
        (
            json!({"messages": [{"role": "function", "content": "x"}]}),
            "messages[0].role",
        ),
        (json!({"messages": [{"role": "user"}]}), "messages"),
        (
            json!({"messages": [{"role": "user", "content": "a"}, 7]}),
            "messages[1]",
        ),
        (
            json!({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}),
            "messages[0].audio",
        ),
        (
            json!({"messages": [{"role": "tool", "content": "a"}]}),
            "messages[0].tool_call_id",
        ),
        (user(json!(" \n\t")), "messages"),
        (user(json!([{"type": "text"}])), "messages[0].content[0].text"),
        (user(json!([{"type": "video_url"}])), "messages"),
        (user(json!(["a"])), "messages[0].content[0]"),
        (
            json!({"messages": [
                {"role": "user", "content": "a"}, {"role": "system", "content": [{"type": "image_url"}]}]}),
            "messages[1].content[0].image_url",
        ),
        (
            image("https://example.com/a.png"),
            "messages[0].content[0].image_url.url",
        ),
        (
            image("http://169.254.169.254/"),
            "messages[0].content[0].image_url.url",
        ),
        (
            image("data:image/png,abc"),
            "messages[0].content[0].image_url.url",
        ),
        (
            image("data:image/svg+xml;base64,PHN2Zz4="),
            "messages[0].content[0].image_url.url",
        ),
        (
            image("data:image/png;base64,"),
            "messages[0].content[0].image_url.url",
        ),
        (
            image("data:image/png;base64,a\"b"),
            "messages[0].content[0].image_url.url",
        ),
        (
            file(json!({"file_id": "file-1"})),
            "messages[0].content[1].file.file_id",
        ),
        (
            file(json!({"file_data": "aGk="})),
            "messages[0].content[1].file.file_data",
        ),
        (
            file(json!({"file_data": "data:image/png;base64,aGk="})),
            "messages[0].content[1].file.file_data",
        ),
        (
            user(json!([{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "pcm16"}}])),
            "messages[0].content[0].input_audio.format",
        ),
        (
            call(json!({"id": "a", "type": "custom", "custom": {}})),
            "messages[0].tool_calls[0].type",
        ),
        (
            arguments("{\"a\":"),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (arguments("[1]"), "messages[0].tool_calls[0].function.arguments"),
        (arguments("{} {}"), "messages[0].tool_calls[0].function.arguments"),
    ] {
        for drop in [UntranslatableFieldPolicy::Refuse, UntranslatableFieldPolicy::Drop] {
            let said = sent_with(&chat(fields.clone()), drop);
            assert_eq!(said.unwrap_err().param, param, "{fields}");
        }
    }
}

#[test]
fn a_preference_without_counterpart_is_refused_by_name_unless_it_may_be_dropped() {
    for (fields, param) in [
        (json!({"seed": 1}), "seed"),
        (json!({"logit_bias": {"50256": -100}}), "logit_bias"),
        (json!({"frequency_penalty": 0.1}), "frequency_penalty"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"verbosity": "low"}), "verbosity"),
        (json!({"top_k": 5}), "top_k"),
        (json!({"temperature": 1.01}), "temperature"),
        (json!({"reasoning_effort": "none"}), "reasoning_effort"),
        (json!({"service_tier": "fast"}), "service_tier"),
    ] {
        assert_eq!(refused(fields.clone()), param);
        let (_, asked) = sent_with(&chat(fields), UntranslatableFieldPolicy::Drop).unwrap();
        assert_eq!(asked.dropped_fields, [param]);
    }
}

#[test]
fn unknown_fields_are_left_out_wherever_they_stand_and_named_as_others() {
    for fields in [
        json!({"top_a": 5}),
        json!({"tell me\u{7}": 5}),
        json!({"stream": true, "stream_options": {"x": 1}}),
        json!({"messages": [{"role": "user", "content": "a", "x": 1}]}),
        user(json!([{"type": "text", "text": "a", "x": 1}])),
        json!({"tools": [{"type": "function", "function": {"name": "f", "x": 1}}]}),
    ] {
        let (_, asked) = sent_with(&chat(fields), UntranslatableFieldPolicy::Refuse).unwrap();
        assert_eq!(asked.dropped_fields, ["other fields"]);
    }
    assert!(sent(&chat(json!({"top_k": null}))).is_ok(), "null says nothing");
}

#[test]
fn a_field_that_stands_twice_is_refused() {
    let mut out = b"before".to_vec();
    let body = br#"{"model":"a","messages":[],"model":"b"}"#;
    assert!(translate_request(body, &target(UntranslatableFieldPolicy::Drop), &mut out).is_err());
    for body in [&b"{"[..], b"[]", b"\"a\"", b"\xff", b"{\"model\":1}", b"{}"] {
        assert!(translate_request(body, &target(UntranslatableFieldPolicy::Drop), &mut out).is_err());
    }
    assert_eq!(out, b"before", "nothing is appended then");
}

#[test]
fn a_refusal_quotes_nothing_of_the_conversation() {
    let secret = "the secret word";
    for fields in [
        json!({"max_tokens": secret}),
        json!({"temperature": secret}),
        json!({"tool_choice": secret}),
        json!({"response_format": {"type": secret}}),
        json!({"messages": [{"role": secret}]}),
        json!({"messages": [secret]}),
        user(json!([{"type": secret}])),
        user(json!([{"type": "image_url", "image_url": {"url": secret}}])),
        json!({"messages": [{"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": secret}}]}]}),
    ] {
        let said = sent(&chat(fields.clone())).unwrap_err();
        assert!(
            !format!("{} {}", said.param, said.message).contains("secret"),
            "{fields}"
        );
    }
}
