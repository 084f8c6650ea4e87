//! Requests that providers refuse, and how they are changed to be accepted: one test for each class seen in the field.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use proofgate_translate::{
    RequestContext, Target, UntranslatableFieldPolicy, UntranslatableRequest, anthropic_openai,
    openai_anthropic, openai_converse, openai_gemini,
};
use serde_json::{Value, json};

#[path = "cases/answers.rs"]
mod answers;
#[path = "cases/chat.rs"]
mod chat;
#[path = "cases/gemini_thoughts.rs"]
mod gemini_thoughts;
#[path = "cases/losses.rs"]
mod losses;
#[path = "cases/messages.rs"]
mod messages;
#[path = "cases/models.rs"]
mod models;
#[path = "cases/probes.rs"]
mod probes;
#[path = "cases/providers.rs"]
mod providers;

type Writer = fn(&[u8], &Target<'_>, &mut Vec<u8>) -> Result<RequestContext, UntranslatableRequest>;

const DROP: UntranslatableFieldPolicy = UntranslatableFieldPolicy::Drop;
const REFUSE: UntranslatableFieldPolicy = UntranslatableFieldPolicy::Refuse;

/// Returns the request written for a model, and the fields left out.
fn written(
    writer: Writer,
    model: &str,
    untranslatable: UntranslatableFieldPolicy,
    body: &Value,
) -> Result<(Value, Vec<&'static str>), UntranslatableRequest> {
    let target = Target {
        model,
        max_output_tokens: 4096,
        untranslatable,
    };
    let mut out = Vec::new();
    let asked = writer(body.to_string().as_bytes(), &target, &mut out)?;
    Ok((serde_json::from_slice(&out).unwrap(), asked.dropped_fields))
}

/// Returns a request of one question with additional fields.
fn asking(fields: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
