//! What individual models do not accept.

use super::*;

type Refusals = [(&'static str, Value, Option<&'static str>)];

fn holds(writer: Writer, cases: &Refusals) {
    for (model, fields, lost) in cases {
        let mut body = asking(fields.clone());
        body["max_tokens"] = json!(100);
        let refused = written(writer, model, REFUSE, &body);
        assert_eq!(
            refused.err().map(|refused| refused.param.into_owned()).as_deref(),
            *lost,
            "{model} {fields}"
        );
        let (_, dropped) = written(writer, model, DROP, &body).unwrap();
        assert_eq!(
            dropped,
            lost.iter().copied().collect::<Vec<_>>(),
            "{model} {fields}"
        );
    }
}

#[test]
fn claude_models_take_the_sampling_that_they_have() {
    let both = json!({"temperature": 0.5, "top_p": 0.9});
    let cases = |model: &'static str, newest: &'static str| {
        [
            (model, both.clone(), Some("top_p")),
            (model, json!({"temperature": 0.5, "top_p": 1}), None),
            (model, json!({"top_p": 0.9}), None),
            (newest, json!({"temperature": 0.5}), Some("temperature")),
            (newest, json!({"top_p": 0.9}), Some("top_p")),
            (newest, json!({"temperature": 1, "top_p": 1.0}), None),
        ]
    };
    holds(
        openai_anthropic::translate_request,
        &cases("claude-sonnet-4-5", "claude-opus-4-7"),
    );
    holds(
        openai_anthropic::translate_request,
        &[
            ("claude-opus-4-8", json!({"top_k": 5}), Some("top_k")),
            ("claude-opus-9", both.clone(), None),
        ],
    );
    let bedrock = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
    holds(
        openai_converse::translate_request,
        &cases(bedrock, "anthropic.claude-opus-4-7"),
    );
    holds(
        openai_converse::translate_request,
        &[("amazon.nova-pro-v1:0", both.clone(), None)],
    );
}

#[test]
fn openais_reasoning_models_take_no_sampling_and_some_do_not_stop() {
    holds(
        anthropic_openai::translate_request,
        &[
            ("gpt-5-mini", json!({"temperature": 0.5}), Some("temperature")),
            ("o3", json!({"top_p": 0.5}), Some("top_p")),
            (
                "o4-mini",
                json!({"stop_sequences": ["x"]}),
                Some("stop_sequences"),
            ),
            ("gpt-5", json!({"temperature": 1.0, "stop_sequences": []}), None),
            ("gpt-5-chat-latest", json!({"temperature": 0.5}), None),
            (
                "gpt-4.1",
                json!({"temperature": 0.5, "stop_sequences": ["x"]}),
                None,
            ),
            ("mistral-large", json!({"temperature": 0.5, "top_p": 0.5}), None),
        ],
    );
}

#[test]
fn openais_models_are_asked_for_an_effort_that_they_have() {
    let effort = |level: &str| json!({"output_config": {"effort": level}, "max_tokens": 100});
    let sent = |model: &str, level: &str| {
        let (sent, dropped) = written(
            anthropic_openai::translate_request,
            model,
            DROP,
            &asking(effort(level)),
        )
        .unwrap();
        (sent["reasoning_effort"].clone(), dropped)
    };
    let named = vec!["output_config.effort"];
    assert_eq!(sent("gpt-5.2", "max"), (json!("xhigh"), named.clone()));
    assert_eq!(sent("gpt-5.1", "xhigh"), (json!("high"), named.clone()));
    assert_eq!(sent("o3", "max"), (json!("high"), named.clone()));
    assert_eq!(sent("gpt-4.1", "high"), (Value::Null, named));
    assert_eq!(sent("gpt-7", "max"), (json!("max"), vec![]));
    assert_eq!(
        sent("deepseek-reasoner", "a new level"),
        (json!("a new level"), vec![])
    );
}

#[test]
fn gemini_models_think_at_a_level_that_they_have() {
    let level = |model: &str, effort: &str| {
        let body = asking(json!({"reasoning_effort": effort}));
        let (sent, dropped) = written(openai_gemini::translate_request, model, REFUSE, &body).unwrap();
        (
            sent["generationConfig"]["thinkingConfig"]["thinkingLevel"].clone(),
            dropped.len(),
        )
    };
    assert_eq!(level("gemini-3-pro-preview", "medium"), (json!("LOW"), 1));
    assert_eq!(level("gemini-3-pro-preview", "minimal"), (json!("LOW"), 1));
    assert_eq!(level("gemini-3.1-pro-preview", "medium"), (json!("MEDIUM"), 0));
    assert_eq!(level("gemini-3.5-flash", "minimal"), (json!("MINIMAL"), 0));
    assert_eq!(level("gemini-3.5-flash", "max"), (json!("HIGH"), 1));
    assert_eq!(level("gemini-9", "max"), (json!("XHIGH"), 0));
}

#[test]
fn gemini_models_have_penalties_no_longer() {
    let penalty = json!({"presence_penalty": 0.5});
    holds(
        openai_gemini::translate_request,
        &[
            ("gemini-2.5-flash", penalty.clone(), Some("presence_penalty")),
            (
                "gemini-3-pro",
                json!({"frequency_penalty": 1}),
                Some("frequency_penalty"),
            ),
            ("gemini-2.5-pro", json!({"frequency_penalty": 0.0}), None),
            ("gemini-2.0-flash", penalty, None),
        ],
    );
}

#[test]
fn not_to_think_is_what_a_model_with_a_budget_does_anyway() {
    let body = asking(json!({"reasoning_effort": "none"}));
    let haiku = "anthropic.claude-haiku-4-5-20251001-v1:0";
    let (sent, dropped) = written(openai_converse::translate_request, haiku, REFUSE, &body).unwrap();
    assert!(sent.get("additionalModelRequestFields").is_none() && dropped.is_empty());
}

#[test]
fn arguments_of_a_tool_are_an_object_without_a_choice_at_the_root() {
    let parameters = json!({"properties": {"a": {}}, "anyOf": [{"required": ["a"]}]});
    let tools = json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}]});
    let expected = json!({"type": "object", "properties": {"a": {}}, "description": "{anyOf: [{\"required\":[\"a\"]}]}"});
    let (sent, _) = written(
        openai_anthropic::translate_request,
        "claude",
        REFUSE,
        &asking(tools.clone()),
    )
    .unwrap();
    assert_eq!(sent["tools"][0]["input_schema"], expected);
    let (sent, _) = written(openai_converse::translate_request, "nova", REFUSE, &asking(tools)).unwrap();
    assert_eq!(
        sent["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"],
        expected
    );
}
