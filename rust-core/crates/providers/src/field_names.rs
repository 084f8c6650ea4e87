//! Field names of the providers' APIs and of JSON Schema.
//!
//! As keys they carry no content, so they are excluded from the text that rules scan. Otherwise
//! rules could read them as parts of the user strings next to them.

/// The meaning of a key for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMeaning {
    /// Not a known name: the key is text itself.
    Unknown,
    /// A field of the API.
    Field,
    /// A field whose value is one of a few words, such as `role`.
    Word,
    /// A field whose value may be an encoded image, recording or file, the address of such content,
    /// or data that a provider has signed or encrypted.
    Attachment,
    /// A field that may contain an object with an attachment, and whose value may also be text.
    AttachmentContainer,
}

pub(crate) fn key_meaning(key: &str) -> KeyMeaning {
    match key {
        "role" | "type" => KeyMeaning::Word,
        "url" | "data" | "file_data" | "image_url" | "signature" | "encrypted_content"
        | "thoughtSignature" | "thought_signature" => KeyMeaning::Attachment,
        "source" => KeyMeaning::AttachmentContainer,
        _ if is_api_field(key) => KeyMeaning::Field,
        _ => KeyMeaning::Unknown,
    }
}

#[rustfmt::skip]
fn is_api_field(key: &str) -> bool {
    match key.len() {
        1 => key == "n",
        2 => key == "id",
        3 => key == "ttl",
        4 => matches!(key, "name" | "text" | "file" | "stop" | "user" | "seed" | "enum" | "$ref" | "echo" | "args" | "mode" | "size" | "topP" | "topK" | "code"),
        5 => matches!(key, "model" | "tools" | "top_p" | "index" | "items" | "store" | "audio" | "title" | "$defs" | "anyOf" | "oneOf" | "allOf" | "const" | "voice" | "input" | "top_k" | "parts" | "style" | "speed"),
        6 => matches!(key, "stream" | "strict" | "schema" | "format" | "detail" | "effort" | "output" | "status" | "system" | "prompt" | "suffix"),
        7 => matches!(key, "content" | "file_id" | "refusal" | "default" | "minimum" | "maximum" | "pattern" | "summary" | "call_id" | "include" | "outcome" | "thought" | "user_id" | "context" | "enabled" | "best_of" | "quality"),
        8 => matches!(key, "requests" | "taskType" | "messages" | "function" | "required" | "metadata" | "logprobs" | "filename" | "is_error" | "thinking" | "contents" | "mimeType" | "response" | "category" | "language" | "file_url"),
        9 => matches!(key, "task_type" | "arguments" | "functions" | "verbosity" | "minLength" | "maxLength" | "reasoning" | "citations" | "mime_type" | "threshold"),
        10 => matches!(key, "background" | "moderation" | "max_tokens" | "tool_calls" | "parameters" | "properties" | "logit_bias" | "modalities" | "prediction" | "truncation" | "media_type" | "dimensions" | "inlineData" | "toolConfig"),
        11 => matches!(key, "temperature" | "tool_choice" | "description" | "json_schema" | "input_audio" | "annotations" | "tool_use_id" | "inline_data" | "tool_config" | "displayName"),
        12 => matches!(key, "tool_call_id" | "top_logprobs" | "service_tier" | "instructions" | "input_schema" | "functionCall" | "display_name"),
        13 => matches!(key, "output_format" | "stream_format" | "function_call" | "include_usage" | "cache_control" | "budget_tokens" | "output_config" | "stopSequences" | "thinkingLevel"),
        14 => matches!(key, "partial_images" | "stream_options" | "stop_sequences" | "safetySettings" | "thinkingConfig" | "thinkingBudget" | "executableCode" | "responseSchema" | "candidateCount"),
        15 => matches!(key, "response_format" | "encoding_format" | "safety_settings" | "maxOutputTokens" | "includeThoughts" | "thinking_config" | "response_schema" | "executable_code"),
        16 => matches!(key, "presence_penalty" | "reasoning_effort" | "prompt_cache_key" | "functionResponse" | "generationConfig" | "responseMimeType"),
        17 => matches!(key, "frequency_penalty" | "safety_identifier" | "max_output_tokens" | "systemInstruction" | "function_response" | "generation_config"),
        18 => matches!(key, "output_compression" | "web_search_options" | "system_instruction" | "responseJsonSchema" | "response_mime_type"),
        19 => matches!(key, "parallel_tool_calls" | "codeExecutionResult"),
        20 => matches!(key, "outputDimensionality" | "additionalProperties" | "functionDeclarations" | "parametersJsonSchema" | "allowedFunctionNames" | "response_json_schema"),
        21 => matches!(key, "output_dimensionality" | "max_completion_tokens" | "function_declarations" | "code_execution_result" | "functionCallingConfig"),
        _ => false,
    }
}

/// Whether names below this key belong to a client or a model, not to the API: tool parameters, arguments and
/// results, schemas, and client metadata of a request.
pub(crate) fn is_free_form(key: &str) -> bool {
    matches!(
        key,
        "input"
            | "arguments"
            | "args"
            | "response"
            | "parameters"
            | "parametersJsonSchema"
            | "parameters_json_schema"
            | "input_schema"
            | "input_examples"
            | "env"
            | "documents"
            | "chat_template_kwargs"
            | "responseSchema"
            | "response_schema"
            | "responseJsonSchema"
            | "response_json_schema"
            | "schema"
            | "properties"
            | "$defs"
            | "definitions"
            | "metadata"
    )
}

/// Whether `value` is a type of JSON Schema (JSON Schema, Validation, 6.1.1), in lower or upper
/// case: Google uses upper case.
pub(crate) fn is_schema_type(value: &str) -> bool {
    const JSON_SCHEMA_TYPES: [&str; 7] = [
        "object", "string", "number", "integer", "boolean", "array", "null",
    ];
    JSON_SCHEMA_TYPES
        .iter()
        .any(|name| value.eq_ignore_ascii_case(name))
}

/// Whether the value of a [`KeyMeaning::Word`] key is a word of the API, such as `json_object`, and not text.
pub(crate) fn is_api_word(value: &str) -> bool {
    value.len() <= 24
        && value
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}
