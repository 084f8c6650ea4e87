//! Streamed answers.

use super::golden::Golden;
use super::*;

#[test]
fn parallel_calls_of_a_stream_are_numbered_from_zero_and_have_ids() {
    // BerriAI/litellm#5231, maximhq/bifrost#1961.
    let choices = Golden::named("stream_parallel_calls").choices();
    let calls = choices
        .iter()
        .filter_map(|choice| choice["delta"]["tool_calls"].get(0));
    let calls: Vec<_> = calls
        .map(|call| (call["index"].as_u64(), call["id"].as_str()))
        .collect();
    assert_eq!(calls, [(Some(0), Some("a")), (Some(1), Some("call_r3_0_1"))]);
}

#[test]
fn an_event_with_text_and_a_call_loses_neither() {
    // BerriAI/litellm#18238, #25836.
    let choices = Golden::named("stream_text_and_call_in_one_event").choices();
    let delta = &choices[0]["delta"];
    assert_eq!(delta["content"], "Let me look.");
    assert_eq!(delta["tool_calls"][0]["function"]["name"], "now");
}

#[test]
fn the_first_chunk_of_a_choice_has_its_role_and_no_later_one() {
    // BerriAI/litellm#40887.
    let event = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}}]});
    let end = json!({"candidates": [{"finishReason": "STOP"}]});
    let (out, _) = streamed_events(&[event("a"), event("b"), end]);
    assert_eq!(out.matches(r#""role":"assistant""#).count(), 1);
    assert!(out.find("role") < out.find(r#""content":"a""#));
}

#[test]
fn a_failure_in_a_stream_is_one_error_with_no_good_end_behind_it() {
    // BerriAI/litellm#39703, #32086, #20347, #4562.
    let text = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
    let end = json!({"candidates": [{"finishReason": "STOP"}]});
    let reported = json!({"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}});
    for failure in [reported.clone(), json!([reported]), json!({"error": "?"})] {
        let (out, step) = streamed_events(&[text.clone(), failure.clone(), failure, end.clone()]);
        assert_eq!(step, Ok(StreamStatus::Failed));
        assert_eq!(out.matches(r#"data: {"error":{"message":"#).count(), 1, "{out}");
        assert!(
            !out.contains("[DONE]") && !out.contains(r#""finish_reason":""#),
            "{out}"
        );
        let last = events(&out).pop().unwrap();
        let last: Value = serde_json::from_str(&last).unwrap();
        let keys: Vec<_> = last["error"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["code", "message", "param", "type"]);
    }
}

#[test]
fn a_stream_that_is_cut_off_has_no_good_end() {
    let text = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
    let one_of_two = json!({"candidates": [{"index": 1, "finishReason": "STOP"}]});
    for cut in [
        vec![],
        vec![text.clone()],
        vec![text, one_of_two],
        vec![json!({"responseId": "r"})],
    ] {
        let (out, end) = streamed_events(&cut);
        assert_eq!(end, Err(ResponseError::Failed("ended early")));
        assert!(!out.contains("[DONE]"));
    }
}

#[test]
fn a_stream_ends_once_and_takes_nothing_behind_its_end() {
    let mut stream = Stream::new(&asked(), CREATED);
    let mut out = Vec::new();
    let end = br#"{"candidates":[{"finishReason":"STOP"}]}"#;
    assert_eq!(stream.push_event("", end, &mut out), Ok(StreamStatus::InProgress));
    assert_eq!(stream.finish(&mut out), Ok(StreamStatus::Finished));
    let length = out.len();
    assert_eq!(stream.finish(&mut out), Ok(StreamStatus::Finished));
    assert!(stream.push_event("", end, &mut out).is_err());
    assert_eq!(out.len(), length);
}

#[test]
fn more_candidates_than_are_told_apart_are_too_large() {
    let event = |index: u32| json!({"candidates": [{"index": index, "content": {"parts": [{"text": "a"}]}}]});
    let events: Vec<Value> = (0..17).map(event).collect();
    assert_eq!(streamed_events(&events).1, Err(ResponseError::TooLarge));
}
