//! Streamed answers as the client receives them, and the events that end them.

use std::fs;

use proofgate_chat_clients::openai_converse::MAX_OPEN_TOOL_CALLS;
use proofgate_dialect::{RequestContext, ResponseError, StreamStatus, Usage};
use serde_json::{Value, json};

use crate::{asked, cases, chunks, hear};

const CALL: &str = r#"event messageStart {"role":"assistant"}
event contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}
"#;
const END: &str = r#"event metadata {"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}"#;

// BerriAI/litellm#5231, maximhq/bifrost#1961, BerriAI/litellm#15307, praxis-proxy/ai#266
#[test]
fn parallel_calls_have_indexes_of_their_own_and_fragments_that_interleave_go_to_the_right_one() {
    let events = fs::read_to_string(
        cases()[0]
            .with_file_name("stream_of_parallel_calls")
            .join("stream.events"),
    );
    let mut arguments = vec![String::new(); 3];
    for chunk in chunks(&events.unwrap()) {
        for call in chunk["choices"][0]["delta"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            arguments[index] += call["function"]["arguments"].as_str().unwrap();
        }
    }
    assert_eq!(
        arguments,
        [r#"{"city": "Oslo"}"#, r#"{"city": "Bergen}\""}"#, "{}"]
    );
}

// BerriAI/litellm#18238
#[test]
fn a_delta_with_text_and_a_tool_call_loses_neither() {
    let chunks = chunks(
        r#"event contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}
event contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"x","toolUse":{"input":"{}"}}}"#,
    );
    assert_eq!(chunks[2]["choices"][0]["delta"], json!({"content": "x"}));
    let fragment = json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]});
    assert_eq!(chunks[3]["choices"][0]["delta"], fragment);
}

// vercel/ai#14847, BerriAI/litellm#19028
#[test]
fn arguments_that_are_cut_short_are_an_error_and_no_call() {
    let cut = r#"event contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\": \"}\\"}}}
event contentBlockStop {"contentBlockIndex":0}
"#;
    for reason in ["tool_use", "end_turn"] {
        let events = format!("{CALL}{cut}event messageStop {{\"stopReason\":\"{reason}\"}}\n{END}");
        let (heard, last, _) = hear(&events, &asked());
        assert_eq!(last, Ok(StreamStatus::Failed), "{reason}");
        assert_eq!(heard.matches("\"error\"").count(), 1);
        assert!(!heard.contains("[DONE]") && !heard.contains("\"finish_reason\":\""));
    }
    let events = format!("{CALL}{cut}event messageStop {{\"stopReason\":\"max_tokens\"}}\n{END}");
    let (heard, last, _) = hear(&events, &asked());
    assert_eq!(last, Ok(StreamStatus::Finished), "the whole answer was cut");
    assert!(heard.contains(r#""finish_reason":"length""#));
}

#[test]
fn a_call_without_arguments_has_an_empty_object_of_them() {
    for stop in ["event contentBlockStop {\"contentBlockIndex\":0}\n", ""] {
        let heard = chunks(&format!(
            "{CALL}{stop}event messageStop {{\"stopReason\":\"tool_use\"}}\n{END}"
        ));
        let fragment = json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]});
        assert_eq!(heard[2]["choices"][0]["delta"], fragment);
        assert_eq!(heard[3]["choices"][0]["finish_reason"], "tool_calls");
    }
}

// BerriAI/litellm#39703, #32086, #20347
#[test]
fn an_exception_is_one_error_event_without_an_end() {
    for (name, kind, code) in [
        (
            "throttlingException",
            "rate_limit_error",
            json!("rate_limit_exceeded"),
        ),
        ("validationException", "invalid_request_error", Value::Null),
        ("internalServerException", "api_error", Value::Null),
        (
            "serviceUnavailableException",
            "api_error",
            json!("server_is_overloaded"),
        ),
        ("modelStreamErrorException", "api_error", json!("model_error")),
        ("modelTimeoutException", "api_error", json!("model_timeout")),
        ("aNewException", "api_error", Value::Null),
    ] {
        let exception = format!("exception {name} {{\"message\":\"It says why.\"}}");
        let (heard, last, usage) = hear(&format!("{exception}\n{exception}\n{END}"), &asked());
        assert_eq!((last, usage), (Ok(StreamStatus::Failed), None), "{name}");
        let data = heard
            .strip_prefix("data: ")
            .unwrap()
            .strip_suffix("\n\n")
            .unwrap();
        let error = json!({"message": "It says why.", "type": kind, "param": null, "code": code});
        assert_eq!(
            serde_json::from_str::<Value>(data).unwrap(),
            json!({ "error": error }),
            "{name}"
        );
    }
}

// BerriAI/litellm#40887
#[test]
fn the_first_chunk_names_the_role_even_if_the_provider_does_not_begin() {
    let chunks = chunks(r#"event contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"x"}}"#);
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    assert_eq!(chunks[1]["choices"][0]["delta"], json!({"content": "x"}));
}

#[test]
fn only_metadata_behind_the_stop_is_a_good_end() {
    let stop = r#"event messageStop {"stopReason":"end_turn"}"#;
    let (heard, last, usage) = hear(&format!("event messageStart {{}}\n{END}\n{stop}"), &asked());
    assert_eq!(last, Ok(StreamStatus::InProgress));
    assert!(usage.is_some() && !heard.contains("[DONE]"));
    let (heard, last, _) = hear(
        &format!("event messageStart {{}}\n{stop}\n{END}\n{END}"),
        &asked(),
    );
    assert_eq!(last, Ok(StreamStatus::Finished));
    assert_eq!(heard.matches("[DONE]").count(), 1);
}

#[test]
fn usage_is_told_only_to_who_asked_for_it() {
    let events = format!("event messageStart {{}}\nevent messageStop {{\"stopReason\":\"end_turn\"}}\n{END}");
    let silent = RequestContext {
        include_usage: false,
        ..asked()
    };
    let (heard, last, usage) = hear(&events, &silent);
    assert!(!heard.contains("usage") && !heard.contains(r#""choices":[]"#));
    assert_eq!(last, Ok(StreamStatus::Finished));
    assert_eq!(
        usage,
        Some(Usage {
            input: 1,
            output: 2,
            ..Usage::default()
        })
    );
}

#[test]
fn malformed_events_and_too_many_calls_are_errors() {
    for event in [
        "event contentBlockDelta {}",
        "event contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"text\":7}}",
        "event contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"toolUse\":{\"input\":\"{}\"}}}",
        "event messageStop {\"stopReason\":\"end_turn\"}\nevent contentBlockStop {\"contentBlockIndex\":0}",
        "event metadata {\"usage\":{\"inputTokens\":-1}}",
    ] {
        let (_, last, _) = hear(event, &asked());
        assert!(matches!(last, Err(ResponseError::Malformed(_))), "{event}");
    }
    let events: String = (0..=MAX_OPEN_TOOL_CALLS)
        .map(|index| {
            format!(
                "event contentBlockStart {{\"contentBlockIndex\":{index},\"start\":{{\"toolUse\":{{\"toolUseId\":\"a\",\"name\":\"f\"}}}}}}\n"
            )
        })
        .collect();
    assert_eq!(hear(&events, &asked()).1, Err(ResponseError::TooLarge));
}
