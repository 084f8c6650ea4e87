//! Names of the chat completions API and of JSON Schema.
//!
//! As keys they say nothing about what a request is for, so they are left out of the text that rules look at: between the
//! strings of users they would only be taken for a part of them.

/// What a key says about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The key is a text itself.
    Unknown,
    /// A field of the API.
    Field,
    /// A field whose value is one of few words, such as `role`.
    Word,
    /// A field whose value may be an encoded image, recording or file.
    Attachment,
}

pub(crate) fn meaning(key: &str) -> Meaning {
    match key {
        "role" | "type" => Meaning::Word,
        "url" | "data" | "file_data" => Meaning::Attachment,
        _ if is_field(key) => Meaning::Field,
        _ => Meaning::Unknown,
    }
}

#[rustfmt::skip]
fn is_field(key: &str) -> bool {
    match key.len() {
        1 => key == "n",
        2 => key == "id",
        4 => matches!(key, "name" | "text" | "file" | "stop" | "user" | "seed" | "enum" | "$ref"),
        5 => matches!(key, "model" | "tools" | "top_p" | "index" | "items" | "store" | "audio" | "title" | "$defs" | "anyOf" | "oneOf" | "allOf" | "const" | "voice"),
        6 => matches!(key, "stream" | "strict" | "schema" | "format" | "detail"),
        7 => matches!(key, "content" | "file_id" | "refusal" | "default" | "minimum" | "maximum" | "pattern"),
        8 => matches!(key, "messages" | "function" | "required" | "metadata" | "logprobs" | "filename"),
        9 => matches!(key, "arguments" | "image_url" | "functions" | "verbosity" | "minLength" | "maxLength"),
        10 => matches!(key, "max_tokens" | "tool_calls" | "parameters" | "properties" | "logit_bias" | "modalities" | "prediction"),
        11 => matches!(key, "temperature" | "tool_choice" | "description" | "json_schema" | "input_audio"),
        12 => matches!(key, "tool_call_id" | "top_logprobs" | "service_tier"),
        13 => key == "function_call" || key == "include_usage",
        14 => key == "stream_options",
        15 => key == "response_format",
        16 => matches!(key, "presence_penalty" | "reasoning_effort" | "prompt_cache_key"),
        17 => matches!(key, "frequency_penalty" | "safety_identifier"),
        18 => key == "web_search_options",
        19 => key == "parallel_tool_calls",
        20 => key == "additionalProperties",
        21 => key == "max_completion_tokens",
        _ => false,
    }
}

/// Whether the value of a [`Meaning::Word`] is a word of the API, such as `json_object`, and no text of its own.
pub(crate) fn is_word(value: &str) -> bool {
    value.len() <= 24
        && value
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}
