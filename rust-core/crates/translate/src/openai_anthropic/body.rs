use serde_json::value::RawValue;

use crate::openai_anthropic::json_text::JsonText;
use crate::openai_anthropic::messages::Message;
use crate::openai_anthropic::object::{Word, object};
use crate::openai_anthropic::tools::Tool;

object! {
    /// The body of `POST /v1/chat/completions` (openapi.yaml 2.3.0), and behind it what OpenAI's clients send to Anthropic
    /// as extra fields.
    Body {
        model: Word<'b>,
        messages: Vec<Message<'b>>,
        max_tokens: &'b RawValue,
        max_completion_tokens: &'b RawValue,
        stream: bool,
        stream_options: StreamOptions<'b>,
        stop: &'b RawValue,
        temperature: &'b RawValue,
        top_p: &'b RawValue,
        tools: Vec<Tool<'b>>,
        tool_choice: &'b RawValue,
        parallel_tool_calls: bool,
        response_format: ResponseFormat<'b>,
        reasoning_effort: Word<'b>,
        safety_identifier: JsonText<'b>,
        user: JsonText<'b>,
        service_tier: Word<'b>,
        n: &'b RawValue,
        functions: &'b RawValue,
        function_call: &'b RawValue,
        modalities: &'b RawValue,
        audio: &'b RawValue,
        web_search_options: &'b RawValue,
        moderation: &'b RawValue,
        prediction: &'b RawValue,
        frequency_penalty: &'b RawValue,
        presence_penalty: &'b RawValue,
        logit_bias: &'b RawValue,
        logprobs: &'b RawValue,
        top_logprobs: &'b RawValue,
        seed: &'b RawValue,
        verbosity: &'b RawValue,
        store: &'b RawValue,
        metadata: &'b RawValue,
        prompt_cache_key: &'b RawValue,
        prompt_cache_options: &'b RawValue,
        prompt_cache_retention: &'b RawValue,
        top_k: &'b RawValue,
        thinking: &'b RawValue,
        cache_control: &'b RawValue,
    }
}

object! {
    StreamOptions { include_usage: bool, include_obfuscation: bool }
}

object! {
    ResponseFormat { kind("type"): Word<'b>, json_schema: JsonSchema<'b> }
}

object! {
    JsonSchema { name: JsonText<'b>, description: JsonText<'b>, schema: &'b RawValue, strict: bool }
}
