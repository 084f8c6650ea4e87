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
        Self::with(tokens, 1000)
    }

    fn with(tokens: u32, latency_us: u32) -> Self {
        let (tokens, latency) = (tokens.to_string(), latency_us.to_string());
        let answer = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let mut process = Command::new(PROGRAM)
            .args([
                "upstream",
                "--completion",
                answer,
                "--message",
                answer,
                "--listen",
                "127.0.0.1:0",
                "--interval-us",
                "1000",
            ])
            .args(["--tokens", &tokens, "--latency-us", &latency])
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
        self.ask_at("/v1/chat/completions", tokens, body)
    }

    fn ask_at(&self, path: &str, tokens: u32, body: &str) -> Output {
        let tokens = tokens.to_string();
        let mut client = Command::new(PROGRAM)
            .args([
                "client",
                "--target",
                &self.address,
                "--path",
                path,
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
    let upstream = Upstream::start(20);
    for (path, body) in [
        ("/v1/chat/completions", r#"{"stream":true}"#),
        ("/v1/chat/completions", r#"{"stream":true,"tools":[]}"#),
        ("/v1/messages", r#"{"stream":true}"#),
        ("/v1/messages", r#"{"stream":true,"tools":[]}"#),
    ] {
        let output = upstream.ask_at(path, 20, body);
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
        let upstream = Upstream::with(1, latency_us);
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

/// What the client of agents prints that plays a session of three turns on four connections.
fn play(upstream: &Upstream, play: &str, path: &str) -> String {
    let mut client = Command::new(PROGRAM)
        .args([
            "agents",
            "--target",
            &upstream.address,
            "--path",
            path,
            "--session",
            "/dev/stdin",
        ])
        .args(["--play", play, "--connections", "4", "--window-ms", "50"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let session = "{\"messages\":[\n\"tick-aaaaaaaaaa\"\n\"tick-aaaaaaaaaa\"\n\"tick-aaaaaaaaaa\"\n";
    client
        .stdin
        .take()
        .unwrap()
        .write_all(session.as_bytes())
        .unwrap();
    String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap()
}

/// A number of the report.
fn number(text: &str, name: &str) -> u64 {
    let (_, rest) = text.split_once(&format!("\"{name}\":")).unwrap();
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

#[test]
fn agents_send_last_turns_or_whole_sessions() {
    let upstream = Upstream::with(1, 0);
    let last = r#"{"messages":["tick-aaaaaaaaaa","tick-aaaaaaaaaa","tick-aaaaaaaaaa"]}"#.len() as u64;
    for name in ["first", "next", "whole"] {
        for path in ["/v1/chat/completions", "/v1/messages"] {
            let text = play(&upstream, name, path);
            assert!(text.starts_with("window opens\nwindow closes\n"), "{text}");
            let (requests, bytes) = (number(&text, "requests"), number(&text, "bytes"));
            assert_eq!(number(&text, "failed"), 0, "{text}");
            // Every connection plays one session at least.
            assert!(requests >= if name == "whole" { 12 } else { 1 }, "{text}");
            match name {
                // Its turns have 18 bytes more each than the one before.
                "whole" => assert_eq!(bytes * 3, requests * (3 * last - 3 * 18), "{text}"),
                _ => assert_eq!(bytes, requests * last, "{text}"),
            }
        }
    }
}

#[test]
fn an_agent_that_is_refused_says_with_what() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = Upstream {
        process: Command::new("true").spawn().unwrap(),
        address: listener.local_addr().unwrap().to_string(),
    };
    let refuse = std::thread::spawn(move || {
        for _ in 0..4 {
            let (mut socket, _) = listener.accept().unwrap();
            let (mut request, mut piece) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"]}") {
                let bytes = socket.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..bytes]);
            }
            socket
                .write_all(b"HTTP/1.1 403 No\r\ncontent-length: 5\r\n\r\n\"no\"\n")
                .unwrap();
        }
    });
    let text = play(&upstream, "whole", "/");
    refuse.join().unwrap();
    assert_eq!(number(&text, "failed"), 4, "{text}");
    assert!(text.contains("status 403 in turn 1: 'no' "), "{text}");
}
