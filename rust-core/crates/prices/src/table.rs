//! Which price holds for a model, and when.

use crate::decimal::{DecimalError, scaled};
use crate::price::{MAX_PER_REQUEST, MAX_PER_TOKEN, Price};
use serde::Deserialize;

const MICROS: u64 = 1_000_000;

/// A price as a configuration says it: dollars for a million tokens, as decimal numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The provider by its name in the configuration; any when it is absent.
    #[serde(default)]
    pub provider: Option<String>,
    /// The host of the provider's base URL; any when it is absent. Default prices have it: a name of a model says nothing
    /// of what another seller asks for it.
    #[serde(default)]
    pub host: Option<String>,
    /// The model's name at the provider; with `*` as its last character, what its name begins with.
    pub model: String,
    /// Unix seconds from which on it holds.
    pub effective_from: u64,
    /// Whether it is of the table that comes with the gateway: the configuration's own prices go before it.
    #[serde(default)]
    pub default: bool,
    /// Of tokens of a prompt.
    pub input: String,
    /// Of those read from a cache; as `input` when it is absent.
    #[serde(default)]
    pub cached_input: Option<String>,
    /// Of those written to a cache; as `input` when it is absent.
    #[serde(default)]
    pub cache_write: Option<String>,
    /// Of those of audio; as `input` when it is absent.
    #[serde(default)]
    pub audio_input: Option<String>,
    /// Of tokens of an answer.
    pub output: String,
    /// Of those of audio; as `output` when it is absent.
    #[serde(default)]
    pub audio_output: Option<String>,
    /// Of a request, in dollars; nothing when it is absent.
    #[serde(default)]
    pub per_request: Option<String>,
}

/// A price that cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// A number of it is none, or cannot be kept exactly.
    #[error("the price of {model:?}: {field} {reason}")]
    Decimal {
        /// The model's name there.
        model: String,
        /// Which number.
        field: &'static str,
        /// What is wrong with it.
        reason: DecimalError,
    },
    /// Two hold for the same from the same moment on.
    #[error("the price of {model:?} is given twice for the same provider and date")]
    Twice {
        /// The model's name there.
        model: String,
    },
    /// A `*` that is not at its end, or no name at all.
    #[error("the price of {model:?}: a name may end in one *, and has none elsewhere")]
    Pattern {
        /// The model's name there.
        model: String,
    },
}

/// Who answers for a model, as prices name it.
#[derive(Clone, Copy, Debug)]
pub struct Seller<'s> {
    /// The provider's name in the configuration.
    pub provider: &'s str,
    /// The host of its base URL, lower case, without a port.
    pub host: &'s str,
}

/// All prices of a configuration.
#[derive(Clone, Debug, Default)]
pub struct PriceTable(Vec<(Entry, Price)>);

/// A price and since when it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The price.
    pub price: Price,
    /// Unix seconds of its `effective_from`.
    pub since: u64,
    /// Whether it is of the table that comes with the gateway.
    pub default: bool,
}

/// The prices of one model at one provider, by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// From which unix second on, oldest first.
    steps: Vec<(u64, InForce)>,
}

impl PriceTable {
    /// Reads the entries of a configuration.
    ///
    /// # Errors
    /// [`PriceError`] for the first entry that cannot be believed.
    pub fn new(entries: &[Entry]) -> Result<Self, PriceError> {
        let mut read: Vec<(Entry, Price)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let price = price(entry)?;
            let model = || entry.model.clone();
            let name = entry.model.strip_suffix('*').unwrap_or(&entry.model);
            if entry.model.is_empty() || name.contains('*') {
                return Err(PriceError::Pattern { model: model() });
            }
            let same = |other: &Entry| {
                let named = (&other.provider, &other.host) == (&entry.provider, &entry.host);
                let dated = (other.effective_from, other.default) == (entry.effective_from, entry.default);
                named && dated && other.model == entry.model
            };
            if read.iter().any(|(other, _)| same(other)) {
                return Err(PriceError::Twice { model: model() });
            }
            read.push((entry.clone(), price));
        }
        Ok(Self(read))
    }

    /// The prices of one model. Of the entries that fit and hold at a time, the configuration's own go before those of the
    /// default table, then those that name the provider, then those that name the model exactly, then longer beginnings
    /// of a name before shorter ones; of entries alike in all that, the latest.
    #[must_use]
    pub fn schedule(&self, seller: Seller<'_>, model: &str) -> Schedule {
        let fitting: Vec<_> = self
            .0
            .iter()
            .filter(|(entry, _)| entry.fits(seller, model))
            .collect();
        let mut dates: Vec<u64> = fitting.iter().map(|(entry, _)| entry.effective_from).collect();
        dates.sort_unstable();
        dates.dedup();
        let mut steps: Vec<(u64, InForce)> = Vec::new();
        for date in dates {
            let holding = fitting.iter().filter(|(entry, _)| entry.effective_from <= date);
            let best = holding.max_by_key(|(entry, _)| (entry.rank(), entry.effective_from));
            let Some((entry, price)) = best else { continue };
            let new = InForce {
                price: *price,
                since: entry.effective_from,
                default: entry.default,
            };
            if steps.last().map(|(_, before)| *before) != Some(new) {
                steps.push((date, new));
            }
        }
        Schedule { steps }
    }
}

impl Schedule {
    /// What holds at a time, in unix microseconds; `None` when no price is known.
    #[must_use]
    pub fn at(&self, now: u64) -> Option<&InForce> {
        let past = self
            .steps
            .partition_point(|(from, _)| from.saturating_mul(MICROS) <= now);
        self.steps.get(past.checked_sub(1)?).map(|(_, price)| price)
    }

    /// When another price holds after a time, in unix seconds; `now` is in unix microseconds.
    #[must_use]
    pub fn next_change(&self, now: u64) -> Option<u64> {
        let past = self
            .steps
            .partition_point(|(from, _)| from.saturating_mul(MICROS) <= now);
        self.steps.get(past).map(|(from, _)| *from)
    }
}

impl Entry {
    fn fits(&self, seller: Seller<'_>, model: &str) -> bool {
        let names = |name: &Option<String>, is: &str| name.as_deref().is_none_or(|name| name == is);
        let named = match self.model.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => model == self.model,
        };
        named && names(&self.provider, seller.provider) && names(&self.host, seller.host)
    }

    fn rank(&self) -> (bool, bool, bool, usize) {
        let exact = !self.model.ends_with('*');
        (!self.default, self.provider.is_some(), exact, self.model.len())
    }
}

fn price(entry: &Entry) -> Result<Price, PriceError> {
    let read = |field, text: &str, places, most| {
        scaled(text, places, most).map_err(|reason| PriceError::Decimal {
            model: entry.model.clone(),
            field,
            reason,
        })
    };
    // Dollars for a million tokens are microdollars for each.
    let per_token = |field, text: &str| read(field, text, 6, MAX_PER_TOKEN);
    let or = |field, text: &Option<String>, otherwise| {
        text.as_deref()
            .map_or(Ok(otherwise), |text| per_token(field, text))
    };
    let input = per_token("input", &entry.input)?;
    let output = per_token("output", &entry.output)?;
    let per_request = entry.per_request.as_deref().unwrap_or("0");
    Ok(Price {
        input,
        cached_input: or("cachedInput", &entry.cached_input, input)?,
        cache_write: or("cacheWrite", &entry.cache_write, input)?,
        audio_input: or("audioInput", &entry.audio_input, input)?,
        output,
        audio_output: or("audioOutput", &entry.audio_output, output)?,
        per_request: read("perRequest", per_request, 12, MAX_PER_REQUEST)?,
    })
}
