//! Prices from providers' pages, and the same prices in the form of the gateway's table.

use std::collections::BTreeMap;
use std::sync::Arc;

use proofgate_prices::{Price, PriceEntry, PriceTable, ProviderRef};
use proofgate_providers::Dialect;
use serde_json::json;

use super::NOW;
use super::served::Calls;

/// A model and its prices from the provider's page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Vendor {
    /// Claude Opus 5.5 (platform.claude.com, "Pricing").
    Opus,
    /// Claude Haiku 5.5 (the same, and the model's page).
    Haiku,
    /// gpt-5.5 (developers.openai.com, "Pricing" and "Fast mode").
    Gpt,
    /// Gemini 4 Argon (ai.google.dev, "Gemini Developer API pricing" and "Priority inference").
    Gemini,
    /// Claude Haiku 4.5 (platform.claude.com, "Pricing"), which has a small context window.
    SmallWindow,
    /// gpt-5-nano in the Responses API (developers.openai.com, "Pricing").
    Nano,
}

/// Prices of tokens, in ten-thousandths of a dollar per million.
#[derive(Clone, Copy)]
pub(super) struct TokenPrices {
    pub(super) input: u128,
    pub(super) cache_read: u128,
    pub(super) cache_write: u128,
    pub(super) cache_write_1h: u128,
    pub(super) output: u128,
}

impl Vendor {
    pub(super) const ALL: [Vendor; 6] = [
        Vendor::Opus,
        Vendor::Haiku,
        Vendor::Gpt,
        Vendor::Gemini,
        Vendor::SmallWindow,
        Vendor::Nano,
    ];

    /// Returns the cost of calls of tools that the vendor runs (platform.claude.com, "Web search tool" and "Web fetch
    /// tool"; developers.openai.com, "Pricing", "Built-in tools"), in ten-thousandths of a dollar times 10⁻⁶.
    pub(super) fn tool_call_cost(self, calls: Calls) -> u128 {
        let (search, file) = match self {
            Vendor::Opus | Vendor::Haiku | Vendor::SmallWindow | Vendor::Nano => (100, 25),
            // The price of the preview tool, for models that do not reason.
            Vendor::Gpt => (250, 0),
            Vendor::Gemini => (0, 0),
        };
        (u128::from(calls.searches) * search + u128::from(calls.files) * file) * 1_000_000
    }

    /// Returns these prices in the form of the gateway's table.
    fn tools(self) -> serde_json::Value {
        match self {
            Vendor::Opus | Vendor::Haiku | Vendor::SmallWindow => {
                json!({"web_search": "0.01", "web_fetch": "0"})
            }
            Vendor::Gpt => json!({"web_search_options": "0.025"}),
            Vendor::Nano => json!({"web_search": "0.01", "file_search": "0.0025"}),
            Vendor::Gemini => json!({"urlContext": "0"}),
        }
    }

    pub(super) fn published_prices(self, tier: Option<&str>, prompt: u64) -> TokenPrices {
        let of = |input, hit, write, write_1h, output| TokenPrices {
            input,
            cache_read: hit,
            cache_write: write,
            cache_write_1h: write_1h,
            output,
        };
        let times = |prices: TokenPrices, numerator: u128, denominator: u128| {
            let scaled = |price: u128| price * numerator / denominator;
            of(
                scaled(prices.input),
                scaled(prices.cache_read),
                scaled(prices.cache_write),
                scaled(prices.cache_write_1h),
                scaled(prices.output),
            )
        };
        match self {
            Vendor::Opus => {
                let standard = of(40_000, 2_000, 50_000, 80_000, 200_000);
                match tier {
                    Some("fast") => times(standard, 2, 1),
                    Some("us") => times(standard, 11, 10),
                    _ => standard,
                }
            }
            Vendor::Haiku if prompt > 100_000 => of(5_000, 500, 6_250, 10_000, 25_000),
            Vendor::SmallWindow => of(10_000, 1_000, 12_500, 20_000, 50_000),
            Vendor::Nano => of(500, 50, 500, 500, 4_000),
            Vendor::Haiku => of(1_000, 100, 1_250, 2_000, 5_000),
            Vendor::Gpt => {
                let is_long = prompt > 272_000;
                let standard = match is_long {
                    true => of(100_000, 10_000, 100_000, 100_000, 450_000),
                    false => of(50_000, 5_000, 50_000, 50_000, 300_000),
                };
                match tier {
                    Some("flex") => times(standard, 1, 2),
                    // The page says "Excludes long context", so a long request is served in the
                    // standard tier.
                    Some("fast" | "priority") if !is_long => times(standard, 5, 2),
                    _ => standard,
                }
            }
            Vendor::Gemini => {
                let standard = of(20_000, 1_000, 20_000, 20_000, 100_000);
                match tier {
                    Some("priority") => times(standard, 9, 5),
                    Some("flex") => times(standard, 1, 2),
                    _ => standard,
                }
            }
        }
    }

    /// Returns the maximum tokens of a prompt and of a response.
    pub(super) fn window(self) -> (u64, u64) {
        match self {
            Vendor::Opus | Vendor::Haiku => (1_000_000, 128_000),
            Vendor::Gpt => (1_050_000, 128_000),
            Vendor::Gemini => (1_048_576, 65_536),
            Vendor::SmallWindow => (200_000, 64_000),
            Vendor::Nano => (272_000, 128_000),
        }
    }

    /// Returns the tiers that have their own price, under their names in requests.
    pub(super) fn tiers(self) -> &'static [&'static str] {
        match self {
            Vendor::Opus => &["fast", "us"],
            Vendor::Haiku | Vendor::SmallWindow | Vendor::Nano => &[],
            Vendor::Gpt => &["flex", "priority", "fast"],
            Vendor::Gemini => &["flex", "priority"],
        }
    }

    pub(super) fn dialect(self) -> Dialect {
        match self {
            Vendor::Opus | Vendor::Haiku | Vendor::SmallWindow => Dialect::Messages,
            Vendor::Nano => Dialect::Responses,
            Vendor::Gpt => Dialect::Chat,
            Vendor::Gemini => Dialect::Gemini,
        }
    }

    /// Returns the published prices in the form of the gateway's table.
    pub(super) fn configured_price(self) -> Arc<Price> {
        let text = |price: u128| format!("{}.{:04}", price / 10_000, price % 10_000);
        let level = |tier: Option<&str>, prompt: u64| {
            let TokenPrices {
                input,
                cache_read: hit,
                cache_write: write,
                cache_write_1h: write_1h,
                output,
            } = self.published_prices(tier, prompt);
            json!({"input": text(input), "cachedInput": text(hit), "cacheWrite": text(write),
                "cacheWrite1h": text(write_1h), "output": text(output)})
        };
        let above = |tier: Option<&str>| {
            let length = match self {
                Vendor::Haiku => 100_000,
                Vendor::Gpt if tier.is_none_or(|tier| tier == "flex") => 272_000,
                _ => return json!([]),
            };
            let mut long = level(tier, length + 1);
            long["promptTokens"] = json!(length);
            json!([long])
        };
        let mut entry = level(None, 0);
        let tiers: BTreeMap<_, _> = self
            .tiers()
            .iter()
            .map(|tier| {
                let mut prices = level(Some(*tier), 0);
                prices["above"] = above(Some(*tier));
                (*tier, prices)
            })
            .collect();
        entry["tiers"] = json!(tiers);
        entry["above"] = above(None);
        entry["tools"] = self.tools();
        entry["model"] = json!("model");
        entry["effectiveFrom"] = json!("1970-01-01");
        (entry["maxInputTokens"], entry["maxOutputTokens"]) =
            (json!(self.window().0), json!(self.window().1));
        let entry: PriceEntry = serde_json::from_value(entry).unwrap();
        let seller = ProviderRef {
            provider: "vendor",
            host: "api.vendor.example",
        };
        let schedule = PriceTable::new(&[entry]).unwrap().schedule(seller, "model");
        Arc::clone(&schedule.at(NOW).unwrap().price)
    }
}
