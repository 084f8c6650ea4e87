//! Requests and answers between a client of OpenAI's Responses and a provider of chat completions,
//! or another provider behind it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use proofgate_chat_providers::responses_openai::{
    Stream, translate_error, translate_for_chat, translate_for_gemini, translate_request, translate_response,
};
use proofgate_dialect::{
    RequestContext, ResponseError, StreamStatus, Target, UntranslatableFieldPolicy, UntranslatableRequest,
    Usage,
};
use serde_json::{Value, json};

#[path = "responses_openai/answers.rs"]
mod answers;
#[path = "responses_openai/any_input.rs"]
mod any_input;
#[path = "responses_openai/chains.rs"]
mod chains;
#[path = "responses_openai/golden.rs"]
mod golden;
#[path = "responses_openai/requests.rs"]
mod requests;
#[path = "responses_openai/streams.rs"]
mod streams;
#[path = "responses_openai/tools.rs"]
mod tools;

/// Seconds since 1970.
const CREATED: u64 = 1_700_000_000;

const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn target(untranslatable: UntranslatableFieldPolicy) -> Target<'static> {
    Target {
        model: "m-1",
        max_output_tokens: 4096,
        untranslatable,
    }
}

const REFUSE: UntranslatableFieldPolicy = UntranslatableFieldPolicy::Refuse;

/// Returns a request with these items and additional fields.
fn with(input: Value, fields: Value) -> Value {
    let mut body = json!({"model": "assistant", "input": input});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    body
}

fn translated(body: &Value) -> Result<(Value, RequestContext), UntranslatableRequest> {
    let mut out = Vec::new();
    let asked = translate_request(body.to_string().as_bytes(), &target(REFUSE), &mut out)?;
    let sent = serde_json::from_slice(&out);
    Ok((
        sent.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out))),
        asked,
    ))
}

fn sent(body: &Value) -> Value {
    translated(body).expect("it is taken").0
}

fn refused(body: &Value) -> (String, String) {
    let refused = translated(body).expect_err("it is refused");
    (refused.param.into_owned(), refused.message.into_owned())
}

/// Returns the context of a request with these tools.
fn asked_with(tools: Value) -> RequestContext {
    let body = with(json!("x"), json!({"tools": tools, "stream": true}));
    translated(&body).unwrap().1
}

fn asked() -> RequestContext {
    asked_with(json!([]))
}

/// Returns the names and data of the events of a stream.
fn events(stream: &str) -> Vec<(String, String)> {
    let blocks = stream.split("\n\n").filter(|block| !block.trim().is_empty());
    blocks
        .map(|block| {
            let line = |field: &str| block.lines().find_map(|line| line.strip_prefix(field));
            let name = line("event: ").unwrap_or_default();
            (name.to_owned(), line("data: ").unwrap().to_owned())
        })
        .collect()
}

/// The outcome of a streamed answer.
struct Received {
    text: String,
    last: Result<StreamStatus, ResponseError>,
    usage: Option<Usage>,
}

impl Received {
    /// Returns the events, after checking that their names match their types and their numbers have no gaps.
    fn events(&self) -> Vec<Value> {
        let events: Vec<(String, Value)> = events(&self.text)
            .into_iter()
            .map(|(name, data)| (name, serde_json::from_str(&data).unwrap()))
            .collect();
        for (number, (name, event)) in events.iter().enumerate() {
            assert_eq!(event["type"], Value::from(&name[..]));
            assert_eq!(event["sequence_number"], number);
        }
        events.into_iter().map(|(_, event)| event).collect()
    }

    fn types(&self) -> Vec<String> {
        let kind = |event: &Value| event["type"].as_str().unwrap().to_owned();
        self.events().iter().map(kind).collect()
    }

    fn of_type(&self, kind: &str) -> Vec<Value> {
        self.events()
            .into_iter()
            .filter(|event| event["type"] == kind)
            .collect()
    }

    /// Returns the whole answer, which the last event repeats.
    fn response(&self) -> Value {
        self.events().last().unwrap()["response"].clone()
    }

    fn output(&self) -> Vec<Value> {
        self.response()["output"].as_array().unwrap().clone()
    }
}

/// Pushes these events; ends the body after them.
fn receive(data: &[String], asked: &RequestContext) -> Received {
    let mut stream = Stream::new(asked, CREATED);
    let mut out = Vec::new();
    let mut last = Ok(StreamStatus::InProgress);
    for data in data {
        last = stream.push_event("", data.as_bytes(), &mut out);
        if !matches!(last, Ok(StreamStatus::InProgress)) {
            break;
        }
    }
    if matches!(last, Ok(StreamStatus::InProgress)) {
        last = stream.finish(&mut out);
    }
    let written = out.len();
    let _ = stream.finish(&mut out);
    assert_eq!(out.len(), written, "nothing is written behind the end");
    Received {
        text: String::from_utf8(out).unwrap(),
        last,
        usage: stream.usage(),
    }
}

/// Returns chunks with these deltas, and one with the finish reason.
fn chunks(deltas: &[Value], reason: &str) -> Vec<String> {
    let chunk = |delta: &Value, reason: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        .to_string()
    };
    let mut chunks: Vec<String> = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    chunks.push(chunk(&json!({}), json!(reason)));
    chunks.push(
        json!({"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}})
        .to_string(),
    );
    chunks.push("[DONE]".to_owned());
    chunks
}

fn whole(message: Value, reason: &str, asked: &RequestContext) -> Result<Value, ResponseError> {
    let body = json!({"id": "chatcmpl-1", "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}});
    let mut out = Vec::new();
    translate_response(body.to_string().as_bytes(), asked, CREATED, &mut out)?;
    Ok(serde_json::from_slice(&out).unwrap())
}
