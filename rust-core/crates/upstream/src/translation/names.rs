//! What fields of chat completions are called by a client that does not speak them.

use std::borrow::Cow;

use proofgate_translate::UntranslatableRequest;

use super::pair::DialectPair;

/// Names in chat completions, and those in Anthropic's messages for the same.
const MESSAGES: &[(&str, &str)] = &[
    ("max_completion_tokens", "max_tokens"),
    ("max_tokens", "max_tokens"),
    ("messages", "messages"),
    ("model", "model"),
    ("parallel_tool_calls", "tool_choice.disable_parallel_tool_use"),
    ("reasoning_effort", "output_config.effort"),
    ("response_format", "output_config.format"),
    ("stop", "stop_sequences"),
    ("stream", "stream"),
    ("temperature", "temperature"),
    ("tool_choice", "tool_choice"),
    ("tools", "tools"),
    ("top_p", "top_p"),
    ("user", "metadata.user_id"),
];

/// Names in chat completions, and those in OpenAI's Responses for the same.
const RESPONSES: &[(&str, &str)] = &[
    ("max_completion_tokens", "max_output_tokens"),
    ("max_tokens", "max_output_tokens"),
    ("messages", "input"),
    ("model", "model"),
    ("parallel_tool_calls", "parallel_tool_calls"),
    ("reasoning_effort", "reasoning.effort"),
    ("response_format", "text.format"),
    ("temperature", "temperature"),
    ("tool_choice", "tool_choice"),
    ("tools", "tools"),
    ("top_logprobs", "top_logprobs"),
    ("top_p", "top_p"),
    ("verbosity", "text.verbosity"),
];

fn field_names(near: DialectPair) -> &'static [(&'static str, &'static str)] {
    match near {
        DialectPair::AnthropicOpenAi => MESSAGES,
        DialectPair::ResponsesOpenAi => RESPONSES,
        _ => &[],
    }
}

/// The client's name for a field of chat completions, by the name that its path begins with. Places within it are not the
/// client's, so they are not told.
fn client_field_name(near: DialectPair, field: &str) -> Option<&'static str> {
    let first = field.split(['.', '[']).next().unwrap_or_default();
    let mut known = field_names(near).iter();
    known.find(|(chat, _)| *chat == first).map(|(_, own)| *own)
}

/// A refusal on the far side, as the client can read it.
pub(super) fn client_refusal(near: DialectPair, refused: UntranslatableRequest) -> UntranslatableRequest {
    let param = client_field_name(near, &refused.param).map_or(refused.param, Cow::Borrowed);
    UntranslatableRequest { param, ..refused }
}

/// Adds what the far side lost.
pub(super) fn add_dropped(near: DialectPair, lost: &[&'static str], dropped: &mut Vec<&'static str>) {
    for field in lost {
        let own = client_field_name(near, field).unwrap_or(field);
        if !dropped.contains(&own) {
            dropped.push(own);
        }
    }
}
