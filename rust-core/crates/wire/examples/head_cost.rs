//! Measures the nanoseconds to find the end of a typical head, to parse it, and to write it.
//!
//! `cargo run --release -p proofgate-wire --example head_cost`
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]

use proofgate_wire::{BodyDecoder, HeadScanner, Limits, RequestFraming, encode, parse_request};
use std::hint::black_box;
use std::time::Instant;

const HEAD: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\n\
Host: gateway.example.com\r\n\
Accept: application/json\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Connection: keep-alive\r\n\
User-Agent: OpenAI/Python 3.52.0\r\n\
Authorization: Bearer sk-proofgate-0123456789abcdef0123456789abcdef\r\n\
X-Stainless-Lang: python\r\n\
X-Stainless-Runtime-Version: 3.11.2\r\n\
Content-Type: application/json\r\n\
Content-Length: 1024\r\n\r\n";

const ROUNDS: u32 = 200_000;

/// Returns the nanoseconds per call in the fastest of seven series, to exclude other load on the
/// machine.
fn measure(name: &str, mut call: impl FnMut()) {
    let series = (0..7).map(|_| {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| call());
        start.elapsed().as_nanos() / u128::from(ROUNDS)
    });
    println!("{name:32} {:>6} ns", series.min().unwrap_or_default());
}

fn main() {
    let limits = Limits::default();
    println!("head of {} bytes, 10 fields", HEAD.len());
    measure("scan", || {
        black_box(HeadScanner::new().scan(black_box(HEAD), &limits)).unwrap();
    });
    measure("parse", || {
        black_box(parse_request(black_box(HEAD), &limits)).unwrap();
    });
    measure("httparse alone", || {
        let mut fields = [httparse::EMPTY_HEADER; 64];
        black_box(httparse::Request::new(&mut fields).parse(black_box(HEAD))).unwrap();
    });
    let head = parse_request(HEAD, &limits).unwrap();
    let mut out = Vec::with_capacity(1024);
    measure("write the same head", || {
        out.clear();
        encode::write_request_head(&mut out, head.method_text, head.target, head.headers.iter()).unwrap();
        black_box(&out);
    });
    let mut chunk = Vec::new();
    encode::write_chunk(&mut chunk, &[b'a'; 200]);
    let mut decoder = BodyDecoder::for_request(
        RequestFraming::Chunked,
        &Limits {
            body_bytes: u64::MAX,
            ..limits
        },
    );
    measure("decode a chunk of 200 bytes", || {
        let step = decoder.decode(black_box(&chunk)).unwrap();
        black_box(decoder.decode(&chunk[step.consumed..])).unwrap();
    });
}
