//! OpenAI-compatible servers that deviate from OpenAI's chat completions, and the content that is
//! still read from their responses.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_json::Workspace;
use proofgate_providers::{
    BodyKind, Dialect, DocumentKind, EventMeaning, GeneratedText, Usage, UsageReader, is_usage_only,
};

fn event(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

fn meaning(data: &str) -> EventMeaning {
    EventMeaning::classify(Dialect::Chat, &event(data))
}

fn of_stream(events: &[&str]) -> Option<Usage> {
    let mut reader = UsageReader::new(Dialect::Chat);
    for data in events {
        reader.push_event(&event(data));
    }
    reader.usage()
}

fn of_answer(answer: &str) -> Option<Usage> {
    let mut reader = UsageReader::new(Dialect::Chat);
    reader.push(answer.as_bytes());
    reader.usage()
}

fn totals(usage: Option<Usage>) -> Option<(u64, u64)> {
    usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens))
}

/// Returns the shape of a document, the keys and values of its generated texts, and the finished choices.
fn generated(document: &str) -> (DocumentKind, Vec<(String, String)>, Vec<u64>) {
    let mut text = GeneratedText::new();
    let shape = text
        .read(Dialect::Chat, document.as_bytes(), &mut Workspace::new())
        .unwrap();
    let parts = text.parts().iter().map(|part| {
        let mut key = String::new();
        text.write_key(part, &mut key);
        (key, text.value(part).to_owned())
    });
    (shape, parts.collect(), text.finished().collect())
}

fn owned(parts: &[(&str, &str)]) -> Vec<(String, String)> {
    let parts = parts.iter();
    parts
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn vllm_counts_in_every_chunk_and_only_its_last_count_holds() {
    let chunks = [
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"total_tokens":6,"completion_tokens":1}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2}}"#,
    ];
    assert_eq!(totals(of_stream(&chunks)), Some((5, 2)));
    let alone = chunks.map(|chunk| is_usage_only(&event(chunk)));
    assert_eq!(alone, [false, false, true]);
}

#[test]
fn what_vllm_writes_behind_the_usage_of_an_answer_hides_it_not() {
    let logprobs = r#"{"1":{"logprob":-0.5,"rank":1,"decoded_token":"usage"}},"#.repeat(2000);
    let answer = format!(
        r#"{{"choices":[],"usage":{{"prompt_tokens":5,"completion_tokens":2}},"prompt_logprobs":[{logprobs}null],"kv_transfer_params":null}}"#
    );
    assert_eq!(totals(of_answer(&answer)), Some((5, 2)));
}

#[test]
fn a_failure_is_one_although_an_end_follows_it() {
    for failure in [
        // vLLM, before its `[DONE]`.
        r#"{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}"#,
        // Ollama.
        r#"{"error":"model runner has unexpectedly stopped"}"#,
        // Text Generation Inference.
        r#"{"error":"Request failed during generation","error_type":"generation"}"#,
        // OpenRouter, which uses a numeric code.
        r#"{"id":"g","error":{"code":502,"message":"no"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        // Groq.
        r#"{"id":"c","choices":[],"x_groq":{"id":"r","error":"over capacity"}}"#,
    ] {
        assert_eq!(meaning(failure), EventMeaning::Failure, "{failure}");
    }
    assert_eq!(meaning("[DONE]"), EventMeaning::SuccessfulEnd);
    for part in [
        r#"{"choices":[],"x_groq":{"id":"r","error":null}}"#,
        r#"{"choices":[],"x_groq":"\"error\""}"#,
        r#"{"choices":[{"delta":{"content":"x_groq \"error\""}}]}"#,
    ] {
        assert_eq!(meaning(part), EventMeaning::Part, "{part}");
    }
}

#[test]
fn an_error_with_the_status_of_success_is_no_answer() {
    // OpenRouter.
    let (shape, parts, _) = generated(r#"{"error":{"code":402,"message":"Insufficient credits"}}"#);
    assert_eq!((shape, parts), (DocumentKind::Other, vec![]));
    assert_eq!(
        of_answer(r#"{"error":{"code":402,"message":"Insufficient credits"}}"#),
        None
    );
}

#[test]
fn reasoning_is_text_under_whatever_name() {
    for name in ["reasoning", "reasoning_content"] {
        let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{{"{name}":"so"}}}}]}}"#);
        let key = format!("0/{name}");
        assert_eq!(generated(&chunk).1, owned(&[(&key, "so")]));
    }
    // OpenRouter.
    let chunk = r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"so","index":0}]}}]}"#;
    assert_eq!(generated(chunk).1, owned(&[("0/reasoning_details/0/text", "so")]));
}

#[test]
fn every_chunk_of_mistrals_content_is_text_and_its_padding_is_none() {
    let chunk = r#"{"p":"abcdefgh","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"so"}]},{"type":"text","text":"Hi"},{"type":"reference","reference_ids":[1]}]},"finish_reason":null}],"usage":null}"#;
    let (shape, parts, finished) = generated(chunk);
    let expected = owned(&[("0/content/0/thinking/0/text", "so"), ("0/content/1/text", "Hi")]);
    assert_eq!((shape, parts, finished), (DocumentKind::Known, expected, vec![]));
    // The usage is sent without being requested, in the last chunk, which is forwarded to the client.
    let last = r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"model_length"}],"usage":{"prompt_tokens":9,"total_tokens":12,"completion_tokens":3}}"#;
    assert_eq!(totals(of_stream(&[chunk, last])), Some((9, 3)));
    assert!(!is_usage_only(&event(last)));
    assert_eq!(generated(last).2, [0]);
}

#[test]
fn a_choice_has_finished_whatever_word_says_so() {
    // Together, Text Generation Inference, OpenRouter.
    for reason in ["eos", "eos_token", "stop_sequence", "error"] {
        let chunk = format!(r#"{{"choices":[{{"index":1,"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        assert_eq!(generated(&chunk).2, [1], "{reason}");
    }
}

#[test]
fn a_chunk_of_usage_with_a_choice_goes_on_and_one_without_the_field_does_not() {
    // Text Generation Inference; diegosouzapw/OmniRoute#9750.
    for choices in [
        r#"[{"index":0,"delta":{"content":""},"finish_reason":null}]"#,
        r#"[{"delta":{}}]"#,
    ] {
        let chunk = format!(
            r#"{{"choices":{choices},"usage":{{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}}}"#
        );
        assert!(!is_usage_only(&event(&chunk)), "{choices}");
        assert_eq!(totals(of_stream(&[&chunk])), Some((3, 4)));
    }
    // ROCm/ATOM#1711.
    let chunk = r#"{"id":"c","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;
    assert!(is_usage_only(&event(chunk)));
    assert!(!is_usage_only(&event(r#"{"id":"c","usage":null}"#)));
}

#[test]
fn deepseeks_empty_lines_before_an_answer_are_nothing_and_its_cache_is_counted() {
    assert_eq!(BodyKind::detect(b"\n\n\n\n"), None);
    assert_eq!(BodyKind::detect(b"\n\n\n\n{\"id\":"), Some(BodyKind::Object));
    assert_eq!(BodyKind::detect(b": keep-alive\n\n"), Some(BodyKind::Events));
    assert_eq!(
        EventMeaning::classify(Dialect::Chat, b": keep-alive\n\n"),
        EventMeaning::Part
    );
    let answer = "\n\n\n{\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2,\"total_tokens\":12,\"prompt_cache_hit_tokens\":8,\"prompt_cache_miss_tokens\":2}}";
    let usage = of_answer(answer).unwrap();
    assert_eq!((usage.prompt_tokens, usage.cached_prompt_tokens), (10, 8));
    assert_eq!(generated(answer).0, DocumentKind::Known);
}

#[test]
fn what_xai_reasons_is_in_its_total_alone() {
    let last = r#"{"choices":[],"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":335,"completion_tokens_details":{"reasoning_tokens":294},"cost_in_usd_ticks":1}}"#;
    let usage = of_stream(&[last]).unwrap();
    assert_eq!(
        (
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.reasoning_tokens
        ),
        (32, 303, 294)
    );
}
