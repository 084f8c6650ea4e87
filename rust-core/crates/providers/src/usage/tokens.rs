//! The tokens of a response, in the same terms for all providers.

use crate::service_tier::ServiceTier;

/// A token count that is not reported.
pub(super) const UNREPORTED: u64 = u64::MAX;

/// The tokens that a response reports. The counts of parts are included in the totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, including cache reads and cache writes.
    pub prompt_tokens: u64,
    /// Tokens of the response, including reasoning.
    pub completion_tokens: u64,
    /// Tokens of the prompt that were read from a cache.
    pub cached_prompt_tokens: u64,
    /// Tokens of the prompt that were written to a cache.
    pub cache_write_tokens: u64,
    /// Tokens written to a cache that keeps them for longer than five minutes.
    pub cache_write_1h_tokens: u64,
    /// Tokens of the prompt that are audio.
    pub audio_prompt_tokens: u64,
    /// Reasoning tokens of the response.
    pub reasoning_tokens: u64,
    /// Audio tokens of the response.
    pub audio_completion_tokens: u64,
    /// Web searches that the provider has run; `None` if they are not reported.
    pub web_search_requests: Option<u64>,
    /// Pages that the provider has fetched; `None` if they are not reported.
    pub web_fetch_requests: Option<u64>,
    /// Whether the response has not been counted yet: its tokens are the tokens reported at its
    /// start.
    pub is_partial: bool,
    /// The service tier, if reported.
    pub tier: Option<ServiceTier>,
}

impl Usage {
    /// Applies the reported total: its tokens beyond the known parts count as generated.
    pub(super) fn with_total(self, total_tokens: Option<u64>) -> Usage {
        let beyond_prompt = total_tokens.and_then(|total| total.checked_sub(self.prompt_tokens));
        Usage {
            completion_tokens: self.completion_tokens.max(beyond_prompt.unwrap_or(0)),
            ..self
        }
    }

    /// Limits every part to its total, so that no token counts both as a cache read and as a cache write.
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
