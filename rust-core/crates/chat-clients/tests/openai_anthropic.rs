//! A client of OpenAI's chat completions reaches a provider of Anthropic's messages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use proofgate_chat_clients::openai_anthropic::translate_request;
use proofgate_dialect::{RequestContext, Target, UntranslatableFieldPolicy, UntranslatableRequest};
use serde_json::{Value, json};

#[path = "openai_anthropic/answers.rs"]
mod answers;
#[path = "openai_anthropic/any_input.rs"]
mod any_input;
#[path = "openai_anthropic/golden.rs"]
mod golden;
#[path = "openai_anthropic/requests.rs"]
mod requests;
#[path = "openai_anthropic/streams.rs"]
mod streams;

const CREATED: u64 = 1_750_000_000;

fn target(drop: UntranslatableFieldPolicy) -> Target<'static> {
    Target {
        model: "claude-opus-9",
        max_output_tokens: 4096,
        untranslatable: drop,
    }
}

fn asked() -> RequestContext {
    RequestContext {
        model: "gpt-claude".to_owned(),
        stream: true,
        include_usage: true,
        ..RequestContext::default()
    }
}

fn sent(body: &Value) -> Value {
    let mut out = Vec::new();
    let rule = target(UntranslatableFieldPolicy::Refuse);
    translate_request(body.to_string().as_bytes(), &rule, &mut out).expect("it is translated");
    serde_json::from_slice(&out).expect("what is sent is JSON")
}

fn refused(body: &Value, drop: UntranslatableFieldPolicy) -> UntranslatableRequest {
    let mut out = b"before".to_vec();
    let error =
        translate_request(body.to_string().as_bytes(), &target(drop), &mut out).expect_err("it is refused");
    assert_eq!(out, b"before", "nothing is left of a refused request");
    error
}

/// Returns a request of one question with additional fields.
fn asking(fields: Value) -> Value {
    let mut body = json!({"model": "gpt", "messages": [{"role": "user", "content": "Hi"}]});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    body
}

fn after(question: Value) -> Value {
    json!({"model": "gpt", "messages": [{"role": "user", "content": "Hi"}, question]})
}

/// Returns the events of a stream: name and data.
fn events(stream: &str) -> Vec<(&str, &str)> {
    let field = |event: &'static str, line: &'_ str| line.starts_with(event);
    stream
        .split("\n\n")
        .filter_map(|event| {
            let name = event
                .lines()
                .find(|line| field("event: ", line))
                .map_or("", |line| &line[7..]);
            event
                .lines()
                .find(|line| field("data: ", line))
                .map(|line| (name, &line[6..]))
        })
        .collect()
}
