//! The price of a model: rates by the tier that serves a request and by the length of its prompt.

use crate::rates::{Rates, Tokens};

/// Tiers that no provider sells for more than the standard tier. Without a separate price, they
/// cost as much as the standard tier (OpenAI, "Flex processing" and "Batch"; Google, "Flex
/// inference").
const DISCOUNT_TIERS: [&str; 2] = ["flex", "batch"];

/// The price of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Prices of the standard tier, which apply unless another tier's do.
    pub standard: Bands,
    /// Service tiers with separate prices, by the names in requests and answers.
    pub tiers: Vec<(Box<str>, Bands)>,
    /// Picodollars per answered request.
    pub per_request: u64,
    /// Picodollars per call of a provider-run tool, by the tool's kind.
    pub tools: Vec<(Box<str>, u64)>,
    /// The maximum number of tokens in a prompt, if known: the provider refuses a longer one.
    pub max_input_tokens: Option<u64>,
    /// The maximum number of tokens in an answer, if known.
    pub max_output_tokens: Option<u64>,
}

/// Rates by the length of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bands {
    /// Rates for short prompts.
    pub base: Rates,
    /// Rates for long prompts, ascending by prompt tokens. They apply to all tokens of an exchange whose prompt has more
    /// tokens than the given number.
    pub above: Vec<(u64, Rates)>,
}

/// The maximum usage of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxUsage<'t> {
    /// Tokens in the prompt.
    pub prompt: u64,
    /// Tokens in the answers.
    pub completion: u64,
    /// The requested tier; `None` for the standard one.
    pub tier: Option<&'t str>,
    /// Whether the request asks for a cache with a lifetime over five minutes.
    pub has_extended_cache: bool,
    /// Picodollars for tools that the provider runs.
    pub tools: u128,
}

/// The tier that served a request, as reported by the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedTier<'t> {
    /// The answer reports no tier.
    Unreported,
    /// The standard tier.
    Standard,
    /// Another tier.
    Other(&'t str),
}

impl Bands {
    /// Returns the rates for a prompt of `prompt` tokens.
    fn rates_for(&self, prompt: u64) -> Rates {
        self.long_prompt_rates(prompt).unwrap_or(self.base)
    }

    /// Returns the rates for long prompts, if the prompt is one.
    fn long_prompt_rates(&self, prompt: u64) -> Option<Rates> {
        let reached = self.above.partition_point(|(tokens, _)| *tokens < prompt);
        reached.checked_sub(1).map(|last| self.above[last].1)
    }

    /// Returns the highest rates of any prompt of at most `prompt` tokens.
    fn max_rates(&self, prompt: u64) -> Rates {
        let reached = self.above.iter().take_while(|(tokens, _)| *tokens < prompt);
        reached.fold(self.base, |dearest, (_, rates)| dearest.elementwise_max(*rates))
    }
}

impl Price {
    fn tier(&self, name: &str) -> Option<&Bands> {
        let mut tiers = self.tiers.iter();
        tiers.find(|(tier, _)| **tier == *name).map(|(_, bands)| bands)
    }

    /// Returns the rates of an exchange. `asked` is the requested tier (`None`: the standard one), `served` the tier
    /// reported by the answer, and `prompt` the number of tokens in the prompt.
    ///
    /// An answer does not make an exchange cheaper than the standard tier unless the request asked for that tier, because
    /// some providers repeat in the answer what the client sent. If the answer reports no tier, the higher rates of the
    /// requested and the standard tier apply. For a tier without a price, the model's highest rates apply.
    #[must_use]
    pub fn rates(&self, asked: Option<&str>, served: ServedTier<'_>, prompt: u64) -> Rates {
        let standard = self.standard.rates_for(prompt);
        let (name, is_asked) = match served {
            ServedTier::Standard => return standard,
            ServedTier::Other(name) => (name, asked == Some(name)),
            ServedTier::Unreported => match asked {
                None => return standard,
                Some(name) => (name, false),
            },
        };
        let Some(bands) = self.tier(name) else {
            if DISCOUNT_TIERS.contains(&name) {
                return standard;
            }
            let tiers = self.tiers.iter().map(|(_, bands)| self.tier_rates(bands, prompt));
            return tiers.fold(standard, Rates::elementwise_max);
        };
        let rates = self.tier_rates(bands, prompt);
        if is_asked {
            rates
        } else {
            rates.elementwise_max(standard)
        }
    }

    /// Returns a tier's rates. A tier without prices for long prompts costs at least as much for them as the standard one.
    fn tier_rates(&self, tier: &Bands, prompt: u64) -> Rates {
        match (tier.above.is_empty(), self.standard.long_prompt_rates(prompt)) {
            (true, Some(long)) => tier.base.elementwise_max(long),
            _ => tier.rates_for(prompt),
        }
    }

    /// Returns the picodollars for one call of a provider-run tool: those of `kind`, else of `undated`, which is the kind
    /// without its date. `None` if neither has a price.
    #[must_use]
    pub fn tool_price(&self, kind: &str, undated: &str) -> Option<u64> {
        let of = |name: &str| self.tools.iter().find(|(tool, _)| **tool == *name);
        of(kind).or_else(|| of(undated)).map(|(_, price)| *price)
    }

    /// Returns the cost of an exchange in nanodollars, at [these rates](Price::rates). `tools` is the cost in picodollars of
    /// the tools that the provider ran.
    #[must_use]
    pub fn cost(&self, asked: Option<&str>, served: ServedTier<'_>, tokens: &Tokens, tools: u128) -> u64 {
        self.rates(asked, served, tokens.prompt)
            .cost(self.extra_cost(tools), tokens)
    }

    /// Returns the picodollars of an exchange apart from its tokens.
    fn extra_cost(&self, tools: u128) -> u128 {
        tools.saturating_add(u128::from(self.per_request))
    }

    /// Returns the maximum cost of a request in nanodollars: at the higher rates of the requested and the standard tier, and
    /// the highest rates for a prompt of at most its length. `None` for a tier without a price, which may cost more.
    #[must_use]
    pub fn max_cost(&self, most: MaxUsage<'_>) -> Option<u64> {
        let mut rates = self.standard.max_rates(most.prompt);
        if let Some(name) = most.tier {
            rates = match self.tier(name) {
                Some(tier) => rates.elementwise_max(tier.max_rates(most.prompt)),
                None if DISCOUNT_TIERS.contains(&name) => rates,
                None => return None,
            };
        }
        let MaxUsage {
            prompt,
            completion,
            has_extended_cache: is_kept_longer,
            tools,
            ..
        } = most;
        Some(rates.max_cost(self.extra_cost(tools), prompt, completion, is_kept_longer))
    }
}
