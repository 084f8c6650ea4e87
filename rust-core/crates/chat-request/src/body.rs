//! The fields of a chat completion request. Source: openai 3.54.0, `types/chat/completion_create_params.py`, and the
//! extra fields of OpenRouter's, Google's and Anthropic's clients.

use serde_json::value::RawValue;

use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::{Flag, Number, Object, UnescapedString, object};

type Raw<'b> = &'b RawValue;

object! {
    /// The body of `POST /v1/chat/completions`.
    Body {
        model: UnescapedString<'b>,
        messages: Vec<Message<'b>>,
        max_tokens: Raw<'b>,
        max_completion_tokens: Raw<'b>,
        stream: bool,
        stream_options: StreamOptions<'b>,
        stop: Raw<'b>,
        temperature: Number<'b>,
        top_p: Number<'b>,
        top_k: Number<'b>,
        tools: Vec<Tool<'b>>,
        tool_choice: Raw<'b>,
        parallel_tool_calls: Flag<'b>,
        response_format: ResponseFormat<'b>,
        reasoning_effort: JsonText<'b>,
        thinking: Object<'b>,
        n: Number<'b>,
        logprobs: Flag<'b>,
        top_logprobs: Number<'b>,
        seed: Number<'b>,
        frequency_penalty: Number<'b>,
        presence_penalty: Number<'b>,
        logit_bias: Raw<'b>,
        verbosity: Raw<'b>,
        modalities: Raw<'b>,
        audio: Raw<'b>,
        functions: Raw<'b>,
        function_call: Raw<'b>,
        web_search_options: Raw<'b>,
        moderation: Raw<'b>,
        prediction: Raw<'b>,
        service_tier: Raw<'b>,
        user: Raw<'b>,
        safety_identifier: Raw<'b>,
        store: Raw<'b>,
        metadata: Raw<'b>,
        prompt_cache_key: Raw<'b>,
        prompt_cache_options: Raw<'b>,
        prompt_cache_retention: Raw<'b>,
        cache_control: Raw<'b>,
        extra_body: Raw<'b>,
    }
}

object! {
    StreamOptions { include_usage: bool, include_obfuscation: Raw<'b> }
}

object! {
    ResponseFormat { kind("type"): UnescapedString<'b>, json_schema: JsonSchema<'b> }
}

object! {
    JsonSchema { name: JsonText<'b>, description: JsonText<'b>, schema: Object<'b>, strict: bool }
}

object! {
    /// A message of any role.
    Message {
        role: UnescapedString<'b>,
        content: Raw<'b>,
        name: Raw<'b>,
        tool_calls: Vec<Call<'b>>,
        tool_call_id: UnescapedString<'b>,
        refusal: JsonText<'b>,
        audio: Raw<'b>,
        function_call: Raw<'b>,
        annotations: Raw<'b>,
        reasoning: Raw<'b>,
        reasoning_content: Raw<'b>,
        reasoning_details: Raw<'b>,
        cache_control: Raw<'b>,
        extra_content: Raw<'b>,
        images: Raw<'b>,
    }
}

object! {
    /// A tool call by the model.
    Call {
        id: UnescapedString<'b>,
        kind("type"): UnescapedString<'b>,
        function: CalledFunction<'b>,
        custom: CalledCustom<'b>,
        cache_control: Raw<'b>,
        extra_content: Raw<'b>,
        /// Its index in a stream; some clients send it back.
        index: Raw<'b>,
    }
}

object! {
    CalledFunction { name: UnescapedString<'b>, arguments: JsonText<'b> }
}

object! {
    CalledCustom { name: UnescapedString<'b>, input: JsonText<'b> }
}

object! {
    /// A part of a message's content.
    Part {
        kind("type"): UnescapedString<'b>,
        text: JsonText<'b>,
        refusal: JsonText<'b>,
        image_url: Image<'b>,
        file: File<'b>,
        input_audio: Audio<'b>,
        cache_control: Raw<'b>,
        prompt_cache_breakpoint: Raw<'b>,
        /// Its index in a response; some clients send it back.
        index: Raw<'b>,
    }
}

object! {
    Image { url: JsonText<'b>, detail: JsonText<'b> }
}

object! {
    File { file_data: JsonText<'b>, file_id: JsonText<'b>, filename: JsonText<'b> }
}

object! {
    Audio { data: JsonText<'b>, format: UnescapedString<'b> }
}

object! {
    /// A tool that the model may call.
    Tool {
        kind("type"): UnescapedString<'b>,
        function: Function<'b>,
        custom: Custom<'b>,
        cache_control: Raw<'b>,
    }
}

object! {
    Function {
        name: UnescapedString<'b>,
        description: JsonText<'b>,
        parameters: Object<'b>,
        strict: Flag<'b>,
        cache_control: Raw<'b>,
    }
}

object! {
    Custom { name: UnescapedString<'b>, description: JsonText<'b>, format: CustomFormat<'b> }
}

object! {
    CustomFormat { kind("type"): UnescapedString<'b>, grammar: Object<'b> }
}

object! {
    ToolChoice {
        kind("type"): UnescapedString<'b>,
        function: Named<'b>,
        custom: Named<'b>,
        allowed_tools: AllowedTools<'b>,
    }
}

object! {
    AllowedTools { mode: UnescapedString<'b>, tools: Vec<AllowedTool<'b>> }
}

object! {
    AllowedTool { kind("type"): UnescapedString<'b>, function: Named<'b>, custom: Named<'b> }
}

object! {
    Named { name: UnescapedString<'b> }
}
