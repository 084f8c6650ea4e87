use serde_json::value::RawValue;

use crate::openai_converse::object::object;
use crate::openai_converse::text::Text;

object! {
    /// The body of `POST /v1/chat/completions`. Source: openai 3.54.0, `types/chat/completion_create_params.py`.
    Chat {
        "model" => model: &'b RawValue,
        "messages" => messages: &'b RawValue,
        "stream" => stream: &'b RawValue,
        "stream_options" => stream_options: &'b RawValue,
        "max_tokens" => max_tokens: &'b RawValue,
        "max_completion_tokens" => max_completion_tokens: &'b RawValue,
        "temperature" => temperature: &'b RawValue,
        "top_p" => top_p: &'b RawValue,
        "stop" => stop: &'b RawValue,
        "tools" => tools: &'b RawValue,
        "tool_choice" => tool_choice: &'b RawValue,
        "response_format" => response_format: &'b RawValue,
        "reasoning_effort" => reasoning_effort: &'b RawValue,
        "service_tier" => service_tier: &'b RawValue,
        "n" => n: &'b RawValue,
        "audio" => audio: &'b RawValue,
        "modalities" => modalities: &'b RawValue,
        "web_search_options" => web_search_options: &'b RawValue,
        "functions" => functions: &'b RawValue,
        "function_call" => function_call: &'b RawValue,
        "moderation" => moderation: &'b RawValue,
        "parallel_tool_calls" => parallel_tool_calls: &'b RawValue,
        "seed" => seed: &'b RawValue,
        "frequency_penalty" => frequency_penalty: &'b RawValue,
        "presence_penalty" => presence_penalty: &'b RawValue,
        "logit_bias" => logit_bias: &'b RawValue,
        "logprobs" => logprobs: &'b RawValue,
        "top_logprobs" => top_logprobs: &'b RawValue,
        "user" => user: &'b RawValue,
        "safety_identifier" => safety_identifier: &'b RawValue,
        "metadata" => metadata: &'b RawValue,
        "store" => store: &'b RawValue,
        "verbosity" => verbosity: &'b RawValue,
        "prediction" => prediction: &'b RawValue,
        "prompt_cache_key" => prompt_cache_key: &'b RawValue,
        "prompt_cache_options" => prompt_cache_options: &'b RawValue,
        "prompt_cache_retention" => prompt_cache_retention: &'b RawValue,
        "cache_control" => cache_control: &'b RawValue,
        "top_k" => top_k: &'b RawValue,
        "thinking" => thinking: &'b RawValue,
    }
}

object! {
    /// `stream_options`.
    StreamOptions {
        "include_usage" => include_usage: bool,
        "include_obfuscation" => include_obfuscation: &'b RawValue,
    }
}

object! {
    /// An item of `messages`.
    Message {
        "role" => role: Text<'b>,
        "content" => content: &'b RawValue,
        "name" => name: &'b RawValue,
        "refusal" => refusal: &'b RawValue,
        "tool_calls" => tool_calls: &'b RawValue,
        "tool_call_id" => tool_call_id: Text<'b>,
        "function_call" => function_call: &'b RawValue,
        "audio" => audio: &'b RawValue,
        "annotations" => annotations: &'b RawValue,
        "reasoning_content" => reasoning_content: &'b RawValue,
        "reasoning" => reasoning: &'b RawValue,
        "reasoning_details" => reasoning_details: &'b RawValue,
        "cache_control" => cache_control: CacheControl<'b>,
        "extra_content" => extra_content: &'b RawValue,
        "images" => images: &'b RawValue,
    }
}

object! {
    /// A part of a message's content.
    Part {
        "type" => kind: Text<'b>,
        "text" => text: &'b RawValue,
        "refusal" => refusal: &'b RawValue,
        "image_url" => image_url: ImageUrl<'b>,
        "input_audio" => input_audio: InputAudio<'b>,
        "file" => file: File<'b>,
        "cache_control" => cache_control: CacheControl<'b>,
        "prompt_cache_breakpoint" => prompt_cache_breakpoint: &'b RawValue,
    }
}

object! {
    /// `image_url` of a part.
    ImageUrl {
        "url" => url: Text<'b>,
        "detail" => detail: &'b RawValue,
    }
}

object! {
    /// `input_audio` of a part.
    InputAudio {
        "data" => data: Text<'b>,
        "format" => format: Text<'b>,
    }
}

object! {
    /// `file` of a part.
    File {
        "file_data" => file_data: Text<'b>,
        "file_id" => file_id: &'b RawValue,
        "filename" => filename: Text<'b>,
    }
}

object! {
    /// Anthropic's mark of a prefix that may be cached, which clients send to OpenAI's API too.
    CacheControl {
        "type" => _kind: Text<'b>,
        "ttl" => ttl: Text<'b>,
    }
}

object! {
    /// An item of `tool_calls` of an assistant's message.
    ToolCall {
        "id" => id: Text<'b>,
        "type" => kind: Text<'b>,
        "function" => function: Function<'b>,
        "custom" => _custom: &'b RawValue,
        "index" => _index: &'b RawValue,
        "extra_content" => extra_content: &'b RawValue,
        "cache_control" => cache_control: &'b RawValue,
    }
}

object! {
    /// `function` of a tool call, of a tool, and of a choice of one.
    Function {
        "name" => name: Text<'b>,
        "arguments" => arguments: Text<'b>,
        "description" => description: &'b RawValue,
        "parameters" => parameters: &'b RawValue,
        "strict" => strict: bool,
        "cache_control" => cache_control: CacheControl<'b>,
    }
}

object! {
    /// An item of `tools`.
    Tool {
        "type" => kind: Text<'b>,
        "function" => function: Function<'b>,
        "cache_control" => cache_control: CacheControl<'b>,
        "custom" => _custom: &'b RawValue,
    }
}

object! {
    /// `tool_choice`, if it is no word.
    ToolChoice {
        "type" => kind: Text<'b>,
        "function" => function: Function<'b>,
        "allowed_tools" => allowed_tools: AllowedTools<'b>,
        "custom" => _custom: &'b RawValue,
    }
}

object! {
    /// `allowed_tools` of a choice.
    AllowedTools {
        "mode" => mode: Text<'b>,
        "tools" => tools: Vec<Tool<'b>>,
    }
}

object! {
    /// `response_format`.
    ResponseFormat {
        "type" => kind: Text<'b>,
        "json_schema" => json_schema: JsonSchema<'b>,
    }
}

object! {
    /// `json_schema` of a response format.
    JsonSchema {
        "name" => name: &'b RawValue,
        "description" => description: &'b RawValue,
        "schema" => schema: &'b RawValue,
        "strict" => _strict: bool,
    }
}
