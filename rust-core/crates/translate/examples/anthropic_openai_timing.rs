//! How long the translation of a request of about 1 KB takes, and that of a chunk: medians over repeated runs.
//!
//! `cargo run --release -p proofgate-translate --example anthropic_openai_timing`

use std::hint::black_box;
use std::time::Instant;

use proofgate_translate::anthropic_openai::{Stream, request};
use proofgate_translate::{Target, UntranslatableFields};

const RUNS: usize = 101;
const TIMES: u32 = 2_000;

const REQUEST: &str = r#"{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":true,"temperature":0.2,
"system":[{"type":"text","text":"You answer questions about the weather, and about nothing else. Be brief, and name your sources."}],
"messages":[{"role":"user","content":[{"type":"text","text":"What is the weather like in Paris, and what was it like this time last year?"}]},
{"role":"assistant","content":[{"type":"text","text":"I will look."},
{"type":"tool_use","id":"toolu_01NRLabsLyVHZPKxbKvkfSMn","name":"get_weather","input":{"location":"Paris","unit":"celsius"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01NRLabsLyVHZPKxbKvkfSMn","content":"15 degrees, \"light\" rain"}]}],
"tools":[{"name":"get_weather","description":"Get the current weather in a given location",
"input_schema":{"type":"object","properties":{"location":{"type":"string"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["location"]}}]}"#;

const FIRST: &str = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}"#;

/// A chunk as OpenAI sends it, with this delta.
fn chunk(delta: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-ABfvaueLEMLNYbT8YzpJxsmiQ6HSY","object":"chat.completion.chunk","created":1727346142,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_b40fb1c6fb","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null}}],"usage":null,"obfuscation":"aQ3kL"}}"#
    )
}

/// Nanoseconds.
fn median(mut once: impl FnMut()) -> u128 {
    let mut runs: Vec<u128> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            (0..TIMES).for_each(|_| once());
            start.elapsed().as_nanos() / u128::from(TIMES)
        })
        .collect();
    runs.sort_unstable();
    runs.get(RUNS / 2).copied().unwrap_or_default()
}

fn main() {
    let target = Target {
        model: "gpt-4.1",
        max_output_tokens: 4096,
        untranslatable: UntranslatableFields::Refuse,
    };
    let mut out = Vec::with_capacity(1 << 16);
    let nanoseconds = median(|| {
        out.clear();
        let _ = black_box(request(black_box(REQUEST.as_bytes()), &target, &mut out));
    });
    println!("request of {} bytes: {nanoseconds} ns", REQUEST.len());

    let Ok(asked) = request(REQUEST.as_bytes(), &target, &mut out) else {
        return;
    };
    let text = chunk(r#"{"content":" weather"}"#);
    let call = chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"loc\":\"Paris\","}}]}"#);
    for (what, first, chunk) in [("text", &*text, &text), ("a call", FIRST, &call)] {
        let mut stream = Stream::new(&asked, 250);
        let _ = stream.event("", first.as_bytes(), &mut out);
        let nanoseconds = median(|| {
            out.clear();
            let _ = black_box(stream.event("", black_box(chunk.as_bytes()), &mut out));
        });
        println!("chunk with {what} of {} bytes: {nanoseconds} ns", chunk.len());
    }
}
