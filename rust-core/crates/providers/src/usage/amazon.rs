use serde::Deserialize;

use super::lenient::OrDefault;
use super::tokens::{UNREPORTED, Usage};
use crate::service_tier::ServiceTier;

/// The usage of a Converse response. Source: botocore 1.44.5, shape `TokenUsage`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
    #[serde(default)]
    cache_details: OrDefault<Option<Vec<CacheDetail>>>,
}

/// Cache writes by how long they are kept. Source: as above, `CacheDetail`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CacheDetail {
    #[serde(default)]
    ttl: String,
    #[serde(default)]
    input_tokens: u64,
}

/// The event with the usage: `metadata`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageEvent {
    pub(super) usage: Option<TokenUsage>,
    #[serde(default)]
    service_tier: OrDefault<Option<Tier>>,
}

/// Source: as above, `ServiceTier`.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Tier {
    #[serde(rename = "type")]
    pub(super) kind: ServiceTier,
}

impl UsageEvent {
    /// Returns the service tier, if it is reported.
    pub(super) fn tier(&self) -> Option<ServiceTier> {
        self.service_tier.0.map(|tier| tier.kind)
    }
}

impl TokenUsage {
    /// Returns the tokens of cache writes kept for longer than five minutes, if they are reported.
    fn long_cache_write_tokens(&self) -> Option<u64> {
        let details = self.cache_details.0.as_ref()?;
        let longer = details.iter().filter(|detail| detail.ttl != "5m");
        Some(longer.fold(0, |sum, detail| sum.saturating_add(detail.input_tokens)))
    }

    /// Converts the usage. `inputTokens` excludes cache reads and cache writes. If the total shows that a model
    /// includes them, they are not added again.
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
            cache_write_1h_tokens: self.long_cache_write_tokens().unwrap_or(UNREPORTED),
            ..Usage::default()
        }
    }
}
