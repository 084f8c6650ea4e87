//! Price entries of a configuration.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::day::deserialize_date;
use crate::decimal::{DecimalError, parse_scaled};
use crate::price::{Bands, Price};
use crate::rates::{MAX_PER_REQUEST, MAX_PER_TOKEN, Rates};

/// A price in a configuration: dollars per million tokens, as decimal numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriceEntry {
    /// The provider's name in the configuration; any provider if absent.
    #[serde(default)]
    pub provider: Option<String>,
    /// The host of the provider's base URL; any host if absent. One `*` matches part of a label. Default prices have a host,
    /// because the model's name alone does not tell what another seller charges for it.
    #[serde(default)]
    pub host: Option<String>,
    /// The model's name at the provider; a prefix if its last character is `*`.
    pub model: String,
    /// Unix second from which the price applies. In JSON a day such as `2026-01-31`, which begins at midnight UTC.
    #[serde(deserialize_with = "deserialize_date")]
    pub effective_from: u64,
    /// Whether the entry belongs to the default table that ships with the gateway. The configuration's own prices take
    /// precedence.
    #[serde(default)]
    pub default: bool,
    /// Price of prompt tokens.
    pub input: String,
    /// Price of prompt tokens read from a cache; `input` if absent.
    #[serde(default)]
    pub cached_input: Option<String>,
    /// Price of prompt tokens written to a cache; `input` if absent.
    #[serde(default)]
    pub cache_write: Option<String>,
    /// Price of prompt tokens written to a cache with a lifetime over five minutes; twice `input` if absent, but at least
    /// `cache_write`.
    #[serde(default)]
    pub cache_write_1h: Option<String>,
    /// Price of audio tokens in the prompt; `input` if absent.
    #[serde(default)]
    pub audio_input: Option<String>,
    /// Price of tokens in the answer.
    pub output: String,
    /// Price of audio tokens in the answer; `output` if absent.
    #[serde(default)]
    pub audio_output: Option<String>,
    /// Price of a request in dollars; nothing if absent.
    #[serde(default)]
    pub per_request: Option<String>,
    /// Price in dollars of one call of a provider-run tool, by the tool's kind.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
    /// Prices for long prompts.
    #[serde(default)]
    pub above: Vec<PriceLevel>,
    /// Prices for service tiers other than the standard one, by tier name.
    #[serde(default)]
    pub tiers: BTreeMap<String, PriceLevel>,
    /// The maximum number of tokens in a prompt.
    #[serde(default)]
    pub max_input_tokens: Option<u64>,
    /// The maximum number of tokens in an answer.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
}

/// Prices for long prompts or for a tier. An absent price is the `input` or `output` of the same level. Prices for cache
/// writes and audio are at least those without this level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PriceLevel {
    /// Prompts with more tokens than this have these prices; only set for long prompts.
    pub prompt_tokens: Option<u64>,
    /// See [`PriceEntry::input`].
    pub input: String,
    /// See [`PriceEntry::cached_input`].
    pub cached_input: Option<String>,
    /// See [`PriceEntry::cache_write`].
    pub cache_write: Option<String>,
    /// See [`PriceEntry::cache_write_1h`].
    pub cache_write_1h: Option<String>,
    /// See [`PriceEntry::audio_input`].
    pub audio_input: Option<String>,
    /// See [`PriceEntry::output`].
    pub output: String,
    /// See [`PriceEntry::audio_output`].
    pub audio_output: Option<String>,
    /// Prices for long prompts in this tier; only set for a tier.
    pub above: Vec<PriceLevel>,
}

/// The error returned for an invalid price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// A number is malformed or cannot be kept exactly.
    #[error("the price of {model:?}: {field} {reason}")]
    InvalidDecimal {
        /// The entry's model name.
        model: String,
        /// The field that holds the number.
        field: &'static str,
        /// Why the number is invalid.
        reason: DecimalError,
    },
    /// Two entries for the same model apply from the same time.
    #[error("the price of {model:?} is given twice for the same provider and date")]
    Duplicate {
        /// The entry's model name.
        model: String,
    },
    /// The model name is empty, or has a `*` that is not at its end.
    #[error("the price of {model:?}: the name must not be empty, and may have only one *, at its end")]
    InvalidPattern {
        /// The entry's model name.
        model: String,
    },
    /// Prices for long prompts are out of order, or appear where they are not allowed.
    #[error(
        "the price of {model:?}: above must have ascending promptTokens without repetition, and must not be nested"
    )]
    InvalidAbove {
        /// The entry's model name.
        model: String,
    },
}

/// The numbers of a price as written in the configuration.
struct RawRates<'e> {
    input: &'e str,
    cached_input: Option<&'e str>,
    cache_write: Option<&'e str>,
    cache_write_1h: Option<&'e str>,
    audio_input: Option<&'e str>,
    output: &'e str,
    audio_output: Option<&'e str>,
}

impl PriceEntry {
    /// Parses the entry's price.
    ///
    /// # Errors
    /// Returns [`PriceError`] for the first invalid number, and for prices of long prompts in the wrong order.
    pub(crate) fn price(&self) -> Result<Price, PriceError> {
        let written = RawRates {
            input: &self.input,
            cached_input: self.cached_input.as_deref(),
            cache_write: self.cache_write.as_deref(),
            cache_write_1h: self.cache_write_1h.as_deref(),
            audio_input: self.audio_input.as_deref(),
            output: &self.output,
            audio_output: self.audio_output.as_deref(),
        };
        let base = self.rates(&written, Rates::default())?;
        let tiers = self.tiers.iter().map(|(name, level)| {
            if level.prompt_tokens.is_some() {
                return Err(self.above_error());
            }
            let of_tier = self.rates(&level.raw_rates(), base)?;
            let bands = self.bands(of_tier, &level.above)?;
            Ok((name.as_str().into(), bands))
        });
        let tiers = tiers.collect::<Result<_, PriceError>>()?;
        let tools = self.tools.iter().map(|(kind, amount)| {
            let amount = self.parse_number("tools", amount, 12, MAX_PER_REQUEST)?;
            Ok((kind.as_str().into(), amount))
        });
        let tools = tools.collect::<Result<_, PriceError>>()?;
        let per_request = self.per_request.as_deref().unwrap_or("0");
        Ok(Price {
            standard: self.bands(base, &self.above)?,
            tiers,
            per_request: self.parse_number("perRequest", per_request, 12, MAX_PER_REQUEST)?,
            tools,
            max_input_tokens: self.max_input_tokens,
            max_output_tokens: self.max_output_tokens,
        })
    }

    fn bands(&self, base: Rates, levels: &[PriceLevel]) -> Result<Bands, PriceError> {
        let mut above: Vec<(u64, Rates)> = Vec::with_capacity(levels.len());
        for level in levels {
            let tokens = level.prompt_tokens.ok_or_else(|| self.above_error())?;
            let is_next = above.last().is_none_or(|(before, _)| *before < tokens);
            if !is_next || !level.above.is_empty() {
                return Err(self.above_error());
            }
            above.push((tokens, self.rates(&level.raw_rates(), base)?));
        }
        Ok(Bands { base, above })
    }

    /// Parses rates. `least` is the minimum for tokens that have a price without this level but none of their own in it.
    fn rates(&self, written: &RawRates<'_>, least: Rates) -> Result<Rates, PriceError> {
        // Dollars per million tokens equal microdollars per token.
        let per_token = |field, text: &str| self.parse_number(field, text, 6, MAX_PER_TOKEN);
        let or =
            |field, text: Option<&str>, otherwise| text.map_or(Ok(otherwise), |text| per_token(field, text));
        let input = per_token("input", written.input)?;
        let output = per_token("output", written.output)?;
        let cache_write = or("cacheWrite", written.cache_write, input.max(least.cache_write))?;
        let longer = cache_write.max(input * 2).max(least.cache_write_1h);
        Ok(Rates {
            input,
            cached_input: or("cachedInput", written.cached_input, input)?,
            cache_write,
            cache_write_1h: or("cacheWrite1h", written.cache_write_1h, longer)?,
            audio_input: or("audioInput", written.audio_input, input.max(least.audio_input))?,
            output,
            audio_output: or(
                "audioOutput",
                written.audio_output,
                output.max(least.audio_output),
            )?,
        })
    }

    fn parse_number(
        &self,
        field: &'static str,
        text: &str,
        places: u32,
        most: u64,
    ) -> Result<u64, PriceError> {
        parse_scaled(text, places, most).map_err(|reason| PriceError::InvalidDecimal {
            model: self.model.clone(),
            field,
            reason,
        })
    }

    fn above_error(&self) -> PriceError {
        PriceError::InvalidAbove {
            model: self.model.clone(),
        }
    }
}

impl PriceLevel {
    fn raw_rates(&self) -> RawRates<'_> {
        RawRates {
            input: &self.input,
            cached_input: self.cached_input.as_deref(),
            cache_write: self.cache_write.as_deref(),
            cache_write_1h: self.cache_write_1h.as_deref(),
            audio_input: self.audio_input.as_deref(),
            output: &self.output,
            audio_output: self.audio_output.as_deref(),
        }
    }
}
