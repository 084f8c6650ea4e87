//! Requests as they are sent to the provider.

use super::*;

const HI: &str = r#"[{"role":"user","content":"hi"}]"#;

#[test]
fn numbers_keep_their_digits_and_objects_the_order_of_their_keys() {
    let body = r#"{"model":"c","max_tokens":5,"temperature":0.70,"messages":[{"role":"user","content":"hi"},
        {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"z":1.10,"a":12345678901234567890123}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}],
        "tools":[{"name":"f","input_schema":{"type":"object","z":1e3,"a":1}}]}"#;
    let sent = sent_to("m", body).unwrap();
    assert!(sent.contains(r#""arguments":"{\"z\":1.10,\"a\":12345678901234567890123}""#));
    assert!(sent.contains(r#""parameters":{"type":"object","z":1e3,"a":1}"#));
    assert!(sent.contains(r#""temperature":0.70"#));
}

#[test]
fn the_limit_has_the_name_that_the_model_understands() {
    let body = r#"{"model":"c","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}"#;
    for model in [
        "gpt-5-mini",
        "o3",
        "openai/gpt-4.1",
        "ft:gpt-4o:org",
        "chatgpt-4o-latest",
    ] {
        assert!(
            sent_to(model, body)
                .unwrap()
                .contains(r#""max_completion_tokens":5"#),
            "{model}"
        );
    }
    for model in [
        "gpt-oss-120b",
        "openai/gpt-oss-20b",
        "mistral-large",
        "olmo-2",
        "o",
        "",
    ] {
        assert!(
            sent_to(model, body).unwrap().contains(r#""max_tokens":5"#),
            "{model}"
        );
    }
}

// agentgateway#2318, elastic/kibana#284682
#[test]
fn turns_of_one_role_in_a_row_become_one() {
    let messages = r#"[{"role":"user","content":"a"},{"role":"user","content":"b"},
        {"role":"assistant","content":"c"},{"role":"assistant","content":"d"},{"role":"user","content":"e"}]"#;
    let sent = sent(messages, "").unwrap();
    assert_eq!(sent["messages"].as_array().unwrap().len(), 3);
    assert_eq!(sent["messages"][0]["content"][1]["text"], "b");
    assert_eq!(sent["messages"][1]["content"], "c\nd");
}

// mlflow/mlflow#25788, agentgateway PR#1358
#[test]
fn results_of_tools_follow_their_calls_before_what_the_user_says() {
    let messages = r#"[{"role":"user","content":"a"},
        {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"t1","content":"1"}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"2"}]}]"#;
    let sent = sent(messages, "").unwrap();
    let roles: Vec<_> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(sent["messages"][1]["content"], Value::Null);
    assert_eq!(sent["messages"][4]["content"], "and");
}

#[test]
fn thinking_of_earlier_turns_is_left_out_and_named_whatever_the_target_says() {
    let body = r#"{"model":"c","max_tokens":5,"messages":[{"role":"user","content":"hi"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"secret","signature":"s"},{"type":"redacted_thinking","data":"d"}]},
        {"role":"user","content":"on"}]}"#;
    let mut out = Vec::new();
    let asked = translate_request(
        body.as_bytes(),
        &target(UntranslatableFieldPolicy::Refuse),
        &mut out,
    )
    .unwrap();
    assert_eq!(asked.dropped_fields, ["thinking"]);
    assert_eq!(json(&out)["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn a_stream_is_asked_for_with_its_usage() {
    let sent = sent(HI, r#","stream":true"#).unwrap();
    assert_eq!(sent["stream_options"]["include_usage"], true);
}

#[test]
fn what_a_model_does_without_is_left_out_and_never_refused() {
    for (member, name) in [
        (r#","thinking":{"type":"adaptive"}"#, "thinking"),
        (r#","surprise":{}"#, "other fields"),
        (r#","output_config":{"task_budget":1}"#, "other fields"),
        (
            r#","context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}"#,
            "context_management",
        ),
    ] {
        let body = format!(r#"{{"model":"m","max_tokens":5,"messages":{HI}{member}}}"#);
        let target = target(UntranslatableFieldPolicy::Refuse);
        let asked = translate_request(body.as_bytes(), &target, &mut Vec::new()).unwrap();
        assert_eq!(asked.dropped_fields, [name], "{body}");
    }
}

#[test]
fn what_has_no_counterpart_is_refused_by_its_path() {
    assert_eq!(refused_at(HI, r#","top_k":5"#), "top_k");
    let document = r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"citations":{"enabled":true}}"#;
    let messages = format!(r#"[{{"role":"user","content":[{document}]}}]"#);
    assert_eq!(refused_at(&messages, ""), "messages[0].content[0].citations");
}

#[test]
fn a_mark_for_the_cache_is_left_out_and_never_refused() {
    let messages =
        r#"[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]"#;
    let body = format!(r#"{{"model":"c","max_tokens":5,"messages":{messages}}}"#);
    let asked = translate_request(
        body.as_bytes(),
        &target(UntranslatableFieldPolicy::Refuse),
        &mut Vec::new(),
    );
    assert_eq!(asked.unwrap().dropped_fields, ["cache_control"]);
}

#[test]
fn what_would_change_the_meaning_is_refused_even_where_fields_may_be_dropped() {
    let block = |block: &str| format!(r#"[{{"role":"user","content":[{block}]}}]"#);
    let result = |block: &str| {
        let result = format!(r#"{{"type":"tool_result","tool_use_id":"t","content":[{block}]}}"#);
        format!(r#"[{{"role":"user","content":[{result}]}}]"#)
    };
    let file = r#"{"type":"image","source":{"type":"file","file_id":"file_1"}}"#;
    let url = r#"{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}"#;
    let refused = [
        (block(file), "", "messages[0].content[0].source.type"),
        (block(url), "", "messages[0].content[0].source.type"),
        (
            block(r#"{"type":"container_upload","file_id":"f"}"#),
            "",
            "messages[0].content[0].type",
        ),
        (
            block(r#"{"type":"search_result","source":"s","content":[]}"#),
            "",
            "messages[0].content[0].type",
        ),
        (
            block(r#"{"type":"web_search_tool_result","content":{"type":"e"}}"#),
            "",
            "messages[0].content[0].type",
        ),
        (result(file), "", "messages[0].content[0].content[0].source.type"),
        (
            r#"[{"role":"user","content":"a"},{"role":"assistant","content":"{"}]"#.to_owned(),
            "",
            "messages[1]",
        ),
        (HI.to_owned(), r#","mcp_servers":[{"url":"u"}]"#, "mcp_servers"),
        (HI.to_owned(), r#","container":"c""#, "container"),
        (HI.to_owned(), r#","thread":{"id":"t"}"#, "thread"),
        (HI.to_owned(), r#","inference_geo":"eu""#, "inference_geo"),
        (
            HI.to_owned(),
            r#","tools":[{"type":"web_search_20250305","name":"web_search"}]"#,
            "tools[0].type",
        ),
        (HI.to_owned(), r#","tool_choice":{"type":"any"}"#, "tool_choice"),
    ];
    for (messages, fields, param) in refused {
        let body = format!(r#"{{"model":"c","max_tokens":5,"messages":{messages}{fields}}}"#);
        let mut out = b"before".to_vec();
        let refused = translate_request(
            body.as_bytes(),
            &target(UntranslatableFieldPolicy::Drop),
            &mut out,
        );
        assert_eq!(refused.unwrap_err().param, param);
        assert_eq!(out, b"before");
    }
}

#[test]
fn a_tool_of_anthropics_is_refused_by_its_name() {
    let refused = sent(HI, r#","tools":[{"type":"web_search_20250305","name":"s"}]"#).unwrap_err();
    assert!(refused.message.contains("web_search"));
}

#[test]
fn a_malformed_request_is_refused_by_its_path_and_quotes_no_text() {
    assert_eq!(sent_to("m", "{").unwrap_err().param, "body");
    assert_eq!(sent_to("m", "[]").unwrap_err().param, "body");
    assert_eq!(sent_to("m", "{}").unwrap_err().param, "model");
    assert_eq!(refused_at(HI, r#","stream":"secret""#), "stream");
    assert_eq!(refused_at(HI, r#","stream":true,"stream":false"#), "stream");
    assert_eq!(
        refused_at(r#"[{"role":"user","content":5}]"#, ""),
        "messages[0].content"
    );
    assert_eq!(
        refused_at(r#"[{"role":"tool","content":"secret"}]"#, ""),
        "messages[0].role"
    );
    let call = r#"{"type":"tool_use","id":"t","name":"f","input":"secret"}"#;
    let messages = format!(
        r#"[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{call}]}},{{"role":"user","content":"b"}}]"#
    );
    let refused = sent(&messages, "").unwrap_err();
    assert_eq!(refused.param, "messages[1].content[0].input");
    assert!(!refused.message.contains("secret"));
    let body = r#"{"model":"c","messages":[{"role":"user","content":"hi"}],"max_tokens":0}"#;
    assert_eq!(sent_to("m", body).unwrap_err().param, "max_tokens");
}

#[test]
fn a_budget_of_thinking_is_an_effort_where_the_model_is_known_to_have_one() {
    for (model, fields, effort) in [
        ("gpt-5.1", "", Value::from("high")),
        ("o3", "", Value::from("high")),
        ("gpt-5.4", "", Value::from("high")),
        (
            "gpt-5.1",
            r#","output_config":{"effort":"low"}"#,
            Value::from("low"),
        ),
        (
            "house/gpt-5.4",
            r#","tools":[{"name":"f","input_schema":{"type":"object"}}]"#,
            Value::from("none"),
        ),
        ("deepseek-reasoner", "", Value::Null),
        ("gpt-4o", "", Value::Null),
    ] {
        let body = format!(
            r#"{{"model":"m","max_tokens":32000,"messages":{HI},"thinking":{{"type":"enabled","budget_tokens":16384}}{fields}}}"#
        );
        let sent: Value = serde_json::from_str(&sent_to(model, &body).unwrap()).unwrap();
        assert_eq!(sent["reasoning_effort"], effort, "{model} {fields}");
    }
}

#[test]
fn thinking_is_named_where_nothing_is_said_of_it() {
    let dropped = |model, thinking: &str| {
        let body = format!(r#"{{"model":"m","max_tokens":32000,"messages":{HI},"thinking":{thinking}}}"#);
        let target = Target {
            model,
            ..target(UntranslatableFieldPolicy::Drop)
        };
        let asked = translate_request(body.as_bytes(), &target, &mut Vec::new()).unwrap();
        asked.dropped_fields
    };
    let budget = r#"{"type":"enabled","budget_tokens":2048}"#;
    for (model, thinking, is_left_out) in [
        ("gpt-5.1", budget, false),
        ("gpt-4o", budget, true),
        ("deepseek-reasoner", budget, true),
        ("gpt-5.1", r#"{"type":"adaptive"}"#, true),
        ("gpt-4o", r#"{"type":"disabled"}"#, false),
    ] {
        assert_eq!(
            dropped(model, thinking).contains(&"thinking"),
            is_left_out,
            "{model} {thinking}"
        );
    }
}

#[test]
fn what_other_dialects_have_words_for_goes_on_to_them() {
    let body = format!(
        r#"{{"model":"m","max_tokens":5,"messages":{HI},"top_k":64,"stop_sequences":["a"],"thinking":{{"type":"enabled","budget_tokens":4096}}}}"#
    );
    let mut out = Vec::new();
    let target = target(UntranslatableFieldPolicy::Refuse);
    let asked = translate_for_other_apis(body.as_bytes(), &target, &mut out).unwrap();
    let sent = json(&out);
    assert_eq!(
        (&sent["top_k"], &sent["stop"][0]),
        (&Value::from(64), &Value::from("a"))
    );
    assert_eq!(
        (&sent["reasoning_effort"], asked.dropped_fields.len()),
        (&Value::from("medium"), 0)
    );
}
