//! Measures the cost of reading a request, step by step: microseconds, and microseconds per KB, for each named file.
//!
//! `cargo run --release -p proofgate-providers --example model_cost -- BODY...`
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]

use std::hint::black_box;
use std::time::Instant;

use proofgate_json::{Event, Reader, Workspace};
use proofgate_providers::{BodyText, Dialect, ParsedRequest};
use sha2::{Digest, Sha256};

const SERIES: usize = 5;

/// Returns the median of five series, each the best of many short runs, which excludes other load on the machine.
fn measure(name: &str, bytes: usize, mut call: impl FnMut()) {
    let rounds = (2_000_000 / bytes).max(1);
    let mut series: Vec<f64> = (0..SERIES)
        .map(|_| {
            let run = |_| {
                let start = Instant::now();
                (0..rounds).for_each(|_| call());
                start.elapsed().as_secs_f64() * 1e6 / rounds as f64
            };
            (0..60).map(run).fold(f64::INFINITY, f64::min)
        })
        .collect();
    series.sort_by(f64::total_cmp);
    let median = series[SERIES / 2];
    println!(
        "  {name:28} {median:>9.2} us {:>7.3} us/KB",
        median * 1024.0 / bytes as f64
    );
}

fn main() {
    let (mut workspace, mut text) = (Workspace::new(), BodyText::new());
    for file in std::env::args().skip(1) {
        let body = std::fs::read(&file).unwrap();
        let dialect = match file.contains("messages") {
            true => Dialect::Messages,
            false => Dialect::Chat,
        };
        println!("{file}: {} bytes", body.len());
        let checked = ParsedRequest::body_as_str(&body).unwrap();
        measure("UTF-8", body.len(), || {
            black_box(ParsedRequest::body_as_str(black_box(&body)).unwrap());
        });
        measure("every event", body.len(), || {
            let mut reader = Reader::from_text(black_box(checked), &mut workspace).unwrap();
            while let Some(event) = reader.next().unwrap() {
                black_box(matches!(event, Event::Null));
            }
        });
        measure("the whole request", body.len(), || {
            black_box(
                ParsedRequest::read_text(dialect, black_box(checked), &mut workspace, &mut text).unwrap(),
            );
        });
        measure("SHA-256", body.len(), || {
            black_box(Sha256::digest(black_box(&body)));
        });
    }
}
