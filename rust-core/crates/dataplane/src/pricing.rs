//! What the models of a configuration cost.

use std::collections::HashMap;
use std::sync::Arc;

use proofgate_ledger::record::Usage;
use proofgate_limits::Demand;
use proofgate_prices::{Entry, Price, PriceTable, Schedule, Seller, Tokens};
use proofgate_providers::{BaseUrl, Call};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::Config;
use crate::routes::{Model, Target, WILDCARD};

/// The prices of a configuration, and where its providers are.
pub(crate) struct Pricing<'c> {
    table: Arc<PriceTable>,
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
        Ok(Pricing {
            table: Arc::new(table),
            hosts,
        })
    }

    /// The prices of a model at its provider.
    fn schedule(&self, provider: &str, upstream_model: &str) -> Schedule {
        let host = self.hosts.get(provider).map_or("", String::as_str);
        self.table.schedule(Seller { provider, host }, upstream_model)
    }

    /// The same, also for what a wildcard comes to.
    pub(crate) fn prices(&self, provider: &str, upstream_model: &str) -> Prices {
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
pub(crate) enum Prices {
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
    pub(crate) fn at(&self, model: &str, now: u64) -> Option<Price> {
        match self {
            Prices::Fixed(schedule) => schedule.at(now).map(|held| held.price),
            Prices::ByName {
                table,
                provider,
                host,
            } => {
                let schedule = table.schedule(Seller { provider, host }, model);
                schedule.at(now).map(|held| held.price)
            }
        }
    }
}

// What limits book at most of one exchange is what one can cost at most: so a replay books what was charged.
const _: () = assert!(proofgate_limits::MAX_COST == proofgate_prices::MAX_COST);

/// The most that a call can use: the tokens of its prompt, about, as many for each answer as it may have, and what they
/// cost at most at the dearest of its providers, at the prices that hold at `now` (unix microseconds); `None` when one of
/// them has none that is known.
pub(crate) fn demand<'m>(call: &Call<'_>, model: &'m Model, now: u64) -> Demand<'m> {
    let (prompt, answers) = most_of_each(call, model);
    let most = |target: &Target| {
        let price = target.price(&target.named(model, &call.model).model, now);
        price.map(|price| price.most(prompt, answers))
    };
    let cost = if call.dialect.costs_tokens() {
        let costs = model.targets.iter().map(most);
        costs
            .reduce(|dearest, other| Some(dearest?.max(other?)))
            .flatten()
    } else {
        Some(0)
    };
    Demand {
        tokens: prompt.saturating_add(answers),
        model: &model.name,
        cost,
    }
}

/// The tokens that a call may come to.
pub(crate) fn most_tokens(call: &Call<'_>, model: &Model) -> u64 {
    let (prompt, answers) = most_of_each(call, model);
    prompt.saturating_add(answers)
}

/// The tokens of a call's prompt, about, and the most that its answers may have.
fn most_of_each(call: &Call<'_>, model: &Model) -> (u64, u64) {
    if !call.dialect.costs_tokens() {
        return (0, 0);
    }
    (call.estimated_prompt_tokens(), most_answer_tokens(call, model))
}

/// The most tokens that the answers of a call can have.
pub(crate) fn most_answer_tokens(call: &Call<'_>, model: &Model) -> u64 {
    if !call.dialect.costs_tokens() || !call.dialect.generates() {
        return 0;
    }
    let answer = call.max_tokens.unwrap_or(model.max_output_tokens);
    let answers = u64::from(call.n).saturating_mul(call.prompts as u64);
    answer.saturating_mul(answers)
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
    targets: Vec<AskedTarget>,
}

#[derive(Deserialize)]
struct AskedTarget {
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

/// The prices that hold at a time (unix microseconds), as a JSON list, one for each model at each of its providers. `asked`: the sections `prices`,
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
        .flat_map(|model| model.targets.iter().map(move |target| (model, target)))
        .map(|(model, target)| {
            let schedule = pricing.schedule(&target.provider, &target.upstream_model);
            Listed {
                model: &model.name,
                provider: &target.provider,
                upstream_model: &target.upstream_model,
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
