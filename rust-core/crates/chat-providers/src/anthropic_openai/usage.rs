//! The usage of an answer.

use super::chat::TokenUsage;
use super::json::write_json;
use proofgate_dialect::Usage;
use proofgate_dialect::json::write_number;

/// Returns the usage for a provider's count; `None` if it counts nothing.
///
/// If the total exceeds prompt and completion, the difference is reasoning that the completion excludes (xAI, Gemini's
/// compatibility API).
pub(crate) fn usage_of(told: &TokenUsage) -> Option<Usage> {
    let (prompt, completion) = (told.prompt_tokens.0, told.completion_tokens.0);
    let output = told.total_tokens.0.saturating_sub(prompt).max(completion);
    if prompt == 0 && output == 0 {
        return None;
    }
    let details = told.prompt_tokens_details.unwrap_or_default();
    let cache_read = details
        .cached_tokens
        .0
        .max(told.prompt_cache_hit_tokens.0)
        .min(prompt);
    let reasoning = told
        .completion_tokens_details
        .unwrap_or_default()
        .reasoning_tokens
        .0;
    Some(Usage {
        input: prompt,
        cache_read,
        cache_write: details
            .cache_write_tokens
            .0
            .min(prompt.saturating_sub(cache_read)),
        output,
        reasoning: reasoning.min(output),
    })
}

/// Writes the usage object of Anthropic's answers and streams, whose input excludes the cache.
pub(crate) fn write_usage(usage: &Usage, out: &mut Vec<u8>) {
    let cached = usage.cache_read.saturating_add(usage.cache_write);
    write_json(out, "{\"input_tokens\":");
    write_number(out, usage.input.saturating_sub(cached));
    write_json(out, ",\"cache_creation_input_tokens\":");
    write_number(out, usage.cache_write);
    write_json(out, ",\"cache_read_input_tokens\":");
    write_number(out, usage.cache_read);
    write_json(out, ",\"output_tokens\":");
    write_number(out, usage.output);
    if usage.reasoning > 0 {
        write_json(out, ",\"output_tokens_details\":{\"thinking_tokens\":");
        write_number(out, usage.reasoning);
        out.push(b'}');
    }
    out.push(b'}');
}
