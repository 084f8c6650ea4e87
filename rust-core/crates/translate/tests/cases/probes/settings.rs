//! The fields of a request besides its messages and tools.

use super::Provider::{Anthropic, Converse, Gemini, Responses};
use super::*;

pub fn probes() -> Vec<Probe> {
    let mut probes = vec![passes(json!({}))];
    probes.extend(who_asks());
    probes.extend(sampling());
    probes.extend(answers());
    probes.extend(streams());
    probes
}

/// Fields that do not reach the model.
fn who_asks() -> Vec<Probe> {
    let named = [Anthropic, Responses];
    vec![
        harmless(json!({"user": "u"}), "user").but(Passes, &named),
        harmless(json!({"safety_identifier": "s"}), "safety_identifier").but(Passes, &named),
        harmless(json!({"metadata": {"a": "b"}}), "metadata").but(Passes, &[Responses]),
        passes(json!({"metadata": {}})),
        harmless(json!({"store": true}), "store"),
        passes(json!({"store": false})),
        harmless(json!({"prompt_cache_key": "k"}), "prompt_cache_key").but(Passes, &[Responses]),
        harmless(
            json!({"prompt_cache_options": {"ttl": "1h"}}),
            "prompt_cache_options",
        )
        .but(Passes, &[Responses]),
        harmless(json!({"prompt_cache_retention": "24h"}), "prompt_cache_retention")
            .but(Passes, &[Responses]),
        harmless(json!({"cache_control": {"type": "ephemeral"}}), "cache_control").but(Passes, &[Anthropic]),
        harmless(json!({"cache_control": "ephemeral"}), "cache_control"),
        harmless(
            json!({"prediction": {"type": "content", "content": "a"}}),
            "prediction",
        ),
        passes(json!({"service_tier": "auto"})),
        passes(json!({"service_tier": "default"})),
        lossy(json!({"service_tier": "flex"}), "service_tier").but(Passes, &[Converse, Responses]),
        lossy(json!({"service_tier": "scale"}), "service_tier").but(Passes, &[Responses]),
        harmless(json!({"new_field": 1}), OTHERS),
        passes(json!({"new_field": null})),
        harmless(json!({"extra_body": {"new_field": 1}}), OTHERS),
        harmless(
            json!({"extra_body": {"google": {"thinking_config": {"include_thoughts": true}}}}),
            OTHERS,
        )
        .but(Passes, &[Gemini]),
        impossible(json!({"model": ""}), "model"),
        impossible(json!({"model": 1}), "model"),
        impossible(json!({"model": null}), "model"),
    ]
}

fn sampling() -> Vec<Probe> {
    vec![
        passes(json!({"temperature": 0.5})),
        passes(json!({"temperature": 1, "top_p": 0.5})),
        lossy(json!({"temperature": 1.5}), "temperature").but(Passes, &[Gemini, Responses]),
        impossible(json!({"temperature": "hot"}), "temperature"),
        impossible(json!({"top_p": true}), "top_p"),
        lossy(json!({"top_k": 5}), "top_k").but(Passes, &[Anthropic, Gemini]),
        passes(json!({"top_k": null})),
        lossy(json!({"seed": 4_294_967_296_u64}), "seed"),
        lossy(json!({"seed": 1}), "seed").but(Passes, &[Gemini]),
        lossy(json!({"frequency_penalty": 0.5}), "frequency_penalty").but(Passes, &[Gemini]),
        passes(json!({"frequency_penalty": 0})),
        lossy(json!({"presence_penalty": 0.5}), "presence_penalty").but(Passes, &[Gemini]),
        passes(json!({"presence_penalty": -0.0})),
        lossy(json!({"logit_bias": {"1": 2}}), "logit_bias"),
        passes(json!({"logit_bias": {}})),
        lossy(json!({"logprobs": true}), "logprobs").but(Passes, &[Gemini, Responses]),
        passes(json!({"logprobs": false})),
        lossy(json!({"top_logprobs": 2}), "top_logprobs").but(Passes, &[Gemini, Responses]),
        passes(json!({"top_logprobs": 0})),
        passes(json!({"stop": ["a", "b"]})).but(Lossy, &[Responses]),
        passes(json!({"stop": "a"})).but(Lossy, &[Responses]),
        passes(json!({"stop": []})),
        passes(json!({"stop": null})),
        lossy(json!({"stop": ["a", ""]}), "stop"),
        impossible(json!({"stop": ["a", 1]}), "stop[1]").but(Lossy, &[Responses]),
        impossible(json!({"stop": 1}), "stop").but(Lossy, &[Responses]),
        passes(json!({"n": 1})),
        impossible(json!({"n": 2}), "n").but(Passes, &[Gemini]),
        impossible(json!({"n": "2"}), "n"),
    ]
}

/// Fields that determine the answer.
fn answers() -> Vec<Probe> {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let format = |fields: Value| {
        let described = with(json!({"name": "a", "schema": schema}), &fields);
        json!({"response_format": {"type": "json_schema", "json_schema": described}})
    };
    vec![
        passes(json!({"max_tokens": 100})),
        passes(json!({"max_tokens": 100, "max_completion_tokens": 100})),
        harmless(
            json!({"max_tokens": 100, "max_completion_tokens": 99}),
            "max_tokens",
        ),
        impossible(json!({"max_tokens": 0}), "max_tokens"),
        impossible(json!({"max_completion_tokens": -1}), "max_completion_tokens"),
        impossible(json!({"max_completion_tokens": 1.5}), "max_completion_tokens"),
        lossy(
            json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}),
            "thinking",
        )
        .but(Passes, &[Anthropic, Responses]),
        impossible(json!({"thinking": "enabled"}), "thinking"),
        passes(json!({"reasoning_effort": "high"})),
        passes(json!({"reasoning_effort": "minimal"})),
        lossy(json!({"reasoning_effort": "none"}), "reasoning_effort").but(Passes, &[Anthropic, Responses]),
        lossy(json!({"reasoning_effort": "huge"}), "reasoning_effort").but(Passes, &[Responses]),
        impossible(json!({"reasoning_effort": 1}), "reasoning_effort"),
        lossy(json!({"verbosity": "low"}), "verbosity").but(Passes, &[Responses]),
        passes(json!({"verbosity": "medium"})),
        passes(json!({"response_format": {"type": "text"}})),
        passes(json!({"response_format": {"type": "json_object"}})),
        passes(format(json!({"strict": true}))),
        lossy(
            format(json!({"description": "d"})),
            "response_format.json_schema.description",
        )
        .but(Passes, &[Converse, Responses]),
        harmless(format(json!({"new_field": 1})), OTHERS),
        impossible(
            format(json!({"schema": null})),
            "response_format.json_schema.schema",
        ),
        impossible(
            format(json!({"schema": "{}"})),
            "response_format.json_schema.schema",
        ),
        impossible(
            json!({"response_format": {"type": "grammar"}}),
            "response_format.type",
        ),
        harmless(
            json!({"response_format": {"type": "text", "new_field": 1}}),
            OTHERS,
        ),
        passes(json!({"modalities": ["text"]})),
        impossible(json!({"modalities": ["text", "audio"]}), "modalities"),
        impossible(json!({"modalities": ["text", "image"]}), "modalities").but(Passes, &[Gemini]),
        impossible(json!({"audio": {"voice": "alloy", "format": "wav"}}), "audio"),
        impossible(json!({"web_search_options": {}}), "web_search_options"),
        impossible(json!({"moderation": {"model": "m"}}), "moderation").but(Passes, &[Responses]),
    ]
}

fn streams() -> Vec<Probe> {
    let options = |options: Value| json!({"stream": true, "stream_options": options});
    vec![
        passes(options(json!({"include_usage": true}))),
        harmless(
            options(json!({"include_obfuscation": true})),
            "stream_options.include_obfuscation",
        )
        .but(Passes, &[Responses]),
        passes(options(json!({"include_obfuscation": false}))),
        passes(json!({"stream_options": {"include_obfuscation": true}})),
        harmless(options(json!({"new_field": 1})), OTHERS),
        impossible(json!({"stream": 1}), "stream"),
    ]
}
