//! OpenAI's and Google's embeddings requests to Gemini, and their answers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use proofgate_chat_clients::openai_gemini::embeddings::{
    rename_model, translate_request, translate_response,
};
use proofgate_dialect::{RequestContext, Target, UntranslatableFieldPolicy};
use proptest::prelude::*;
use serde_json::{Value, json};

fn target() -> Target<'static> {
    Target {
        model: "gemini-embedding-001",
        max_output_tokens: 1,
        untranslatable: UntranslatableFieldPolicy::Refuse,
    }
}

fn asked(base64: bool) -> RequestContext {
    RequestContext {
        model: "assistant".into(),
        returns_base64: base64,
        ..RequestContext::default()
    }
}

#[test]
fn every_golden_case_comes_out_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openai_gemini_embeddings");
    let mut cases = 0;
    for case in fs::read_dir(folder).unwrap() {
        let case = case.unwrap().path();
        let read = |file: &str| fs::read_to_string(case.join(file)).ok();
        assert!(read("SOURCE").is_some(), "{}", case.display());
        let settings: Value =
            read("case.json").map_or(json!({}), |text| serde_json::from_str(&text).unwrap());
        let mut out = Vec::new();
        let expected = if let Some(body) = read("request.json") {
            assert_eq!(
                translate_request(body.as_bytes(), &target(), &mut out)
                    .unwrap()
                    .model,
                "assistant"
            );
            read("sent.json")
        } else if let Some(body) = read("google.json") {
            rename_model(body.as_bytes(), "assistant", &target(), &mut out).unwrap();
            read("sent.json")
        } else {
            let asked = asked(settings["base64"] == true);
            translate_response(read("answer.json").unwrap().as_bytes(), &asked, 7, &mut out).unwrap();
            read("received.json")
        };
        assert_eq!(
            String::from_utf8(out).unwrap(),
            expected.unwrap().trim_end(),
            "{}",
            case.display()
        );
        cases += 1;
    }
    assert_eq!(cases, 5);
}

#[test]
fn what_gemini_has_no_word_for_is_refused_by_name_and_nothing_is_written() {
    for (body, param) in [
        (json!({"model": "m", "input": [1, 2]}), "input[0]"),
        (json!({"model": "m", "input": ["a", [1]]}), "input[1]"),
        (json!({"model": "m", "input": []}), "input"),
        (json!({"model": "m"}), "input"),
        (json!({"input": "a"}), "model"),
        (
            json!({"model": "m", "input": "a", "encoding_format": "int8"}),
            "encoding_format",
        ),
        (
            json!({"model": "m", "input": "a", "dimensions": "9"}),
            "dimensions",
        ),
    ] {
        let mut out = Vec::new();
        let refused = translate_request(body.to_string().as_bytes(), &target(), &mut out).unwrap_err();
        assert_eq!((&*refused.param, out.len()), (param, 0), "{body}");
    }
}

#[test]
fn more_texts_than_openai_takes_are_refused_for_each_would_name_the_model() {
    for (count, fits) in [(2048, true), (2049, false)] {
        let body = json!({"model": "m", "input": vec!["a"; count]}).to_string();
        assert_eq!(
            translate_request(body.as_bytes(), &target(), &mut Vec::new()).is_ok(),
            fits
        );
        let body = json!({"requests": vec![json!({}); count]}).to_string();
        assert_eq!(
            rename_model(body.as_bytes(), "m", &target(), &mut Vec::new()).is_ok(),
            fits
        );
    }
}

#[test]
fn what_may_be_left_out_is_named() {
    let target = Target {
        untranslatable: UntranslatableFieldPolicy::Drop,
        ..target()
    };
    let body = json!({"model": "m", "input": "a", "user": "u", "new": 1}).to_string();
    let asked = translate_request(body.as_bytes(), &target, &mut Vec::new()).unwrap();
    // The members of this document are in alphabetical order.
    assert_eq!(asked.dropped_fields, ["other fields", "user"]);
}

#[test]
fn a_request_for_another_model_than_the_path_names_is_refused() {
    for (model, fits) in [
        ("models/assistant", true),
        ("assistant", true),
        ("models/other", false),
        ("", false),
    ] {
        let body = json!({"requests": [{"content": {}}, {"model": model, "content": {}}]}).to_string();
        let mut out = Vec::new();
        let written = rename_model(body.as_bytes(), "assistant", &target(), &mut out);
        assert_eq!(written.is_ok(), fits, "{model}");
        assert_eq!(out.is_empty(), !fits);
        if let Err(refused) = written {
            assert_eq!(refused.param, "requests[1].model");
        }
    }
    assert_eq!(
        rename_model(b"{}", "m", &target(), &mut Vec::new())
            .unwrap_err()
            .param,
        "requests"
    );
}

#[test]
fn what_is_no_answer_is_malformed_and_nothing_is_written() {
    for body in [
        "[]",
        "{}",
        r#"{"embeddings":[{"values":["a"]}]}"#,
        r#"{"embeddings":[{}]}"#,
        r#"{"error":{"code":400}}"#,
    ] {
        for base64 in [false, true] {
            let mut out = b"before".to_vec();
            assert!(
                translate_response(body.as_bytes(), &asked(base64), 1, &mut out).is_err(),
                "{body}"
            );
            assert_eq!(out, b"before");
        }
    }
}

proptest! {
    #[test]
    fn no_input_makes_it_panic(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"model\"", "\"input\"", "\"requests\"", "\"embeddings\"", "\"values\"",
            "\"models/m\"", "1e39", "-0", "null", "\"\\ud800\"",
        ]), 0..12),
    ) {
        let body = pieces.concat();
        let _ = translate_request(body.as_bytes(), &target(), &mut Vec::new());
        let _ = rename_model(body.as_bytes(), "m", &target(), &mut Vec::new());
        for base64 in [false, true] {
            let _ = translate_response(body.as_bytes(), &asked(base64), 1, &mut Vec::new());
        }
    }
}
