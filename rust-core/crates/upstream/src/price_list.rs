//! A list of the prices of a configuration's models, for people.

use std::collections::BTreeMap;

use proofgate_base::Error;
use proofgate_config::Model;
use proofgate_prices::{Bands, EffectivePrice, PriceEntry, Rates};
use serde::{Deserialize, Serialize};

use crate::pricing::Pricing;

#[derive(Deserialize)]
struct PriceQuery {
    prices: Vec<PriceEntry>,
    providers: Vec<ProviderQuery>,
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct ProviderQuery {
    name: String,
    #[serde(rename = "baseURL")]
    base_url: String,
}

/// The price of one model. Amounts are in picodollars, per token and per request.
#[derive(Serialize)]
struct PriceListEntry<'a> {
    model: &'a str,
    provider: &'a str,
    upstream_model: &'a str,
    price: Option<ListedPrice>,
    /// Unix seconds at which the next price takes effect; `None` if there is no next price.
    next_change: Option<u64>,
}

#[derive(Serialize)]
struct ListedPrice {
    /// Unix seconds at which the price took effect.
    effective_from: u64,
    default: bool,
    #[serde(flatten)]
    rates: ListedRates,
    per_request: u64,
    /// Prices in picodollars per call, by the kind of tool.
    tools: BTreeMap<String, u64>,
    above: Vec<ListedBand>,
    tiers: BTreeMap<String, ListedTier>,
    max_input_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
struct ListedRates {
    input: u64,
    cached_input: u64,
    cache_write: u64,
    cache_write_1h: u64,
    audio_input: u64,
    output: u64,
    audio_output: u64,
}

#[derive(Serialize)]
struct ListedBand {
    prompt_tokens: u64,
    #[serde(flatten)]
    rates: ListedRates,
}

#[derive(Serialize)]
struct ListedTier {
    #[serde(flatten)]
    rates: ListedRates,
    above: Vec<ListedBand>,
}

impl From<&Rates> for ListedRates {
    fn from(rates: &Rates) -> Self {
        ListedRates {
            input: rates.input,
            cached_input: rates.cached_input,
            cache_write: rates.cache_write,
            cache_write_1h: rates.cache_write_1h,
            audio_input: rates.audio_input,
            output: rates.output,
            audio_output: rates.audio_output,
        }
    }
}

fn listed_bands(bands: &Bands) -> Vec<ListedBand> {
    let above = bands.above.iter().map(|(prompt_tokens, rates)| ListedBand {
        prompt_tokens: *prompt_tokens,
        rates: rates.into(),
    });
    above.collect()
}

impl From<&EffectivePrice> for ListedPrice {
    fn from(held: &EffectivePrice) -> Self {
        let price = &held.price;
        let tiers = price.tiers.iter().map(|(name, bands)| {
            let listed = ListedTier {
                rates: (&bands.base).into(),
                above: listed_bands(bands),
            };
            (name.to_string(), listed)
        });
        ListedPrice {
            effective_from: held.effective_from,
            default: held.is_default,
            rates: (&price.standard.base).into(),
            per_request: price.per_request,
            tools: (price.tools.iter())
                .map(|(kind, amount)| (kind.to_string(), *amount))
                .collect(),
            above: listed_bands(&price.standard),
            tiers: tiers.collect(),
            max_input_tokens: price.max_input_tokens,
            max_output_tokens: price.max_output_tokens,
        }
    }
}

/// Returns the prices at `now` (Unix microseconds) as a JSON list, with one entry for each model at
/// each of its providers. `asked`: the sections `prices`, `providers` and `models` of a
/// configuration, as JSON. Providers need only names and base URLs.
///
/// # Errors
/// [`Error::Config`] with the first mistake.
pub fn prices_at(asked: &str, now: u64) -> Result<String, Error> {
    let refuse = |error: serde_json::Error| Error::Config(format!("prices: {error}"));
    let asked: PriceQuery = serde_json::from_str(asked).map_err(refuse)?;
    let providers = asked.providers.iter();
    let pricing = Pricing::from_entries(
        &asked.prices,
        providers.map(|provider| (provider.name.as_str(), provider.base_url.as_str())),
    )?;
    let listed: Vec<_> = asked
        .models
        .iter()
        .flat_map(|model| model.targets().map(move |target| (model, target)))
        .map(|(model, target)| {
            let schedule = pricing.schedule(target.provider, target.upstream_model);
            PriceListEntry {
                model: &model.name,
                provider: target.provider,
                upstream_model: target.upstream_model,
                price: schedule.at(now).map(ListedPrice::from),
                next_change: schedule.next_change(now),
            }
        })
        .collect();
    serde_json::to_string(&listed).map_err(refuse)
}
