//! Requests and answers between a client of Anthropic's messages and a provider of chat completions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use proofgate_chat_providers::anthropic_openai::{
    Stream, translate_error, translate_for_other_apis, translate_request, translate_response,
};
use proofgate_dialect::{
    RequestContext, ResponseError, StreamStatus, Target, UntranslatableFieldPolicy, UntranslatableRequest,
    Usage,
};
use proptest::prelude::*;
use serde_json::Value;

#[path = "anthropic_openai/answers.rs"]
mod answers;
#[path = "anthropic_openai/requests.rs"]
mod requests;
#[path = "anthropic_openai/streams.rs"]
mod streams;

const ESTIMATE: u64 = 25;

fn cases(kind: &str) -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/anthropic_openai");
    let entries = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = entries.filter(|case| case.join(kind).exists()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

fn read(case: &Path, name: &str) -> String {
    fs::read_to_string(case.join(name)).unwrap_or_else(|error| panic!("{}: {name}: {error}", case.display()))
}

/// Compares with a golden file; with `WRITE_GOLDENS` set it is written first, for review.
fn check(case: &Path, name: &str, actual: &str) {
    if std::env::var_os("WRITE_GOLDENS").is_some() {
        fs::write(case.join(name), actual).unwrap();
    }
    assert_eq!(actual, read(case, name), "{}/{name}", case.display());
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

fn pretty(bytes: &[u8]) -> String {
    serde_json::to_string_pretty(&json(bytes)).unwrap() + "\n"
}

fn target(drop: UntranslatableFieldPolicy) -> Target<'static> {
    Target {
        model: "gpt-5.2",
        max_output_tokens: 4096,
        untranslatable: drop,
    }
}

fn asked() -> RequestContext {
    RequestContext {
        model: "claude-sonnet-4-5".to_owned(),
        stream: true,
        ..RequestContext::default()
    }
}

fn sent_to(model: &str, body: &str) -> Result<String, UntranslatableRequest> {
    let mut out = Vec::new();
    let target = Target {
        model,
        ..target(UntranslatableFieldPolicy::Refuse)
    };
    translate_request(body.as_bytes(), &target, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// Returns the request sent for these messages, with additional fields.
fn sent(messages: &str, fields: &str) -> Result<Value, UntranslatableRequest> {
    let body = format!(r#"{{"model":"c","max_tokens":5,"messages":{messages}{fields}}}"#);
    sent_to("gpt-5.2", &body).map(|sent| json(sent.as_bytes()))
}

fn refused_at(messages: &str, fields: &str) -> String {
    sent(messages, fields).unwrap_err().param.into_owned()
}

/// Returns the names and data of the events of a stream.
fn events(stream: &str) -> Vec<(String, String)> {
    let blocks = stream
        .split("\n\n")
        .filter(|block| !block.is_empty() && !block.starts_with(':'));
    blocks
        .map(|block| {
            let line = |field: &str| block.lines().find_map(|line| line.strip_prefix(field));
            let name = line("event: ").unwrap_or_default();
            (name.to_owned(), line("data: ").unwrap().to_owned())
        })
        .collect()
}

struct Received {
    text: String,
    last: Result<StreamStatus, ResponseError>,
    end: Result<(), ResponseError>,
    usage: Option<Usage>,
}

impl Received {
    fn events(&self) -> Vec<Value> {
        let events = events(&self.text);
        for (name, data) in &events {
            assert_eq!(json(data.as_bytes())["type"], Value::from(&name[..]));
        }
        events.iter().map(|(_, data)| json(data.as_bytes())).collect()
    }

    fn of_type(&self, kind: &str) -> Vec<Value> {
        self.events()
            .into_iter()
            .filter(|event| event["type"] == kind)
            .collect()
    }

    /// Returns the blocks as a client assembles them, each with its text or its arguments.
    fn blocks(&self) -> Vec<(Value, String)> {
        let mut blocks: Vec<(Value, String)> = Vec::new();
        let mut open = false;
        for event in self.events() {
            let delta = &event["delta"];
            match event["type"].as_str().unwrap() {
                "content_block_start" => {
                    assert!(!open);
                    assert_eq!(event["index"], blocks.len());
                    open = true;
                    blocks.push((event["content_block"].clone(), String::new()));
                }
                "content_block_delta" => {
                    assert!(open);
                    assert_eq!(event["index"], blocks.len() - 1);
                    let text = ["text", "thinking", "partial_json"]
                        .iter()
                        .find_map(|name| delta[name].as_str());
                    blocks.last_mut().unwrap().1.push_str(text.unwrap());
                }
                "content_block_stop" => {
                    assert!(open);
                    assert_eq!(event["index"], blocks.len() - 1);
                    open = false;
                }
                _ => {}
            }
        }
        blocks
    }

    fn stop_reason(&self) -> Value {
        let deltas = self.of_type("message_delta");
        assert_eq!(deltas.len(), 1);
        deltas[0]["delta"]["stop_reason"].clone()
    }
}

fn receive(stream: &str) -> Received {
    let mut translated = Stream::new(&asked(), ESTIMATE);
    let mut out = Vec::new();
    let mut last = Ok(StreamStatus::InProgress);
    for (name, data) in events(stream) {
        last = translated.push_event(&name, data.as_bytes(), &mut out);
        if last.is_err() {
            break;
        }
    }
    let end = translated.finish(&mut out);
    Received {
        text: String::from_utf8(out).unwrap(),
        last,
        end,
        usage: translated.usage(),
    }
}

/// Returns a stream of chunks with these deltas, a finish reason and `[DONE]`.
fn chunks(deltas: &[&str], reason: &str) -> String {
    let mut stream = String::new();
    for delta in deltas {
        stream += &format!(
            "data: {{\"id\":\"c1\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n"
        );
    }
    stream
        + &format!(
            "data: {{\"id\":\"c1\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n"
        )
        + "data: [DONE]\n\n"
}

fn whole(message: &str, reason: &str, usage: &str) -> Result<(Value, Usage), ResponseError> {
    let body = format!(
        r#"{{"id":"c1","choices":[{{"index":0,"message":{message},"finish_reason":{reason}}}],"usage":{usage}}}"#
    );
    let mut out = Vec::new();
    let usage = translate_response(body.as_bytes(), &asked(), &mut out)?;
    Ok((json(&out), usage))
}

const NO_USAGE: &str = "null";

#[test]
fn requests_are_sent_as_the_golden_files_say() {
    for case in cases("request.json") {
        let drops = case.join("dropped.json").exists();
        let drop = if drops {
            UntranslatableFieldPolicy::Drop
        } else {
            UntranslatableFieldPolicy::Refuse
        };
        let mut out = Vec::new();
        let asked =
            translate_request(read(&case, "request.json").as_bytes(), &target(drop), &mut out).unwrap();
        check(&case, "sent.json", &pretty(&out));
        if drops {
            let dropped: Vec<String> = serde_json::from_str(&read(&case, "dropped.json")).unwrap();
            assert_eq!(asked.dropped_fields, dropped);
        }
    }
}

#[test]
fn answers_are_received_as_the_golden_files_say() {
    for case in cases("answer.json") {
        let mut out = Vec::new();
        translate_response(read(&case, "answer.json").as_bytes(), &asked(), &mut out).unwrap();
        check(&case, "received.json", &pretty(&out));
    }
}

#[test]
fn errors_are_received_as_the_golden_files_say() {
    for case in cases("error.json") {
        let mut out = Vec::new();
        let status = read(&case, "status").trim().parse().unwrap();
        translate_error(status, read(&case, "error.json").as_bytes(), &mut out);
        check(&case, "received.json", &pretty(&out));
    }
}

#[test]
fn streams_are_received_as_the_golden_files_say() {
    for case in cases("stream.sse") {
        let received = receive(&read(&case, "stream.sse"));
        check(&case, "received.sse", &received.text);
        let names: Vec<_> = events(&received.text).into_iter().map(|(name, _)| name).collect();
        match received.last.unwrap() {
            StreamStatus::Finished => {
                assert_eq!(names.first().unwrap(), "message_start");
                assert_eq!(names.last().unwrap(), "message_stop");
                assert_eq!(received.end, Ok(()));
            }
            _ => {
                assert_eq!(names.last().unwrap(), "error");
                assert!(received.end.is_err());
            }
        }
    }
}

fn inputs() -> Vec<String> {
    let files = ["request.json", "answer.json", "error.json", "stream.sse"];
    files
        .iter()
        .flat_map(|file| cases(file).into_iter().map(move |case| read(&case, file)))
        .collect()
}

/// Checks that every translation survives any bytes, and writes only complete output.
fn survives(bytes: &[u8]) {
    let mut out = Vec::new();
    if translate_request(bytes, &target(UntranslatableFieldPolicy::Drop), &mut out).is_ok() {
        json(&out);
    }
    out.clear();
    if translate_response(bytes, &asked(), &mut out).is_ok() {
        json(&out);
    }
    out.clear();
    translate_error(500, bytes, &mut out);
    json(&out);
    let mut stream = Stream::new(&asked(), ESTIMATE);
    out.clear();
    for line in bytes.split(|byte| *byte == b'\n') {
        let data = line.strip_prefix(b"data: ").unwrap_or(line);
        let _ = stream.push_event("", data, &mut out);
    }
    let _ = stream.finish(&mut out);
    for (_, data) in events(std::str::from_utf8(&out).unwrap()) {
        json(data.as_bytes());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes);
    }

    #[test]
    fn changed_goldens_are_survived(
        at in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&b"{}[]\",:\\0-untx"[..]), any::<bool>()), 1..6),
    ) {
        let inputs = inputs();
        let mut bytes = inputs[at.index(inputs.len())].clone().into_bytes();
        for (at, byte, replaces) in edits {
            let at = at.index(bytes.len());
            if replaces { bytes[at] = byte } else { bytes.insert(at, byte) }
        }
        survives(&bytes);
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = "[".repeat(100_000);
    survives(deep.as_bytes());
    let block = r#"{"type":"tool_result","content":["#.repeat(10_000);
    survives(
        format!(r#"{{"model":"c","max_tokens":1,"messages":[{{"role":"user","content":[{block}"#).as_bytes(),
    );
    let closed = format!("{block}{}", "]}".repeat(10_000));
    let body =
        format!(r#"{{"model":"c","max_tokens":1,"messages":[{{"role":"user","content":[{closed}]}}]}}"#);
    assert_eq!(
        sent_to("m", &body).unwrap_err().param,
        "messages[0].content[0].tool_use_id"
    );
}
