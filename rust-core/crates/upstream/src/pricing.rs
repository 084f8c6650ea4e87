//! What the models of a configuration cost.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use proofgate_base::Error;
use proofgate_config::Config;
use proofgate_ledger::record::Usage;
use proofgate_prices::{self as prices, Price, PriceEntry, PriceTable, Schedule, Seller, ServedTier, Tokens};
use proofgate_providers::{BaseUrl, ParsedRequest, RequestedTier, ServiceTier};

use crate::offered_tools::OfferedTools;
use crate::wildcard::WILDCARD;

/// The prices of a configuration, and where its providers are.
pub(crate) struct Pricing<'c> {
    table: Arc<PriceTable>,
    /// Hosts by the names of the providers.
    hosts: HashMap<&'c str, String>,
}

impl<'c> Pricing<'c> {
    /// # Errors
    /// [`Error::Config`] with the first price or base URL that is wrong.
    pub fn new(config: &'c Config) -> Result<Self, Error> {
        let providers = config.providers.iter();
        Self::from_entries(
            &config.prices,
            providers.map(|provider| (provider.name.as_str(), provider.base_url.as_str())),
        )
    }

    pub fn from_entries(
        prices: &[PriceEntry],
        providers: impl Iterator<Item = (&'c str, &'c str)>,
    ) -> Result<Self, Error> {
        let table = PriceTable::new(prices).map_err(|error| Error::Config(error.to_string()))?;
        let hosts = providers.map(|(name, base_url)| {
            let base = BaseUrl::parse(base_url)
                .map_err(|error| Error::Config(format!("provider {name:?}: {error}")))?;
            Ok((name, base.host.to_ascii_lowercase()))
        });
        let hosts = hosts.collect::<Result<_, Error>>()?;
        Ok(Pricing {
            table: Arc::new(table),
            hosts,
        })
    }

    /// The prices of a model at its provider.
    pub fn schedule(&self, provider: &str, upstream_model: &str) -> Schedule {
        let host = self.hosts.get(provider).map_or("", String::as_str);
        self.table.schedule(Seller { provider, host }, upstream_model)
    }

    /// The names of models that a provider is known to have a price for.
    pub fn models<'p>(&'p self, provider: &'p str) -> impl Iterator<Item = &'p str> {
        let host = self.hosts.get(provider).map_or("", String::as_str);
        self.table.models(Seller { provider, host })
    }

    /// The same, also for what a wildcard comes to.
    pub fn prices(&self, provider: &str, upstream_model: &str) -> Prices {
        if upstream_model.contains(WILDCARD) {
            return Prices::ByName {
                table: Arc::clone(&self.table),
                provider: provider.to_owned(),
                host: self.hosts.get(provider).cloned().unwrap_or_default(),
            };
        }
        Prices::Fixed(self.schedule(provider, upstream_model))
    }
}

/// What a model costs at a provider.
pub enum Prices {
    Fixed(Schedule),
    /// By the name that a wildcard comes to.
    ByName {
        table: Arc<PriceTable>,
        provider: String,
        host: String,
    },
}

impl Prices {
    /// The price of `model`, as the provider calls it, that holds at `now` (unix microseconds).
    pub fn at(&self, model: &str, now: u64) -> Option<Arc<Price>> {
        match self {
            Prices::Fixed(schedule) => schedule.at(now).map(|held| Arc::clone(&held.price)),
            Prices::ByName {
                table,
                provider,
                host,
            } => {
                let schedule = table.schedule(Seller { provider, host }, model);
                schedule.at(now).map(|held| Arc::clone(&held.price))
            }
        }
    }
}

// What limits book at most of one exchange is what one can cost at most: so a replay books what was charged.
const _: () = assert!(proofgate_limits::MAX_COST == proofgate_prices::MAX_COST);

/// What of a request has no price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpriced {
    /// The model, at one of its providers.
    Model,
    /// The tier of service that is asked for.
    Tier,
    /// A tool of this kind, which a provider runs itself.
    Tool(Box<str>),
}

/// What one of a model's providers asks for.
pub struct Offer {
    pub price: Option<Arc<Price>>,
    /// Whether the tools reach it that it would run.
    pub receives_tools: bool,
}

/// What a call costs at most at the dearest of its providers, who offer this, and what bounds its tokens.
/// `max_output_tokens`: what its model sets aside for an answer without a maximum.
pub fn max_cost(
    call: &ParsedRequest<'_>,
    requested: &PricedFeatures,
    max_output_tokens: u64,
    offers: impl Iterator<Item = Offer>,
) -> Result<(u64, TokenBounds), Unpriced> {
    let (mut dearest, mut widest) = (0, TokenBounds::default());
    for Offer {
        price,
        receives_tools: gets_tools,
    } in offers
    {
        let price = price.ok_or(Unpriced::Model)?;
        let asked = requested.for_provider(gets_tools);
        let tools = asked.tools.as_deref();
        if let Some(kind) = tools.and_then(|tools| tools.unpriced(&price)) {
            return Err(Unpriced::Tool(kind.into()));
        }
        let bounds = token_bounds(call, tools, max_output_tokens, &price);
        dearest = dearest.max(asked.max_cost(&price, bounds).ok_or(Unpriced::Tier)?);
        widest = TokenBounds {
            prompt: widest.prompt.max(bounds.prompt),
            responses: widest.responses.max(bounds.responses),
        };
    }
    Ok((dearest, widest))
}

/// The most tokens that a prompt and its answers can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBounds {
    pub prompt: u64,
    pub responses: u64,
}

/// The bounds of a call at a provider. `max_output_tokens`: what its model sets aside for an answer without a maximum.
fn token_bounds(
    call: &ParsedRequest<'_>,
    tools: Option<&OfferedTools>,
    max_output_tokens: u64,
    price: &Price,
) -> TokenBounds {
    let own = call.max_prompt_tokens(price.max_input_tokens);
    let most = max_output_tokens.max(price.max_output_tokens.unwrap_or(0));
    TokenBounds {
        prompt: tools.map_or(own, |tools| tools.max_prompt_tokens(own, price.max_input_tokens)),
        responses: max_response_tokens(call, most),
    }
}

/// What a request asks for that has a price of its own.
#[derive(Clone, Debug, Default)]
pub struct PricedFeatures {
    /// The tier of service; `None` for the standard one.
    tier: Option<ServiceTier>,
    /// Whether a cache is to keep what is written for longer than five minutes.
    pub has_extended_cache: bool,
    /// The tools that its provider may run.
    pub tools: Option<Arc<OfferedTools>>,
}

/// Stands for tiers of which a request asks for several: no price has that name.
const AMBIGUOUS_TIER: &str = "unclear?";

impl PricedFeatures {
    pub fn from_call(call: &ParsedRequest<'_>, tools: Option<OfferedTools>) -> Self {
        let tier = match &call.tier {
            RequestedTier::Standard => None,
            RequestedTier::Named(name) => Some(ServiceTier::new(name)),
            RequestedTier::Ambiguous => Some(ServiceTier::new(AMBIGUOUS_TIER)),
        };
        PricedFeatures {
            tier,
            has_extended_cache: call.is_long_cache_requested,
            tools: tools.map(Arc::new),
        }
    }

    /// The same at a provider that the tools it would run reach, or not.
    pub fn for_provider(&self, gets_tools: bool) -> Cow<'_, Self> {
        match gets_tools || self.tools.is_none() {
            true => Cow::Borrowed(self),
            false => Cow::Owned(PricedFeatures {
                tools: None,
                ..self.clone()
            }),
        }
    }

    fn tier(&self) -> Option<&str> {
        self.tier.as_ref().map(ServiceTier::as_str)
    }

    /// The most that it can cost, in nanodollars; `None` when its tier has no price.
    pub fn max_cost(&self, price: &Price, bounds: TokenBounds) -> Option<u64> {
        price.max_cost(prices::MaxUsage {
            prompt: bounds.prompt,
            completion: bounds.responses,
            tier: self.tier(),
            has_extended_cache: self.has_extended_cache,
            tools: self.tools.as_ref().map_or(0, |tools| tools.max_cost(price)),
        })
    }

    /// What a usage costs, in nanodollars. `is_bounded`: whether a budget in money counts it.
    pub fn cost(&self, price: &Price, usage: &Usage, is_bounded: bool) -> u64 {
        let served = match &usage.service_tier {
            None => ServedTier::Unreported,
            Some(name) if ServiceTier::new(name.as_str()).is_standard() => ServedTier::Standard,
            Some(name) => ServedTier::Other(name.as_str()),
        };
        let tools = self.tools.as_ref();
        let tools = tools.map_or(0, |tools| tools.cost(price, usage, is_bounded));
        price.cost(self.tier(), served, &tokens(usage), tools)
    }
}

/// The most tokens that the answers of a call can have, where one without a maximum has `most`.
pub(crate) fn max_response_tokens(call: &ParsedRequest<'_>, most: u64) -> u64 {
    if !call.dialect.consumes_tokens() || !call.dialect.generates_output() {
        return 0;
    }
    let answers = u64::from(call.choice_count).saturating_mul(call.prompt_count as u64);
    call.max_tokens.unwrap_or(most).saturating_mul(answers)
}

/// What was used, as prices count it.
fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        prompt: usage.prompt_tokens,
        cached: usage.cached_prompt_tokens,
        cache_write: usage.cache_write_tokens,
        cache_write_1h: usage.cache_write_1h_tokens,
        audio_prompt: usage.audio_prompt_tokens,
        completion: usage.completion_tokens,
        audio_completion: usage.audio_completion_tokens,
    }
}
