use serde_json::value::RawValue;

use crate::openai_anthropic::json_text::JsonText;
use crate::openai_anthropic::object::{Word, object};

object! {
    /// The body of `POST /v1/chat/completions` (openai 3.54.0, `types/chat/completion_create_params.py`), and behind it the extra
    /// fields of other providers' clients.
    Body {
        model: Word<'b>,
        messages: Vec<Message<'b>>,
        max_tokens: &'b RawValue,
        max_completion_tokens: &'b RawValue,
        stream: bool,
        stream_options: StreamOptions<'b>,
        temperature: &'b RawValue,
        top_p: &'b RawValue,
        tools: Vec<Tool<'b>>,
        tool_choice: &'b RawValue,
        parallel_tool_calls: bool,
        response_format: ResponseFormat<'b>,
        reasoning_effort: JsonText<'b>,
        verbosity: JsonText<'b>,
        metadata: &'b RawValue,
        moderation: &'b RawValue,
        user: JsonText<'b>,
        safety_identifier: JsonText<'b>,
        prompt_cache_key: JsonText<'b>,
        prompt_cache_options: &'b RawValue,
        prompt_cache_retention: &'b RawValue,
        service_tier: JsonText<'b>,
        logprobs: bool,
        top_logprobs: &'b RawValue,
        thinking: Thinking<'b>,
        store: &'b RawValue,
        n: &'b RawValue,
        stop: &'b RawValue,
        seed: &'b RawValue,
        frequency_penalty: &'b RawValue,
        presence_penalty: &'b RawValue,
        logit_bias: &'b RawValue,
        prediction: &'b RawValue,
        functions: &'b RawValue,
        function_call: &'b RawValue,
        modalities: &'b RawValue,
        audio: &'b RawValue,
        web_search_options: &'b RawValue,
        top_k: &'b RawValue,
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

object! {
    /// Anthropic's field for what the model thinks.
    Thinking { kind("type"): Word<'b>, budget_tokens: u64, display: Word<'b> }
}

object! {
    /// A message of any role.
    Message {
        role: Word<'b>,
        content: &'b RawValue,
        name: &'b RawValue,
        tool_calls: Vec<ToolCall<'b>>,
        tool_call_id: Word<'b>,
        refusal: JsonText<'b>,
        audio: &'b RawValue,
        function_call: &'b RawValue,
        annotations: &'b RawValue,
        reasoning: &'b RawValue,
        reasoning_content: &'b RawValue,
        reasoning_details: &'b RawValue,
        cache_control: &'b RawValue,
        extra_content: &'b RawValue,
        images: &'b RawValue,
    }
}

object! {
    ToolCall {
        id: Word<'b>,
        kind("type"): Word<'b>,
        function: CalledFunction<'b>,
        custom: CalledCustom<'b>,
        cache_control: &'b RawValue,
        extra_content: &'b RawValue,
        // The index of a streamed call, which some clients send back.
        index: &'b RawValue,
    }
}

object! {
    CalledFunction { name: JsonText<'b>, arguments: JsonText<'b> }
}

object! {
    CalledCustom { name: JsonText<'b>, input: JsonText<'b> }
}

object! {
    /// A part of a message's content.
    ContentPart {
        kind("type"): Word<'b>,
        text: JsonText<'b>,
        refusal: JsonText<'b>,
        image_url: ImageUrl<'b>,
        file: File<'b>,
        cache_control: &'b RawValue,
        prompt_cache_breakpoint: &'b RawValue,
    }
}

object! {
    ImageUrl { url: JsonText<'b>, detail: JsonText<'b> }
}

object! {
    File { file_data: JsonText<'b>, file_id: JsonText<'b>, filename: JsonText<'b> }
}

object! {
    /// A tool that the model may call.
    Tool {
        kind("type"): Word<'b>,
        function: Function<'b>,
        custom: Custom<'b>,
        cache_control: &'b RawValue,
    }
}

object! {
    Function {
        name: JsonText<'b>,
        description: JsonText<'b>,
        parameters: &'b RawValue,
        strict: bool,
        cache_control: &'b RawValue,
    }
}

object! {
    Custom { name: JsonText<'b>, description: JsonText<'b>, format: CustomFormat<'b> }
}

object! {
    CustomFormat { kind("type"): Word<'b>, grammar: &'b RawValue }
}

object! {
    ToolChoice {
        kind("type"): Word<'b>,
        function: Named<'b>,
        custom: Named<'b>,
        allowed_tools: AllowedTools<'b>,
    }
}

object! {
    AllowedTools { mode: JsonText<'b>, tools: Vec<AllowedTool<'b>> }
}

object! {
    AllowedTool { kind("type"): Word<'b>, function: Named<'b>, custom: Named<'b> }
}

object! {
    Named { name: JsonText<'b> }
}
