//! Chat-completions requests to Amazon Bedrock's Converse, and their answers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "openai_converse/answers.rs"]
mod answers;
#[path = "openai_converse/mutations.rs"]
mod mutations;
#[path = "openai_converse/refusals.rs"]
mod refusals;
#[path = "openai_converse/requests.rs"]
mod requests;
#[path = "openai_converse/streams.rs"]
mod streams;

use std::fs;
use std::path::{Path, PathBuf};

use proofgate_chat_clients::openai_converse::{EventKind, Stream, translate_request, translate_response};
use proofgate_dialect::{
    RequestContext, ResponseError, StreamStatus, Target, UntranslatableFieldPolicy, UntranslatableRequest,
    Usage,
};
use serde_json::{Value, json};

const CREATED: u64 = 1_764_000_000;

fn target(drop: UntranslatableFieldPolicy) -> Target<'static> {
    Target {
        model: "anthropic.claude-opus-9-v1:0",
        max_output_tokens: 4096,
        untranslatable: drop,
    }
}

fn asked() -> RequestContext {
    RequestContext {
        model: "claude".to_owned(),
        stream: true,
        include_usage: true,
        ..RequestContext::default()
    }
}

/// Returns the request sent by a gateway that leaves nothing out.
fn sent(body: &Value) -> Result<Value, UntranslatableRequest> {
    sent_with(body, UntranslatableFieldPolicy::Refuse).map(|(sent, _)| sent)
}

fn sent_with(
    body: &Value,
    drop: UntranslatableFieldPolicy,
) -> Result<(Value, RequestContext), UntranslatableRequest> {
    let mut out = Vec::new();
    let asked = translate_request(body.to_string().as_bytes(), &target(drop), &mut out)?;
    Ok((serde_json::from_slice(&out).unwrap(), asked))
}

/// Returns a request with a greeting and one more message, or with other fields.
fn chat(fields: Value) -> Value {
    let mut body = json!({"model": "claude", "messages": [{"role": "user", "content": "Hi"}]});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn refused(fields: Value) -> String {
    sent(&chat(fields)).unwrap_err().param.into_owned()
}

fn user(content: Value) -> Value {
    json!({"messages": [{"role": "user", "content": content}]})
}

/// Returns the client's output and the outcome for a stream, given as lines of kind, name and data.
fn hear(
    events: &str,
    asked: &RequestContext,
) -> (String, Result<StreamStatus, ResponseError>, Option<Usage>) {
    let (mut stream, mut out, mut last) = (
        Stream::new(asked, CREATED),
        Vec::new(),
        Ok(StreamStatus::InProgress),
    );
    for line in events.lines() {
        let mut parts = line.splitn(3, ' ');
        let kind = match parts.next().unwrap() {
            "event" => EventKind::Event,
            _ => EventKind::Exception,
        };
        last = stream.push_event(
            kind,
            parts.next().unwrap(),
            parts.next().unwrap().as_bytes(),
            &mut out,
        );
        if last.is_err() {
            break;
        }
    }
    let finished = stream.finish(&mut out);
    assert_eq!(
        finished.is_ok(),
        last == Ok(StreamStatus::Finished),
        "only a good end is one"
    );
    (String::from_utf8(out).unwrap(), last, stream.usage())
}

/// Returns the chunks that a client receives, without the end.
fn chunks(events: &str) -> Vec<Value> {
    let (heard, ..) = hear(events, &asked());
    let data = heard
        .split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openai_converse");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

/// Compares with a golden file. A missing file is written, for review before the commit.
fn compare(case: &Path, file: &str, actual: &[u8]) {
    let path = case.join(file);
    let actual = [actual, if actual.ends_with(b"\n") { b"" } else { b"\n" }].concat();
    if !path.exists() {
        fs::write(&path, &actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert_eq!(String::from_utf8(actual).unwrap(), expected, "{}", path.display());
}

#[test]
fn goldens_are_translated_as_they_say() {
    let mut seen = 0;
    for case in cases() {
        let mut out = Vec::new();
        if let Ok(body) = fs::read(case.join("request.json")) {
            let dropped = fs::read(case.join("dropped.json")).ok();
            let drop = match dropped {
                Some(_) => UntranslatableFieldPolicy::Drop,
                None => UntranslatableFieldPolicy::Refuse,
            };
            let asked = translate_request(&body, &target(drop), &mut out).unwrap();
            let names: Vec<String> = dropped
                .map(|names| serde_json::from_slice(&names).unwrap())
                .unwrap_or_default();
            assert_eq!(asked.dropped_fields, names, "{}", case.display());
            compare(&case, "sent.json", &out);
            seen += 1;
        } else if let Ok(body) = fs::read(case.join("answer.json")) {
            translate_response(&body, &asked(), CREATED, &mut out).unwrap();
            compare(&case, "received.json", &out);
            seen += 1;
        } else if let Ok(events) = fs::read_to_string(case.join("stream.events")) {
            let (heard, last, _) = hear(&events, &asked());
            let expected = if events.contains("\nexception") {
                StreamStatus::Failed
            } else {
                StreamStatus::Finished
            };
            assert_eq!(last, Ok(expected), "{}", case.display());
            compare(&case, "received.sse", heard.as_bytes());
            seen += 1;
        }
    }
    assert_eq!(seen, 16);
}
