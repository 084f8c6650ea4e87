use serde::Deserialize;

use super::Usage;

/// The usage of an answer of Converse. Source: botocore 1.44.5, shape `TokenUsage`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

/// The event that brings it: `metadata`.
#[derive(Deserialize)]
pub(super) struct UsageEvent {
    pub(super) usage: Option<TokenUsage>,
}

impl TokenUsage {
    /// `inputTokens` leaves out what was read from a cache or written to one. Where the total shows that a model counts these
    /// in it, they are not added again.
    pub(super) fn usage(&self) -> Usage {
        let [input, output, read, written] = [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_input_tokens,
            self.cache_write_input_tokens,
        ]
        .map(|count| count.unwrap_or(0));
        let cached = read.saturating_add(written);
        let both = input.saturating_add(output);
        let counted_in = self.total_tokens == Some(both) && cached <= input;
        Usage {
            prompt_tokens: input.saturating_add(if counted_in { 0 } else { cached }),
            completion_tokens: output,
            cached_prompt_tokens: read,
            cache_write_tokens: written,
            ..Usage::default()
        }
    }
}
