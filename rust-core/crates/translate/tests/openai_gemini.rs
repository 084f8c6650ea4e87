//! OpenAI's chat completions said to Gemini, and what Gemini says back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use proofgate_translate::openai_gemini::{Stream, answer, error, request, retry_after};
use proofgate_translate::{AnswerError, Asked, Step, Target, Untranslatable, UntranslatableFields, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Seconds since 1970.
const CREATED: u64 = 1_700_000_000;

fn target(model: &str) -> Target<'_> {
    Target {
        model,
        max_output_tokens: 4096,
        untranslatable: UntranslatableFields::Refuse,
    }
}

fn asked() -> Asked {
    Asked {
        model: "assistant".into(),
        stream: true,
        include_usage: true,
        ..Asked::default()
    }
}

fn sent(body: &Value) -> Result<Value, Untranslatable> {
    let mut out = Vec::new();
    request(body.to_string().as_bytes(), &target("gemini-3-pro"), &mut out)?;
    Ok(serde_json::from_slice(&out).unwrap())
}

/// A request of one message, and these fields.
fn with(fields: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    body
}

fn refused(body: &Value) -> (String, String) {
    let refused = sent(body).expect_err("it is refused");
    (refused.param.into_owned(), refused.message.into_owned())
}

/// The data of a stream's events; what stands outside of events is taken as the caller takes it, as data.
fn events(stream: &str) -> Vec<String> {
    let stream = stream.replace("\r\n", "\n");
    let events = stream.split("\n\n").filter(|event| !event.trim().is_empty());
    events
        .map(|event| event.strip_prefix("data: ").unwrap_or(event).trim().to_owned())
        .collect()
}

fn streamed(events: &[String], asked: &Asked) -> (Vec<u8>, Result<Step, AnswerError>, Option<Usage>) {
    let mut stream = Stream::new(asked, CREATED);
    let mut out = Vec::new();
    for event in events {
        if let Err(error) = stream.event("", event.as_bytes(), &mut out) {
            return (out, Err(error), stream.usage());
        }
    }
    let end = stream.finish(&mut out);
    (out, end, stream.usage())
}

fn streamed_events(events: &[Value]) -> (String, Result<Step, AnswerError>) {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    let (out, end, _) = streamed(&events, &asked());
    (String::from_utf8(out).unwrap(), end)
}

/// JSON without the blanks between its parts.
fn compact(json: &str) -> String {
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

struct Golden(PathBuf);

impl Golden {
    fn all() -> Vec<Golden> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openai_gemini");
        let mut cases: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|case| case.unwrap().path())
            .collect();
        cases.sort();
        cases.into_iter().map(Golden).collect()
    }

    fn named(name: &str) -> Golden {
        Golden(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/golden/openai_gemini")
                .join(name),
        )
    }

    /// The choices of the chunks that its stream comes out as.
    fn choices(&self) -> Vec<Value> {
        let (out, _, _) = streamed(&events(&self.read("stream.sse").unwrap()), &asked());
        let chunks = events(std::str::from_utf8(&out).unwrap());
        let chunks = chunks
            .iter()
            .filter_map(|chunk| serde_json::from_str::<Value>(chunk).ok());
        chunks.map(|chunk| chunk["choices"][0].clone()).collect()
    }

    fn read(&self, file: &str) -> Option<String> {
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
                    Some(true) => UntranslatableFields::Drop,
                    _ => UntranslatableFields::Refuse,
                },
                ..target(settings["model"].as_str().unwrap_or("gemini-3-pro-preview"))
            };
            let asked = request(body.as_bytes(), &target, &mut out)
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let dropped = settings["dropped"].as_array().cloned().unwrap_or_default();
            assert_eq!(json!(asked.dropped), Value::Array(dropped), "{name}");
            assert_eq!(asked.stream, settings["stream"] == true, "{name}");
            assert_eq!(asked.include_usage, settings["include_usage"] == true, "{name}");
            assert_eq!(asked.model, "assistant", "{name}");
            out = compact(std::str::from_utf8(&out).unwrap()).into_bytes();
            case.json("sent.json")
        } else if let Some(body) = case.read("answer.json") {
            let usage = answer(body.as_bytes(), &asked(), CREATED, &mut out).unwrap();
            let received: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(received["usage"]["prompt_tokens"], usage.input, "{name}");
            case.json("received.json")
        } else if let Some(body) = case.read("error.json") {
            let status = settings["status"].as_u64().unwrap();
            error(status.try_into().unwrap(), body.as_bytes(), &mut out);
            assert_eq!(
                retry_after(body.as_bytes()),
                settings["retry_after"].as_u64(),
                "{name}"
            );
            case.json("received.json")
        } else {
            let asked = Asked {
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

#[test]
fn parallel_calls_of_a_stream_are_numbered_from_zero_and_have_ids() {
    // BerriAI/litellm#5231, maximhq/bifrost#1961.
    let choices = Golden::named("stream_parallel_calls").choices();
    let calls = choices
        .iter()
        .filter_map(|choice| choice["delta"]["tool_calls"].get(0));
    let calls: Vec<_> = calls
        .map(|call| (call["index"].as_u64(), call["id"].as_str()))
        .collect();
    assert_eq!(calls, [(Some(0), Some("a")), (Some(1), Some("call_r3_0_1"))]);
}

#[test]
fn an_answer_that_stops_with_calls_ends_with_tool_calls() {
    // CLIProxyAPI#5733, FootprintAI/Containarium#819.
    let choices = Golden::named("stream_parallel_calls").choices();
    let reasons: Vec<_> = choices
        .iter()
        .filter_map(|choice| choice["finish_reason"].as_str())
        .collect();
    assert_eq!(reasons, ["tool_calls"]);
}

#[test]
fn an_event_with_text_and_a_call_loses_neither() {
    // BerriAI/litellm#18238, #25836.
    let choices = Golden::named("stream_text_and_call_in_one_event").choices();
    let delta = &choices[0]["delta"];
    assert_eq!(delta["content"], "Let me look.");
    assert_eq!(delta["tool_calls"][0]["function"]["name"], "now");
}

#[test]
fn results_of_parallel_calls_are_in_one_turn_and_first_in_it() {
    // mlflow/mlflow#25788, #24296, agentgateway PR#1358.
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": id, "arguments": "{}"}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
    let sent = sent(&json!({"model": "m", "messages": [
        {"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call("a"), call("b")]},
        result("a"), {"role": "user", "content": "y"}, result("b"),
    ]}));
    let contents = sent.unwrap()["contents"].clone();
    assert_eq!(contents.as_array().unwrap().len(), 3);
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["name"], "a");
    assert_eq!(contents[2]["parts"][1]["functionResponse"]["name"], "b");
    assert_eq!(contents[2]["parts"][2], json!({"text": "y"}));
}

#[test]
fn messages_of_one_speaker_in_a_row_are_one_turn() {
    // agentgateway#2318, elastic/kibana#284682.
    let message = |role: &str, text: &str| json!({"role": role, "content": text});
    let sent = sent(&json!({"model": "m", "messages": [
        message("user", "a"), message("user", "b"), message("assistant", "c"), message("system", "s"),
        message("assistant", "d"), message("user", "e"), message("assistant", ""), message("user", "f"),
    ]}));
    let texts = |parts: &Value| -> String {
        parts
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["text"].as_str().unwrap())
            .collect()
    };
    let sent = sent.unwrap();
    let turns = sent["contents"].as_array().unwrap().iter();
    let turns: Vec<_> = turns
        .map(|turn| (turn["role"].as_str().unwrap(), texts(&turn["parts"])))
        .collect();
    assert_eq!(
        turns,
        [
            ("user", "ab".into()),
            ("model", "cd".into()),
            ("user", "ef".into())
        ]
    );
}

#[test]
fn tokens_of_a_cache_count_once_and_those_that_only_the_total_has_are_reasoning() {
    // BerriAI/litellm#9812, #11789; UKGovernmentBEIS/inspect_ai#5528.
    let body = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {
        "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 5, "totalTokenCount": 120,
    }});
    let usage = answer(body.to_string().as_bytes(), &asked(), CREATED, &mut Vec::new()).unwrap();
    let expected = Usage {
        input: 100,
        cache_read: 60,
        cache_write: 0,
        output: 20,
        reasoning: 15,
    };
    assert_eq!(usage, expected);
}

#[test]
fn a_signature_survives_a_round_trip_through_the_client() {
    // BerriAI/litellm#16893, Portkey-AI/gateway#1442.
    let gemini = json!({"responseId": "r", "candidates": [{"finishReason": "STOP", "content": {"parts": [
        {"text": "t", "thoughtSignature": "dGV4dA=="},
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "Y2FsbA=="},
    ]}}]});
    let mut out = Vec::new();
    answer(gemini.to_string().as_bytes(), &asked(), CREATED, &mut out).unwrap();
    let received: Value = serde_json::from_slice(&out).unwrap();
    let message = &received["choices"][0]["message"];
    let next = json!({"model": "m", "messages": [
        {"role": "user", "content": "x"},
        message,
        {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "y"},
    ]});
    let sent = sent(&next).unwrap();
    let parts = &sent["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "dGV4dA==");
    assert_eq!(parts[1]["thoughtSignature"], "Y2FsbA==");
    assert_eq!(parts[1]["functionCall"]["args"], json!({"a": 1}));
    assert_eq!(sent["contents"][2]["parts"][0]["functionResponse"]["name"], "f");
}

#[test]
fn the_first_chunk_of_a_choice_has_its_role_and_no_later_one() {
    // BerriAI/litellm#40887.
    let event = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}}]});
    let end = json!({"candidates": [{"finishReason": "STOP"}]});
    let (out, _) = streamed_events(&[event("a"), event("b"), end]);
    assert_eq!(out.matches(r#""role":"assistant""#).count(), 1);
    assert!(out.find("role") < out.find(r#""content":"a""#));
}

#[test]
fn arguments_that_are_cut_off_are_refused_and_none_are_an_empty_object() {
    // vercel/ai#14847, BerriAI/litellm#19028.
    let body = |arguments: &str| {
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}},
        ]}]})
    };
    for invalid in [r#"{"city": "Par"#, "[1]", "\"{}\"", "null", " ", "{} {}"] {
        let (param, message) = refused(&body(invalid));
        assert_eq!(param, "messages[1].tool_calls[0].function.arguments");
        assert!(!message.contains("Par"));
    }
    let sent = sent(&body("")).unwrap();
    assert_eq!(sent["contents"][1]["parts"][0]["functionCall"]["args"], json!({}));
}

#[test]
fn arguments_of_an_answer_that_are_no_object_or_come_in_pieces_are_malformed() {
    for call in [
        json!({"name": "f", "args": "{}"}),
        json!({"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "b"}], "willContinue": true}),
        json!({"args": {}}),
    ] {
        let body =
            json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"functionCall": call}]}}]});
        let mut out = b"before".to_vec();
        let result = answer(body.to_string().as_bytes(), &asked(), CREATED, &mut out);
        assert!(matches!(result, Err(AnswerError::Malformed(_))));
        assert_eq!(out, b"before");
    }
}

#[test]
fn a_failure_in_a_stream_is_one_error_with_no_good_end_behind_it() {
    // BerriAI/litellm#39703, #32086, #20347, #4562.
    let text = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
    let end = json!({"candidates": [{"finishReason": "STOP"}]});
    let reported = json!({"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}});
    let ended = |reason: &str| json!({"candidates": [{"finishReason": reason}]});
    for failure in [
        reported.clone(),
        json!([reported]),
        json!({"error": "?"}),
        ended("MALFORMED_FUNCTION_CALL"),
        ended("MISSING_THOUGHT_SIGNATURE"),
        ended("OTHER"),
        json!({"candidates": [{"content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": ""}}]}}]}),
    ] {
        let (out, step) = streamed_events(&[text.clone(), failure.clone(), failure, end.clone()]);
        assert_eq!(step, Ok(Step::Failed));
        assert_eq!(out.matches(r#"data: {"error":{"message":"#).count(), 1, "{out}");
        assert!(
            !out.contains("[DONE]") && !out.contains(r#""finish_reason":""#),
            "{out}"
        );
        let last = events(&out).pop().unwrap();
        let last: Value = serde_json::from_str(&last).unwrap();
        let keys: Vec<_> = last["error"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["code", "message", "param", "type"]);
    }
}

#[test]
fn a_stream_that_is_cut_off_has_no_good_end() {
    let text = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
    let one_of_two = json!({"candidates": [{"index": 1, "finishReason": "STOP"}]});
    for cut in [
        vec![],
        vec![text.clone()],
        vec![text, one_of_two],
        vec![json!({"responseId": "r"})],
    ] {
        let (out, end) = streamed_events(&cut);
        assert_eq!(end, Err(AnswerError::Failed("ended early")));
        assert!(!out.contains("[DONE]"));
    }
}

#[test]
fn a_stream_ends_once_and_takes_nothing_behind_its_end() {
    let mut stream = Stream::new(&asked(), CREATED);
    let mut out = Vec::new();
    let end = br#"{"candidates":[{"finishReason":"STOP"}]}"#;
    assert_eq!(stream.event("", end, &mut out), Ok(Step::Continues));
    assert_eq!(stream.finish(&mut out), Ok(Step::Ended));
    let length = out.len();
    assert_eq!(stream.finish(&mut out), Ok(Step::Ended));
    assert!(stream.event("", end, &mut out).is_err());
    assert_eq!(out.len(), length);
}

#[test]
fn more_candidates_than_are_told_apart_are_too_large() {
    let event = |index: u32| json!({"candidates": [{"index": index, "content": {"parts": [{"text": "a"}]}}]});
    let events: Vec<Value> = (0..17).map(event).collect();
    assert_eq!(streamed_events(&events).1, Err(AnswerError::TooLarge));
}

#[test]
fn a_reason_of_a_later_version_ends_an_answer_well() {
    let end =
        json!({"candidates": [{"finishReason": "SOMETHING_NEW", "content": {"parts": [{"newPart": {}}]}}]});
    let (out, step) = streamed_events(std::slice::from_ref(&end));
    assert_eq!(step, Ok(Step::Ended));
    assert!(out.contains(r#""finish_reason":"stop""#));
    assert!(answer(end.to_string().as_bytes(), &asked(), CREATED, &mut Vec::new()).is_ok());
}

#[test]
fn every_reason_of_a_filter_is_content_filter_and_every_failure_an_error() {
    let end = |reason: &str| {
        let body = json!({"candidates": [{"finishReason": reason}]}).to_string();
        let mut out = Vec::new();
        answer(body.as_bytes(), &asked(), CREATED, &mut out).map(|_| String::from_utf8(out).unwrap())
    };
    for reason in [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
    ] {
        assert!(
            end(reason)
                .unwrap()
                .contains(r#""finish_reason":"content_filter""#),
            "{reason}"
        );
    }
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "NO_IMAGE",
        "ESCALATION",
        "OTHER",
    ] {
        assert!(matches!(end(reason), Err(AnswerError::Failed(_))), "{reason}");
    }
    assert!(end("MAX_TOKENS").unwrap().contains(r#""finish_reason":"length""#));
}

#[test]
fn what_would_change_the_meaning_is_refused_by_name_whatever_the_policy() {
    let part = |part: Value| {
        with(json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "t"}, part]}]}))
    };
    let cases = [
        (with(json!({"audio": {"voice": "alloy"}})), "audio"),
        (with(json!({"modalities": ["text", "audio"]})), "modalities[1]"),
        (with(json!({"functions": []})), "functions"),
        (with(json!({"web_search_options": {}})), "web_search_options"),
        (
            with(json!({"tools": [{"type": "custom", "custom": {"name": "c"}}]})),
            "tools[0].type",
        ),
        (with(json!({"stop": ["1", "2", "3", "4", "5", "6"]})), "stop"),
        (with(json!({"stop": ["1", 2]})), "stop[1]"),
        (with(json!({"temperature": "0"})), "temperature"),
        (with(json!({"stream": 1})), "stream"),
        (
            with(json!({"response_format": {"type": "xml"}})),
            "response_format",
        ),
        (
            with(json!({"extra_body": {"google": {"cached_content": "c"}}})),
            "extra_body.google.cached_content",
        ),
        (
            with(
                json!({"reasoning_effort": "low", "extra_body": {"google": {"thinking_config": {"thinking_budget": 1}}}}),
            ),
            "reasoning_effort",
        ),
        (
            part(json!({"type": "image_url", "image_url": {"url": "https://a.example/b.png"}})),
            "messages[0].content[1].image_url.url",
        ),
        (
            part(json!({"type": "file", "file": {"file_id": "file-1"}})),
            "messages[0].content[1].file.file_id",
        ),
        (part(json!({"type": "video_url"})), "messages[0].content[1].type"),
        (
            part(json!({"type": "refusal", "refusal": "r"})),
            "messages[0].content[1].type",
        ),
        (
            part(json!({"type": "image_url", "image_url": {"url": "data:image/png,xx"}})),
            "messages[0].content[1].image_url.url",
        ),
        (
            with(json!({"messages": [{"role": "function", "content": "x"}]})),
            "messages[0]",
        ),
        (
            with(json!({"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]})),
            "messages[0].tool_call_id",
        ),
        (
            with(json!({"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]})),
            "messages[0].audio",
        ),
        (
            with(json!({"messages": [{"role": "system", "content": "x"}]})),
            "messages",
        ),
        (with(json!({"messages": "x"})), "messages"),
        (json!({"messages": [{"role": "user", "content": "x"}]}), "model"),
        (json!([]), ""),
    ];
    for (body, param) in cases {
        let target = Target {
            untranslatable: UntranslatableFields::Drop,
            ..target("gemini-3-pro")
        };
        let mut out = Vec::new();
        let refused = request(body.to_string().as_bytes(), &target, &mut out).expect_err(param);
        assert_eq!(refused.param, param);
        assert!(!refused.message.contains("example") && out.is_empty());
    }
}

#[test]
fn a_preference_without_a_counterpart_is_refused_by_name_where_the_policy_says_so() {
    for (fields, param) in [
        (json!({"user": "u"}), "user"),
        (json!({"logit_bias": {"1": 2}}), "logit_bias"),
        (json!({"parallel_tool_calls": false}), "parallel_tool_calls"),
        (json!({"reasoning_effort": "none"}), "reasoning_effort"),
        (json!({"seed": 4_294_967_296_u64}), "seed"),
        (json!({"new_field": 1}), "new_field"),
        (json!({"stream_options": {"new": 1}}), "stream_options.new"),
        (
            json!({"messages": [{"role": "user", "content": "x", "new": 1}]}),
            "messages[0].new",
        ),
    ] {
        assert_eq!(refused(&with(fields)).0, param);
    }
}

#[test]
fn a_member_that_is_named_twice_is_refused() {
    let body = br#"{"model":"a","messages":[{"role":"user","content":"x"}],"model":"b"}"#;
    assert!(request(body, &target("gemini"), &mut Vec::new()).is_err());
}

#[test]
fn a_delay_is_rounded_up_to_whole_seconds() {
    let body = |delay: &str| {
        let detail = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
        json!([{"error": {"code": 429, "details": [{"@type": "x"}, detail]}}]).to_string()
    };
    let cases = [
        ("17s", Some(17)),
        ("0.100s", Some(1)),
        ("3.000s", Some(3)),
        ("-1s", None),
        ("1", None),
        ("99999999999999999999s", None),
    ];
    for (delay, seconds) in cases {
        assert_eq!(retry_after(body(delay).as_bytes()), seconds, "{delay}");
    }
    assert_eq!(retry_after(b"{}"), None);
}

/// A golden input, some of its bytes replaced.
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
        for drop in [UntranslatableFields::Refuse, UntranslatableFields::Drop] {
            let mut out = Vec::new();
            let result = request(&input, &Target { untranslatable: drop, ..target("gemini-3") }, &mut out);
            prop_assert_eq!(result.is_ok(), serde_json::from_slice::<Value>(&out).is_ok());
        }
        let mut out = Vec::new();
        let result = answer(&input, &asked(), CREATED, &mut out);
        prop_assert_eq!(result.is_ok(), serde_json::from_slice::<Value>(&out).is_ok());
        let mut out = Vec::new();
        error(500, &input, &mut out);
        prop_assert!(serde_json::from_slice::<Value>(&out).is_ok());
        retry_after(&input);
        let mut stream = Stream::new(&asked(), CREATED);
        let mut out = Vec::new();
        let _ = stream.event("", &input, &mut out);
        let _ = stream.event("", br#"{"candidates":[{"finishReason":"STOP"}]}"#, &mut out);
        let _ = stream.finish(&mut out);
        for event in events(std::str::from_utf8(&out).unwrap()) {
            prop_assert!(event == "[DONE]" || serde_json::from_str::<Value>(&event).is_ok());
        }
    }
}
