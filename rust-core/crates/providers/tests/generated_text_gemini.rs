//! Generated text in Gemini's responses, which has the same key in the events of a stream.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_json::Workspace;
use proofgate_providers::{Dialect, DocumentKind, GeneratedText, PartEncoding};
use support::keyed;

fn read(document: &str) -> (DocumentKind, Vec<(String, String)>) {
    support::read(Dialect::Gemini, document)
}

fn pieces(document: &str) -> Vec<(String, String)> {
    support::pieces(Dialect::Gemini, document)
}

#[test]
fn every_string_of_the_candidates_is_generated_but_names_of_the_api_and_signatures() {
    let answer = r#"{"candidates":[{"content":{"role":"model","parts":[
            {"text":"h\u006dm","thought":true,"thoughtSignature":"EqQB"},
            {"thought":true,"text":"m"},
            {"text":"Hi"},
            {"functionCall":{"id":"c1","name":"look","args":{"city":"Oslo","days":[{"id":"mon"}],"card":4111111111111111}},"thoughtSignature":"EqQC"},
            {"executableCode":{"language":"PYTHON","code":"print()"}},
            {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"out"}},
            {"unheardOf":{"deep":["b"]}}]},
        "finishReason":"STOP","finishMessage":"over","safetyRatings":[{"category":"C","probability":"NEGLIGIBLE"}],
        "citationMetadata":{"citationSources":[{"uri":"https://a.example"}]},"groundingMetadata":{"webSearchQueries":["q"]},"avgLogprobs":-0.1},
        {"index":1,"content":{"parts":[{"text":"Ho"}]}}],
        "promptFeedback":{"blockReasonMessage":"no"},"modelVersion":"m","responseId":"r","usageMetadata":{"serviceTier":"standard"}}"#;
    let expected = [
        ("0/thought", "hmm"),
        ("0/thought", "m"),
        ("0/text", "Hi"),
        ("0/name", "look"),
        ("0/args/city", "city"),
        ("0/args/city", "Oslo"),
        ("0/args/days", "days"),
        ("0/args/days/0/id", "id"),
        ("0/args/days/0/id", "mon"),
        ("0/args/card", "card"),
        ("0/args/card", "4111111111111111"),
        ("0/executableCode/language", "PYTHON"),
        ("0/executableCode/code", "print()"),
        ("0/codeExecutionResult/outcome", "OUTCOME_OK"),
        ("0/codeExecutionResult/output", "out"),
        ("0/unheardOf/deep/0", "b"),
        ("0/finishMessage", "over"),
        ("0/citationMetadata/citationSources/0/uri", "https://a.example"),
        ("0/groundingMetadata/webSearchQueries/0", "q"),
        ("1/text", "Ho"),
        ("promptFeedback/blockReasonMessage", "no"),
    ];
    assert_eq!(read(answer), (DocumentKind::Known, keyed(&expected)));
}

#[test]
fn the_texts_of_a_stream_go_on_from_event_to_event() {
    let event = |parts: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}}}}]}}"#);
    assert_eq!(
        pieces(&event(r#"{"text":"a"},{"text":"b"}"#)),
        keyed(&[("0/text", "a"), ("0/text", "b")])
    );
    assert_eq!(
        pieces(&event(r#"{"text":"c","thought":true}"#)),
        keyed(&[("0/thought", "c")])
    );
    let fragment = r#"{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","stringValue":"d","willContinue":true}]}}"#;
    assert_eq!(pieces(&event(fragment)), keyed(&[("0/partialArgs", "d")]));
    // Text may follow in an event after the finish reason.
    let last = r#"{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"e"}]}}]}"#;
    assert!(support::finished(Dialect::Gemini, last).is_empty());
}

#[test]
fn the_arguments_of_a_call_are_read_with_their_keys_and_long_numbers() {
    let answer = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"args":{"card":4111111111111111,"days":3}}}]}}]}"#;
    let mut generated = GeneratedText::new();
    generated
        .read(Dialect::Gemini, answer.as_bytes(), &mut Workspace::new())
        .unwrap();
    let parts: Vec<_> = generated
        .parts()
        .iter()
        .map(|part| (generated.value(part), part.encoding))
        .collect();
    assert_eq!(
        parts,
        [
            ("card", PartEncoding::Key),
            ("4111111111111111", PartEncoding::Number),
            ("days", PartEncoding::Key)
        ]
    );
}

#[test]
fn probabilities_of_tokens_repeat_the_text_and_are_found() {
    let answer = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"logprobsResult":{"chosenCandidates":[{"token":"Hi"}]}}]}"#;
    let mut generated = GeneratedText::new();
    generated
        .read(Dialect::Gemini, answer.as_bytes(), &mut Workspace::new())
        .unwrap();
    let [found] = generated.logprobs() else {
        unreachable!()
    };
    assert_eq!(
        answer[found.clone()].trim_start_matches(':'),
        r#"{"chosenCandidates":[{"token":"Hi"}]}"#
    );
}

#[test]
fn what_is_no_answer_is_some_other_document() {
    for document in [
        r#"{"error":{"message":"no"}}"#,
        r#"{"candidates":[],"error":{"message":"no"}}"#,
        r#"[{"candidates":[]}]"#,
        "{}",
    ] {
        assert_eq!(read(document), (DocumentKind::Other, Vec::new()), "{document}");
    }
    assert_eq!(read(r#"{"usageMetadata":{}}"#).0, DocumentKind::Known);
}

#[test]
fn a_count_of_tokens_holds_no_text() {
    assert_eq!(
        support::read(Dialect::GeminiTokens, r#"{"totalTokens":7}"#),
        (DocumentKind::Known, Vec::new())
    );
}
