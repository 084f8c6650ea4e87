use serde::Deserialize;

use proofgate_dialect::Usage;
use proofgate_dialect::json::write_number;

/// Anthropic's known token counts: those of a whole answer, or those that a stream has reported so
/// far.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Tokens {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputTokensDetails>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct OutputTokensDetails {
    thinking_tokens: Option<u64>,
}

impl Tokens {
    /// Applies a later event. Its numbers are cumulative: each replaces the previous one, and absent ones are kept.
    pub(super) fn update(&mut self, later: Tokens) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = later
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// Returns the usage. Anthropic's `input_tokens` exclude the tokens of the cache.
    pub(super) fn usage(&self) -> Usage {
        let cache_read = self.cache_read_input_tokens.unwrap_or(0);
        let cache_write = self.cache_creation_input_tokens.unwrap_or(0);
        let uncached = self.input_tokens.unwrap_or(0);
        let details = self.output_tokens_details.unwrap_or_default();
        Usage {
            input: uncached.saturating_add(cache_read).saturating_add(cache_write),
            cache_read,
            cache_write,
            output: self.output_tokens.unwrap_or(0),
            reasoning: details.thinking_tokens.unwrap_or(0),
        }
    }
}

/// Writes OpenAI's `usage` object.
pub(crate) fn write_usage(usage: &Usage, out: &mut Vec<u8>) {
    let total = usage.input.saturating_add(usage.output);
    for (before, number) in [
        ("{\"prompt_tokens\":", usage.input),
        (",\"completion_tokens\":", usage.output),
        (",\"total_tokens\":", total),
        (",\"prompt_tokens_details\":{\"cached_tokens\":", usage.cache_read),
        (",\"cache_write_tokens\":", usage.cache_write),
        (
            "},\"completion_tokens_details\":{\"reasoning_tokens\":",
            usage.reasoning,
        ),
    ] {
        out.extend_from_slice(before.as_bytes());
        write_number(out, number);
    }
    out.extend_from_slice(b"}}");
}
