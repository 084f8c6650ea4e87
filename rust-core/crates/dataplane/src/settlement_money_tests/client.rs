//! What a client may choose, and what a provider may make of it.

use proofgate_providers::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::vendor::Vendor;

/// What a client chooses.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) vendor: Vendor,
    pub(super) bytes: usize,
    pub(super) messages: usize,
    pub(super) max_tokens: Option<u64>,
    pub(super) answers: u64,
    pub(super) tier: Option<&'static str>,
    /// Another field that chooses a tier, of Anthropic's.
    pub(super) geo: Option<&'static str>,
    pub(super) ttl: Option<&'static str>,
    pub(super) images: usize,
    pub(super) has_document: bool,
    pub(super) has_tools: bool,
    pub(super) streams: bool,
}

/// What becomes of it at its provider, within what was asked; shares in thousandths.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) written: u64,
    pub(super) longer: u64,
    pub(super) completion: u64,
    pub(super) is_downgraded: bool,
    pub(super) tells_tier: bool,
    pub(super) tells_durations: bool,
    pub(super) end: End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    /// The usage is told.
    Told,
    /// The client leaves when the prompt is counted, and the provider generates on.
    Left,
    /// Nothing is told, and nobody knows what ran.
    Untold,
    /// The provider refuses it.
    Refused,
    /// The attempt may have been answered, and another one follows, which is told.
    Again,
}

pub(super) fn chosen() -> impl Strategy<Value = Chosen> {
    let vendor = prop::sample::select(vec![Vendor::Opus, Vendor::Haiku, Vendor::Gpt, Vendor::Gemini]);
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
    )
        .prop_map(
            |(
                vendor,
                (bytes, messages),
                (max_tokens, answers),
                (tier, geo, ttl),
                (images, has_document),
                (has_tools, streams),
            )| Chosen {
                vendor,
                bytes,
                messages,
                max_tokens,
                answers,
                tier,
                geo,
                ttl,
                images,
                has_document,
                has_tools,
                streams,
            },
        )
}

pub(super) fn fate() -> impl Strategy<Value = Fate> {
    // Tokenizers of rare text reach the bound; ordinary prose has a token for four bytes.
    let prompt = prop_oneof![2 => 0..=1000u64, 1 => 200..300u64, 1 => Just(1000)];
    let share = || prop_oneof![0..=1000u64, Just(0), Just(1000)];
    let end = prop::sample::select(vec![
        End::Told,
        End::Told,
        End::Told,
        End::Told,
        End::Told,
        End::Left,
        End::Untold,
        End::Refused,
        End::Again,
    ]);
    (
        prompt,
        (share(), share(), share()),
        share(),
        any::<(bool, bool, bool)>(),
        end,
    )
        .prop_map(
            |(
                prompt,
                (cached, written, longer),
                completion,
                (is_downgraded, tells_tier, tells_durations),
                end,
            )| Fate {
                prompt,
                cached,
                written,
                longer,
                completion,
                is_downgraded,
                tells_tier,
                tells_durations,
                end,
            },
        )
}

impl Chosen {
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
                let mut config = json!({"candidateCount": self.answers});
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
                let mut body = json!({"model": "model", "messages": messages, "n": self.answers});
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
        if self.has_tools {
            body["tools"] = json!([{"name": "t", "input_schema": {"type": "object"}}]);
        }
        if self.vendor.dialect() != Dialect::Gemini {
            body["stream"] = json!(self.streams);
        }
        body.to_string()
    }

    pub(super) fn turns(&self, first: Value, other: Value) -> Vec<Value> {
        let mut turns = vec![other; self.messages];
        turns[0] = first;
        turns
    }

    /// The tiers that it asks for and that cost something besides.
    pub(super) fn priced_tiers(&self) -> Vec<&'static str> {
        let is_plain = |tier: &&str| !matches!(*tier, "auto" | "default" | "global");
        let geo = self.geo.filter(|_| self.vendor.dialect() == Dialect::Messages);
        self.tier.into_iter().chain(geo).filter(is_plain).collect()
    }

    /// The most tokens that its prompt can come to: a token for every byte, framing for every message, what images of the
    /// largest size cost, what is added for tools, and as much as the model takes for a document.
    pub(super) fn most_prompt(&self) -> u64 {
        let window = self.vendor.window().0;
        if self.has_document {
            return window;
        }
        let text = (self.bytes / self.messages * self.messages) as u64;
        let tools = if self.has_tools { 700 } else { 0 };
        (text + 8 * self.messages as u64 + 10_000 * self.images as u64 + tools).min(window)
    }

    pub(super) fn most_completion(&self) -> u64 {
        let most = self.vendor.window().1;
        match self.vendor.dialect() {
            Dialect::Messages => self.max_tokens.unwrap_or(1).min(most),
            // To `chat/completions` zero is none.
            Dialect::Chat => {
                self.max_tokens.filter(|most| *most > 0).unwrap_or(most).min(most) * self.answers
            }
            _ => self.max_tokens.unwrap_or(most).min(most) * self.answers,
        }
    }
}

/// What a provider has really done for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) written: u64,
    pub(super) longer: u64,
    pub(super) completion: u64,
    pub(super) tier: Option<&'static str>,
}

impl Served {
    pub(super) fn of(chosen: &Chosen, fate: &Fate) -> Self {
        let share = |of: u64, permille: u64| (u128::from(of) * u128::from(permille) / 1000) as u64;
        let prompt = share(chosen.most_prompt(), fate.prompt);
        let cached = share(prompt, fate.cached);
        // Google's caches are written by requests of their own.
        let writes = chosen.vendor.dialect() == Dialect::Messages && chosen.ttl.is_some();
        let written = if writes {
            share(prompt - cached, fate.written)
        } else {
            0
        };
        let longer = if chosen.ttl == Some("1h") {
            share(written, fate.longer)
        } else {
            0
        };
        let tier = chosen
            .priced_tiers()
            .first()
            .copied()
            .filter(|_| !fate.is_downgraded);
        Served {
            prompt,
            cached,
            written,
            longer,
            completion: share(chosen.most_completion(), fate.completion),
            tier,
        }
    }

    /// What it costs, in ten-thousandths of a dollar times 10⁻⁶: exact.
    pub(super) fn cost(&self, vendor: Vendor) -> u128 {
        let prices = vendor.published(self.tier, self.prompt);
        let plain = self.prompt - self.cached - self.written;
        u128::from(plain) * prices.input
            + u128::from(self.cached) * prices.hit
            + u128::from(self.written - self.longer) * prices.write
            + u128::from(self.longer) * prices.write_1h
            + u128::from(self.completion) * prices.output
    }

    /// The answer that tells it; `is_begun`: its beginning alone, in which the answer is not counted.
    pub(super) fn answer(&self, chosen: &Chosen, fate: &Fate, is_begun: bool) -> Option<(Value, bool)> {
        let tier = self.tier.unwrap_or("default");
        let answer = match chosen.vendor.dialect() {
            Dialect::Messages => {
                let mut usage = json!({"input_tokens": self.prompt - self.cached - self.written,
                    "cache_read_input_tokens": self.cached, "cache_creation_input_tokens": self.written,
                    "output_tokens": if is_begun { 1 } else { self.completion }});
                if fate.tells_durations {
                    usage["cache_creation"] = json!({"ephemeral_1h_input_tokens": self.longer,
                        "ephemeral_5m_input_tokens": self.written - self.longer});
                }
                if fate.tells_tier {
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
                if fate.tells_tier {
                    usage["serviceTier"] = json!(tier);
                }
                return Some((json!({"usageMetadata": usage}), is_begun));
            }
            _ if is_begun => return None,
            _ => {
                json!({"choices": [], "usage": {"prompt_tokens": self.prompt, "completion_tokens": self.completion,
                "total_tokens": self.prompt + self.completion, "prompt_tokens_details": {"cached_tokens": self.cached}}})
            }
        };
        let mut answer = answer;
        if fate.tells_tier {
            answer["service_tier"] = json!(tier);
        }
        Some((answer, false))
    }
}
