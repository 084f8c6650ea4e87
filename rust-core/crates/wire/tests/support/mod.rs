//! Runs the codec like a connection, and reads the cases that all suites share.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test binary uses only some of these helpers")]

use proofgate_wire::{BodyDecoder, HeadScanner, Limits, ProtocolError, parse_request};

/// The outcome of one request on a connection that received `bytes` in pieces and was then closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Accepted {
        target: String,
        body: Vec<u8>,
        keep_alive: bool,
        rest: usize,
    },
    Refused(ProtocolError),
    CutShort,
}

/// Reads one request from `bytes`, which arrive in pieces that end at `splits` (sorted or not) and at the
/// end.
pub fn receive(bytes: &[u8], splits: &[usize], limits: &Limits) -> Verdict {
    let mut ends: Vec<usize> = splits.iter().map(|split| (*split).min(bytes.len())).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    match receive_pieces(bytes, &ends, limits) {
        Ok(verdict) => verdict,
        Err(refusal) => Verdict::Refused(refusal),
    }
}

fn receive_pieces(bytes: &[u8], ends: &[usize], limits: &Limits) -> Result<Verdict, ProtocolError> {
    let mut scanner = HeadScanner::new();
    let mut pieces = ends.iter();
    let (head_length, mut received) = loop {
        let Some(&end) = pieces.next() else {
            return Ok(Verdict::CutShort);
        };
        if let Some(length) = scanner.scan(&bytes[..end], limits)? {
            break (length, end);
        }
    };
    let head = parse_request(&bytes[..head_length], limits)?;
    let mut decoder = BodyDecoder::for_request(head.framing, limits);
    let mut body = Vec::new();
    let mut at = head_length;
    loop {
        let step = decoder.decode(&bytes[at..received])?;
        assert!(
            step.consumed > 0 || step.done || at == received,
            "a step makes progress"
        );
        assert!(step.data.end <= step.consumed, "data is within what was consumed");
        body.extend_from_slice(&bytes[at..received][step.data]);
        at += step.consumed;
        if step.done {
            let target = head.target.to_owned();
            let rest = bytes.len() - at;
            return Ok(Verdict::Accepted {
                target,
                body,
                keep_alive: head.keep_alive,
                rest,
            });
        }
        if at == received {
            match pieces.next() {
                Some(&end) => received = end,
                None => {
                    assert_eq!(decoder.end_of_input(), Err(ProtocolError::TruncatedBody));
                    return Ok(Verdict::CutShort);
                }
            }
        }
    }
}

/// One case of `e2e/framing/cases.json`.
#[derive(Debug, Clone)]
pub struct Case {
    pub id: String,
    pub row: String,
    pub raw: Vec<u8>,
    pub expect: Expect,
    pub body: Vec<u8>,
    pub target: String,
    pub closes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    Accept,
    Drop,
    Status(u64),
}

pub fn cases() -> Vec<Case> {
    let text = include_str!("../../../../../e2e/framing/cases.json");
    let file: serde_json::Value = serde_json::from_str(text).unwrap();
    let listed = file["cases"].as_array().unwrap();
    listed
        .iter()
        .map(|case| {
            let text = |field: &str| case[field].as_str().unwrap_or_default();
            Case {
                id: text("id").to_owned(),
                row: text("row").to_owned(),
                raw: latin1(text("raw")),
                expect: match case["expect"].as_u64() {
                    Some(status) => Expect::Status(status),
                    None if case["expect"] == "accept" => Expect::Accept,
                    None => Expect::Drop,
                },
                body: latin1(text("body")),
                target: text("target").to_owned(),
                closes: case["closes"] == true,
            }
        })
        .collect()
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .map(|character| u8::try_from(character).unwrap())
        .collect()
}
