//! The table of prices, and the price that applies at a time.

use std::sync::Arc;

use crate::entry::{PriceEntry, PriceError};
use crate::price::Price;

const MICROS_PER_SECOND: u64 = 1_000_000;

/// The seller of a model, as prices name it.
#[derive(Clone, Copy, Debug)]
pub struct ProviderRef<'s> {
    /// The provider's name in the configuration.
    pub provider: &'s str,
    /// The host of its base URL, in lower case, without a port.
    pub host: &'s str,
}

/// All prices in a configuration.
#[derive(Clone, Debug, Default)]
pub struct PriceTable(Vec<(PriceEntry, Arc<Price>)>);

/// A price and when it takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectivePrice {
    /// The price.
    pub price: Arc<Price>,
    /// Unix second from which the price applies ([`PriceEntry::effective_from`]).
    pub effective_from: u64,
    /// Whether the price is from the default table that ships with the gateway.
    pub is_default: bool,
}

/// The prices of one model at one provider, by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Prices with the unix second from which each applies, oldest first.
    steps: Vec<(u64, EffectivePrice)>,
}

impl PriceTable {
    /// Parses the entries of a configuration.
    ///
    /// # Errors
    /// Returns [`PriceError`] for the first invalid entry.
    pub fn new(entries: &[PriceEntry]) -> Result<Self, PriceError> {
        let mut read: Vec<(PriceEntry, Arc<Price>)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let price = Arc::new(entry.price()?);
            let model = || entry.model.clone();
            let name = entry.model.strip_suffix('*').unwrap_or(&entry.model);
            if entry.model.is_empty() || name.contains('*') {
                return Err(PriceError::InvalidPattern { model: model() });
            }
            let same = |other: &PriceEntry| {
                let named = (&other.provider, &other.host) == (&entry.provider, &entry.host);
                let dated = (other.effective_from, other.default) == (entry.effective_from, entry.default);
                named && dated && other.model == entry.model
            };
            if read.iter().any(|(other, _)| same(other)) {
                return Err(PriceError::Duplicate { model: model() });
            }
            read.push((entry.clone(), price));
        }
        Ok(Self(read))
    }

    /// Returns the prices of one model. If several entries match at a time, the configuration's own take precedence over the
    /// default table. After that, an entry that names the provider wins, then one that names the model exactly, then the
    /// longer prefix, then the latest.
    #[must_use]
    pub fn schedule(&self, seller: ProviderRef<'_>, model: &str) -> Schedule {
        let fitting: Vec<_> = self
            .0
            .iter()
            .filter(|(entry, _)| entry.applies_to(seller, model))
            .collect();
        let mut dates: Vec<u64> = fitting.iter().map(|(entry, _)| entry.effective_from).collect();
        dates.sort_unstable();
        dates.dedup();
        let mut steps: Vec<(u64, EffectivePrice)> = Vec::new();
        for date in dates {
            let holding = fitting.iter().filter(|(entry, _)| entry.effective_from <= date);
            let best = holding.max_by_key(|(entry, _)| (entry.rank(), entry.effective_from));
            let Some((entry, price)) = best else { continue };
            let new = EffectivePrice {
                price: Arc::clone(price),
                effective_from: entry.effective_from,
                is_default: entry.default,
            };
            if steps.last().map(|(_, before)| before) != Some(&new) {
                steps.push((date, new));
            }
        }
        Schedule { steps }
    }

    /// Returns the names of models that the seller has a price for, except prefixes. A name can occur more than once.
    pub fn models<'t>(&'t self, seller: ProviderRef<'t>) -> impl Iterator<Item = &'t str> {
        let names = self.0.iter().map(|(entry, _)| entry);
        let names =
            names.filter(move |entry| !entry.model.ends_with('*') && entry.applies_to(seller, &entry.model));
        names.map(|entry| entry.model.as_str())
    }
}

impl Schedule {
    /// Returns the price at `now`, in unix microseconds; `None` if no price is known.
    #[must_use]
    pub fn at(&self, now: u64) -> Option<&EffectivePrice> {
        let past = self
            .steps
            .partition_point(|(from, _)| from.saturating_mul(MICROS_PER_SECOND) <= now);
        self.steps.get(past.checked_sub(1)?).map(|(_, price)| price)
    }

    /// Returns the unix second at which the price next changes after `now`, in unix microseconds.
    #[must_use]
    pub fn next_change(&self, now: u64) -> Option<u64> {
        let past = self
            .steps
            .partition_point(|(from, _)| from.saturating_mul(MICROS_PER_SECOND) <= now);
        self.steps.get(past).map(|(from, _)| *from)
    }
}

impl PriceEntry {
    fn applies_to(&self, seller: ProviderRef<'_>, model: &str) -> bool {
        let names = |name: &Option<String>, is: &str| name.as_deref().is_none_or(|name| name == is);
        let named = match self.model.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => model == self.model,
        };
        let is_there = self
            .host
            .as_deref()
            .is_none_or(|host| host_matches(host, seller.host));
        named && names(&self.provider, seller.provider) && is_there
    }

    fn rank(&self) -> (bool, bool, bool, usize) {
        let exact = !self.model.ends_with('*');
        (!self.default, self.provider.is_some(), exact, self.model.len())
    }
}

/// Returns whether `host` matches `pattern`, in which one `*` stands for a non-empty part of a label.
fn host_matches(pattern: &str, host: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == host,
        Some((before, after)) => {
            let rest = host
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after));
            rest.is_some_and(|part| !part.is_empty() && !part.contains('.'))
        }
    }
}
