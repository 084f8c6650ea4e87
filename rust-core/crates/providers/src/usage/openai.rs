use serde::Deserialize;

use super::lenient::OrDefault;
use super::tokens::{UNREPORTED, Usage};
use crate::service_tier::ServiceTier;

/// The usage of a chat completion, a completion or an embedding.
#[derive(Deserialize)]
pub(super) struct CompletionUsage {
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: OrDefault<Option<PromptDetails>>,
    #[serde(default)]
    completion_tokens_details: OrDefault<Option<CompletionDetails>>,
    /// DeepSeek's count of tokens read from its cache.
    #[serde(default)]
    prompt_cache_hit_tokens: OrDefault<u64>,
}

/// The parts of the prompt tokens.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
    #[serde(default)]
    audio_tokens: Option<u64>,
}

/// The parts of the completion tokens.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
    #[serde(default)]
    audio_tokens: Option<u64>,
}

impl CompletionUsage {
    /// Converts the usage. Tokens of the total that are in none of its parts count as reasoning, which some providers
    /// exclude from the completion (xAI).
    pub(super) fn usage(&self) -> Usage {
        let prompt = self.prompt_tokens_details.0.unwrap_or_default();
        let answer = self.completion_tokens_details.0.unwrap_or_default();
        let parts = build_usage(self.prompt_tokens, self.completion_tokens, prompt, answer);
        Usage {
            cached_prompt_tokens: parts.cached_prompt_tokens.max(self.prompt_cache_hit_tokens.0),
            ..parts
        }
        .with_total(self.total_tokens)
    }
}

/// An event of a stream of speech that may carry its usage.
#[derive(Deserialize)]
pub(super) struct UsageEvent {
    pub(super) usage: Option<ResponseUsage>,
}

/// An event of a chat completion that may carry its service tier.
#[derive(Deserialize)]
pub(super) struct TierEvent {
    #[serde(default)]
    pub(super) service_tier: OrDefault<Option<ServiceTier>>,
}

/// The usage of a Response, of images or of speech.
#[derive(Deserialize)]
pub(super) struct ResponseUsage {
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    total_tokens: OrDefault<Option<u64>>,
    #[serde(default)]
    input_tokens_details: OrDefault<Option<PromptDetails>>,
    #[serde(default)]
    output_tokens_details: OrDefault<Option<CompletionDetails>>,
}

impl ResponseUsage {
    pub(super) fn usage(&self) -> Usage {
        let prompt = self.input_tokens_details.0.unwrap_or_default();
        let answer = self.output_tokens_details.0.unwrap_or_default();
        build_usage(self.input_tokens, self.output_tokens, prompt, answer).with_total(self.total_tokens.0)
    }
}

fn build_usage(
    prompt_tokens: u64,
    completion_tokens: u64,
    prompt: PromptDetails,
    answer: CompletionDetails,
) -> Usage {
    Usage {
        prompt_tokens,
        completion_tokens,
        cached_prompt_tokens: prompt.cached_tokens.unwrap_or(0),
        cache_write_tokens: prompt.cache_write_tokens.unwrap_or(0),
        cache_write_1h_tokens: UNREPORTED,
        audio_prompt_tokens: prompt.audio_tokens.unwrap_or(0),
        reasoning_tokens: answer.reasoning_tokens.unwrap_or(0),
        audio_completion_tokens: answer.audio_tokens.unwrap_or(0),
        is_partial: false,
        tier: None,
        web_search_requests: None,
        web_fetch_requests: None,
    }
}

/// The tool usage of a Response: the tools that its provider has run (openai 3.52.0, `types/responses/response.py`,
/// `ToolUsage`).
#[derive(Deserialize)]
pub(super) struct ToolUsage {
    #[serde(default)]
    web_search: OrDefault<Option<Searches>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Searches {
    num_requests: u64,
}

impl ToolUsage {
    /// Returns the number of billed web searches.
    pub(super) fn web_searches(&self) -> Option<u64> {
        self.web_search.0.map(|searches| searches.num_requests)
    }
}
