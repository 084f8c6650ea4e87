use serde::Deserialize;
use serde::de::IgnoredAny;

use super::lenient::{AudioTokens, OrDefault};
use super::tokens::Usage;
use crate::service_tier::ServiceTier;

/// The usage of a response, or of a chunk of a stream: the counts of a later chunk include earlier ones.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    total_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: OrDefault<u64>,
    #[serde(default)]
    prompt_tokens_details: OrDefault<AudioTokens>,
    #[serde(default)]
    candidates_tokens_details: OrDefault<AudioTokens>,
    /// The service tier as named by Vertex AI.
    #[serde(default)]
    traffic_type: OrDefault<Option<ServiceTier>>,
    #[serde(default)]
    service_tier: OrDefault<Option<ServiceTier>>,
}

/// A chunk of a stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageEvent {
    usage_metadata: Option<UsageMetadata>,
    #[serde(default)]
    candidates: OrDefault<Vec<Candidate>>,
    prompt_feedback: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    finish_reason: Option<IgnoredAny>,
}

impl UsageEvent {
    /// Returns the usage so far. It is partial while the response continues and none of its tokens have been counted.
    pub(super) fn usage(&self) -> Option<Usage> {
        let usage = self.usage_metadata.as_ref()?.usage();
        let has_finished = self
            .candidates
            .0
            .iter()
            .any(|candidate| candidate.finish_reason.is_some());
        Some(Usage {
            is_partial: usage.completion_tokens == 0 && !has_finished && self.prompt_feedback.is_none(),
            ..usage
        })
    }
}

impl UsageMetadata {
    /// Converts the usage. Tokens of the total that are in none of its parts count as reasoning.
    pub(super) fn usage(&self) -> Usage {
        let sum = |parts: [Option<u64>; 2]| {
            parts
                .iter()
                .fold(0u64, |sum, part| sum.saturating_add(part.unwrap_or(0)))
        };
        let prompt = sum([self.prompt_token_count, self.tool_use_prompt_token_count]);
        let answer = sum([self.candidates_token_count, self.thoughts_token_count]);
        Usage {
            prompt_tokens: prompt,
            completion_tokens: answer,
            cached_prompt_tokens: self.cached_content_token_count.0,
            cache_write_tokens: 0,
            cache_write_1h_tokens: 0,
            tier: self.service_tier.0.or(self.traffic_type.0),
            audio_prompt_tokens: self.prompt_tokens_details.0.0,
            reasoning_tokens: self.thoughts_token_count.unwrap_or(0),
            audio_completion_tokens: self.candidates_tokens_details.0.0,
            is_partial: false,
            web_search_requests: None,
            web_fetch_requests: None,
        }
        .with_total(self.total_token_count)
    }
}
