//! Responses of each dialect are read, complete and as streams.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_analysis::{
    AnalysisSettings, CapturedResponse, RefusalSignal, ResponseDialect, ResponseMeasurements,
    UnreadableResponse,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn measure(
    dialect: ResponseDialect,
    events: bool,
    body: &[u8],
) -> Result<ResponseMeasurements, UnreadableResponse> {
    let settings = AnalysisSettings {
        entropy_depth: 2,
        vocabulary_size: Some(1000),
        ..AnalysisSettings::default()
    };
    let answer = CapturedResponse {
        dialect,
        is_event_stream: events,
        body,
        is_truncated: false,
    };
    answer.measure(&settings)
}

fn whole(dialect: ResponseDialect, body: &Value) -> ResponseMeasurements {
    measure(dialect, false, body.to_string().as_bytes()).unwrap()
}

fn stream(dialect: ResponseDialect, events: &[Value]) -> ResponseMeasurements {
    let lines: Vec<String> = events
        .iter()
        .map(|event| format!("event: x\ndata: {event}\n\n"))
        .collect();
    let body = format!("{}data: [DONE]\n\n", lines.concat());
    measure(dialect, true, body.as_bytes()).unwrap()
}

/// A token with reported probability one half, and another with a quarter.
fn half(token: &str) -> Value {
    json!({"token": token, "logprob": 0.5f64.ln(), "bytes": token.as_bytes(), "top_logprobs": [
        {"token": token, "logprob": 0.5f64.ln(), "bytes": token.as_bytes()},
        {"token": "else", "logprob": 0.25f64.ln(), "bytes": null}]})
}

#[track_caller]
fn has_half_tokens(measures: &ResponseMeasurements, tokens: u64) {
    let entropy = measures.entropy.unwrap();
    assert_eq!(entropy.tokens, tokens);
    assert!((entropy.min - 1.5).abs() < 1e-9 && (entropy.reported_probability - 0.75).abs() < 1e-9);
    assert_eq!(entropy.comparable_min, Some(entropy.min));
    assert!(entropy.max.unwrap() > 3.0);
    assert_eq!(measures.first_token.as_ref().unwrap().reported_tokens().len(), 2);
}

#[test]
fn chat_completions_tell_their_tokens_whole_and_as_a_stream() {
    let body = json!({"choices": [
        {"index": 1, "message": {"content": "I can't help with that."}, "finish_reason": "content_filter"},
        {"index": 0, "message": {"content": "Hi you"}, "finish_reason": "length", "logprobs": {"content": [half("Hi"), half(" you")]}}]});
    let measures = whole(ResponseDialect::Chat, &body);
    has_half_tokens(&measures, 2);
    assert!(measures.hit_length_limit && measures.refusal.is_none() && measures.text_bytes == 6);
    let chunk = |delta: Value, told: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "logprobs": told, "finish_reason": finish}]});
    let measures = stream(
        ResponseDialect::Chat,
        &[
            chunk(
                json!({"role": "assistant", "content": ""}),
                json!(null),
                json!(null),
            ),
            chunk(
                json!({"content": "Hi"}),
                json!({"content": [half("Hi")]}),
                json!(null),
            ),
            chunk(
                json!({"content": " you"}),
                json!({"content": [half(" you")]}),
                json!(null),
            ),
            chunk(json!({}), json!(null), json!("stop")),
            json!({"choices": [], "usage": {"completion_tokens": 2}}),
        ],
    );
    has_half_tokens(&measures, 2);
    assert!(!measures.hit_length_limit && measures.text_bytes == 6);
}

#[test]
fn completions_tell_their_tokens_by_lists_and_maps() {
    let half = json!({"Hi": 0.5f64.ln(), "else": 0.25f64.ln()});
    let body = json!({"choices": [{"index": 0, "text": "Hi", "finish_reason": "stop", "logprobs":
        {"tokens": ["Hi"], "token_logprobs": [0.5f64.ln()], "top_logprobs": [half]}}]});
    has_half_tokens(&whole(ResponseDialect::Completions, &body), 1);
    // Without alternatives, only the token itself is reported, so the entropy is not comparable.
    let body = json!({"choices": [{"text": "Hi", "logprobs": {"tokens": ["Hi", "!"], "token_logprobs": [null, -0.5], "top_logprobs": null}}]});
    let entropy = whole(ResponseDialect::Completions, &body).entropy.unwrap();
    assert!(entropy.tokens == 1 && entropy.comparable_min.is_none());
}

#[test]
fn responses_tell_their_tokens_whole_and_as_a_stream() {
    let body = json!({"incomplete_details": {"reason": "max_output_tokens"}, "output": [{"type": "reasoning"}, {"type": "message",
        "content": [{"type": "output_text", "text": "Hi", "logprobs": [half("Hi")]}]}]});
    let measures = whole(ResponseDialect::Responses, &body);
    has_half_tokens(&measures, 1);
    assert!(measures.hit_length_limit && measures.text_bytes == 2);
    let measures = stream(
        ResponseDialect::Responses,
        &[
            json!({"type": "response.created", "response": {"output": []}}),
            json!({"type": "response.output_text.delta", "delta": "Hi", "logprobs": [half("Hi")]}),
            json!({"type": "response.output_text.done", "text": "Hi", "logprobs": [half("Hi")]}),
            json!({"type": "response.completed", "response": body}),
        ],
    );
    has_half_tokens(&measures, 1);
    assert!(measures.hit_length_limit && measures.text_bytes == 2);
}

#[test]
fn messages_tell_no_probabilities_and_all_else() {
    let body =
        json!({"content": [{"type": "text", "text": "I cannot help with that."}], "stop_reason": "end_turn"});
    let measures = whole(ResponseDialect::Messages, &body);
    assert!(measures.entropy.is_none() && measures.refusal == Some(RefusalSignal::Prefix));
    let measures = stream(
        ResponseDialect::Messages,
        &[
            json!({"type": "message_start", "message": {"content": []}}),
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Well"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}}),
        ],
    );
    assert_eq!(
        (measures.refusal, measures.text_bytes),
        (Some(RefusalSignal::Filtered), 4)
    );
}

#[test]
fn gemini_tells_its_tokens_whole_and_in_both_kinds_of_streams() {
    let told = json!({"chosenCandidates": [{"token": "Hi", "logProbability": 0.5f64.ln()}], "topCandidates": [{"candidates": [
        {"token": "Hi", "logProbability": 0.5f64.ln()}, {"token": "else", "logProbability": 0.25f64.ln()}]}]});
    let part = json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": "Hi"}]}, "logprobsResult": told}]});
    let end = json!({"candidates": [{"finishReason": "MAX_TOKENS"}]});
    has_half_tokens(&whole(ResponseDialect::Gemini, &part), 1);
    for measures in [
        stream(ResponseDialect::Gemini, &[part.clone(), end.clone()]),
        whole(ResponseDialect::Gemini, &json!([part, end])),
    ] {
        has_half_tokens(&measures, 1);
        assert!(measures.hit_length_limit && measures.text_bytes == 2);
    }
    let blocked = whole(
        ResponseDialect::Gemini,
        &json!({"promptFeedback": {"blockReason": "SAFETY"}}),
    );
    assert_eq!(blocked.refusal, Some(RefusalSignal::Filtered));
}

#[test]
fn a_refusal_that_is_declared_is_no_guess() {
    let body =
        json!({"choices": [{"message": {"content": null, "refusal": "No."}, "finish_reason": "stop"}]});
    assert_eq!(
        whole(ResponseDialect::Chat, &body).refusal,
        Some(RefusalSignal::Declared)
    );
}

#[test]
fn tokens_that_look_the_same_and_have_other_bytes_are_different() {
    let broken =
        |bytes: [u8; 1], logarithm: f64| json!({"token": "\u{fffd}", "logprob": logarithm, "bytes": bytes});
    let mut token = broken([0x80], 0.5f64.ln());
    token["top_logprobs"] = json!([broken([0x80], 0.5f64.ln()), broken([0x81], 0.5f64.ln())]);
    let body = json!({"choices": [{"message": {"content": "x"}, "logprobs": {"content": [token]}}]});
    assert!((whole(ResponseDialect::Chat, &body).entropy.unwrap().min - 1.0).abs() < 1e-9);
}

#[test]
fn what_is_no_answer_is_unreadable() {
    for (events, body) in [
        (false, ""),
        (false, "{}"),
        (false, "[]"),
        (false, "{\"choices\":"),
        (true, ""),
        (true, "data: {}\n\n"),
    ] {
        for dialect in [
            ResponseDialect::Chat,
            ResponseDialect::Completions,
            ResponseDialect::Responses,
            ResponseDialect::Messages,
            ResponseDialect::Gemini,
        ] {
            assert_eq!(
                measure(dialect, events, body.as_bytes()),
                Err(UnreadableResponse),
                "{dialect:?} {events} {body}"
            );
        }
    }
}

#[test]
fn the_events_of_a_stream_that_is_partly_there_are_read() {
    let answer = CapturedResponse {
        dialect: ResponseDialect::Chat,
        is_event_stream: true,
        body: b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"choices\":[{\"del",
        is_truncated: true,
    };
    let measures = answer.measure(&AnalysisSettings::default()).unwrap();
    assert!(measures.is_truncated && measures.text_bytes == 2);
}

proptest! {
    #[test]
    fn no_bytes_make_it_fail(body in prop::collection::vec(any::<u8>(), 0..200), events: bool) {
        for dialect in [ResponseDialect::Chat, ResponseDialect::Completions, ResponseDialect::Responses, ResponseDialect::Messages, ResponseDialect::Gemini] {
            let _ = measure(dialect, events, &body);
        }
    }

    #[test]
    fn no_values_in_the_places_of_others_make_it_fail(
        value in prop_oneof![Just(json!(null)), Just(json!(-1e300)), Just(json!("x")), Just(json!([{}])), Just(json!({"content": 1}))],
        at in 0usize..6,
    ) {
        let mut token = half("Hi");
        let mut body = json!({"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop", "logprobs": {"content": []}}]});
        match at {
            0 => token["logprob"] = value,
            1 => token["bytes"] = value,
            2 => token["top_logprobs"] = value,
            3 => body["choices"][0]["message"] = value,
            4 => body["choices"][0]["index"] = value,
            _ => body["choices"][0]["logprobs"] = value,
        }
        if at < 3 {
            body["choices"][0]["logprobs"]["content"] = json!([token]);
        }
        let _ = measure(ResponseDialect::Chat, false, body.to_string().as_bytes());
    }
}
