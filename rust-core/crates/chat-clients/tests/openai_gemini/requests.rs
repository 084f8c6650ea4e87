//! Requests as they are sent to the provider.

use super::*;

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
fn a_signature_survives_a_round_trip_through_the_client() {
    // BerriAI/litellm#16893, Portkey-AI/gateway#1442.
    let gemini = json!({"responseId": "r", "candidates": [{"finishReason": "STOP", "content": {"parts": [
        {"text": "t", "thoughtSignature": "dGV4dA=="},
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "Y2FsbA=="},
    ]}}]});
    let mut out = Vec::new();
    translate_response(gemini.to_string().as_bytes(), &asked(), CREATED, &mut out).unwrap();
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
fn arguments_that_are_cut_off_are_refused_and_none_are_an_empty_object() {
    // vercel/ai#14847, BerriAI/litellm#19028.
    let body = |arguments: &str| {
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}},
        ]}]})
    };
    for invalid in [r#"{"city": "Par"#, "[1]", "\"{}\"", "null", "{} {}"] {
        let (param, message) = refused(&body(invalid));
        assert_eq!(param, "messages[1].tool_calls[0].function.arguments");
        assert!(!message.contains("Par"));
    }
    let sent = sent(&body("")).unwrap();
    assert_eq!(sent["contents"][1]["parts"][0]["functionCall"]["args"], json!({}));
}

#[test]
fn what_would_change_the_meaning_is_refused_by_name_whatever_the_policy() {
    let part = |part: Value| {
        with(json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "t"}, part]}]}))
    };
    let cases = [
        (with(json!({"audio": {"voice": "alloy"}})), "audio"),
        (with(json!({"modalities": ["text", "audio"]})), "modalities"),
        (with(json!({"functions": [{"name": "f"}]})), "functions"),
        (with(json!({"web_search_options": {}})), "web_search_options"),
        (
            with(json!({"tools": [{"type": "custom", "custom": {"name": "c"}}]})),
            "tools[0].type",
        ),
        (with(json!({"stop": ["1", 2]})), "stop[1]"),
        (with(json!({"temperature": "0"})), "temperature"),
        (with(json!({"stream": 1})), "stream"),
        (
            with(json!({"response_format": {"type": "xml"}})),
            "response_format.type",
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
            part(json!({"type": "image_url", "image_url": {"url": "ftp://a.example/b.png"}})),
            "messages[0].content[1].image_url.url",
        ),
        (
            part(json!({"type": "file", "file": {"file_id": "file-1"}})),
            "messages[0].content[1].file.file_id",
        ),
        (
            part(json!({"type": "image_url", "image_url": {"url": "data:image/png,xx"}})),
            "messages[0].content[1].image_url.url",
        ),
        (
            with(json!({"messages": [{"role": "function", "content": "x"}]})),
            "messages[0].role",
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
            untranslatable: UntranslatableFieldPolicy::Drop,
            ..target("gemini-3-pro")
        };
        let mut out = Vec::new();
        let refused = translate_request(body.to_string().as_bytes(), &target, &mut out).expect_err(param);
        assert_eq!(refused.param, param);
        assert!(!refused.message.contains("example") && out.is_empty());
    }
}

#[test]
fn a_preference_without_a_counterpart_is_refused_by_name_where_the_policy_says_so() {
    for (fields, param) in [
        (json!({"logit_bias": {"1": 2}}), "logit_bias"),
        (json!({"reasoning_effort": "none"}), "reasoning_effort"),
        (json!({"seed": 4_294_967_296_u64}), "seed"),
        (json!({"stop": ["1", "2", "3", "4", "5", "6"]}), "stop"),
    ] {
        assert_eq!(refused(&with(fields)).0, param);
    }
}

#[test]
fn a_member_that_is_named_twice_is_refused() {
    let body = br#"{"model":"a","messages":[{"role":"user","content":"x"}],"model":"b"}"#;
    assert!(translate_request(body, &target("gemini"), &mut Vec::new()).is_err());
}
