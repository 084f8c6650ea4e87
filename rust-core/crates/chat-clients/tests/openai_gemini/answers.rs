//! Whole answers and errors, as the client receives them.

use super::golden::Golden;
use super::*;

#[test]
fn an_answer_that_stops_with_calls_ends_with_tool_calls() {
    // CLIProxyAPI#5733, FootprintAI/Containarium#819.
    let choices = Golden::named("stream_parallel_calls").choices();
    let reasons: Vec<_> = choices
        .iter()
        .filter_map(|choice| choice["finish_reason"].as_str())
        .collect();
    assert_eq!(reasons, ["tool_calls"]);
}

#[test]
fn tokens_of_a_cache_count_once_and_those_that_only_the_total_has_are_reasoning() {
    // BerriAI/litellm#9812, #11789; UKGovernmentBEIS/inspect_ai#5528.
    let body = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {
        "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 5, "totalTokenCount": 120,
    }});
    let usage = translate_response(body.to_string().as_bytes(), &asked(), CREATED, &mut Vec::new()).unwrap();
    let expected = Usage {
        input: 100,
        cache_read: 60,
        cache_write: 0,
        output: 20,
        reasoning: 15,
    };
    assert_eq!(usage, expected);
}

#[test]
fn arguments_of_an_answer_that_are_no_object_or_come_in_pieces_are_malformed() {
    for call in [
        json!({"name": "f", "args": "{}"}),
        json!({"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "b"}], "willContinue": true}),
        json!({"args": {}}),
    ] {
        let body =
            json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"functionCall": call}]}}]});
        let mut out = b"before".to_vec();
        let result = translate_response(body.to_string().as_bytes(), &asked(), CREATED, &mut out);
        assert!(matches!(result, Err(ResponseError::Malformed(_))));
        assert_eq!(out, b"before");
    }
}

#[test]
fn a_reason_of_a_later_version_ends_an_answer_well() {
    let end =
        json!({"candidates": [{"finishReason": "SOMETHING_NEW", "content": {"parts": [{"newPart": {}}]}}]});
    let (out, step) = streamed_events(std::slice::from_ref(&end));
    assert_eq!(step, Ok(StreamStatus::Finished));
    assert!(out.contains(r#""finish_reason":"stop""#));
    assert!(translate_response(end.to_string().as_bytes(), &asked(), CREATED, &mut Vec::new()).is_ok());
}

#[test]
fn every_reason_of_a_filter_is_content_filter_and_every_other_bad_end_is_named() {
    let end = |reason: &str| {
        let body = json!({"candidates": [{"finishReason": reason}]}).to_string();
        let mut out = Vec::new();
        translate_response(body.as_bytes(), &asked(), CREATED, &mut out)
            .map(|_| String::from_utf8(out).unwrap())
    };
    for reason in [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
    ] {
        assert!(
            end(reason)
                .unwrap()
                .contains(r#""finish_reason":"content_filter""#),
            "{reason}"
        );
    }
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "NO_IMAGE",
        "ESCALATION",
        "OTHER",
    ] {
        let named = format!(r#""finish_reason":"content_filter","native_finish_reason":"{reason}""#);
        assert!(end(reason).unwrap().contains(&named), "{reason}");
    }
    assert!(end("MAX_TOKENS").unwrap().contains(r#""finish_reason":"length""#));
}

#[test]
fn a_delay_is_rounded_up_to_whole_seconds() {
    let body = |delay: &str| {
        let detail = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
        json!([{"error": {"code": 429, "details": [{"@type": "x"}, detail]}}]).to_string()
    };
    let cases = [
        ("17s", Some(17)),
        ("0.100s", Some(1)),
        ("3.000s", Some(3)),
        ("-1s", None),
        ("1", None),
        ("99999999999999999999s", None),
    ];
    for (delay, seconds) in cases {
        assert_eq!(retry_after(body(delay).as_bytes()), seconds, "{delay}");
    }
    assert_eq!(retry_after(b"{}"), None);
}
