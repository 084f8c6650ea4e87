//! What a translation for Converse costs: median nanoseconds of many short series.
//!
//! `cargo run --release -p proofgate-translate --example openai_converse_timing`
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]

use std::hint::black_box;
use std::time::Instant;

use proofgate_translate::openai_converse::{EventKind, Stream, answer, request};
use proofgate_translate::{Asked, Target, UntranslatableFields};

const ROUNDS: u32 = 200;
const SERIES: usize = 301;

fn measure(what: &str, mut call: impl FnMut()) {
    let mut series: Vec<f64> = (0..SERIES)
        .map(|_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| call());
            start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
        })
        .collect();
    series.sort_by(f64::total_cmp);
    println!("{what:44} {:8.0} ns", series[SERIES / 2]);
}

fn text(length: usize) -> String {
    "Tell me \"more\" about it.\n"
        .chars()
        .cycle()
        .take(length)
        .collect()
}

/// A conversation of about a kilobyte.
fn plain() -> String {
    serde_json::json!({"model": "claude", "stream": true, "stream_options": {"include_usage": true},
        "max_tokens": 512, "temperature": 0.7, "messages": [
        {"role": "system", "content": text(200)}, {"role": "user", "content": text(200)},
        {"role": "assistant", "content": text(200)}, {"role": "user", "content": text(150)}]})
    .to_string()
}

/// Another with a tool, its call and its result, and content in parts.
fn with_tools() -> String {
    serde_json::json!({"model": "claude", "messages": [
        {"role": "user", "content": [{"type": "text", "text": text(150)}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
            "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\",\"days\":3}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": text(150)}],
        "tool_choice": "auto", "tools": [{"type": "function", "function": {"name": "weather", "description": text(60),
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}]})
    .to_string()
}

fn main() {
    let target = Target {
        model: "anthropic.claude",
        max_output_tokens: 4096,
        untranslatable: UntranslatableFields::Refuse,
    };
    let mut out = Vec::with_capacity(64 * 1024);
    for (name, body) in [("text", plain()), ("tools", with_tools())] {
        measure(&format!("request, {name}, {} bytes", body.len()), || {
            out.clear();
            black_box(request(black_box(body.as_bytes()), &target, &mut out).unwrap());
        });
    }
    let asked = Asked {
        model: "claude".to_owned(),
        stream: true,
        include_usage: true,
        ..Asked::default()
    };
    let said =
        serde_json::json!({"output": {"message": {"role": "assistant", "content": [{"text": text(900)}]}},
        "stopReason": "end_turn", "metrics": {"latencyMs": 1},
        "usage": {"inputTokens": 11, "outputTokens": 9, "totalTokens": 20}})
        .to_string();
    measure(&format!("answer, {} bytes", said.len()), || {
        out.clear();
        black_box(answer(black_box(said.as_bytes()), &asked, 0, &mut out).unwrap());
    });

    let mut stream = Stream::new(&asked, 1_764_000_000);
    let mut event = |what: &str, name: &str, data: &str, repeated: bool| {
        let mut call = || {
            out.clear();
            black_box(
                stream
                    .event(EventKind::Event, name, black_box(data.as_bytes()), &mut out)
                    .unwrap(),
            );
        };
        if repeated { measure(what, call) } else { call() }
    };
    event("", "messageStart", r#"{"role":"assistant"}"#, false);
    let delta = r#"{"contentBlockIndex":0,"delta":{"text":" some words"},"p":"abcdefghijklmnopqrstuvwxyz"}"#;
    event("chunk of text", "contentBlockDelta", delta, true);
    let start = r#"{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"tooluse_1","name":"weather"}}}"#;
    event("", "contentBlockStart", start, false);
    let delta =
        r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":"\"city\": \"Os"}},"p":"abcdefghijklm"}"#;
    event("chunk of a tool's arguments", "contentBlockDelta", delta, true);
    let delta =
        r#"{"contentBlockIndex":2,"delta":{"reasoningContent":{"text":" some thoughts"}},"p":"abcdefgh"}"#;
    event("chunk of reasoning", "contentBlockDelta", delta, true);
}
