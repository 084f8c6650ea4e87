//! Prices of the models of a configuration.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use proofgate_base::Error;
use proofgate_config::Config;
use proofgate_ledger::record::Usage;
use proofgate_prices::{
    self as prices, Price, PriceEntry, PriceTable, ProviderRef, Schedule, ServedTier, Tokens,
};
use proofgate_providers::{BaseUrl, ParsedRequest, RequestedTier, ServiceTier};

use crate::offered_tools::OfferedTools;
use crate::wildcard::WILDCARD;

/// The prices of a configuration, and the hosts of its providers.
pub(crate) struct Pricing<'c> {
    table: Arc<PriceTable>,
    /// Hosts by provider name.
    hosts: HashMap<&'c str, String>,
}

impl<'c> Pricing<'c> {
    /// # Errors
    /// [`Error::Config`] with the first invalid price or base URL.
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

    /// Returns the price schedule of a model at its provider.
    pub fn schedule(&self, provider: &str, upstream_model: &str) -> Schedule {
        let host = self.hosts.get(provider).map_or("", String::as_str);
        self.table
            .schedule(ProviderRef { provider, host }, upstream_model)
    }

    /// Returns the names of the models that have a price at a provider.
    pub fn models<'p>(&'p self, provider: &'p str) -> impl Iterator<Item = &'p str> {
        let host = self.hosts.get(provider).map_or("", String::as_str);
        self.table.models(ProviderRef { provider, host })
    }

    /// Returns the prices of a model at its provider; [`Prices::at`] resolves a wildcard.
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

/// The prices of a model at a provider.
pub enum Prices {
    Fixed(Schedule),
    /// The prices by the name that a wildcard resolves to.
    ByName {
        table: Arc<PriceTable>,
        provider: String,
        host: String,
    },
}

impl Prices {
    /// Returns the price of `model` (the provider's name) at `now` (Unix microseconds).
    pub fn at(&self, model: &str, now: u64) -> Option<Arc<Price>> {
        match self {
            Prices::Fixed(schedule) => schedule.at(now).map(|held| Arc::clone(&held.price)),
            Prices::ByName {
                table,
                provider,
                host,
            } => {
                let schedule = table.schedule(ProviderRef { provider, host }, model);
                schedule.at(now).map(|held| Arc::clone(&held.price))
            }
        }
    }
}

// Limits and prices have the same maximum cost of one exchange, so a replay counts the charged
// cost.
const _: () = assert!(proofgate_limits::MAX_COST == proofgate_prices::MAX_COST);

/// The part of a request that has no price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpriced {
    /// The model, at one of its providers.
    Model,
    /// The requested service tier.
    Tier,
    /// A provider-run tool of this kind.
    Tool(Box<str>),
}

/// The price of a model at one of its providers.
pub struct ProviderPrice {
    /// The price; `None` if it is not known.
    pub price: Option<Arc<Price>>,
    /// Whether tools that the provider would run reach it.
    pub receives_tools: bool,
}

/// Returns the maximum cost of a call at the most expensive of the providers in `offers`, and its
/// token bounds. `max_output_tokens`: the tokens that its model reserves for a response without a
/// maximum.
pub fn max_cost(
    call: &ParsedRequest<'_>,
    requested: &PricedFeatures,
    max_output_tokens: u64,
    offers: impl Iterator<Item = ProviderPrice>,
) -> Result<(u64, TokenBounds), Unpriced> {
    let (mut dearest, mut widest) = (0, TokenBounds::default());
    for ProviderPrice {
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

/// The maximum tokens of a prompt and of all its responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBounds {
    pub prompt: u64,
    pub responses: u64,
}

/// Returns the token bounds of a call at a provider. `max_output_tokens`: the tokens that its model
/// reserves for a response without a maximum.
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

/// The features of a request that have their own price.
#[derive(Clone, Debug, Default)]
pub struct PricedFeatures {
    /// The service tier; `None` for the standard tier.
    tier: Option<ServiceTier>,
    /// Whether the prompt cache keeps written tokens for longer than five minutes.
    pub has_extended_cache: bool,
    /// The tools that the provider may run; `None` if there are none.
    pub tools: Option<Arc<OfferedTools>>,
}

/// The tier name of a request with several different tiers; no price has this name.
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

    /// Returns the same features without the tools if they do not reach the provider.
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

    /// Returns the maximum cost in nanodollars; `None` if the service tier has no price.
    pub fn max_cost(&self, price: &Price, bounds: TokenBounds) -> Option<u64> {
        price.max_cost(prices::MaxUsage {
            prompt: bounds.prompt,
            completion: bounds.responses,
            tier: self.tier(),
            has_extended_cache: self.has_extended_cache,
            tools: self.tools.as_ref().map_or(0, |tools| tools.max_cost(price)),
        })
    }

    /// Returns the cost of a usage in nanodollars. `is_bounded`: whether a money budget counts it.
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

/// Returns the maximum tokens of all responses to a call. `most`: the maximum of one response if
/// the call sets none.
pub(crate) fn max_response_tokens(call: &ParsedRequest<'_>, most: u64) -> u64 {
    if !call.dialect.consumes_tokens() || !call.dialect.generates_output() {
        return 0;
    }
    let answers = u64::from(call.choice_count).saturating_mul(call.prompt_count as u64);
    call.max_tokens.unwrap_or(most).saturating_mul(answers)
}

/// Converts a usage to the units of prices.
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
