use std::fs;
use std::path::{Path, PathBuf};

use proofgate_chat_clients::openai_anthropic::{
    Stream, translate_error, translate_request, translate_response,
};
use proofgate_dialect::{RequestContext, StreamStatus, UntranslatableFieldPolicy};
use serde_json::Value;

use super::{CREATED, asked, events, target};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openai_anthropic")
}

pub fn cases(kind: &str) -> Vec<PathBuf> {
    let cases = fs::read_dir(folder()).unwrap().map(|case| case.unwrap().path());
    let mut cases: Vec<_> = cases.filter(|case| name(case).starts_with(kind)).collect();
    cases.sort();
    assert!(!cases.is_empty(), "there are goldens of {kind}");
    cases
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

pub fn read(case: &Path, file: &str) -> String {
    fs::read_to_string(case.join(file)).unwrap_or_else(|error| panic!("{}/{file}: {error}", case.display()))
}

/// Removes the white space between JSON tokens: digits and the order of keys count, indentation does not.
fn minified(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    json.chars()
        .filter(|&c| {
            let keep = in_string || !c.is_ascii_whitespace();
            match c {
                '"' if !escaped => in_string = !in_string,
                _ => {}
            }
            escaped = c == '\\' && !escaped;
            keep
        })
        .collect()
}

fn expect(case: &Path, file: &str, got: &[u8], of_json: bool) {
    let got = std::str::from_utf8(got).unwrap();
    let expected = read(case, file);
    match of_json {
        true => assert_eq!(minified(got), minified(&expected), "{}", case.display()),
        false => assert_eq!(got, expected, "{}", case.display()),
    }
}

#[test]
fn a_request_is_sent_as_messages() {
    for case in cases("request") {
        let dropped = case
            .join("dropped.json")
            .exists()
            .then(|| read(&case, "dropped.json"));
        let rule = match dropped {
            Some(_) => UntranslatableFieldPolicy::Drop,
            None => UntranslatableFieldPolicy::Refuse,
        };
        let mut out = Vec::new();
        let asked = translate_request(read(&case, "request.json").as_bytes(), &target(rule), &mut out);
        let asked = asked.unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        expect(&case, "sent.json", &out, true);
        let names: Vec<String> = serde_json::from_str(dropped.as_deref().unwrap_or("[]")).unwrap();
        assert_eq!(asked.dropped_fields, names, "{}", case.display());
    }
}

#[test]
fn an_answer_is_received_as_a_chat_completion() {
    for case in cases("answer") {
        let mut out = Vec::new();
        translate_response(read(&case, "answer.json").as_bytes(), &asked(), CREATED, &mut out).unwrap();
        expect(&case, "received.json", &out, true);
    }
}

#[test]
fn a_stream_is_received_as_chunks() {
    for case in cases("stream") {
        let known: Value = serde_json::from_str(&read(&case, "asked.json")).unwrap();
        let include_usage = known["include_usage"] == true;
        let mut stream = Stream::new(
            &RequestContext {
                include_usage,
                ..asked()
            },
            CREATED,
        );
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
        expect(&case, "received.sse", &out, false);
    }
}

#[test]
fn an_error_is_received_as_openai_says_it() {
    for case in cases("error") {
        let files = fs::read_dir(&case).unwrap().map(|file| file.unwrap().path());
        let file = files
            .into_iter()
            .find(|file| name(file).starts_with("error-"))
            .unwrap();
        let status = name(&file)[6..9].parse().unwrap();
        let mut out = Vec::new();
        translate_error(status, &fs::read(&file).unwrap(), &mut out);
        expect(&case, "received.json", &out, true);
    }
}
