//! A client of OpenAI's chat completions reaches a provider of OpenAI's Responses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use proofgate_chat_clients::openai_responses::{Stream, translate_request, translate_response};
use proofgate_dialect::{
    RequestContext, ResponseError, StreamStatus, Target, UntranslatableFieldPolicy, UntranslatableRequest,
    Usage,
};
use responses::{call, events, events_of, message, reasoning, response};
use serde_json::{Value, json};

#[path = "openai_responses/answers.rs"]
mod answers;
#[path = "openai_responses/any_input.rs"]
mod any_input;
#[path = "openai_responses/errors.rs"]
mod errors;
#[path = "openai_responses/golden.rs"]
mod golden;
#[path = "openai_responses/requests.rs"]
mod requests;
#[path = "shared/responses.rs"]
mod responses;
#[path = "openai_responses/settings.rs"]
mod settings;
#[path = "openai_responses/streams.rs"]
mod streams;

const CREATED: u64 = 1_750_000_000;
const DROP: UntranslatableFieldPolicy = UntranslatableFieldPolicy::Drop;
const REFUSE: UntranslatableFieldPolicy = UntranslatableFieldPolicy::Refuse;

fn target(model: &str, untranslatable: UntranslatableFieldPolicy) -> Target<'_> {
    Target {
        model,
        max_output_tokens: 4096,
        untranslatable,
    }
}

fn asked() -> RequestContext {
    RequestContext {
        model: "gpt".to_owned(),
        stream: true,
        include_usage: true,
        ..RequestContext::default()
    }
}

/// Returns the request sent to a model, and the fields left out.
fn sent_to(
    model: &str,
    untranslatable: UntranslatableFieldPolicy,
    body: &Value,
) -> Result<(Value, Vec<&'static str>), UntranslatableRequest> {
    let mut out = b"before".to_vec();
    match translate_request(
        body.to_string().as_bytes(),
        &target(model, untranslatable),
        &mut out,
    ) {
        Ok(asked) => Ok((
            serde_json::from_slice(&out[6..]).expect("JSON"),
            asked.dropped_fields,
        )),
        Err(refused) => {
            assert_eq!(out, b"before", "nothing is left of a refused request");
            Err(refused)
        }
    }
}

fn sent(body: &Value) -> Value {
    sent_to("gpt-5.6", REFUSE, body).expect("it is translated").0
}

/// Returns a request of one question with additional fields.
fn asking(fields: Value) -> Value {
    let mut body = json!({"model": "gpt", "messages": [{"role": "user", "content": "Hi"}]});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    body
}

/// Returns a request with these messages.
fn saying(messages: Value) -> Value {
    json!({"model": "gpt", "messages": messages})
}

fn received(body: &Value) -> Result<(Value, Usage), ResponseError> {
    let mut out = b"before".to_vec();
    let usage = translate_response(body.to_string().as_bytes(), &asked(), CREATED, &mut out);
    match usage {
        Ok(usage) => Ok((serde_json::from_slice(&out[6..]).expect("JSON"), usage)),
        Err(error) => {
            assert_eq!(out, b"before", "nothing is left of an answer that failed");
            Err(error)
        }
    }
}

/// The outcome of a stream of events.
struct Streamed {
    text: String,
    last: Result<StreamStatus, ResponseError>,
    end: Result<(), ResponseError>,
    usage: Option<Usage>,
}

fn streamed(events: &[Value]) -> Streamed {
    let mut stream = Stream::new(&asked(), CREATED);
    let (mut out, mut last) = (Vec::new(), Ok(StreamStatus::InProgress));
    for event in events {
        last = stream.push_event(
            event["type"].as_str().unwrap(),
            event.to_string().as_bytes(),
            &mut out,
        );
        if last.is_err() {
            break;
        }
    }
    Streamed {
        end: stream.finish(&mut out),
        usage: stream.usage(),
        text: String::from_utf8(out).unwrap(),
        last,
    }
}

impl Streamed {
    /// Returns the chunks before the end, as JSON.
    fn chunks(&self) -> Vec<Value> {
        let data = events(&self.text).into_iter().map(|(_, data)| data);
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    fn deltas(&self) -> Vec<Value> {
        let chunks = self.chunks().into_iter();
        chunks
            .filter_map(|chunk| Some(chunk["choices"].get(0)?["delta"].clone()))
            .filter(|delta| delta.as_object().is_some_and(|delta| !delta.is_empty()))
            .collect()
    }

    /// Returns the texts of a field of all deltas, joined.
    fn joined(&self, field: &str) -> String {
        let deltas = self.deltas();
        deltas.iter().filter_map(|delta| delta[field].as_str()).collect()
    }
}
