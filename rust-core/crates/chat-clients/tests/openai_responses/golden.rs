use std::fs;
use std::path::{Path, PathBuf};

use super::*;

pub fn cases(kind: &str) -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openai_responses");
    let entries = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path());
    let is_of_kind = |case: &PathBuf| case.file_name().unwrap().to_str().unwrap().starts_with(kind);
    let mut cases: Vec<_> = entries.filter(is_of_kind).collect();
    cases.sort();
    assert!(!cases.is_empty(), "there are goldens of {kind}");
    cases
}

pub fn read(case: &Path, name: &str) -> String {
    fs::read_to_string(case.join(name)).unwrap_or_else(|error| panic!("{}: {name}: {error}", case.display()))
}

/// Compares with a golden file; with `WRITE_GOLDENS` set it is written first, for review.
fn check(case: &Path, name: &str, actual: &str) {
    if std::env::var_os("WRITE_GOLDENS").is_some() {
        fs::write(case.join(name), actual).unwrap();
    }
    assert_eq!(actual, read(case, name), "{}/{name}", case.display());
}

fn pretty(json: &[u8]) -> String {
    let value: Value = serde_json::from_slice(json).unwrap();
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

#[test]
fn a_request_is_sent_as_one_of_responses() {
    for case in cases("request") {
        let mut out = Vec::new();
        let asked = translate_request(
            read(&case, "request.json").as_bytes(),
            &target("gpt-5.6", DROP),
            &mut out,
        );
        let asked = asked.unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        check(&case, "sent.json", &pretty(&out));
        let dropped = serde_json::to_string(&asked.dropped_fields).unwrap() + "\n";
        check(&case, "dropped.json", &dropped);
    }
}

#[test]
fn an_answer_is_received_as_a_chat_completion() {
    for case in cases("answer") {
        let mut out = Vec::new();
        translate_response(read(&case, "answer.json").as_bytes(), &asked(), CREATED, &mut out).unwrap();
        check(&case, "received.json", &pretty(&out));
    }
}

#[test]
fn a_stream_is_received_as_chunks() {
    for case in cases("stream") {
        let mut stream = Stream::new(&asked(), CREATED);
        let (mut out, mut last) = (Vec::new(), StreamStatus::InProgress);
        for (name, data) in events(&read(&case, "stream.sse")) {
            last = stream.push_event(name, data.as_bytes(), &mut out).unwrap();
        }
        assert_eq!(
            stream.finish(&mut out).is_ok(),
            last == StreamStatus::Finished,
            "{}",
            case.display()
        );
        check(&case, "received.sse", std::str::from_utf8(&out).unwrap());
    }
}
