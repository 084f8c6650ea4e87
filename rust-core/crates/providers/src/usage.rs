//! Reads the usage that a response reports.

mod amazon;
mod anthropic;
mod google;
mod lenient;
mod member;
mod openai;
mod tokens;
mod usage_scanner;

use serde::Deserialize;

use self::amazon::TokenUsage;
use self::anthropic::{MessageUsage, RunningUsage};
use self::google::UsageMetadata;
use self::member::MemberScanner;
use self::openai::{ResponseUsage, ToolUsage, UsageEvent};
use self::tokens::UNREPORTED;
pub use self::tokens::Usage;
use self::usage_scanner::UsageScanner;
use crate::dialect::Dialect;
use crate::service_tier::ServiceTier;
use crate::stream_events::{event_data, is_usage_only};

/// Reads the usage while the response passes through. It buffers only what may be the beginning of a usage, at most 4
/// KiB.
#[derive(Debug)]
pub struct UsageReader {
    dialect: Dialect,
    scanner: UsageScanner,
    usage_member: MemberScanner,
    /// Finds the service tier, if it is outside the usage.
    tier_member: MemberScanner,
    tier: Option<ServiceTier>,
    /// Finds the tool usage of a response outside its usage, if the request offers hosted tools.
    tool_member: Option<MemberScanner>,
    web_searches: Option<u64>,
    /// Whether the request asks for a cache that keeps entries for longer than five minutes.
    is_long_cache_requested: bool,
    running_usage: RunningUsage,
    last: Option<Usage>,
    /// Whether the last usage was in an event with choices: it may be the usage of a single choice.
    last_had_choices: bool,
    /// Whether the stream was interrupted before its end.
    interrupted: bool,
    /// Whether parts of a large event have been read.
    is_in_large_event: bool,
}

impl Default for UsageReader {
    fn default() -> Self {
        UsageReader::new(Dialect::Chat)
    }
}

impl UsageReader {
    /// Creates a reader of responses in one dialect.
    pub fn new(dialect: Dialect) -> Self {
        UsageReader {
            dialect,
            scanner: UsageScanner::default(),
            usage_member: MemberScanner::for_response_usage(dialect),
            tier_member: MemberScanner::for_tier(dialect, 1),
            tier: None,
            tool_member: None,
            web_searches: None,
            is_long_cache_requested: false,
            running_usage: RunningUsage::default(),
            last: None,
            last_had_choices: false,
            interrupted: false,
            is_in_large_event: false,
        }
    }

    /// Clears all state for the next response; keeps the buffers.
    pub fn reset(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        self.scanner.clear();
        self.usage_member = MemberScanner::for_response_usage(dialect);
        self.tier_member = MemberScanner::for_tier(dialect, 1);
        self.tier = None;
        self.tool_member = None;
        self.web_searches = None;
        self.is_long_cache_requested = false;
        self.is_in_large_event = false;
        self.running_usage = RunningUsage::default();
        self.last = None;
        self.last_had_choices = false;
        self.interrupted = false;
    }

    /// Declares that the request asks for a cache that keeps entries for longer than five minutes. Cache writes then
    /// count as such, unless the provider reports that they are kept for a shorter time.
    pub fn expect_long_cache(&mut self) {
        self.is_long_cache_requested = true;
    }

    /// Declares that the request offers hosted tools, so that the reported tool usage is read.
    pub fn expect_tool_calls(&mut self) {
        if self.dialect == Dialect::Responses {
            self.tool_member = Some(MemberScanner::new(TOOL_USAGE_NAME, 1));
        }
    }

    /// Reads the next piece of a response that is not a stream; returns whether a usage ended in it.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        self.push_tier(piece);
        if let Some(member) = &mut self.tool_member {
            let searches = &mut self.web_searches;
            member.push(piece, |value| {
                let usage: Option<ToolUsage> = parse_json(value);
                *searches = usage.and_then(|usage| usage.web_searches()).or(*searches);
            });
        }
        self.push_usage(piece)
    }

    /// Searches the next piece for the service tier.
    fn push_tier(&mut self, piece: &[u8]) {
        if self.tier.is_none() && has_tier_outside_usage(self.dialect) {
            let tier = &mut self.tier;
            self.tier_member
                .push(piece, |value| *tier = read_tier(value).or(*tier));
        }
    }

    fn push_usage(&mut self, piece: &[u8]) -> bool {
        match self.dialect {
            Dialect::Chat | Dialect::Completions | Dialect::Embeddings => self.scanner.push(piece),
            Dialect::Responses
            | Dialect::Images
            | Dialect::Transcriptions
            | Dialect::Translations
            | Dialect::ImageEdits
            | Dialect::ImageVariations => {
                let last = &mut self.last;
                self.usage_member.push(piece, |value| {
                    let usage: Option<ResponseUsage> = parse_json(value);
                    *last = usage.map(|usage| usage.usage()).or(*last);
                });
                self.last.is_some()
            }
            Dialect::Messages | Dialect::Invoke => {
                let running = &mut self.running_usage;
                self.usage_member.push(piece, |value| {
                    if let Some(usage) = parse_json::<MessageUsage>(value) {
                        running.set_complete(usage);
                    }
                });
                self.running_usage.usage().is_some()
            }
            Dialect::Gemini | Dialect::GeminiEmbedding | Dialect::GeminiEmbeddings => {
                let last = &mut self.last;
                self.usage_member.push(piece, |value| {
                    let usage: Option<UsageMetadata> = parse_json(value);
                    *last = usage.map(|usage| usage.usage()).or(*last);
                });
                self.last.is_some()
            }
            Dialect::Converse => {
                let last = &mut self.last;
                self.usage_member.push(piece, |value| {
                    let usage: Option<TokenUsage> = parse_json(value);
                    *last = usage.map(|usage| usage.usage()).or(*last);
                });
                self.last.is_some()
            }
            // For speech, only streams report usage.
            Dialect::Moderations
            | Dialect::Speech
            | Dialect::ResponseTokens
            | Dialect::CountTokens
            | Dialect::GeminiTokens
            | Dialect::InvokeTokens => false,
            // Every response about a batch repeats its usage.
            Dialect::Storage(_) => false,
        }
    }

    /// Reads the next event of a stream; returns whether it carries a usage.
    pub fn push_event(&mut self, event: &[u8]) -> bool {
        self.is_in_large_event = false;
        let name: &[u8] = match self.dialect {
            Dialect::Responses
            | Dialect::Images
            | Dialect::Speech
            | Dialect::Messages
            | Dialect::Converse
            | Dialect::Invoke => b"\"usage\"",
            dialect if dialect.has_form() => b"\"usage\"",
            Dialect::Gemini => b"\"usageMetadata\"",
            _ => {
                self.find_tier(event);
                let brings_usage = self.push_usage(event);
                if brings_usage {
                    self.last_had_choices = !is_usage_only(event);
                }
                return brings_usage;
            }
        };
        if memchr::memmem::find(event, name).is_none() {
            return false;
        }
        let data = event_data(event);
        match self.dialect {
            Dialect::Messages | Dialect::Invoke => {
                parse_json(&data).is_some_and(|event: anthropic::UsageEvent| {
                    self.running_usage.push_event(&event);
                    true
                })
            }
            Dialect::Converse => {
                let event: Option<amazon::UsageEvent> = parse_json(&data);
                self.tier = event.as_ref().and_then(amazon::UsageEvent::tier).or(self.tier);
                let usage = event.and_then(|event| event.usage);
                self.last = usage.map(|usage| usage.usage()).or(self.last);
                self.last.is_some()
            }
            Dialect::Gemini => {
                let event: Option<google::UsageEvent> = parse_json(&data);
                self.last = event.and_then(|event| event.usage()).or(self.last);
                self.last.is_some()
            }
            Dialect::Speech => {
                let event: Option<UsageEvent> = parse_json(&data);
                let usage = event.and_then(|event| event.usage);
                self.last = usage.map(|usage| usage.usage()).or(self.last);
                self.last.is_some()
            }
            dialect => {
                self.usage_member = MemberScanner::for_event_usage(dialect);
                self.tier_member = MemberScanner::for_tier(dialect, 2);
                self.tool_member = self
                    .tool_member
                    .take()
                    .map(|_| MemberScanner::new(TOOL_USAGE_NAME, 2));
                self.push(&data)
            }
        }
    }

    /// Searches the events of a chat completion for the service tier, until one is found.
    fn find_tier(&mut self, event: &[u8]) {
        if self.tier.is_none() && memchr::memmem::find(event, QUOTED_TIER_NAME).is_some() {
            let data = event_data(event);
            let event: Option<openai::TierEvent> = parse_json(&data);
            self.tier = event.and_then(|event| event.service_tier.0);
        }
    }

    /// Reads a part of an event that is too large to buffer.
    pub fn push_fragment(&mut self, part: &[u8]) {
        // In Messages, no event with usage is that large. Gemini's events are buffered whole, and those of
        // upstream-only dialects are translated when they are whole.
        if matches!(
            self.dialect,
            Dialect::Speech | Dialect::Messages | Dialect::Gemini | Dialect::Converse | Dialect::Invoke
        ) {
            return;
        }
        if !std::mem::replace(&mut self.is_in_large_event, true) {
            self.usage_member = MemberScanner::for_event_usage(self.dialect);
            self.tier_member = MemberScanner::for_tier(
                self.dialect,
                if self.dialect == Dialect::Responses { 2 } else { 1 },
            );
            self.tool_member = self
                .tool_member
                .take()
                .map(|_| MemberScanner::new(TOOL_USAGE_NAME, 2));
        }
        if self.push(part) && self.dialect.has_stream_options() {
            self.last_had_choices = true;
        }
    }

    /// Declares that the stream was interrupted: a usage in an event with choices may then not cover the whole
    /// response.
    pub fn mark_interrupted(&mut self) {
        self.interrupted = true;
    }

    /// Returns the usage of the whole response, if it was reported.
    pub fn usage(&self) -> Option<Usage> {
        let is_of_one_choice = self.last_had_choices && self.interrupted;
        let usage = match self.dialect {
            // In such an event, vLLM also reports the usage of one of several prompts
            // (`continuous_usage_stats`).
            Dialect::Completions if is_of_one_choice => None,
            Dialect::Chat if is_of_one_choice => self.scanner.usage().map(|usage| Usage {
                is_partial: true,
                ..usage
            }),
            Dialect::Chat | Dialect::Completions | Dialect::Embeddings => self.scanner.usage(),
            Dialect::Messages | Dialect::Invoke => self.running_usage.usage(),
            Dialect::Responses
            | Dialect::Images
            | Dialect::Speech
            | Dialect::Gemini
            | Dialect::GeminiEmbedding
            | Dialect::GeminiEmbeddings
            | Dialect::Converse
            | Dialect::Transcriptions
            | Dialect::Translations
            | Dialect::ImageEdits
            | Dialect::ImageVariations => self.last,
            Dialect::Moderations
            | Dialect::ResponseTokens
            | Dialect::CountTokens
            | Dialect::GeminiTokens
            | Dialect::InvokeTokens
            | Dialect::Storage(_) => None,
        };
        let usage = usage.map(|usage| Usage {
            tier: usage.tier.or(self.tier),
            web_search_requests: usage.web_search_requests.or(self.web_searches),
            cache_write_1h_tokens: match usage.cache_write_1h_tokens {
                // The retention of cache entries is not reported.
                UNREPORTED if self.is_long_cache_requested => usage.cache_write_tokens,
                UNREPORTED => 0,
                told => told,
            },
            ..usage
        });
        usage.map(Usage::with_clamped_parts)
    }
}

/// The name of the tool usage in a response.
const TOOL_USAGE_NAME: &[u8] = b"tool_usage";

/// The name of the service tier, in quotes.
const QUOTED_TIER_NAME: &[u8] = b"\"service_tier\"";

/// Whether responses in this dialect have the service tier outside their usage.
fn has_tier_outside_usage(dialect: Dialect) -> bool {
    matches!(
        dialect,
        Dialect::Chat | Dialect::Completions | Dialect::Responses | Dialect::Converse
    )
}

/// Parses a service tier: its name, or an object that contains it (Converse).
fn read_tier(value: &[u8]) -> Option<ServiceTier> {
    let object = || parse_json::<amazon::Tier>(value).map(|tier| tier.kind);
    parse_json::<ServiceTier>(value).or_else(object)
}

/// The name of the usage in the APIs of OpenAI and Anthropic.
const USAGE_NAME: &[u8] = b"usage";

impl MemberScanner {
    /// Finds the usage of a whole response in this dialect.
    fn for_response_usage(dialect: Dialect) -> MemberScanner {
        match dialect {
            Dialect::Gemini | Dialect::GeminiEmbedding | Dialect::GeminiEmbeddings => {
                MemberScanner::new(b"usageMetadata", 1)
            }
            _ => MemberScanner::new(USAGE_NAME, 1),
        }
    }

    /// Finds the service tier of a response in this dialect, in an object at this depth.
    fn for_tier(dialect: Dialect, depth: u32) -> MemberScanner {
        let name: &[u8] = if dialect == Dialect::Converse {
            b"serviceTier"
        } else {
            b"service_tier"
        };
        MemberScanner::new(name, depth)
    }

    /// Finds the usage in the data of an event; a Responses event has it in its `response`.
    fn for_event_usage(dialect: Dialect) -> MemberScanner {
        let depth = if dialect == Dialect::Images || dialect.has_form() {
            1
        } else {
            2
        };
        MemberScanner::new(USAGE_NAME, depth)
    }
}

fn parse_json<'v, T: Deserialize<'v>>(value: &'v [u8]) -> Option<T> {
    serde_json::from_slice(value).ok()
}
