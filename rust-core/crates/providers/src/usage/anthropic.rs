use serde::Deserialize;

use super::lenient::OrDefault;
use super::tokens::{UNREPORTED, Usage};
use crate::service_tier::ServiceTier;

/// The usage of a message, or of an event: a count that it omits is unchanged.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct MessageUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_creation: OrDefault<Option<CacheCreation>>,
    #[serde(default)]
    output_tokens_details: OrDefault<Option<CompletionDetails>>,
    #[serde(default)]
    service_tier: OrDefault<Option<ServiceTier>>,
    #[serde(default)]
    speed: OrDefault<Option<ServiceTier>>,
    #[serde(default)]
    inference_geo: OrDefault<Option<ServiceTier>>,
    #[serde(default)]
    server_tool_use: OrDefault<Option<ServerToolCalls>>,
}

/// Calls of tools that Anthropic runs (anthropic 2.12.0, `types/server_tool_usage.py`).
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct ServerToolCalls {
    web_search_requests: Option<u64>,
    web_fetch_requests: Option<u64>,
}

impl ServerToolCalls {
    /// Updates the counts with counts reported later.
    fn merge(self, later: ServerToolCalls) -> ServerToolCalls {
        ServerToolCalls {
            web_search_requests: later.web_search_requests.or(self.web_search_requests),
            web_fetch_requests: later.web_fetch_requests.or(self.web_fetch_requests),
        }
    }
}

/// Cache writes by how long they are kept (Anthropic, "Prompt caching").
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

/// The parts of the output tokens.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct CompletionDetails {
    thinking_tokens: Option<u64>,
}

/// An event that may carry usage: `message_start` or `message_delta`.
#[derive(Deserialize)]
pub(super) struct UsageEvent {
    message: Option<StartedMessage>,
    usage: Option<MessageUsage>,
}

#[derive(Deserialize)]
struct StartedMessage {
    usage: Option<MessageUsage>,
}

/// Combines the usage of the events of a stream.
#[derive(Debug, Default)]
pub(super) struct RunningUsage {
    known: MessageUsage,
    /// Whether all output tokens have been counted, not only those at the start.
    is_output_counted: bool,
}

impl RunningUsage {
    pub(super) fn push_event(&mut self, event: &UsageEvent) {
        if let Some(usage) = event.message.as_ref().and_then(|message| message.usage) {
            self.merge(usage);
        }
        if let Some(usage) = event.usage {
            self.merge(usage);
            self.is_output_counted = true;
        }
    }

    /// Sets the usage of a whole message.
    pub(super) fn set_complete(&mut self, usage: MessageUsage) {
        self.merge(usage);
        self.is_output_counted = true;
    }

    /// Merges a later usage. The counts are cumulative: a later one replaces an earlier one (Anthropic, "Streaming
    /// messages").
    fn merge(&mut self, usage: MessageUsage) {
        let MessageUsage {
            input_tokens,
            cache_creation_input_tokens,
            cache_read_input_tokens,
            output_tokens,
            cache_creation: OrDefault(creation),
            output_tokens_details: OrDefault(details),
            service_tier: OrDefault(tier),
            speed: OrDefault(speed),
            inference_geo: OrDefault(geo),
            server_tool_use: OrDefault(tools),
        } = &mut self.known;
        *creation = usage.cache_creation.0.or(*creation);
        *tier = usage.service_tier.0.or(*tier);
        *speed = usage.speed.0.or(*speed);
        *geo = usage.inference_geo.0.or(*geo);
        if let Some(later) = usage.server_tool_use.0 {
            *tools = Some(tools.unwrap_or_default().merge(later));
        }
        *input_tokens = usage.input_tokens.or(*input_tokens);
        *cache_creation_input_tokens = usage.cache_creation_input_tokens.or(*cache_creation_input_tokens);
        *cache_read_input_tokens = usage.cache_read_input_tokens.or(*cache_read_input_tokens);
        *output_tokens = usage.output_tokens.or(*output_tokens);
        *details = usage.output_tokens_details.0.or(*details);
    }

    /// Returns the usage known so far. It is partial until the output is counted: the output tokens in
    /// `message_start` cover only the start of the message.
    pub(super) fn usage(&self) -> Option<Usage> {
        let known = &self.known;
        let parts = [
            known.input_tokens,
            known.cache_creation_input_tokens,
            known.cache_read_input_tokens,
        ];
        let prompt = parts
            .iter()
            .fold(0u64, |sum, part| sum.saturating_add(part.unwrap_or(0)));
        let details = known.output_tokens_details.0.unwrap_or_default();
        let longer = (known.cache_creation.0).map(|creation| creation.ephemeral_1h_input_tokens.unwrap_or(0));
        let tiers = [known.service_tier.0, known.speed.0, known.inference_geo.0];
        let is_partial = !self.is_output_counted || known.output_tokens.is_none();
        let is_known = parts.iter().chain([&known.output_tokens]).any(Option::is_some);
        let calls = known.server_tool_use.0.unwrap_or_default();
        is_known.then_some(Usage {
            web_search_requests: calls.web_search_requests,
            web_fetch_requests: calls.web_fetch_requests,
            is_partial,
            prompt_tokens: prompt,
            completion_tokens: known.output_tokens.unwrap_or(0),
            cached_prompt_tokens: known.cache_read_input_tokens.unwrap_or(0),
            cache_write_tokens: known.cache_creation_input_tokens.unwrap_or(0),
            cache_write_1h_tokens: longer.unwrap_or(UNREPORTED),
            tier: tiers.into_iter().flatten().reduce(ServiceTier::combine),
            reasoning_tokens: details.thinking_tokens.unwrap_or(0),
            ..Usage::default()
        })
    }
}
