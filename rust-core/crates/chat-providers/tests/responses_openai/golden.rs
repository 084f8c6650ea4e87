//! Golden files: the request sent and the answer received. With `WRITE_GOLDENS` set they are written first, for review.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn cases(kind: &str) -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/responses_openai");
    let entries = fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = entries.filter(|case| case.join(kind).exists()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

fn read(case: &Path, name: &str) -> String {
    fs::read_to_string(case.join(name)).unwrap_or_else(|error| panic!("{}: {name}: {error}", case.display()))
}

fn check(case: &Path, name: &str, actual: &str) {
    if std::env::var_os("WRITE_GOLDENS").is_some() {
        fs::write(case.join(name), actual).unwrap();
    }
    assert_eq!(actual, read(case, name), "{}/{name}", case.display());
}

fn pretty(bytes: &[u8]) -> String {
    let value: Value = serde_json::from_slice(bytes).unwrap();
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

/// Returns the context of a case's request, if it has one.
fn asked_in(case: &Path) -> RequestContext {
    match case.join("request.json").exists() {
        true => translate_request(
            read(case, "request.json").as_bytes(),
            &target(REFUSE),
            &mut Vec::new(),
        )
        .unwrap(),
        false => asked(),
    }
}

pub(crate) fn inputs() -> Vec<String> {
    ["request.json", "answer.json", "stream.sse"]
        .iter()
        .flat_map(|file| {
            cases(file)
                .into_iter()
                .map(move |case| read(&case, file).replace("data: ", ""))
        })
        .collect()
}

#[test]
fn requests_are_sent_as_the_golden_files_say() {
    for case in cases("request.json") {
        let mut out = Vec::new();
        let asked =
            translate_request(read(&case, "request.json").as_bytes(), &target(REFUSE), &mut out).unwrap();
        check(&case, "sent.json", &pretty(&out));
        check(
            &case,
            "dropped.json",
            &format!("{}\n", json!(asked.dropped_fields)),
        );
    }
}

#[test]
fn answers_are_received_as_the_golden_files_say() {
    for case in cases("answer.json") {
        let mut out = Vec::new();
        translate_response(
            read(&case, "answer.json").as_bytes(),
            &asked_in(&case),
            CREATED,
            &mut out,
        )
        .unwrap();
        check(&case, "received.json", &pretty(&out));
    }
}

#[test]
fn streams_are_received_as_the_golden_files_say() {
    for case in cases("stream.sse") {
        let data: Vec<String> = events(&read(&case, "stream.sse"))
            .into_iter()
            .map(|(_, data)| data)
            .collect();
        let received = receive(&data, &asked_in(&case));
        received.events();
        check(&case, "received.sse", &received.text);
    }
}
