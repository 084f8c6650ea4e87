//! A client of OpenAI's chat completions reaches a provider of OpenAI's Responses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use proofgate_translate::openai_responses::{Stream, answer, request};
use proofgate_translate::{AnswerError, Asked, Step, Target, Untranslatable, UntranslatableFields, Usage};
use serde_json::{Value, json};

#[path = "openai_responses/answers.rs"]
mod answers;
#[path = "openai_responses/any_input.rs"]
mod any_input;
#[path = "openai_responses/chain.rs"]
mod chain;
#[path = "openai_responses/errors.rs"]
mod errors;
#[path = "openai_responses/golden.rs"]
mod golden;
#[path = "openai_responses/requests.rs"]
mod requests;
#[path = "openai_responses/settings.rs"]
mod settings;
#[path = "openai_responses/streams.rs"]
mod streams;

const CREATED: u64 = 1_750_000_000;
const DROP: UntranslatableFields = UntranslatableFields::Drop;
const REFUSE: UntranslatableFields = UntranslatableFields::Refuse;

fn target(model: &str, untranslatable: UntranslatableFields) -> Target<'_> {
    Target {
        model,
        max_output_tokens: 4096,
        untranslatable,
    }
}

fn asked() -> Asked {
    Asked {
        model: "gpt".to_owned(),
        stream: true,
        include_usage: true,
        ..Asked::default()
    }
}

/// What is sent to a model, and what was left out.
fn sent_to(
    model: &str,
    untranslatable: UntranslatableFields,
    body: &Value,
) -> Result<(Value, Vec<&'static str>), Untranslatable> {
    let mut out = b"before".to_vec();
    match request(
        body.to_string().as_bytes(),
        &target(model, untranslatable),
        &mut out,
    ) {
        Ok(asked) => Ok((serde_json::from_slice(&out[6..]).expect("JSON"), asked.dropped)),
        Err(refused) => {
            assert_eq!(out, b"before", "nothing is left of a refused request");
            Err(refused)
        }
    }
}

fn sent(body: &Value) -> Value {
    sent_to("gpt-5.6", REFUSE, body).expect("it is translated").0
}

/// A request of one question with other fields.
fn asking(fields: Value) -> Value {
    let mut body = json!({"model": "gpt", "messages": [{"role": "user", "content": "Hi"}]});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    body
}

/// A request of these messages.
fn saying(messages: Value) -> Value {
    json!({"model": "gpt", "messages": messages})
}

/// A response with this output and other fields.
fn response(output: Value, fields: Value) -> Value {
    let mut body = json!({
        "id": "resp_1", "object": "response", "created_at": 1_760_000_000, "status": "completed", "error": null,
        "incomplete_details": null, "model": "gpt-5.6", "output": output, "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [], "service_tier": "default",
        "usage": {
            "input_tokens": 30, "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 5},
            "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 7}, "total_tokens": 42,
        },
    });
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    body
}

fn received(body: &Value) -> Result<(Value, Usage), AnswerError> {
    let mut out = b"before".to_vec();
    let usage = answer(body.to_string().as_bytes(), &asked(), CREATED, &mut out);
    match usage {
        Ok(usage) => Ok((serde_json::from_slice(&out[6..]).expect("JSON"), usage)),
        Err(error) => {
            assert_eq!(out, b"before", "nothing is left of an answer that failed");
            Err(error)
        }
    }
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn reasoning(id: &str, summary: &[&str], encrypted: &str) -> Value {
    let summary: Vec<_> = summary
        .iter()
        .map(|text| json!({"type": "summary_text", "text": text}))
        .collect();
    json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments,
        "status": "completed"})
}

/// Name and data of the events of a stream.
fn events(stream: &str) -> Vec<(&str, &str)> {
    let events = stream.split("\n\n").filter(|event| !event.is_empty());
    events
        .map(|event| {
            let line = |field: &str| event.lines().find_map(|line| line.strip_prefix(field));
            (
                line("event: ").unwrap_or_default(),
                line("data: ").unwrap_or_default(),
            )
        })
        .collect()
}

/// What becomes of a stream of these events.
struct Streamed {
    text: String,
    last: Result<Step, AnswerError>,
    end: Result<(), AnswerError>,
    usage: Option<Usage>,
}

fn streamed(events: &[Value]) -> Streamed {
    let mut stream = Stream::new(&asked(), CREATED);
    let (mut out, mut last) = (Vec::new(), Ok(Step::Continues));
    for event in events {
        last = stream.event(
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
    /// The chunks before the end, as JSON.
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

    /// The texts of a field of all deltas in one.
    fn joined(&self, field: &str) -> String {
        let deltas = self.deltas();
        deltas.iter().filter_map(|delta| delta[field].as_str()).collect()
    }
}

/// The events of a response as OpenAI streams it: every item in one or more pieces.
fn events_of(response: &Value) -> Vec<Value> {
    let mut begun = response.clone();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    begun["status"] = json!("in_progress");
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    for (index, item) in response["output"].as_array().unwrap().iter().enumerate() {
        let mut added = item.clone();
        for field in ["content", "summary"] {
            if added.get(field).is_some() {
                added[field] = json!([]);
            }
        }
        for field in ["arguments", "input"] {
            if added.get(field).is_some() {
                added[field] = json!("");
            }
        }
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": added}));
        events.extend(deltas_of(index, item));
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let end = match response["status"].as_str() {
        Some("incomplete") => "response.incomplete",
        Some("failed") => "response.failed",
        _ => "response.completed",
    };
    events.push(json!({"type": end, "response": response}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events
}

fn deltas_of(index: usize, item: &Value) -> Vec<Value> {
    let delta = |kind: &str, text: &str| json!({"type": kind, "output_index": index, "content_index": 0, "summary_index": 0, "delta": text, "logprobs": []});
    let halves = |kind: &str, text: &str| {
        let half = text
            .char_indices()
            .nth(text.chars().count() / 2)
            .map_or(0, |(at, _)| at);
        let halves = [&text[..half], &text[half..]];
        halves.map(|half| delta(kind, half)).to_vec()
    };
    let mut events = Vec::new();
    match item["type"].as_str().unwrap() {
        "message" => {
            for part in item["content"].as_array().unwrap() {
                match part["text"].as_str() {
                    Some(text) => events.extend(halves("response.output_text.delta", text)),
                    None => events.extend(halves(
                        "response.refusal.delta",
                        part["refusal"].as_str().unwrap(),
                    )),
                }
            }
        }
        "reasoning" => {
            for part in item["summary"].as_array().unwrap() {
                events.push(json!({"type": "response.reasoning_summary_part.added", "output_index": index}));
                events.extend(halves(
                    "response.reasoning_summary_text.delta",
                    part["text"].as_str().unwrap(),
                ));
            }
        }
        "function_call" => {
            events.extend(halves(
                "response.function_call_arguments.delta",
                item["arguments"].as_str().unwrap(),
            ));
            events.push(
                json!({"type": "response.function_call_arguments.done", "output_index": index,
                "arguments": item["arguments"]}),
            );
        }
        "custom_tool_call" => events.extend(halves(
            "response.custom_tool_call_input.delta",
            item["input"].as_str().unwrap(),
        )),
        _ => {}
    }
    events
}
