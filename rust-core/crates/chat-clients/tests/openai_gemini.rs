//! Chat-completions requests to Gemini, and their answers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use proofgate_chat_clients::openai_gemini::{
    Stream, retry_after, translate_error, translate_request, translate_response,
};
use proofgate_dialect::{
    RequestContext, ResponseError, StreamStatus, Target, UntranslatableFieldPolicy, UntranslatableRequest,
    Usage,
};
use serde_json::{Value, json};

#[path = "openai_gemini/answers.rs"]
mod answers;
#[path = "openai_gemini/any_input.rs"]
mod any_input;
#[path = "openai_gemini/golden.rs"]
mod golden;
#[path = "openai_gemini/requests.rs"]
mod requests;
#[path = "openai_gemini/streams.rs"]
mod streams;

/// Seconds since 1970.
const CREATED: u64 = 1_700_000_000;

fn target(model: &str) -> Target<'_> {
    Target {
        model,
        max_output_tokens: 4096,
        untranslatable: UntranslatableFieldPolicy::Refuse,
    }
}

fn asked() -> RequestContext {
    RequestContext {
        model: "assistant".into(),
        stream: true,
        include_usage: true,
        ..RequestContext::default()
    }
}

fn sent(body: &Value) -> Result<Value, UntranslatableRequest> {
    let mut out = Vec::new();
    translate_request(body.to_string().as_bytes(), &target("gemini-9-pro"), &mut out)?;
    Ok(serde_json::from_slice(&out).unwrap())
}

/// Returns a request of one message with these fields.
fn with(fields: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    body
}

fn refused(body: &Value) -> (String, String) {
    let refused = sent(body).expect_err("it is refused");
    (refused.param.into_owned(), refused.message.into_owned())
}

/// Returns the data of a stream's events. Data outside of events is passed as data, as the caller does.
fn events(stream: &str) -> Vec<String> {
    let stream = stream.replace("\r\n", "\n");
    let events = stream.split("\n\n").filter(|event| !event.trim().is_empty());
    events
        .map(|event| event.strip_prefix("data: ").unwrap_or(event).trim().to_owned())
        .collect()
}

fn streamed(
    events: &[String],
    asked: &RequestContext,
) -> (Vec<u8>, Result<StreamStatus, ResponseError>, Option<Usage>) {
    let mut stream = Stream::new(asked, CREATED);
    let mut out = Vec::new();
    for event in events {
        if let Err(error) = stream.push_event("", event.as_bytes(), &mut out) {
            return (out, Err(error), stream.usage());
        }
    }
    let end = stream.finish(&mut out);
    (out, end, stream.usage())
}

fn streamed_events(events: &[Value]) -> (String, Result<StreamStatus, ResponseError>) {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    let (out, end, _) = streamed(&events, &asked());
    (String::from_utf8(out).unwrap(), end)
}
