//! Golden files: the request sent and the answer received.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// Removes the white space between JSON tokens.
pub(crate) fn compact(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    json.chars()
        .filter(|&char| {
            let kept = in_string || !char.is_ascii_whitespace();
            match char {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = !in_string,
                _ => {}
            }
            kept
        })
        .collect()
}

pub(crate) struct Golden(PathBuf);

impl Golden {
    pub(crate) fn all() -> Vec<Golden> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openai_gemini");
        let mut cases: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|case| case.unwrap().path())
            .collect();
        cases.sort();
        cases.into_iter().map(Golden).collect()
    }

    pub(crate) fn named(name: &str) -> Golden {
        Golden(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/golden/openai_gemini")
                .join(name),
        )
    }

    /// Returns the choices of the chunks written for its stream.
    pub(crate) fn choices(&self) -> Vec<Value> {
        let (out, _, _) = streamed(&events(&self.read("stream.sse").unwrap()), &asked());
        let chunks = events(std::str::from_utf8(&out).unwrap());
        let chunks = chunks
            .iter()
            .filter_map(|chunk| serde_json::from_str::<Value>(chunk).ok());
        chunks.map(|chunk| chunk["choices"][0].clone()).collect()
    }

    pub(crate) fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.0.join(file)).ok()
    }

    fn json(&self, file: &str) -> String {
        compact(
            &self
                .read(file)
                .unwrap_or_else(|| panic!("{} lacks {file}", self.0.display())),
        )
    }

    fn settings(&self) -> Value {
        self.read("case.json")
            .map_or(json!({}), |settings| serde_json::from_str(&settings).unwrap())
    }
}

#[test]
fn every_golden_case_comes_out_as_written() {
    let mut cases = 0;
    for case in Golden::all() {
        let (name, settings) = (case.0.display(), case.settings());
        assert!(case.read("SOURCE").is_some(), "{name} says where it comes from");
        let mut out = Vec::new();
        let expected = if let Some(body) = case.read("request.json") {
            let target = Target {
                untranslatable: match settings["drop"].as_bool() {
                    Some(true) => UntranslatableFieldPolicy::Drop,
                    _ => UntranslatableFieldPolicy::Refuse,
                },
                ..target(settings["model"].as_str().unwrap_or("gemini-9-pro"))
            };
            let asked = translate_request(body.as_bytes(), &target, &mut out)
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let dropped = settings["dropped"].as_array().cloned().unwrap_or_default();
            assert_eq!(json!(asked.dropped_fields), Value::Array(dropped), "{name}");
            assert_eq!(asked.stream, settings["stream"] == true, "{name}");
            assert_eq!(asked.include_usage, settings["include_usage"] == true, "{name}");
            assert_eq!(asked.model, "assistant", "{name}");
            out = compact(std::str::from_utf8(&out).unwrap()).into_bytes();
            case.json("sent.json")
        } else if let Some(body) = case.read("answer.json") {
            let usage = translate_response(body.as_bytes(), &asked(), CREATED, &mut out).unwrap();
            let received: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(received["usage"]["prompt_tokens"], usage.input, "{name}");
            case.json("received.json")
        } else if let Some(body) = case.read("error.json") {
            let status = settings["status"].as_u64().unwrap();
            translate_error(status.try_into().unwrap(), body.as_bytes(), &mut out);
            assert_eq!(
                retry_after(body.as_bytes()),
                settings["retry_after"].as_u64(),
                "{name}"
            );
            case.json("received.json")
        } else {
            let asked = RequestContext {
                include_usage: settings["include_usage"] != false,
                ..asked()
            };
            out = streamed(&events(&case.read("stream.sse").unwrap()), &asked).0;
            case.read("received.sse").unwrap()
        };
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{name}");
        cases += 1;
    }
    assert!(cases >= 25, "{cases} golden cases");
}
