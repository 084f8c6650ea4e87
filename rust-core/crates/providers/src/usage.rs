//! What an answer says it cost.

mod amazon;
mod anthropic;
mod anywhere;
mod google;
mod lenient;
mod member;
mod openai;
mod tokens;

use serde::Deserialize;

use self::amazon::TokenUsage;
use self::anthropic::{MessageUsage, Running};
use self::anywhere::Anywhere;
use self::google::UsageMetadata;
use self::member::Member;
use self::openai::{ResponseUsage, ToolUsage, UsageEvent};
use self::tokens::UNTOLD;
pub use self::tokens::Usage;
use crate::dialect::Dialect;
use crate::service_tier::ServiceTier;
use crate::stream_events::{data_of, is_usage_alone};

/// Reads the usage of an answer as the answer passes. Of the answer no more is kept than what may be the beginning of a
/// usage, at most 4 KiB.
#[derive(Debug)]
pub struct UsageReader {
    dialect: Dialect,
    anywhere: Anywhere,
    member: Member,
    /// Finds the tier of service, where it stands beside the usage.
    tier_member: Member,
    tier: Option<ServiceTier>,
    /// Finds what a response tells of tools, beside the usage, where the request offers tools that the provider runs.
    tool_member: Option<Member>,
    web_searches: Option<u64>,
    /// Whether the request asks for a cache that keeps what is written for longer than five minutes.
    is_kept_longer: bool,
    running: Running,
    last: Option<Usage>,
    /// Whether the last usage stood beside choices, in an event: it may be that of one of them.
    beside_choices: bool,
    /// Whether the stream was interrupted before its end.
    interrupted: bool,
    /// Whether parts of a large event have been taken.
    in_event: bool,
}

impl Default for UsageReader {
    fn default() -> Self {
        UsageReader::new(Dialect::Chat)
    }
}

impl UsageReader {
    /// A reader of answers in one dialect.
    pub fn new(dialect: Dialect) -> Self {
        UsageReader {
            dialect,
            anywhere: Anywhere::default(),
            member: Member::of_answer(dialect),
            tier_member: Member::of_tier(dialect, 1),
            tier: None,
            tool_member: None,
            web_searches: None,
            is_kept_longer: false,
            running: Running::default(),
            last: None,
            beside_choices: false,
            interrupted: false,
            in_event: false,
        }
    }

    /// Forgets everything, for the next answer; keeps the buffers.
    pub fn reset(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        self.anywhere.clear();
        self.member = Member::of_answer(dialect);
        self.tier_member = Member::of_tier(dialect, 1);
        self.tier = None;
        self.tool_member = None;
        self.web_searches = None;
        self.is_kept_longer = false;
        self.in_event = false;
        self.running = Running::default();
        self.last = None;
        self.beside_choices = false;
        self.interrupted = false;
    }

    /// The request asks for a cache that keeps what is written for longer than five minutes: what a provider does not tell to
    /// be kept shorter counts as that.
    pub fn expect_longer_cache(&mut self) {
        self.is_kept_longer = true;
    }

    /// The request offers tools that the provider runs: what a response tells of their calls is read.
    pub fn expect_tool_calls(&mut self) {
        if self.dialect == Dialect::Responses {
            self.tool_member = Some(Member::new(TOOLS, 1));
        }
    }

    /// Takes the next piece of an answer that is no stream; says whether a usage ended in it.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        self.push_tier(piece);
        if let Some(member) = &mut self.tool_member {
            let searches = &mut self.web_searches;
            member.push(piece, |value| {
                let usage: Option<ToolUsage> = read(value);
                *searches = usage.and_then(|usage| usage.web_searches()).or(*searches);
            });
        }
        self.push_usage(piece)
    }

    /// Looks for the tier of service in the next piece.
    fn push_tier(&mut self, piece: &[u8]) {
        if self.tier.is_none() && has_tier_beside(self.dialect) {
            let tier = &mut self.tier;
            self.tier_member
                .push(piece, |value| *tier = read_tier(value).or(*tier));
        }
    }

    fn push_usage(&mut self, piece: &[u8]) -> bool {
        match self.dialect {
            Dialect::Chat | Dialect::Completions | Dialect::Embeddings => self.anywhere.push(piece),
            Dialect::Responses
            | Dialect::Images
            | Dialect::Transcriptions
            | Dialect::Translations
            | Dialect::ImageEdits
            | Dialect::ImageVariations => {
                let last = &mut self.last;
                self.member.push(piece, |value| {
                    let usage: Option<ResponseUsage> = read(value);
                    *last = usage.map(|usage| usage.usage()).or(*last);
                });
                self.last.is_some()
            }
            Dialect::Messages | Dialect::Invoke => {
                let running = &mut self.running;
                self.member.push(piece, |value| {
                    if let Some(usage) = read::<MessageUsage>(value) {
                        running.whole(usage);
                    }
                });
                self.running.usage().is_some()
            }
            Dialect::Gemini | Dialect::GeminiEmbedding | Dialect::GeminiEmbeddings => {
                let last = &mut self.last;
                self.member.push(piece, |value| {
                    let usage: Option<UsageMetadata> = read(value);
                    *last = usage.map(|usage| usage.usage()).or(*last);
                });
                self.last.is_some()
            }
            Dialect::Converse => {
                let last = &mut self.last;
                self.member.push(piece, |value| {
                    let usage: Option<TokenUsage> = read(value);
                    *last = usage.map(|usage| usage.usage()).or(*last);
                });
                self.last.is_some()
            }
            // Of speech only a stream tells it.
            Dialect::Moderations
            | Dialect::Speech
            | Dialect::ResponseTokens
            | Dialect::CountTokens
            | Dialect::GeminiTokens
            | Dialect::InvokeTokens => false,
            // That of a batch is told by every answer about it.
            Dialect::Stored(_) => false,
        }
    }

    /// Takes the next event of a stream; says whether it brings a usage.
    pub fn push_event(&mut self, event: &[u8]) -> bool {
        self.in_event = false;
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
                    self.beside_choices = !is_usage_alone(event);
                }
                return brings_usage;
            }
        };
        if memchr::memmem::find(event, name).is_none() {
            return false;
        }
        let data = data_of(event);
        match self.dialect {
            Dialect::Messages | Dialect::Invoke => read(&data).is_some_and(|event: anthropic::UsageEvent| {
                self.running.event(&event);
                true
            }),
            Dialect::Converse => {
                let event: Option<amazon::UsageEvent> = read(&data);
                self.tier = event.as_ref().and_then(amazon::UsageEvent::tier).or(self.tier);
                let usage = event.and_then(|event| event.usage);
                self.last = usage.map(|usage| usage.usage()).or(self.last);
                self.last.is_some()
            }
            Dialect::Gemini => {
                let event: Option<google::UsageEvent> = read(&data);
                self.last = event.and_then(|event| event.usage()).or(self.last);
                self.last.is_some()
            }
            Dialect::Speech => {
                let event: Option<UsageEvent> = read(&data);
                let usage = event.and_then(|event| event.usage);
                self.last = usage.map(|usage| usage.usage()).or(self.last);
                self.last.is_some()
            }
            dialect => {
                self.member = Member::of_event(dialect);
                self.tier_member = Member::of_tier(dialect, 2);
                self.tool_member = self.tool_member.take().map(|_| Member::new(TOOLS, 2));
                self.push(&data)
            }
        }
    }

    /// Looks for the tier of service in an event of a chat completion, until one has brought it.
    fn find_tier(&mut self, event: &[u8]) {
        if self.tier.is_none() && memchr::memmem::find(event, TIER).is_some() {
            let data = data_of(event);
            let event: Option<openai::TierEvent> = read(&data);
            self.tier = event.and_then(|event| event.service_tier.0);
        }
    }

    /// Takes a part of an event that is too large to be kept.
    pub fn push_part(&mut self, part: &[u8]) {
        // Of a message, no event that brings a usage is that large; one of Gemini's is kept until it is whole, and what no client speaks is
        // translated when it is.
        if matches!(
            self.dialect,
            Dialect::Speech | Dialect::Messages | Dialect::Gemini | Dialect::Converse | Dialect::Invoke
        ) {
            return;
        }
        if !std::mem::replace(&mut self.in_event, true) {
            self.member = Member::of_event(self.dialect);
            self.tier_member = Member::of_tier(
                self.dialect,
                if self.dialect == Dialect::Responses { 2 } else { 1 },
            );
            self.tool_member = self.tool_member.take().map(|_| Member::new(TOOLS, 2));
        }
        if self.push(part) && self.dialect.has_stream_options() {
            self.beside_choices = true;
        }
    }

    /// The stream has come to no good end: a usage that stood beside choices is not known to count all of the answer.
    pub fn interrupted(&mut self) {
        self.interrupted = true;
    }

    /// The usage of the whole answer, if it gave one.
    pub fn usage(&self) -> Option<Usage> {
        let is_of_one_choice = self.beside_choices && self.interrupted;
        let usage = match self.dialect {
            // vLLM counts one prompt of many there, too (`continuous_usage_stats`).
            Dialect::Completions if is_of_one_choice => None,
            Dialect::Chat if is_of_one_choice => self.anywhere.usage().map(|usage| Usage {
                is_partial: true,
                ..usage
            }),
            Dialect::Chat | Dialect::Completions | Dialect::Embeddings => self.anywhere.usage(),
            Dialect::Messages | Dialect::Invoke => self.running.usage(),
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
            | Dialect::Stored(_) => None,
        };
        let usage = usage.map(|usage| Usage {
            tier: usage.tier.or(self.tier),
            web_search_requests: usage.web_search_requests.or(self.web_searches),
            cache_write_1h_tokens: match usage.cache_write_1h_tokens {
                // Nothing is told of how long it keeps them.
                UNTOLD if self.is_kept_longer => usage.cache_write_tokens,
                UNTOLD => 0,
                told => told,
            },
            ..usage
        });
        usage.map(Usage::with_parts_within)
    }
}

/// The name of what a response tells of the tools that its provider has run.
const TOOLS: &[u8] = b"tool_usage";

/// The name of a tier of service, in quotes.
const TIER: &[u8] = b"\"service_tier\"";

/// Whether answers in this dialect have the tier of service beside their usage, not in it.
fn has_tier_beside(dialect: Dialect) -> bool {
    matches!(
        dialect,
        Dialect::Chat | Dialect::Completions | Dialect::Responses | Dialect::Converse
    )
}

/// A tier of service: its name, or an object that has it (Converse).
fn read_tier(value: &[u8]) -> Option<ServiceTier> {
    let object = || read::<amazon::Tier>(value).map(|tier| tier.kind);
    read::<ServiceTier>(value).or_else(object)
}

/// The name of a usage in the APIs of OpenAI and Anthropic.
const NAME: &[u8] = b"usage";

impl Member {
    /// Where a whole answer in this dialect has its usage.
    fn of_answer(dialect: Dialect) -> Member {
        match dialect {
            Dialect::Gemini | Dialect::GeminiEmbedding | Dialect::GeminiEmbeddings => {
                Member::new(b"usageMetadata", 1)
            }
            _ => Member::new(NAME, 1),
        }
    }

    /// Where an answer in this dialect has its tier of service, in an object that lies so deep.
    fn of_tier(dialect: Dialect, depth: u32) -> Member {
        let name: &[u8] = if dialect == Dialect::Converse {
            b"serviceTier"
        } else {
            b"service_tier"
        };
        Member::new(name, depth)
    }

    /// Where the data of an event has it: that of a response in its `response`.
    fn of_event(dialect: Dialect) -> Member {
        let depth = if dialect == Dialect::Images || dialect.has_form() {
            1
        } else {
            2
        };
        Member::new(NAME, depth)
    }
}

fn read<'v, T: Deserialize<'v>>(value: &'v [u8]) -> Option<T> {
    serde_json::from_slice(value).ok()
}
