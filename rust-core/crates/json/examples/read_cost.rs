//! Measures the cost of reading a chat body, compared with serde_json: microseconds for bodies of 1, 16 and 128 KB.
//!
//! `cargo run --release -p proofgate-json --example read_cost`
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]

use std::hint::black_box;
use std::time::Instant;

use proofgate_json::{Event, Reader, Workspace};
use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
#[allow(
    dead_code,
    reason = "the measured reader fills these fields, and nothing reads them"
)]
struct Body<'b> {
    #[serde(borrow)]
    model: &'b str,
    stream: Option<bool>,
    #[serde(borrow)]
    messages: Vec<&'b serde_json::value::RawValue>,
}

/// Returns a chat body of about `size` bytes: messages of 400 characters.
fn chat(size: usize, content: &str) -> String {
    let mut messages = Vec::new();
    let mut length = 0;
    while length < size {
        let content: String = content.chars().cycle().take(400).collect();
        messages.push(serde_json::json!({"role": "user", "content": content}));
        length += 430;
    }
    serde_json::json!({"model": "gpt-4o-mini", "stream": true, "max_tokens": 256, "messages": messages})
        .to_string()
}

/// Returns the microseconds of one call: the best of many short series, which excludes other load on the machine.
fn measure(name: &str, rounds: u32, mut call: impl FnMut()) {
    let rounds = (rounds / 50).max(1);
    let series = (0..300).map(|_| {
        let start = Instant::now();
        (0..rounds).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
    });
    println!("  {name:34} {:>9.2} us", series.fold(f64::INFINITY, f64::min));
}

fn read(document: &[u8], workspace: &mut Workspace) {
    let mut reader = Reader::new(black_box(document), workspace).unwrap();
    let mut length = 0;
    while let Some(event) = reader.next().unwrap() {
        length += match event {
            Event::Key(string) | Event::String(string) => string.raw().len(),
            Event::Number(number) => number.len(),
            _ => 1,
        };
    }
    black_box(length);
}

fn main() {
    let mut workspace = Workspace::new();
    let prose = "The quick brown fox jumps over the lazy dog, and nobody is surprised any more. ";
    let code = "fn main() {\n\tprintln!(\"caf\u{e9}\");\n}\n";
    for (kind, content) in [("prose", prose), ("code, many escapes", code)] {
        for size in [600, 16_000, 128_000] {
            let body = chat(size, content);
            println!("chat body of {} bytes, {kind}", body.len());
            let rounds = 40_000_000 / (body.len() as u32 + 1000);
            let body = body.as_bytes();
            measure("proofgate_json, every event", rounds, || {
                read(body, &mut workspace)
            });
            measure("serde_json, borrowed struct", rounds, || {
                black_box(serde_json::from_slice::<Body<'_>>(black_box(body)).unwrap());
            });
            measure("serde_json, IgnoredAny", rounds, || {
                black_box(serde_json::from_slice::<IgnoredAny>(black_box(body)).unwrap());
            });
        }
    }
    let event = r#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}"#;
    println!("event of {} bytes", event.len());
    measure("proofgate_json, every event", 200_000, || {
        read(event.as_bytes(), &mut workspace)
    });
    measure("serde_json, IgnoredAny", 200_000, || {
        black_box(serde_json::from_slice::<IgnoredAny>(black_box(event.as_bytes())).unwrap());
    });
    for keys in [1_000, 10_000, 100_000] {
        let names: Vec<String> = (0..keys).map(|key| format!("\"name{key}\":1")).collect();
        let body = format!("{{{}}}", names.join(","));
        println!("one object of {keys} keys, {} bytes", body.len());
        measure("proofgate_json, every event", 1_000_000 / keys, || {
            read(body.as_bytes(), &mut workspace);
        });
    }
}
