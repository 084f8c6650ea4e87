//! Measures translations on one core: medians of repeated runs, in microseconds and in microseconds per KB of input.
//!
//! `cargo run --release -p proofgate-translate --example timing`
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]

use std::hint::black_box;
use std::time::Instant;

use proofgate_translate::{
    EventKind, RequestContext, Target, UntranslatableFieldPolicy, UntranslatableRequest, anthropic_openai,
    openai_anthropic, openai_converse, openai_gemini, openai_responses, responses_openai,
};
use serde_json::{Value, json};

const RUNS: usize = 501;
const IN_A_RUN: u32 = 20;
/// Number of events after which a new stream is started, because the state of a stream is bounded.
const EVENTS: u32 = 5000;

type Request = fn(&[u8], &Target<'_>, &mut Vec<u8>) -> Result<RequestContext, UntranslatableRequest>;

const TARGET: Target<'static> = Target {
    model: "m",
    max_output_tokens: 4096,
    untranslatable: UntranslatableFieldPolicy::Drop,
};

fn main() {
    let chat = chat();
    for (pair, writer, model, body) in [
        (
            "openai_anthropic",
            openai_anthropic::translate_request as Request,
            "claude-opus-4-7",
            &chat,
        ),
        (
            "openai_gemini",
            openai_gemini::translate_request,
            "gemini-3-pro",
            &chat,
        ),
        (
            "openai_converse",
            openai_converse::translate_request,
            "amazon.nova-pro-v1:0",
            &chat,
        ),
        (
            "openai_responses",
            openai_responses::translate_request,
            "gpt-5.6",
            &chat,
        ),
        (
            "anthropic_openai",
            anthropic_openai::translate_request,
            "gpt-4.1",
            &messages(),
        ),
        (
            "responses_openai",
            responses_openai::translate_request,
            "m",
            &responses(),
        ),
    ] {
        let target = Target { model, ..TARGET };
        measure(&format!("{pair} request"), body, |body, out| {
            writer(body, &target, out).unwrap();
        });
    }
    let asked = RequestContext {
        model: "m".to_owned(),
        stream: true,
        include_usage: true,
        ..RequestContext::default()
    };
    whole_answers(&asked);
    events(&asked);
}

fn whole_answers(asked: &RequestContext) {
    let text = text(900);
    let claudes = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 25}});
    measure("openai_anthropic answer", &claudes, |body, out| {
        openai_anthropic::translate_response(body, asked, 1, out).unwrap();
    });
    let geminis = json!({"responseId": "r", "candidates": [{"content": {"role": "model", "parts": [{"text": text}]},
        "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}});
    measure("openai_gemini answer", &geminis, |body, out| {
        openai_gemini::translate_response(body, asked, 1, out).unwrap();
    });
    let converses = json!({"output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": "end_turn", "usage": {"inputTokens": 11, "outputTokens": 9, "totalTokens": 20}});
    measure("openai_converse answer", &converses, |body, out| {
        openai_converse::translate_response(body, asked, 1, out).unwrap();
    });
    let chats = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 25, "total_tokens": 35}});
    let mut kept = Vec::new();
    let responses =
        responses_openai::translate_request(responses().to_string().as_bytes(), &TARGET, &mut kept).unwrap();
    measure("responses_openai answer", &chats, |body, out| {
        responses_openai::translate_response(body, &responses, 1, out).unwrap();
    });
    measure("anthropic_openai answer", &chats, |body, out| {
        anthropic_openai::translate_response(body, asked, out).unwrap();
    });
}

/// Pushes one event of each stream repeatedly.
fn events(asked: &RequestContext) {
    let begin = json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 11}}});
    let start =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " there, and so on"}});
    let mut stream = openai_anthropic::Stream::new(asked, 1);
    for event in [&begin, &start] {
        stream
            .push_event("", event.to_string().as_bytes(), &mut Vec::new())
            .unwrap();
    }
    measure("openai_anthropic event", &delta, |event, out| {
        stream.push_event("", event, out).unwrap();
    });
    let delta = json!({"candidates": [{"content": {"parts": [{"text": " there, and so on"}], "role": "model"}, "index": 0}],
        "usageMetadata": {"promptTokenCount": 28, "totalTokenCount": 30}, "responseId": "r"});
    let mut stream = openai_gemini::Stream::new(asked, 1);
    measure("openai_gemini event", &delta, |event, out| {
        stream.push_event("", event, out).unwrap();
    });
    let delta =
        json!({"contentBlockIndex": 0, "delta": {"text": " there, and so on"}, "p": "abcdefghijklmn"});
    let mut stream = openai_converse::Stream::new(asked, 1);
    let start = br#"{"role":"assistant"}"#;
    stream
        .push_event(EventKind::Event, "messageStart", start, &mut Vec::new())
        .unwrap();
    measure("openai_converse event", &delta, |event, out| {
        stream
            .push_event(EventKind::Event, "contentBlockDelta", event, out)
            .unwrap();
    });
    let delta = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0,
        "delta": {"content": " there, and so on"}, "finish_reason": null}]});
    let (mut stream, mut left) = (anthropic_openai::Stream::new(asked, 1), EVENTS);
    measure("anthropic_openai event", &delta, |event, out| {
        left = left.checked_sub(1).unwrap_or_else(|| {
            stream = anthropic_openai::Stream::new(asked, 1);
            EVENTS
        });
        stream.push_event("", event, out).unwrap();
    });
    let responses =
        responses_openai::translate_request(responses().to_string().as_bytes(), &TARGET, &mut Vec::new())
            .unwrap();
    let (mut stream, mut left) = (responses_openai::Stream::new(&responses, 1), EVENTS);
    measure("responses_openai event", &delta, |event, out| {
        left = left.checked_sub(1).unwrap_or_else(|| {
            stream = responses_openai::Stream::new(&responses, 1);
            EVENTS
        });
        stream.push_event("", event, out).unwrap();
    });
}

/// Prints the median time of one call.
fn measure(what: &str, input: &Value, mut call: impl FnMut(&[u8], &mut Vec<u8>)) {
    let input = input.to_string();
    let mut out = Vec::with_capacity(64 * 1024);
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..IN_A_RUN {
                out.clear();
                call(black_box(input.as_bytes()), &mut out);
            }
            begin.elapsed().as_secs_f64() * 1e6 / f64::from(IN_A_RUN)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    let median = runs[RUNS / 2];
    #[allow(clippy::cast_precision_loss, reason = "a few thousand bytes")]
    let per_kilobyte = median * 1000.0 / input.len() as f64;
    println!(
        "{what:26} {:6} bytes {median:8.2} us {per_kilobyte:8.2} us/KB",
        input.len()
    );
}

fn text(length: usize) -> String {
    let words = "Tell me \"more\" about it.\n".chars();
    words.cycle().take(length).collect()
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string", "description": "The name of the city"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["city"]})
}

/// A conversation of about two kilobytes with a tool, its call and its result.
fn chat() -> Value {
    let function = json!({"name": "weather", "arguments": "{\"city\":\"Paris\",\"unit\":\"celsius\"}"});
    json!({"model": "gpt", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.7, "max_tokens": 512,
        "messages": [
            {"role": "system", "content": text(300)},
            {"role": "user", "content": [{"type": "text", "text": text(300)}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "call_1", "content": text(300)},
            {"role": "user", "content": text(200)},
        ],
        "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "weather", "description": text(100), "parameters": schema()}}]})
}

fn messages() -> Value {
    json!({"model": "claude", "stream": true, "max_tokens": 512, "system": [{"type": "text", "text": text(300)}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": text(300)}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": text(300)}, {"type": "text", "text": text(200)}]},
        ],
        "tools": [{"name": "weather", "description": text(100), "input_schema": schema()}]})
}

fn responses() -> Value {
    json!({"model": "gpt", "stream": true, "instructions": text(300), "store": false,
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text(300)}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Paris\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": text(300)},
            {"type": "message", "role": "user", "content": text(200)},
        ],
        "tools": [{"type": "function", "name": "weather", "strict": false, "description": text(100), "parameters": schema()}]})
}
