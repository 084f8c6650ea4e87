use serde::Deserialize;

use proofgate_dialect::Usage;

/// The `usage` of an answer, in tokens. Source: botocore 1.44.5, shape `TokenUsage`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    total_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

impl From<&TokenUsage> for Usage {
    /// Converts the usage. `inputTokens` excludes tokens read from or written to a cache. If the total shows that a model
    /// includes them, they are not added again.
    fn from(said: &TokenUsage) -> Self {
        let cache_read = said.cache_read_input_tokens.unwrap_or(0);
        let cache_write = said.cache_write_input_tokens.unwrap_or(0);
        let cached = cache_read.saturating_add(cache_write);
        let both = said.input_tokens.saturating_add(said.output_tokens);
        let counted_in = said.total_tokens == Some(both) && cached <= said.input_tokens;
        let input = said
            .input_tokens
            .saturating_add(if counted_in { 0 } else { cached });
        Usage {
            input,
            cache_read,
            cache_write,
            output: said.output_tokens,
            reasoning: 0,
        }
    }
}

/// Appends OpenAI's `usage` object.
pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    let mut numbers = itoa::Buffer::new();
    let mut field = |name: &str, number: u64| {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(numbers.format(number).as_bytes());
    };
    field(r#"{"prompt_tokens":"#, usage.input);
    field(r#","completion_tokens":"#, usage.output);
    field(r#","total_tokens":"#, usage.input.saturating_add(usage.output));
    field(r#","prompt_tokens_details":{"cached_tokens":"#, usage.cache_read);
    field(r#","cache_write_tokens":"#, usage.cache_write);
    out.extend_from_slice(b"}}");
}
