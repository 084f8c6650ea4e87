//! The actual usage at a provider for a request, and the usage that the provider reports.

use proofgate_providers::Dialect;
use serde_json::{Value, json};

use super::client::{ProviderScenario, RequestParams};
use super::vendor::Vendor;

/// The actual usage at a provider for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProviderUsage {
    /// Prompt tokens of the first round only.
    first: u64,
    /// Prompt tokens of all rounds.
    pub(super) prompt: u64,
    /// Prompt tokens of the longest round.
    longest: u64,
    pub(super) cached: u64,
    pub(super) cache_written: u64,
    pub(super) cache_written_1h: u64,
    pub(super) completion: u64,
    pub(super) tier: Option<&'static str>,
    pub(super) calls: Calls,
}

/// Calls of hosted tools.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    pub(super) searches: u64,
    pub(super) fetches: u64,
    pub(super) files: u64,
}

fn share(of: u64, permille: u64) -> u64 {
    (u128::from(of) * u128::from(permille) / 1000) as u64
}

impl Calls {
    /// Returns the number of calls that the provider makes for the body `sent`. The body sets a
    /// maximum for every tool that accepts one.
    fn of(chosen: &RequestParams, fate: &ProviderScenario, sent: &Value) -> Self {
        let is_offered = |kind: &str| {
            let mut tools = sent["tools"].as_array().into_iter().flatten();
            tools.any(|tool| tool["type"] == kind || tool[kind].is_object())
        };
        let bound_of = |kind: &str| {
            let mut tools = sent["tools"].as_array().into_iter().flatten();
            let tool = tools.find(|tool| tool["type"] == kind);
            tool.map_or(0, |tool| tool["max_uses"].as_u64().expect("it is bounded"))
        };
        match chosen.vendor.dialect() {
            Dialect::Messages => Calls {
                searches: share(bound_of("web_search_20250305"), fate.calls),
                fetches: share(bound_of("web_fetch_20250910"), fate.calls),
                files: 0,
            },
            Dialect::Responses => {
                let (search, files) = (is_offered("web_search"), is_offered("file_search"));
                let all = match search || files {
                    true => share(
                        sent["max_tool_calls"].as_u64().expect("it is bounded"),
                        fate.calls,
                    ),
                    false => 0,
                };
                let searches = match (search, files) {
                    (true, true) => share(all, fate.result_size),
                    (true, false) => all,
                    _ => 0,
                };
                Calls {
                    searches,
                    fetches: 0,
                    files: all - searches,
                }
            }
            Dialect::Gemini if is_offered("urlContext") => Calls {
                fetches: share(chosen.choices, fate.calls),
                ..Calls::default()
            },
            Dialect::Chat if sent["web_search_options"].is_object() => Calls {
                searches: share(chosen.choices, fate.calls),
                ..Calls::default()
            },
            _ => Calls::default(),
        }
    }

    fn all(self) -> u64 {
        self.searches + self.fetches + self.files
    }
}

impl ProviderUsage {
    /// Computes the actual usage. `sent` is the request as the gateway rewrote it.
    pub(super) fn of(chosen: &RequestParams, fate: &ProviderScenario, sent: &Value) -> Self {
        let first = share(chosen.max_prompt_tokens(), fate.prompt);
        let calls = Calls::of(chosen, fate, sent);
        let window = chosen.vendor.window().0;
        let brought = share(
            chosen.hosted_tools.tokens_per_call.unwrap_or(window),
            fate.result_size,
        );
        let round = |call: u64| first.saturating_add(brought.saturating_mul(call)).min(window);
        let prompt: u64 = (0..=calls.all()).map(round).sum();
        let cached = share(prompt, fate.cached);
        // Google's caches are written by separate requests.
        let writes = chosen.vendor.dialect() == Dialect::Messages && chosen.ttl.is_some();
        let written = if writes {
            share(prompt - cached, fate.cache_written)
        } else {
            0
        };
        let longer = if chosen.ttl == Some("1h") {
            share(written, fate.cache_written_1h)
        } else {
            0
        };
        let tier = chosen
            .priced_tiers()
            .first()
            .copied()
            .filter(|_| !fate.is_downgraded);
        ProviderUsage {
            first,
            prompt,
            longest: round(calls.all()),
            cached,
            cache_written: written,
            cache_written_1h: longer,
            completion: share(chosen.max_completion_tokens(), fate.completion),
            tier,
            calls,
        }
    }

    /// Returns the exact cost, in ten-thousandths of a dollar times 10⁻⁶.
    pub(super) fn cost(&self, vendor: Vendor) -> u128 {
        let prices = vendor.published_prices(self.tier, self.longest);
        let plain = self.prompt - self.cached - self.cache_written;
        u128::from(plain) * prices.input
            + u128::from(self.cached) * prices.cache_read
            + u128::from(self.cache_written - self.cache_written_1h) * prices.cache_write
            + u128::from(self.cache_written_1h) * prices.cache_write_1h
            + u128::from(self.completion) * prices.output
            + vendor.tool_call_cost(self.calls)
    }

    /// Returns the usage that the start of a response reports, which does not include later rounds.
    fn begun(self) -> Self {
        match self.calls.all() {
            0 => self,
            _ => ProviderUsage {
                prompt: self.first,
                cached: 0,
                cache_written: 0,
                cache_written_1h: 0,
                calls: Calls::default(),
                ..self
            },
        }
    }

    /// Returns the response that reports the usage. `is_begun`: whether only the start of the
    /// response is returned, which does not count the response tokens.
    pub(super) fn response(
        &self,
        chosen: &RequestParams,
        fate: &ProviderScenario,
        is_begun: bool,
    ) -> Option<(Value, bool)> {
        if is_begun && self.calls.all() > 0 {
            return self.begun().response(chosen, fate, true);
        }
        let tier = self.tier.unwrap_or("default");
        let answer = match chosen.vendor.dialect() {
            Dialect::Messages => {
                let mut usage = json!({"input_tokens": self.prompt - self.cached - self.cache_written,
                    "cache_read_input_tokens": self.cached, "cache_creation_input_tokens": self.cache_written,
                    "output_tokens": if is_begun { 1 } else { self.completion }});
                if fate.reports_cache_durations {
                    usage["cache_creation"] = json!({"ephemeral_1h_input_tokens": self.cache_written_1h,
                        "ephemeral_5m_input_tokens": self.cache_written - self.cache_written_1h});
                }
                if fate.reports_tier {
                    let speed = if self.tier == Some("fast") {
                        "fast"
                    } else {
                        "standard"
                    };
                    let geo = if self.tier == Some("us") {
                        "us"
                    } else {
                        "not_available"
                    };
                    usage["service_tier"] = json!("standard");
                    (usage["speed"], usage["inference_geo"]) = (json!(speed), json!(geo));
                }
                if self.calls.all() > 0 {
                    usage["server_tool_use"] = json!({"web_search_requests": self.calls.searches,
                        "web_fetch_requests": self.calls.fetches});
                }
                return Some(match is_begun {
                    true => (
                        json!({"type": "message_start", "message": {"usage": usage}}),
                        true,
                    ),
                    false => (json!({"type": "message", "usage": usage}), false),
                });
            }
            Dialect::Gemini => {
                let answer = if is_begun { 0 } else { self.completion };
                let mut usage = json!({"promptTokenCount": self.prompt, "cachedContentTokenCount": self.cached,
                    "candidatesTokenCount": answer / 2, "thoughtsTokenCount": answer - answer / 2});
                if fate.reports_tier {
                    usage["serviceTier"] = json!(tier);
                }
                return Some((json!({"usageMetadata": usage}), is_begun));
            }
            _ if is_begun => return None,
            Dialect::Responses => {
                let mut answer = json!({"usage": {"input_tokens": self.prompt, "output_tokens": self.completion,
                    "input_tokens_details": {"cached_tokens": self.cached}}});
                if fate.reports_calls {
                    answer["tool_usage"] = json!({"web_search": {"num_requests": self.calls.searches}});
                }
                answer
            }
            _ => {
                json!({"choices": [], "usage": {"prompt_tokens": self.prompt, "completion_tokens": self.completion,
                "total_tokens": self.prompt + self.completion, "prompt_tokens_details": {"cached_tokens": self.cached}}})
            }
        };
        let mut answer = answer;
        if fate.reports_tier {
            answer["service_tier"] = json!(tier);
        }
        Some((answer, false))
    }
}
