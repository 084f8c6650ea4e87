//! What the models of a configuration cost.

use std::collections::HashMap;

use proofgate_ledger::record::Usage;
use proofgate_limits::Demand;
use proofgate_prices::{Entry, PriceTable, Schedule, Seller, Tokens};
use proofgate_providers::{BaseUrl, Call};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::catalog::ModelRoute;
use crate::config::Config;

/// The prices of a configuration, and where its providers are.
pub(crate) struct Pricing<'c> {
    table: PriceTable,
    /// Hosts by the names of the providers.
    hosts: HashMap<&'c str, String>,
}

impl<'c> Pricing<'c> {
    /// # Errors
    /// [`Error::Config`] with the first price or base URL that is wrong.
    pub(crate) fn new(config: &'c Config) -> Result<Self, Error> {
        let providers = config.providers.iter();
        Self::of(
            &config.prices,
            providers.map(|provider| (provider.name.as_str(), provider.base_url.as_str())),
        )
    }

    fn of(prices: &[Entry], providers: impl Iterator<Item = (&'c str, &'c str)>) -> Result<Self, Error> {
        let table = PriceTable::new(prices).map_err(|error| Error::Config(error.to_string()))?;
        let hosts = providers.map(|(name, base_url)| {
            let base = BaseUrl::parse(base_url)
                .map_err(|error| Error::Config(format!("provider {name:?}: {error}")))?;
            Ok((name, base.host.to_ascii_lowercase()))
        });
        let hosts = hosts.collect::<Result<_, Error>>()?;
        Ok(Pricing { table, hosts })
    }

    /// The prices of a model at its provider.
    pub(crate) fn schedule(&self, provider: &str, upstream_model: &str) -> Schedule {
        let host = self.hosts.get(provider).map_or("", String::as_str);
        self.table.schedule(Seller { provider, host }, upstream_model)
    }
}

// What limits book at most of one exchange is what one can cost at most: so a replay books what was charged.
const _: () = assert!(proofgate_limits::MAX_COST == proofgate_prices::MAX_COST);

/// The most that a call can use: the tokens of its prompt, about, as many for each answer as it may have, and what they
/// cost at most at the price that holds at `now` (unix microseconds); `None` when no price is known.
pub(crate) fn demand<'c>(call: &'c Call<'_>, route: &ModelRoute, now: u64) -> Demand<'c> {
    let (prompt, answers) = most_tokens(call, route);
    let cost = if call.dialect.costs_tokens() {
        let held = route.prices.at(now);
        held.map(|held| held.price.most(prompt, answers))
    } else {
        Some(0)
    };
    Demand {
        tokens: prompt.saturating_add(answers),
        model: &call.model,
        cost,
    }
}

fn most_tokens(call: &Call<'_>, route: &ModelRoute) -> (u64, u64) {
    if !call.dialect.costs_tokens() {
        return (0, 0);
    }
    let prompt = call.estimated_prompt_tokens();
    if !call.dialect.generates() {
        return (prompt, 0);
    }
    let answer = call.max_tokens.unwrap_or(route.max_output_tokens);
    (prompt, answer.saturating_mul(u64::from(call.n)))
}

/// What was used, as prices count it.
pub(crate) fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        prompt: usage.prompt_tokens,
        cached: usage.cached_prompt_tokens,
        cache_write: usage.cache_write_tokens,
        audio_prompt: usage.audio_prompt_tokens,
        completion: usage.completion_tokens,
        audio_completion: usage.audio_completion_tokens,
    }
}

#[derive(Deserialize)]
struct Asked {
    prices: Vec<Entry>,
    providers: Vec<AskedProvider>,
    models: Vec<AskedModel>,
}

#[derive(Deserialize)]
struct AskedProvider {
    name: String,
    base_url: String,
}

#[derive(Deserialize)]
struct AskedModel {
    name: String,
    provider: String,
    upstream_model: String,
}

/// The price of one model; amounts are picodollars for a token, and for a request.
#[derive(Serialize)]
struct Listed<'a> {
    model: &'a str,
    provider: &'a str,
    upstream_model: &'a str,
    price: Option<ListedPrice>,
    /// Unix seconds at which another price holds.
    next_change: Option<u64>,
}

#[derive(Serialize)]
struct ListedPrice {
    /// Unix seconds since when it holds.
    effective_from: u64,
    default: bool,
    input: u64,
    cached_input: u64,
    cache_write: u64,
    audio_input: u64,
    output: u64,
    audio_output: u64,
    per_request: u64,
}

/// The prices that hold at a time (unix microseconds), as a JSON list, one for each model. `asked`: the sections `prices`,
/// `providers` and `models` of a configuration, as JSON; of providers, names and base URLs are enough.
///
/// # Errors
/// [`Error::Config`] with the first thing that is wrong.
pub fn prices_at(asked: &str, now: u64) -> Result<String, Error> {
    let refuse = |error: serde_json::Error| Error::Config(format!("prices: {error}"));
    let asked: Asked = serde_json::from_str(asked).map_err(refuse)?;
    let providers = asked.providers.iter();
    let pricing = Pricing::of(
        &asked.prices,
        providers.map(|provider| (provider.name.as_str(), provider.base_url.as_str())),
    )?;
    let listed: Vec<_> = asked
        .models
        .iter()
        .map(|model| {
            let schedule = pricing.schedule(&model.provider, &model.upstream_model);
            Listed {
                model: &model.name,
                provider: &model.provider,
                upstream_model: &model.upstream_model,
                price: schedule.at(now).map(|held| ListedPrice {
                    effective_from: held.since,
                    default: held.default,
                    input: held.price.input,
                    cached_input: held.price.cached_input,
                    cache_write: held.price.cache_write,
                    audio_input: held.price.audio_input,
                    output: held.price.output,
                    audio_output: held.price.audio_output,
                    per_request: held.price.per_request,
                }),
                next_change: schedule.next_change(now),
            }
        })
        .collect();
    serde_json::to_string(&listed).map_err(refuse)
}
