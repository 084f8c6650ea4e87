//! Requests in Google's dialect, with the model and the stream setting in the path, and the ends of their streams.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_json::Workspace;
use proofgate_policy::Scope;
use proofgate_providers::{
    BadRequest, BaseUrl, BodyText, CandidateProgress, Dialect, EventMeaning, Field, ParsedRequest,
    RequestTemplate, UsageReader,
};

#[path = "support/reading.rs"]
mod reading;

use reading::read;

fn refused(body: &str) -> BadRequest {
    match read(Dialect::Gemini, body) {
        Err(bad) => bad,
        Ok(_) => unreachable!("{body} was read"),
    }
}

#[test]
fn the_texts_of_a_request_are_read_wherever_they_hide() {
    let body = r#"{"contents":[
        {"role":"user","parts":[{"text":"one"},{"inlineData":{"mimeType":"text/plain","data":"two","displayName":"three"}}]},
        {"role":"model","parts":[{"functionCall":{"id":"c","name":"four","args":{"fileUri":"five"}},"thoughtSignature":"six"},
            {"executableCode":{"language":"PYTHON","code":"seven"}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":{"eight":"nine"}}}},
            {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"ten"}}]}],
        "systemInstruction":{"parts":[{"text":"eleven"}]},
        "tools":[{"functionDeclarations":[{"name":"f","description":"twelve","parametersJsonSchema":{"properties":{"thirteen":{}}}}]}],
        "toolConfig":{"functionCallingConfig":{"allowedFunctionNames":["fourteen"]}},
        "generationConfig":{"stopSequences":["fifteen"],"responseSchema":{"description":"sixteen"},"maxOutputTokens":9,"candidateCount":2},
        "labels":{"seventeen":"eighteen"}}"#;
    let (call, text) = read(Dialect::Gemini, body).unwrap();
    assert_eq!(
        (call.max_tokens, call.choice_count, call.message_count),
        (Some(9), 2, 3)
    );
    assert_eq!((call.model.as_ref(), call.stream), ("", false));
    assert!(call.model_value().is_empty());
    for word in "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen".split(' ') {
        assert!(text.lines().any(|line| line == word), "{word}: {text}");
    }
    for name in [
        "contents",
        "parts",
        "functionCall",
        "systemInstruction",
        "generationConfig",
        "maxOutputTokens",
    ] {
        assert!(!text.lines().any(|line| line == name), "{name}: {text}");
    }
}

#[test]
fn both_spellings_of_googles_names_are_read_and_one_element_counts_for_a_list_of_it() {
    let body = r#"{"contents":{"parts":{"text":"one"}},"system_instruction":{"parts":{"text":"two"}},
        "generation_config":{"max_output_tokens":7,"candidate_count":3},"tools":{"function_declarations":{"description":"three"}}}"#;
    let (call, text) = read(Dialect::Gemini, body).unwrap();
    assert_eq!(
        (call.max_tokens, call.choice_count, call.message_count),
        (Some(7), 3, 1)
    );
    for word in ["one", "two", "three"] {
        assert!(text.lines().any(|line| line == word), "{word}: {text}");
    }
    // The larger of the two is reserved, whichever a parser uses.
    let both = r#"{"generation_config":{"maxOutputTokens":7},"generationConfig":{"max_output_tokens":70}}"#;
    assert_eq!(read(Dialect::Gemini, both).unwrap().0.max_tokens, Some(70));
}

#[test]
fn what_the_model_takes_for_its_instructions_is_known() {
    for field in ["systemInstruction", "system_instruction"] {
        let body = format!(
            r#"{{"contents":[{{"parts":[{{"text":"user"}}]}}],"{field}":{{"parts":[{{"text":"rules"}}]}}}}"#
        );
        let mut text = BodyText::new();
        ParsedRequest::read(Dialect::Gemini, body.as_bytes(), &mut Workspace::new(), &mut text).unwrap();
        let scope = |word: &str| {
            let passage = text.passage_at(text.text().find(word).unwrap()).unwrap();
            text.passage(passage).unwrap().scope
        };
        assert_eq!(
            (scope("rules"), scope("user")),
            (Scope::Instructions, Scope::User)
        );
    }
}

#[test]
fn what_the_provider_keeps_or_runs_is_not_served() {
    for field in ["cachedContent", "cached_content"] {
        assert_eq!(
            refused(&format!(r#"{{"contents":[],"{field}":"cachedContents/1"}}"#)),
            BadRequest::UnsupportedField("cachedContent")
        );
    }
    for file in [
        r#"{"fileData":{"fileUri":"https://a.example/f"}}"#,
        r#"{"file_data":{"file_uri":"gs://b/f"}}"#,
    ] {
        let field = if file.contains("fileUri") {
            "fileUri"
        } else {
            "file_uri"
        };
        for body in [
            format!(r#"{{"contents":[{{"parts":[{file}]}}]}}"#),
            format!(r#"{{"contents":{{"parts":{file}}}}}"#),
            format!(r#"{{"contents":[],"systemInstruction":{{"parts":[{file}]}}}}"#),
            format!(
                r#"{{"contents":[{{"parts":[{{"functionResponse":{{"name":"f","response":{{}},"parts":[{file}]}}}}]}}]}}"#
            ),
        ] {
            assert_eq!(refused(&body), BadRequest::UnsupportedField(field), "{body}");
        }
    }
    for tool in [
        "googleSearch",
        "google_search",
        "codeExecution",
        "urlContext",
        "googleSearchRetrieval",
        "fileSearch",
        "googleMaps",
        "mcpServers",
        "enterpriseWebSearch",
        "FunctionDeclarations",
    ] {
        for tools in [format!(r#"[{{"{tool}":{{}}}}]"#), format!(r#"{{"{tool}":{{}}}}"#)] {
            let body = format!(r#"{{"contents":[],"tools":{tools}}}"#);
            let tools = ParsedRequest::parse(Dialect::Gemini, body.as_bytes())
                .unwrap()
                .tools;
            assert_eq!(
                (&*tools.hosted[0].kind, tools.has_client_tools),
                (tool, false),
                "{body}"
            );
        }
    }
    let mixed = r#"{"contents":[],"tools":[{"functionDeclarations":[],"googleSearch":{}}]}"#;
    assert_eq!(refused(mixed), BadRequest::UnsupportedTool);
    let served = r#"{"contents":[{"parts":[{"text":"a","fileData":{"fileUri":null}}]}],"cachedContent":null,
        "tools":[{"functionDeclarations":[],"googleSearch":null},{"computerUse":{"environment":"ENVIRONMENT_BROWSER"}}]}"#;
    assert!(read(Dialect::Gemini, served).is_ok());
    assert_eq!(
        read(
            Dialect::GeminiTokens,
            r#"{"generateContentRequest":{"contents":[]}}"#
        )
        .err(),
        Some(BadRequest::UnsupportedField("generateContentRequest"))
    );
}

#[test]
fn the_path_alone_names_the_model() {
    for dialect in [Dialect::Gemini, Dialect::GeminiTokens] {
        assert_eq!(
            read(dialect, r#"{"contents":[],"model":"models/other"}"#).err(),
            Some(BadRequest::ModelInBody)
        );
    }
    assert!(read(Dialect::Gemini, r#"{"contents":[],"model":null}"#).is_ok());
}

#[test]
fn a_field_of_another_type_or_spelled_almost_like_one_that_is_read_is_refused() {
    for (body, expected) in [
        (
            r#"{"generationConfig":7}"#,
            BadRequest::InvalidField(Field::GenerationConfig),
        ),
        (
            r#"{"generationConfig":{"maxOutputTokens":"7"}}"#,
            BadRequest::InvalidField(Field::GeminiMaxOutputTokens),
        ),
        (
            r#"{"generationConfig":{"candidateCount":0}}"#,
            BadRequest::InvalidField(Field::CandidateCount),
        ),
        (
            r#"{"generationconfig":{}}"#,
            BadRequest::AmbiguousName("generationConfig"),
        ),
        (
            r#"{"generationConfig":{"MaxOutputTokens":7}}"#,
            BadRequest::AmbiguousName("maxOutputTokens"),
        ),
        (
            r#"{"SystemInstruction":"a"}"#,
            BadRequest::AmbiguousName("systemInstruction"),
        ),
    ] {
        assert_eq!(refused(body), expected, "{body}");
    }
}

#[test]
fn a_request_upstream_has_the_model_in_its_path() {
    let base = BaseUrl::parse("https://host/v1beta").unwrap();
    for (dialect, stream, end) in [
        (Dialect::Gemini, false, ":generateContent "),
        (Dialect::Gemini, true, ":streamGenerateContent?alt=sse "),
        (Dialect::GeminiTokens, false, ":countTokens "),
    ] {
        let mut head = Vec::new();
        let model = dialect.upstream_model_path("a/b:1", stream);
        RequestTemplate::new(&base, dialect, None).write("req_1", 0, &model, b"", &mut head);
        let expected = format!("POST /v1beta/models/a%2Fb%3A1{end}");
        assert!(String::from_utf8(head).unwrap().starts_with(&expected));
    }
    assert_eq!(Dialect::Chat.upstream_model_path("m", true), "");
}

/// Reads events, and returns after each whether the response is complete.
fn whole_after(events: &[&str]) -> Vec<bool> {
    let mut ends = CandidateProgress::default();
    let mut whole = |event: &&str| {
        assert_eq!(ends.read_event(event.as_bytes()), EventMeaning::Part);
        ends.are_all_finished()
    };
    events.iter().map(&mut whole).collect()
}

#[test]
fn a_stream_is_whole_once_each_of_its_candidates_has_finished() {
    let first = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\\\"finishReason\\\":\\\"STOP\\\"\"}]}}]}\r\n\r\n";
    let second = "data: {\"candidates\":[{\"index\":1,\"finishReason\":\"MAX_TOKENS\"}]}\n\n";
    let last = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}";
    let usage = "data: {\"usageMetadata\":{}}\n\n";
    assert_eq!(
        whole_after(&[usage, first, ": hb\n\n", second, last, usage]),
        [false, false, false, false, true, true]
    );
    // The response is not complete before a candidate that begins late.
    let late = "data: {\"candidates\":[{\"index\":2,\"finishReason\":\"FINISH_REASON_UNSPECIFIED\"}]}\n\n";
    assert_eq!(whole_after(&[last, late]), [true, false]);
    let beyond = "data: {\"candidates\":[{\"index\":64,\"finishReason\":\"STOP\"}]}\n\n";
    assert_eq!(whole_after(&[last, beyond]), [true, false]);
}

#[test]
fn a_prompt_that_was_not_let_through_has_a_whole_answer_without_candidates() {
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n";
    assert_eq!(whole_after(&[blocked]), [true]);
    let unspecified = "data: {\"promptFeedback\":{\"blockReason\":\"BLOCK_REASON_UNSPECIFIED\"}}\n\n";
    assert_eq!(whole_after(&[unspecified]), [false]);
}

#[test]
fn an_error_is_a_failure_in_a_frame_or_without_one() {
    let error = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"busy\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n";
    let framed = format!("data: {}\n\n", error.replace('\n', ""));
    for event in [error, &framed] {
        assert_eq!(
            CandidateProgress::default().read_event(event.as_bytes()),
            EventMeaning::Failure
        );
    }
}

#[test]
fn the_texts_of_embeddings_are_read_and_no_file_that_the_provider_keeps_is_embedded() {
    let one = r#"{"content":{"parts":[{"text":"a"},{"text":"b"}]},"taskType":"RETRIEVAL_QUERY","title":"c"}"#;
    let (_, text) = read(Dialect::GeminiEmbedding, one).unwrap();
    assert_eq!(text, "a\nb\nRETRIEVAL_QUERY\nc");
    let several = r#"{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}"#;
    let (call, text) = read(Dialect::GeminiEmbeddings, several).unwrap();
    assert_eq!((call.message_count, text.as_str()), (2, "models/m\na\nb"));
    let file = r#"{"parts":[{"fileData":{"fileUri":"https://a.example/f"}}]}"#;
    for (dialect, body) in [
        (Dialect::GeminiEmbedding, format!(r#"{{"content":{file}}}"#)),
        (
            Dialect::GeminiEmbeddings,
            format!(r#"{{"requests":[{{"content":{file}}}]}}"#),
        ),
    ] {
        let refused = read(dialect, &body).map(|(call, _)| call.message_count);
        assert_eq!(refused, Err(BadRequest::UnsupportedField("fileUri")), "{body}");
    }
}

#[test]
fn the_usage_of_embeddings_is_read_where_there_is_one() {
    let mut reader = UsageReader::new(Dialect::GeminiEmbeddings);
    reader.push(br#"{"embeddings":[{"values":[0.5]}],"usageMetadata":{"promptTokenCount":3}}"#);
    assert_eq!(reader.usage().map(|usage| usage.prompt_tokens), Some(3));
    reader.reset(Dialect::GeminiEmbedding);
    reader.push(br#"{"embedding":{"values":[0.5]}}"#);
    assert_eq!(reader.usage(), None);
}
