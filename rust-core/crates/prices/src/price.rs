//! The price of a model: rates by the tier that serves a request and by the length of its prompt.

use crate::rates::{Rates, Tokens};

/// Tiers that no provider sells for more than the standard one: without a price of their own they cost as much (OpenAI, "Flex
/// processing" and "Batch"; Google, "Flex inference").
const DISCOUNT_TIERS: [&str; 2] = ["flex", "batch"];

/// What a model costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// What holds where no tier does.
    pub standard: Bands,
    /// Tiers of service that have prices of their own, by the names that requests and answers give them.
    pub tiers: Vec<(Box<str>, Bands)>,
    /// Picodollars for each request that was answered.
    pub per_request: u64,
    /// Picodollars for each call of a tool that the provider runs, by the kind of the tool.
    pub tools: Vec<(Box<str>, u64)>,
    /// The most tokens that a prompt of the model may have, where that is known: a longer one is refused by the provider.
    pub max_input_tokens: Option<u64>,
    /// The most tokens that an answer of the model may have, where that is known.
    pub max_output_tokens: Option<u64>,
}

/// Rates by the length of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bands {
    /// Those of short prompts.
    pub base: Rates,
    /// Those of all tokens of an exchange whose prompt has more tokens than this; the smallest number first.
    pub above: Vec<(u64, Rates)>,
}

/// What a request can use at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxUsage<'t> {
    /// Tokens of its prompt.
    pub prompt: u64,
    /// Tokens of its answers.
    pub completion: u64,
    /// The tier that it asks for; `None` for the standard one.
    pub tier: Option<&'t str>,
    /// Whether it asks for a cache that keeps what is written for longer than five minutes.
    pub has_extended_cache: bool,
    /// Picodollars of tools that the provider runs.
    pub tools: u128,
}

/// Which tier an answer says has served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedTier<'t> {
    /// It says nothing.
    Unreported,
    /// The standard one.
    Standard,
    /// Another one.
    Other(&'t str),
}

impl Bands {
    /// The rates of a prompt of so many tokens.
    fn rates_for(&self, prompt: u64) -> Rates {
        self.long_prompt_rates(prompt).unwrap_or(self.base)
    }

    /// Those of a long prompt, if it is one.
    fn long_prompt_rates(&self, prompt: u64) -> Option<Rates> {
        let reached = self.above.partition_point(|(tokens, _)| *tokens < prompt);
        reached.checked_sub(1).map(|last| self.above[last].1)
    }

    /// The dearest rates of a prompt of at most so many tokens.
    fn max_rates(&self, prompt: u64) -> Rates {
        let reached = self.above.iter().take_while(|(tokens, _)| *tokens < prompt);
        reached.fold(self.base, |dearest, (_, rates)| dearest.max_each(*rates))
    }
}

impl Price {
    fn tier(&self, name: &str) -> Option<&Bands> {
        let mut tiers = self.tiers.iter();
        tiers.find(|(tier, _)| **tier == *name).map(|(_, bands)| bands)
    }

    /// The rates of an exchange whose request asked for the tier `asked` (`None`: the standard one) and whose answer says
    /// that it was `served` by one, where its prompt has so many tokens.
    ///
    /// An answer does not make an exchange cheaper than the standard tier unless its request asked for that tier: some
    /// providers repeat in an answer what a client has written. Where the answer says nothing, the dearer of the tier that
    /// was asked for and the standard one holds; for a tier without a price, the dearest price that the model has.
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
            return tiers.fold(standard, Rates::max_each);
        };
        let rates = self.tier_rates(bands, prompt);
        if is_asked { rates } else { rates.max_each(standard) }
    }

    /// A tier's rates. One without prices for long prompts is not cheaper there than the standard one.
    fn tier_rates(&self, tier: &Bands, prompt: u64) -> Rates {
        match (tier.above.is_empty(), self.standard.long_prompt_rates(prompt)) {
            (true, Some(long)) => tier.base.max_each(long),
            _ => tier.rates_for(prompt),
        }
    }

    /// Picodollars for one call of a tool that the provider runs: of this kind, or of the kind without the date behind it.
    /// `None` where neither has a price.
    #[must_use]
    pub fn tool_price(&self, kind: &str, undated: &str) -> Option<u64> {
        let of = |name: &str| self.tools.iter().find(|(tool, _)| **tool == *name);
        of(kind).or_else(|| of(undated)).map(|(_, price)| *price)
    }

    /// What an exchange costs, in nanodollars, at [these rates](Price::rates). `tools`: picodollars of the tools that the
    /// provider has run.
    #[must_use]
    pub fn cost(&self, asked: Option<&str>, served: ServedTier<'_>, tokens: &Tokens, tools: u128) -> u64 {
        self.rates(asked, served, tokens.prompt)
            .cost(self.extra_cost(tools), tokens)
    }

    /// Picodollars of an exchange besides its tokens.
    fn extra_cost(&self, tools: u128) -> u128 {
        tools.saturating_add(u128::from(self.per_request))
    }

    /// The most that a request can cost, in nanodollars: at the dearer of the tier that it asks for and the standard one,
    /// and the dearest of all prices that a prompt of its length or a shorter one may have. `None` for a tier without a
    /// price, which may be dearer.
    #[must_use]
    pub fn max_cost(&self, most: MaxUsage<'_>) -> Option<u64> {
        let mut rates = self.standard.max_rates(most.prompt);
        if let Some(name) = most.tier {
            rates = match self.tier(name) {
                Some(tier) => rates.max_each(tier.max_rates(most.prompt)),
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
