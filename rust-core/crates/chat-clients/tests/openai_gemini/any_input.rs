//! No input causes a panic.

use proptest::prelude::*;

use super::golden::{Golden, compact};
use super::*;

/// A golden input with some bytes replaced.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let inputs: Vec<Vec<u8>> = Golden::all()
        .iter()
        .filter_map(|case| {
            ["request.json", "answer.json", "stream.sse", "error.json"]
                .iter()
                .find_map(|file| case.read(file))
        })
        .flat_map(|input| {
            if input.starts_with("data:") {
                events(&input)
            } else {
                vec![compact(&input)]
            }
        })
        .map(String::into_bytes)
        .collect();
    let edits = prop::collection::vec(
        (
            any::<prop::sample::Index>(),
            prop::sample::select(b"{}[]\",:0-n\\ ax".to_vec()),
        ),
        0..4,
    );
    (prop::sample::select(inputs), edits).prop_map(|(mut input, edits)| {
        for (at, byte) in edits {
            let at = at.index(input.len());
            input[at] = byte;
        }
        input
    })
}

proptest! {
    #[test]
    fn no_input_makes_it_panic(input in prop_oneof![mutated(), prop::collection::vec(any::<u8>(), 0..64)]) {
        for drop in [UntranslatableFieldPolicy::Refuse, UntranslatableFieldPolicy::Drop] {
            let mut out = Vec::new();
            let result = translate_request(&input, &Target { untranslatable: drop, ..target("gemini-3") }, &mut out);
            prop_assert_eq!(result.is_ok(), serde_json::from_slice::<Value>(&out).is_ok());
        }
        let mut out = Vec::new();
        let result = translate_response(&input, &asked(), CREATED, &mut out);
        prop_assert_eq!(result.is_ok(), serde_json::from_slice::<Value>(&out).is_ok());
        let mut out = Vec::new();
        translate_error(500, &input, &mut out);
        prop_assert!(serde_json::from_slice::<Value>(&out).is_ok());
        retry_after(&input);
        let mut stream = Stream::new(&asked(), CREATED);
        let mut out = Vec::new();
        let _ = stream.push_event("", &input, &mut out);
        let _ = stream.push_event("", br#"{"candidates":[{"finishReason":"STOP"}]}"#, &mut out);
        let _ = stream.finish(&mut out);
        for event in events(std::str::from_utf8(&out).unwrap()) {
            prop_assert!(event == "[DONE]" || serde_json::from_str::<Value>(&event).is_ok());
        }
    }
}
