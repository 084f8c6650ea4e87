//! Responses as OpenAI sends them, whole and streamed.

use serde_json::{Value, json};

/// Returns a response with this output and additional fields.
pub fn response(output: Value, fields: Value) -> Value {
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

/// Returns a message of the model.
pub fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// Returns reasoning with these summary texts.
pub fn reasoning(id: &str, summary: &[&str], encrypted: &str) -> Value {
    let summary: Vec<_> = summary
        .iter()
        .map(|text| json!({"type": "summary_text", "text": text}))
        .collect();
    json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted})
}

/// Returns a function call.
pub fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments,
        "status": "completed"})
}

/// Returns the names and data of the events of a stream.
pub fn events(stream: &str) -> Vec<(&str, &str)> {
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

/// Returns the events of a response as OpenAI streams it: every item in one or more pieces.
pub fn events_of(response: &Value) -> Vec<Value> {
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
