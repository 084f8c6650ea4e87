//! The tokens of an answer, counted alike for all providers.

use crate::service_tier::ServiceTier;

/// Stands for a number of tokens that is not reported.
pub(super) const UNREPORTED: u64 = u64::MAX;

/// Tokens that an answer says it cost. What is counted apart is part of the totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, those read from a cache and written to one included.
    pub prompt_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub completion_tokens: u64,
    /// Tokens of the prompt that were read from a cache.
    pub cached_prompt_tokens: u64,
    /// Tokens of the prompt that were written to a cache.
    pub cache_write_tokens: u64,
    /// Tokens written to a cache that keeps them for longer than five minutes.
    pub cache_write_1h_tokens: u64,
    /// Tokens of the prompt that are audio.
    pub audio_prompt_tokens: u64,
    /// Tokens of the answer that are reasoning.
    pub reasoning_tokens: u64,
    /// Tokens of the answer that are audio.
    pub audio_completion_tokens: u64,
    /// Searches of the web that the provider has run; `None` where they are not reported.
    pub web_search_requests: Option<u64>,
    /// Pages that the provider has fetched; `None` where they are not reported.
    pub web_fetch_requests: Option<u64>,
    /// Whether the answer has not been counted yet: its tokens are those reported for its beginning.
    pub is_partial: bool,
    /// The tier of service, where the answer says it.
    pub tier: Option<ServiceTier>,
}

impl Usage {
    /// The same with the total that the provider reports, too: what that has beyond its parts has been generated.
    pub(super) fn with_total(self, total_tokens: Option<u64>) -> Usage {
        let beyond_prompt = total_tokens.and_then(|total| total.checked_sub(self.prompt_tokens));
        Usage {
            completion_tokens: self.completion_tokens.max(beyond_prompt.unwrap_or(0)),
            ..self
        }
    }

    /// The same with no part larger than its total, and no token both read from a cache and written to one.
    pub(super) fn with_clamped_parts(self) -> Usage {
        let cached = self.cached_prompt_tokens.min(self.prompt_tokens);
        let written = self.cache_write_tokens.min(self.prompt_tokens - cached);
        Usage {
            cached_prompt_tokens: cached,
            cache_write_tokens: written,
            cache_write_1h_tokens: self.cache_write_1h_tokens.min(written),
            audio_prompt_tokens: self.audio_prompt_tokens.min(self.prompt_tokens),
            reasoning_tokens: self.reasoning_tokens.min(self.completion_tokens),
            audio_completion_tokens: self.audio_completion_tokens.min(self.completion_tokens),
            ..self
        }
    }
}
