//! Measures the cost of inspection: microseconds per event of a streamed response, and for whole requests and responses.
//!
//! `cargo run --release -p proofgate-inspect --example stream_cost`
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]

use std::hint::black_box;
use std::time::Instant;

use proofgate_inspect::{ReadBuffers, ResponseInspector, ResponseKind, inspect_request};
use proofgate_json::Workspace;
use proofgate_policy::{Engine, PolicyConfig, Scratch, pattern_pack_names};
use proofgate_providers::{BodyText, Dialect, EventReader, GeneratedText, ParsedRequest};
use serde_json::json;

const PROSE: &str = "The lighthouse keeper wrote every evening what the sea had been like, and which ships had passed; nobody had ever asked him to. ";
const LIMIT: usize = 16 << 20;

/// Returns an event of about 200 bytes with one word.
fn event(word: &str) -> String {
    let data = json!({"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": "gpt-4o-mini",
        "system_fingerprint": "fp_0123456789", "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": null}]});
    format!("data: {data}\n\n")
}

fn prose(length: usize) -> String {
    PROSE.chars().cycle().take(length).collect()
}

/// Measures microseconds per part, with `parts` in a call: the best of many series, to exclude other load on the machine.
fn measure(name: &str, rounds: usize, parts: usize, mut call: impl FnMut()) {
    let series = (0..100).map(|_| {
        let start = Instant::now();
        (0..rounds).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e6 / (rounds * parts) as f64
    });
    println!("  {name:40} {:>8.3} us", series.fold(f64::INFINITY, f64::min));
}

fn main() {
    let config = PolicyConfig {
        packs: pattern_pack_names().map(str::to_owned).collect(),
        ..PolicyConfig::default()
    };
    let engine = Engine::compile(&config).unwrap();
    let profile = engine.profile(None).unwrap();
    let (mut scratch, mut reading) = (Scratch::new(), ReadBuffers::default());
    println!("{} rules", engine.rules().count());

    let text = prose(20_000);
    let events: Vec<String> = text.split_inclusive(' ').map(event).collect();
    let bytes: usize = events.iter().map(String::len).sum();
    println!(
        "stream of {} events of {} bytes",
        events.len(),
        bytes / events.len()
    );
    let mut out = Vec::new();
    let mut inspector = ResponseInspector::new(Dialect::Chat, ResponseKind::Events, LIMIT);
    measure("inspected, one event per read", 1, events.len(), || {
        inspector.reset(Dialect::Chat, ResponseKind::Events);
        for event in &events {
            out.clear();
            inspector
                .push(
                    &engine,
                    &profile,
                    &mut scratch,
                    &mut reading,
                    event.as_bytes(),
                    &mut out,
                )
                .unwrap();
            black_box(&out);
        }
        inspector
            .finish(&engine, &profile, &mut scratch, &mut reading, &mut out)
            .unwrap();
    });
    let (mut reader, mut generated, mut workspace) =
        (EventReader::new(LIMIT), GeneratedText::new(), Workspace::new());
    measure("of that: splitting", 1, events.len(), || {
        for event in &events {
            reader.push(event.as_bytes());
            black_box(reader.next_event().unwrap()).unwrap();
        }
    });
    measure("of that: reading JSON", 1, events.len(), || {
        for event in &events {
            black_box(
                generated
                    .read(Dialect::Chat, &event.as_bytes()["data: ".len()..], &mut workspace)
                    .unwrap(),
            );
        }
    });

    for size in [800, 16_000, 128_000] {
        let message = json!({"role": "user", "content": prose(size)});
        let body = json!({"model": "gpt-4o-mini", "messages": [message], "stream": true}).to_string();
        println!("request of {} bytes", body.len());
        let rounds = (400_000 / body.len()).max(1);
        let mut text = BodyText::new();
        measure("read, with its text", rounds, 1, || {
            black_box(
                ParsedRequest::read(
                    Dialect::Chat,
                    black_box(body.as_bytes()),
                    &mut workspace,
                    &mut text,
                )
                .unwrap(),
            );
        });
        measure("inspected", rounds, 1, || {
            let budget = engine.budget(text.text().len());
            black_box(inspect_request(&engine, &profile, &text, budget, &mut scratch).unwrap());
        });
        let answer =
            json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": prose(size)}}]})
                .to_string();
        measure("an answer of that size, inspected", rounds, 1, || {
            inspector.reset(Dialect::Chat, ResponseKind::Unary);
            out.clear();
            inspector
                .push(
                    &engine,
                    &profile,
                    &mut scratch,
                    &mut reading,
                    answer.as_bytes(),
                    &mut out,
                )
                .unwrap();
            inspector
                .finish(&engine, &profile, &mut scratch, &mut reading, &mut out)
                .unwrap();
            black_box(&out);
        });
    }
}
