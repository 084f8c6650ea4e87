//! Both ends, as processes, against each other.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stream-load");

/// An upstream with one token per millisecond; ended with the test.
struct Upstream {
    process: Child,
    address: String,
}

impl Upstream {
    fn start(tokens: u32) -> Self {
        Self::with(tokens, 1000, "openai")
    }

    fn with(tokens: u32, latency_us: u32, events: &str) -> Self {
        let (tokens, latency) = (tokens.to_string(), latency_us.to_string());
        let answer = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let mut process = Command::new(PROGRAM)
            .args([
                "upstream",
                "--answer",
                answer,
                "--listen",
                "127.0.0.1:0",
                "--interval-us",
                "1000",
            ])
            .args(["--tokens", &tokens, "--latency-us", &latency, "--events", events])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("listening ").unwrap().to_owned();
        Self { process, address }
    }

    fn ask(&self, tokens: u32, body: &str) -> Output {
        let tokens = tokens.to_string();
        let mut client = Command::new(PROGRAM)
            .args([
                "client",
                "--target",
                &self.address,
                "--path",
                "/v1/chat/completions",
                "--body",
                "/dev/stdin",
            ])
            .args([
                "--streams",
                "5",
                "--tokens",
                &tokens,
                "--ramp-ms",
                "10",
                "--window-ms",
                "1000",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        client.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
        client.wait_with_output().unwrap()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn every_stream_that_ends_is_whole_and_followed_by_the_next() {
    for events in ["openai", "anthropic"] {
        let upstream = Upstream::with(20, 1000, events);
        let output = upstream.ask(20, r#"{"stream":true}"#);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("window opens\nwindow closes\n"), "{text}");
        assert!(text.contains(r#""failed":0"#), "{text}");
        assert!(
            !text.contains(r#""chunks":0"#) && !text.contains(r#""completed":0"#),
            "{text}"
        );
    }
}

#[test]
fn a_stream_with_a_token_too_few_fails() {
    let upstream = Upstream::start(20);
    let output = upstream.ask(21, r#"{"stream": true}"#);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(r#""failed":5"#), "{text}");
    assert!(text.contains("ended after 20 tokens"), "{text}");
}

#[test]
fn an_answer_that_is_no_stream_fails() {
    let upstream = Upstream::start(20);
    let output = upstream.ask(20, "{}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(r#""failed":5"#), "{text}");
}

#[test]
fn requests_behind_each_other_are_answered_in_order_at_once_or_after_a_time() {
    for latency_us in [0, 1000] {
        let upstream = Upstream::with(1, latency_us, "openai");
        let mut client = TcpStream::connect(&upstream.address).unwrap();
        for request in ["POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"; 3] {
            client.write_all(request.as_bytes()).unwrap();
        }
        let answer = include_str!("../Cargo.toml");
        let length = answer.len();
        let one = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{answer}"
        );
        let mut answers = vec![0; one.len() * 3];
        client.read_exact(&mut answers).unwrap();
        assert_eq!(String::from_utf8(answers).unwrap(), one.repeat(3));
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_missing_argument_is_named() {
    let output = Command::new(PROGRAM).arg("client").output().unwrap();
    assert!(!output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "--target is missing\n");
}
