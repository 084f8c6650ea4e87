//! The fields that a client may choose, and the possible outcomes.

use proofgate_providers::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::vendor::Vendor;

/// The fields that a client chooses.
#[derive(Clone, Debug)]
pub(super) struct RequestParams {
    pub(super) vendor: Vendor,
    pub(super) bytes: usize,
    pub(super) messages: usize,
    pub(super) max_tokens: Option<u64>,
    pub(super) choices: u64,
    pub(super) tier: Option<&'static str>,
    /// Another field that selects a tier, in Anthropic's API.
    pub(super) geo: Option<&'static str>,
    pub(super) ttl: Option<&'static str>,
    pub(super) images: usize,
    pub(super) has_document: bool,
    pub(super) has_tools: bool,
    pub(super) is_stream: bool,
    pub(super) hosted_tools: HostedTools,
}

/// The tools that the request asks the provider to run.
#[derive(Clone, Debug, Default)]
pub(super) struct HostedTools {
    /// A web search, and the maximum number of its calls.
    pub(super) search: Option<Option<u64>>,
    /// A tool that costs nothing except tokens, and the maximum number of its calls.
    pub(super) fetch: Option<Option<u64>>,
    pub(super) files: bool,
    /// The maximum number of calls of all tools together.
    pub(super) max_total_calls: Option<u64>,
    /// Maximum tokens that the plan assumes for the result of a call.
    pub(super) tokens_per_call: Option<u64>,
}

/// The events at the provider, within the limits of the request. Amounts are shares in thousandths.
#[derive(Clone, Debug)]
pub(super) struct ProviderScenario {
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) cache_written: u64,
    pub(super) cache_written_1h: u64,
    pub(super) completion: u64,
    pub(super) is_downgraded: bool,
    pub(super) reports_tier: bool,
    pub(super) reports_cache_durations: bool,
    /// Share of the possible calls of hosted tools. `result_size` is the share of the possible
    /// result size of each call.
    pub(super) calls: u64,
    pub(super) result_size: u64,
    pub(super) reports_calls: bool,
    pub(super) outcome: AttemptOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AttemptOutcome {
    /// The usage is reported.
    UsageReported,
    /// The client disconnects after the prompt is counted, and the provider continues to generate.
    ClientDisconnected,
    /// No usage is reported, and it is unknown whether the attempt ran.
    UsageUnknown,
    /// The provider rejects the request.
    Rejected,
    /// The attempt may have been processed. Another attempt follows and reports its usage.
    Retried,
}

pub(super) fn request_params() -> impl Strategy<Value = RequestParams> {
    let vendor = prop::sample::select(Vendor::ALL.to_vec());
    let bytes = prop_oneof![4 => 0..2_000usize, 2 => 0..60_000usize, 1 => 90_000..600_000usize];
    let max_tokens = prop_oneof![
        1 => Just(None),
        6 => (0..3_000u64).prop_map(Some),
        1 => (0..200_000u64).prop_map(Some),
        1 => Just(Some(1 << 40)),
    ];
    let tier = prop::sample::select(vec![
        None,
        None,
        None,
        Some("auto"),
        Some("default"),
        Some("flex"),
        Some("priority"),
        Some("fast"),
        Some("ultrafast"),
        Some("scale"),
    ]);
    let geo = prop::sample::select(vec![None, None, None, Some("us"), Some("global")]);
    let ttl = prop::sample::select(vec![None, None, Some("5m"), Some("1h")]);
    let attached = (
        prop_oneof![5 => Just(0usize), 1 => 1..4usize],
        prop::bool::weighted(0.05),
    );
    (
        vendor,
        (bytes, 1..6usize),
        (max_tokens, 1..4u64),
        (tier, geo, ttl),
        attached,
        any::<(bool, bool)>(),
        hosted(),
    )
        .prop_map(
            |(
                vendor,
                (bytes, messages),
                (max_tokens, answers),
                (tier, geo, ttl),
                (images, has_document),
                (has_tools, streams),
                hosted,
            )| RequestParams {
                vendor,
                bytes,
                messages,
                max_tokens,
                choices: answers,
                tier,
                geo,
                ttl,
                images,
                has_document,
                has_tools,
                is_stream: streams,
                hosted_tools: hosted,
            },
        )
}

fn hosted() -> impl Strategy<Value = HostedTools> {
    let bound = || {
        prop_oneof![
            2 => Just(None),
            4 => (0..4u64).prop_map(Some),
            1 => Just(Some(u64::MAX)),
        ]
    };
    let offered = || prop_oneof![1 => Just(None), 1 => bound().prop_map(Some)];
    let tokens = prop_oneof![1 => Just(None), 1 => (1..20_000u64).prop_map(Some)];
    let some = (offered(), offered(), any::<bool>(), bound(), tokens).prop_map(
        |(search, fetch, files, all, tokens_per_call)| HostedTools {
            search,
            fetch,
            files,
            max_total_calls: all,
            tokens_per_call,
        },
    );
    prop_oneof![3 => Just(HostedTools::default()), 2 => some]
}

pub(super) fn provider_scenario() -> impl Strategy<Value = ProviderScenario> {
    // Tokenizers of rare text reach the bound; ordinary prose has one token per four bytes.
    let prompt = prop_oneof![2 => 0..=1000u64, 1 => 200..300u64, 1 => Just(1000)];
    let share = || prop_oneof![0..=1000u64, Just(0), Just(1000)];
    let end = prop::sample::select(vec![
        AttemptOutcome::UsageReported,
        AttemptOutcome::UsageReported,
        AttemptOutcome::UsageReported,
        AttemptOutcome::UsageReported,
        AttemptOutcome::UsageReported,
        AttemptOutcome::ClientDisconnected,
        AttemptOutcome::UsageUnknown,
        AttemptOutcome::Rejected,
        AttemptOutcome::Retried,
    ]);
    (
        prompt,
        (share(), share(), share()),
        share(),
        any::<(bool, bool, bool)>(),
        (share(), share(), any::<bool>()),
        end,
    )
        .prop_map(
            |(
                prompt,
                (cached, written, longer),
                completion,
                (is_downgraded, tells_tier, tells_durations),
                (calls, brought, tells_calls),
                end,
            )| ProviderScenario {
                prompt,
                cached,
                cache_written: written,
                cache_written_1h: longer,
                completion,
                is_downgraded,
                reports_tier: tells_tier,
                reports_cache_durations: tells_durations,
                calls,
                result_size: brought,
                reports_calls: tells_calls,
                outcome: end,
            },
        )
}

impl RequestParams {
    pub(super) fn body(&self) -> String {
        let text = "x".repeat(self.bytes / self.messages);
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAE=";
        let pdf = "JVBERi0xLjcKJeLjz9MK";
        let mut body = match self.vendor.dialect() {
            Dialect::Gemini => {
                let mut parts = vec![json!({"text": text})];
                parts.extend(
                    (0..self.images).map(|_| json!({"inlineData": {"mimeType": "image/png", "data": png}})),
                );
                if self.has_document {
                    parts.push(json!({"inlineData": {"mimeType": "application/pdf", "data": pdf}}));
                }
                let mut config = json!({"candidateCount": self.choices});
                if let Some(most) = self.max_tokens {
                    config["maxOutputTokens"] = json!(most);
                }
                let contents = self.turns(
                    json!({"role": "user", "parts": parts}),
                    json!({"role": "user", "parts": [{"text": text}]}),
                );
                json!({"contents": contents, "generationConfig": config})
            }
            Dialect::Messages => {
                let mut block = json!({"type": "text", "text": text});
                if let Some(ttl) = self.ttl {
                    block["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
                }
                let mut parts = vec![block];
                let source =
                    |media_type, data| json!({"type": "base64", "media_type": media_type, "data": data});
                parts.extend(
                    (0..self.images).map(|_| json!({"type": "image", "source": source("image/png", png)})),
                );
                if self.has_document {
                    parts.push(json!({"type": "document", "source": source("application/pdf", pdf)}));
                }
                let messages = self.turns(
                    json!({"role": "user", "content": parts}),
                    json!({"role": "user", "content": text}),
                );
                json!({"model": "model", "messages": messages, "max_tokens": self.max_tokens.unwrap_or(1)})
            }
            Dialect::Responses => {
                let mut parts = vec![json!({"type": "input_text", "text": text})];
                let url = |kind, data| format!("data:{kind};base64,{data}");
                parts.extend(
                    (0..self.images)
                        .map(|_| json!({"type": "input_image", "image_url": url("image/png", png)})),
                );
                if self.has_document {
                    parts.push(json!({"type": "input_file", "filename": "a.pdf", "file_data": url("application/pdf", pdf)}));
                }
                let input = self.turns(
                    json!({"role": "user", "content": parts}),
                    json!({"role": "user", "content": text}),
                );
                let mut body = json!({"model": "model", "input": input});
                if let Some(most) = self.max_tokens {
                    body["max_output_tokens"] = json!(most);
                }
                body
            }
            _ => {
                let mut parts = vec![json!({"type": "text", "text": text})];
                let url = |kind, data| format!("data:{kind};base64,{data}");
                parts.extend(
                    (0..self.images)
                        .map(|_| json!({"type": "image_url", "image_url": {"url": url("image/png", png)}})),
                );
                if self.has_document {
                    parts.push(json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url("application/pdf", pdf)}}));
                }
                let messages = self.turns(
                    json!({"role": "user", "content": parts}),
                    json!({"role": "user", "content": text}),
                );
                let mut body = json!({"model": "model", "messages": messages, "n": self.choices});
                if let Some(most) = self.max_tokens {
                    body["max_completion_tokens"] = json!(most);
                }
                body
            }
        };
        match (self.vendor.dialect(), self.tier) {
            (Dialect::Messages, Some("fast")) => body["speed"] = json!("fast"),
            (_, Some(tier)) => body["service_tier"] = json!(tier),
            (_, None) => {}
        }
        if let (Dialect::Messages, Some(geo)) = (self.vendor.dialect(), self.geo) {
            body["inference_geo"] = json!(geo);
        }
        self.offer_tools(&mut body);
        if self.vendor.dialect() != Dialect::Gemini {
            body["stream"] = json!(self.is_stream);
        }
        body.to_string()
    }

    fn offer_tools(&self, body: &mut Value) {
        let HostedTools {
            search,
            fetch,
            files,
            max_total_calls: all,
            ..
        } = self.hosted_tools;
        let dialect = self.vendor.dialect();
        let mut tools = Vec::new();
        if self.has_tools {
            tools.push(match dialect {
                Dialect::Gemini => json!({"functionDeclarations": [{"name": "t"}]}),
                Dialect::Responses => json!({"type": "function", "name": "t"}),
                _ => json!({"name": "t", "input_schema": {"type": "object"}}),
            });
        }
        let bounded = |kind: &str, bound: Option<u64>| {
            let mut tool = json!({"type": kind, "name": kind});
            if let Some(bound) = bound {
                tool["max_uses"] = json!(bound);
            }
            tool
        };
        match dialect {
            Dialect::Messages => {
                tools.extend(search.map(|bound| bounded("web_search_20250305", bound)));
                tools.extend(fetch.map(|bound| bounded("web_fetch_20250910", bound)));
            }
            Dialect::Responses => {
                tools.extend(search.map(|_| json!({"type": "web_search"})));
                tools.extend(files.then(|| json!({"type": "file_search", "vector_store_ids": ["a"]})));
                if let Some(all) = all {
                    body["max_tool_calls"] = json!(all);
                }
            }
            Dialect::Gemini => {
                tools.extend(search.map(|_| json!({"googleSearch": {}})));
                tools.extend(fetch.map(|_| json!({"urlContext": {}})));
            }
            _ if search.is_some() => body["web_search_options"] = json!({}),
            _ => {}
        }
        if !tools.is_empty() {
            body["tools"] = json!(tools);
        }
    }

    /// Whether the request asks for a tool whose calls have no known price.
    pub(super) fn has_unpriced_tool(&self) -> bool {
        self.vendor.dialect() == Dialect::Gemini && self.hosted_tools.search.is_some()
    }

    pub(super) fn turns(&self, first: Value, other: Value) -> Vec<Value> {
        let mut turns = vec![other; self.messages];
        turns[0] = first;
        turns
    }

    /// Returns the requested tiers that cost extra.
    pub(super) fn priced_tiers(&self) -> Vec<&'static str> {
        let is_plain = |tier: &&str| !matches!(*tier, "auto" | "default" | "global");
        let geo = self.geo.filter(|_| self.vendor.dialect() == Dialect::Messages);
        self.tier.into_iter().chain(geo).filter(is_plain).collect()
    }

    /// Returns the maximum tokens of the prompt: one token per byte, the framing of every message,
    /// the cost of images of the largest size, the additions for tools, and the whole context
    /// window for a document.
    pub(super) fn max_prompt_tokens(&self) -> u64 {
        let window = self.vendor.window().0;
        if self.has_document {
            return window;
        }
        let text = (self.bytes / self.messages * self.messages) as u64;
        let HostedTools {
            search, fetch, files, ..
        } = self.hosted_tools;
        let is_offered = match self.vendor.dialect() {
            Dialect::Responses => search.is_some() || files,
            Dialect::Chat => search.is_some(),
            _ => search.is_some() || fetch.is_some(),
        };
        let tools = if self.has_tools || is_offered { 700 } else { 0 };
        (text + 8 * self.messages as u64 + 10_000 * self.images as u64 + tools).min(window)
    }

    pub(super) fn max_completion_tokens(&self) -> u64 {
        let most = self.vendor.window().1;
        match self.vendor.dialect() {
            Dialect::Messages => self.max_tokens.unwrap_or(1).min(most),
            // `chat/completions` treats zero as no maximum.
            Dialect::Chat => {
                self.max_tokens.filter(|most| *most > 0).unwrap_or(most).min(most) * self.choices
            }
            Dialect::Responses => self.max_tokens.unwrap_or(most).min(most),
            _ => self.max_tokens.unwrap_or(most).min(most) * self.choices,
        }
    }
}
