use super::*;
use proofgate_chat_clients::openai_responses::requires_responses_api;

#[test]
fn tools_say_whether_they_are_strict() {
    let parameters = json!({"type": "object", "properties": {"a": {"minimum": 1.0}}});
    let sent = sent(&asking(json!({
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": parameters}},
            {"type": "function", "function": {"name": "g", "strict": true, "parameters": parameters}},
            {"type": "function", "function": {"name": "h"}},
            {"type": "custom", "custom": {"name": "i", "format": {"type": "grammar",
                "grammar": {"syntax": "lark", "definition": "start: \"a\""}}}},
            {"type": "custom", "custom": {"name": "j", "description": "d", "format": {"type": "text"}}},
        ],
        "parallel_tool_calls": false,
    })));
    assert_eq!(
        sent["tools"],
        json!([
            {"type": "function", "name": "f", "description": "d", "parameters": parameters, "strict": false},
            {"type": "function", "name": "g", "parameters": parameters, "strict": true},
            {"type": "function", "name": "h", "parameters": {"type": "object", "properties": {}}, "strict": false},
            {"type": "custom", "name": "i", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}},
            {"type": "custom", "name": "j", "description": "d", "format": {"type": "text"}},
        ])
    );
    assert_eq!(sent["parallel_tool_calls"], false);
}

#[test]
fn a_choice_of_tools_is_said_in_the_providers_form() {
    let tools = json!([
        {"type": "function", "function": {"name": "f"}},
        {"type": "custom", "custom": {"name": "i"}},
    ]);
    let chosen =
        |choice: Value| sent(&asking(json!({"tools": tools, "tool_choice": choice})))["tool_choice"].clone();
    for word in ["auto", "none", "required"] {
        assert_eq!(chosen(json!(word)), word);
    }
    assert_eq!(
        chosen(json!({"type": "function", "function": {"name": "f"}})),
        json!({"type": "function", "name": "f"})
    );
    assert_eq!(
        chosen(json!({"type": "custom", "custom": {"name": "i"}})),
        json!({"type": "custom", "name": "i"})
    );
    let allowed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
        {"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "i"}}]}});
    assert_eq!(
        chosen(allowed),
        json!({"type": "allowed_tools", "mode": "required", "tools": [
            {"type": "function", "name": "f"}, {"type": "custom", "name": "i"}]})
    );
    for without_tools in ["auto", "none"] {
        let sent = sent(&asking(
            json!({"tool_choice": without_tools, "parallel_tool_calls": true}),
        ));
        assert!(sent.get("tool_choice").is_none() && sent.get("parallel_tool_calls").is_none());
    }
}

#[test]
fn settings_have_their_places() {
    let sent = sent(&asking(json!({
        "reasoning_effort": "high", "verbosity": "low", "max_completion_tokens": 100, "temperature": 0.50, "top_p": 1,
        "logprobs": true, "top_logprobs": 2, "metadata": {"a": "b"}, "user": "u", "safety_identifier": "s",
        "prompt_cache_key": "k", "prompt_cache_retention": "24h", "service_tier": "flex", "stream": true, "n": 1,
        "stream_options": {"include_usage": true, "include_obfuscation": false}, "seed": null, "logit_bias": {},
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": true}},
    })));
    assert_eq!(sent["reasoning"], json!({"effort": "high"}));
    assert_eq!(
        sent["text"],
        json!({"verbosity": "low", "format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": true}})
    );
    assert_eq!(
        sent["include"],
        json!(["reasoning.encrypted_content", "message.output_text.logprobs"])
    );
    assert_eq!(sent["stream_options"], json!({"include_obfuscation": false}));
    for (field, value) in [
        ("max_output_tokens", json!(100)),
        ("temperature", json!(0.50)),
        ("top_p", json!(1)),
        ("top_logprobs", json!(2)),
        ("metadata", json!({"a": "b"})),
        ("user", json!("u")),
        ("safety_identifier", json!("s")),
        ("prompt_cache_key", json!("k")),
        ("prompt_cache_retention", json!("24h")),
        ("service_tier", json!("flex")),
        ("stream", json!(true)),
    ] {
        assert_eq!(sent[field], value, "{field}");
    }
}

#[test]
fn a_limit_below_the_providers_least_is_raised_and_named() {
    let (sent, dropped) = sent_to("gpt-5.6", REFUSE, &asking(json!({"max_tokens": 1}))).unwrap();
    assert_eq!(sent["max_output_tokens"], 16);
    assert_eq!(dropped, ["max_tokens"]);
}

#[test]
fn a_summary_is_asked_for_where_thoughts_are_to_be_seen() {
    let reasoning = |fields: Value| sent(&asking(fields)).get("reasoning").cloned();
    let summary = json!({"summary": "auto"});
    assert_eq!(
        reasoning(json!({"thinking": {"type": "adaptive", "display": "summarized"}})),
        Some(summary)
    );
    assert_eq!(reasoning(json!({"thinking": {"type": "adaptive"}})), None);
    assert_eq!(
        reasoning(json!({"thinking": {"type": "enabled", "budget_tokens": 10_000}})),
        Some(json!({"effort": "medium", "summary": "auto"}))
    );
    assert_eq!(
        reasoning(
            json!({"thinking": {"type": "adaptive", "display": "omitted"}, "reasoning_effort": "high"})
        ),
        Some(json!({"effort": "high"}))
    );
    assert_eq!(
        reasoning(json!({"thinking": {"type": "disabled"}})),
        Some(json!({"effort": "none"}))
    );
    let (sent, _) = sent_to(
        "gpt-5-pro",
        REFUSE,
        &asking(json!({"thinking": {"type": "disabled"}})),
    )
    .unwrap();
    assert!(sent.get("reasoning").is_none());
}

#[test]
fn what_has_no_counterpart_is_of_one_of_three_classes() {
    for (harmless, value) in [
        ("prediction", json!({"type": "content", "content": "a"})),
        ("cache_control", json!({"type": "ephemeral"})),
    ] {
        let (_, dropped) = sent_to("gpt-5.6", REFUSE, &asking(json!({harmless: value}))).unwrap();
        assert_eq!(dropped, [harmless]);
    }
    for (lossy, value) in [
        ("stop", json!(["a"])),
        ("seed", json!(1)),
        ("logit_bias", json!({"1": 1})),
        ("presence_penalty", json!(0.5)),
        ("frequency_penalty", json!(1)),
        ("top_k", json!(3)),
    ] {
        let body = asking(json!({lossy: value}));
        assert_eq!(sent_to("gpt-5.6", REFUSE, &body).unwrap_err().param, lossy);
        assert_eq!(sent_to("gpt-5.6", DROP, &body).unwrap().1, [lossy]);
    }
    let part = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
    for (param, fields) in [
        ("n", json!({"n": 2})),
        ("audio", json!({"audio": {"voice": "a"}})),
        ("modalities", json!({"modalities": ["text", "audio"]})),
        ("web_search_options", json!({"web_search_options": {}})),
        ("functions", json!({"functions": [{"name": "f"}]})),
        ("tools[0].type", json!({"tools": [{"name": "f"}]})),
        ("tool_choice", json!({"tool_choice": "required"})),
        (
            "response_format.type",
            json!({"response_format": {"type": "xml"}}),
        ),
        (
            "messages[0].content[0].type",
            part(json!({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}})),
        ),
        (
            "messages[0].content[0].file",
            part(json!({"type": "file", "file": {}})),
        ),
        (
            "messages[0].role",
            json!({"messages": [{"role": "function", "name": "f", "content": "a"}]}),
        ),
        (
            "messages[0].function_call",
            json!({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}),
        ),
        (
            "messages[0].audio",
            json!({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}),
        ),
        (
            "messages[0].tool_call_id",
            json!({"messages": [{"role": "tool", "content": "a"}]}),
        ),
        ("messages", json!({"messages": []})),
    ] {
        assert_eq!(
            sent_to("gpt-5.6", DROP, &asking(fields)).unwrap_err().param,
            param
        );
    }
}

#[test]
fn a_model_with_fixed_sampling_is_not_sent_any() {
    let body = asking(json!({"temperature": 0.5}));
    assert_eq!(sent_to("o3-pro", REFUSE, &body).unwrap_err().param, "temperature");
    assert_eq!(sent_to("o3-pro", DROP, &body).unwrap().1, ["temperature"]);
}

#[test]
fn a_request_says_whether_it_has_to_go_by_responses() {
    let tools = json!([{"name": "f"}]);
    for (model, fields) in [
        ("gpt-5.6", json!({"tools": tools})),
        ("gpt-5.4", json!({"tools": tools, "reasoning_effort": "low"})),
        (
            "gpt-5.4",
            json!({"tools": tools, "output_config": {"effort": "low"}}),
        ),
        (
            "gpt-5.4",
            json!({"tools": tools, "thinking": {"type": "adaptive"}}),
        ),
        ("gpt-5-codex", json!({})),
    ] {
        assert!(
            requires_responses_api(model, asking(fields.clone()).to_string().as_bytes()),
            "{model} {fields}"
        );
    }
    for (model, fields) in [
        ("gpt-5.6", json!({})),
        ("gpt-5.6", json!({"tools": []})),
        ("gpt-5.6", json!({"tools": tools, "reasoning_effort": "none"})),
        (
            "gpt-5.4",
            json!({"tools": tools, "thinking": {"type": "disabled"}}),
        ),
        ("gpt-5.2", json!({"tools": tools, "reasoning_effort": "high"})),
    ] {
        assert!(
            !requires_responses_api(model, asking(fields.clone()).to_string().as_bytes()),
            "{model} {fields}"
        );
    }
    assert!(!requires_responses_api("gpt-5.6", b"no JSON"));
}
