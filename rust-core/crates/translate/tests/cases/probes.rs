//! Requests of chat completions, and what becomes of them at every provider but for reasoned exceptions.

use super::PIXEL;
use super::losses::Verdict::{self, Harmless, Impossible, Lossy, Passes};
use serde_json::{Value, json};

fn message(fields: Value) -> Value {
    let mut user = json!({"role": "user", "content": "Hi"});
    for (name, value) in fields.as_object().unwrap() {
        user[name] = value.clone();
    }
    json!({"messages": [user]})
}

fn assistant(fields: Value) -> Value {
    let mut said = json!({"role": "assistant", "content": "A"});
    for (name, value) in fields.as_object().unwrap() {
        said[name] = value.clone();
    }
    json!({"messages": [{"role": "user", "content": "Hi"}, said, {"role": "user", "content": "And?"}]})
}

fn part(part: Value) -> Value {
    message(json!({"content": [{"type": "text", "text": "a"}, part]}))
}

fn tool(fields: Value) -> Value {
    let mut function = json!({"name": "f", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}});
    for (name, value) in fields.as_object().unwrap() {
        function[name] = value.clone();
    }
    json!({"tools": [{"type": "function", "function": function}]})
}

/// Requests, and what becomes of them at every provider.
pub fn probes() -> Vec<(Value, Verdict, &'static str)> {
    let image = |detail: &str| {
        let url = format!("data:image/png;base64,{PIXEL}");
        part(json!({"type": "image_url", "image_url": {"url": url, "detail": detail}}))
    };
    let file = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}});
    vec![
        (json!({}), Passes, ""),
        // What says nothing to the model.
        (json!({"user": "u"}), Harmless, "user"),
        (json!({"safety_identifier": "s"}), Harmless, "safety_identifier"),
        (json!({"metadata": {"a": "b"}}), Harmless, "metadata"),
        (json!({"metadata": {}}), Passes, ""),
        (json!({"store": true}), Harmless, "store"),
        (json!({"store": false}), Passes, ""),
        (json!({"prompt_cache_key": "k"}), Harmless, "prompt_cache_key"),
        (
            json!({"prompt_cache_options": {"ttl": "1h"}}),
            Harmless,
            "prompt_cache_options",
        ),
        (
            json!({"prompt_cache_retention": "24h"}),
            Harmless,
            "prompt_cache_retention",
        ),
        (
            json!({"cache_control": {"type": "ephemeral"}}),
            Harmless,
            "cache_control",
        ),
        (
            json!({"prediction": {"type": "content", "content": "a"}}),
            Harmless,
            "prediction",
        ),
        (json!({"service_tier": "auto"}), Passes, ""),
        (json!({"service_tier": "default"}), Passes, ""),
        (json!({"parallel_tool_calls": true}), Passes, ""),
        (
            json!({"stream": true, "stream_options": {"include_obfuscation": true}}),
            Harmless,
            "stream_options.include_obfuscation",
        ),
        (message(json!({"name": "Ann"})), Harmless, "messages[].name"),
        (assistant(json!({"annotations": []})), Passes, ""),
        (
            assistant(json!({"annotations": [{"type": "url_citation"}]})),
            Harmless,
            "messages[].annotations",
        ),
        (
            assistant(json!({"reasoning_content": "r"})),
            Harmless,
            "messages[].reasoning_content",
        ),
        (
            assistant(json!({"reasoning": "r"})),
            Harmless,
            "messages[].reasoning",
        ),
        (
            assistant(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "s"}]})),
            Harmless,
            "messages[].reasoning_details",
        ),
        (
            assistant(json!({"extra_content": {"google": {"thought_signature": "s"}}})),
            Harmless,
            "messages[].extra_content",
        ),
        (
            assistant(json!({"audio": null, "function_call": null, "refusal": null})),
            Passes,
            "",
        ),
        (image("auto"), Passes, ""),
        (image("high"), Harmless, "messages[].content[].image_url.detail"),
        (part(file), Harmless, "messages[].content[].file.filename"),
        (
            part(json!({"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}})),
            Harmless,
            "cache_control",
        ),
        (
            part(json!({"type": "text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit"}})),
            Harmless,
            "messages[].content[].prompt_cache_breakpoint",
        ),
        (tool(json!({"strict": false})), Passes, ""),
        (tool(json!({"strict": true})), Harmless, "tools[].function.strict"),
        // What asks for less without it.
        (json!({"seed": 4_294_967_296_u64}), Lossy, "seed"),
        (json!({"frequency_penalty": 0.5}), Lossy, "frequency_penalty"),
        (json!({"frequency_penalty": 0}), Passes, ""),
        (json!({"presence_penalty": 0.5}), Lossy, "presence_penalty"),
        (json!({"logit_bias": {"1": 2}}), Lossy, "logit_bias"),
        (json!({"logprobs": true}), Lossy, "logprobs"),
        (json!({"logprobs": false}), Passes, ""),
        (json!({"top_logprobs": 2}), Lossy, "top_logprobs"),
        (json!({"verbosity": "low"}), Lossy, "verbosity"),
        (json!({"verbosity": "medium"}), Passes, ""),
        (json!({"temperature": 1.5}), Lossy, "temperature"),
        (json!({"top_k": 5}), Lossy, "top_k"),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}),
            Lossy,
            "thinking",
        ),
        (json!({"reasoning_effort": "none"}), Lossy, "reasoning_effort"),
        (json!({"reasoning_effort": "high"}), Passes, ""),
        (json!({"service_tier": "flex"}), Lossy, "service_tier"),
        (json!({"service_tier": "scale"}), Lossy, "service_tier"),
        (
            {
                let mut body = tool(json!({}));
                body["parallel_tool_calls"] = json!(false);
                body
            },
            Lossy,
            "parallel_tool_calls",
        ),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "description": "d",
                "schema": {"type": "object", "properties": {}, "additionalProperties": false}}}}),
            Lossy,
            "response_format.json_schema.description",
        ),
        (json!({"response_format": {"type": "json_object"}}), Passes, ""),
        (json!({"new_field": 1}), Harmless, "other fields"),
        (json!({"new_field": null}), Passes, ""),
        (message(json!({"new_field": 1})), Harmless, "other fields"),
        (
            part(json!({"type": "text", "text": "b", "new_field": 1})),
            Harmless,
            "other fields",
        ),
        (tool(json!({"new_field": 1})), Harmless, "other fields"),
        // What would be another request without it.
        (json!({"n": 1}), Passes, ""),
        (json!({"n": 2}), Impossible, "n"),
        (
            json!({"audio": {"voice": "alloy", "format": "wav"}}),
            Impossible,
            "audio",
        ),
        (json!({"modalities": ["text"]}), Passes, ""),
        (json!({"modalities": ["text", "audio"]}), Impossible, "modalities"),
        (json!({"modalities": ["text", "image"]}), Impossible, "modalities"),
        (
            json!({"web_search_options": {}}),
            Impossible,
            "web_search_options",
        ),
        (json!({"moderation": {"model": "m"}}), Impossible, "moderation"),
        (json!({"functions": []}), Passes, ""),
        (json!({"functions": [{"name": "f"}]}), Impossible, "functions"),
        (json!({"function_call": "auto"}), Impossible, "function_call"),
        (
            assistant(json!({"audio": {"id": "a"}})),
            Impossible,
            "messages[1].audio",
        ),
        (
            assistant(json!({"function_call": {"name": "f", "arguments": "{}"}})),
            Impossible,
            "messages[1].function_call",
        ),
        (
            part(json!({"type": "file", "file": {"file_id": "file-1"}})),
            Impossible,
            "messages[0].content[1].file.file_id",
        ),
        (
            json!({"tools": [{"type": "custom", "custom": {"name": "c"}}]}),
            Impossible,
            "tools[0].type",
        ),
        (
            part(json!({"type": "video_url"})),
            Harmless,
            "messages[].content[].type",
        ),
        (
            part(json!({"type": "image_url", "image_url": {"url": "https://images.example/a.png"}})),
            Passes,
            "",
        ),
        (
            part(json!({"type": "image_url", "image_url": {"url": "gs://bucket/a.png"}})),
            Impossible,
            "messages[0].content[1].image_url.url",
        ),
        (
            part(json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}})),
            Passes,
            "",
        ),
    ]
}

/// Where a provider can more than the others, or less: the provider, the field as the probe names it or its JSON, the verdict, why.
pub const EXCEPTIONS: [(&str, &str, Verdict, &str); 27] = [
    ("Anthropic", r#"{"user":"u"}"#, Passes, "metadata.user_id"),
    (
        "Anthropic",
        r#"{"safety_identifier":"s"}"#,
        Passes,
        "metadata.user_id",
    ),
    (
        "Anthropic",
        r#"{"cache_control":"#,
        Passes,
        "it is Anthropic's own field",
    ),
    ("Anthropic", r#""filename":"#, Passes, "a document's title"),
    ("Anthropic", r#""strict":true"#, Passes, "tools may be strict"),
    ("Anthropic", r#"{"top_k":"#, Passes, "it is Anthropic's own field"),
    (
        "Anthropic",
        r#"{"thinking":"#,
        Passes,
        "it is Anthropic's own field",
    ),
    (
        "Anthropic",
        r#"{"reasoning_effort":"none"}"#,
        Passes,
        "thinking may be disabled",
    ),
    (
        "Anthropic",
        r#""parallel_tool_calls":false"#,
        Passes,
        "disable_parallel_tool_use",
    ),
    (
        "Anthropic",
        r#""input_audio""#,
        Impossible,
        "messages have no audio",
    ),
    (
        "Gemini",
        r#""reasoning_content":"r""#,
        Passes,
        "a thought of the model's",
    ),
    ("Gemini", r#""extra_content""#, Passes, "it is Google's own field"),
    (
        "Gemini",
        r#"{"frequency_penalty":0.5}"#,
        Passes,
        "frequencyPenalty",
    ),
    ("Gemini", r#"{"presence_penalty":0.5}"#, Passes, "presencePenalty"),
    ("Gemini", r#"{"logprobs":true}"#, Passes, "responseLogprobs"),
    ("Gemini", r#"{"top_logprobs":"#, Passes, "logprobs"),
    (
        "Gemini",
        r#"{"temperature":1.5}"#,
        Passes,
        "temperatures go up to 2",
    ),
    ("Gemini", r#"{"top_k":"#, Passes, "topK"),
    ("Gemini", r#"{"n":2}"#, Passes, "candidateCount"),
    ("Gemini", r#"["text","image"]"#, Passes, "responseModalities"),
    ("Converse", r#""filename":"#, Passes, "a document's name"),
    (
        "Converse",
        r#""cache_control":{"type":"ephemeral"},"text""#,
        Passes,
        "a cache point",
    ),
    (
        "Converse",
        r#""prompt_cache_breakpoint""#,
        Passes,
        "a cache point",
    ),
    ("Converse", r#""strict":true"#, Passes, "tools may be strict"),
    (
        "Converse",
        r#""https://images.example/a.png""#,
        Impossible,
        "Converse fetches nothing",
    ),
    ("Converse", r#"{"service_tier":"flex"}"#, Passes, "serviceTier"),
    (
        "Converse",
        r#""description":"d""#,
        Passes,
        "a schema has a description",
    ),
];
