//! Field names of chat completions in the client's dialect.

use std::borrow::Cow;

use proofgate_translate::UntranslatableRequest;

use super::pair::DialectPair;

/// Field names of chat completions, and their equivalents in Anthropic Messages.
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

/// Field names of chat completions, and their equivalents in OpenAI's Responses.
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

/// Returns the client's name for a chat completions field. It is the equivalent of the first name
/// in the field's path; the client's request does not have the rest of the path.
fn client_field_name(near: DialectPair, field: &str) -> Option<&'static str> {
    let first = field.split(['.', '[']).next().unwrap_or_default();
    let mut known = field_names(near).iter();
    known.find(|(chat, _)| *chat == first).map(|(_, own)| *own)
}

/// Converts a refusal by the provider-side pair to the client's field names.
pub(super) fn client_refusal(near: DialectPair, refused: UntranslatableRequest) -> UntranslatableRequest {
    let param = client_field_name(near, &refused.param).map_or(refused.param, Cow::Borrowed);
    UntranslatableRequest { param, ..refused }
}

/// Adds the fields that the provider-side pair dropped, under the client's names.
pub(super) fn add_dropped_fields(near: DialectPair, lost: &[&'static str], dropped: &mut Vec<&'static str>) {
    for field in lost {
        let own = client_field_name(near, field).unwrap_or(field);
        if !dropped.contains(&own) {
            dropped.push(own);
        }
    }
}
