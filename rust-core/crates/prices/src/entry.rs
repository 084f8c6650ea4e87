//! A price as a configuration says it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::decimal::{DecimalError, parse_scaled};
use crate::price::{Bands, Price};
use crate::rates::{MAX_PER_REQUEST, MAX_PER_TOKEN, Rates};

/// A price as a configuration says it: dollars for a million tokens, as decimal numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// The provider by its name in the configuration; any when it is absent.
    #[serde(default)]
    pub provider: Option<String>,
    /// The host of the provider's base URL, with at most one `*` for any part of it; any when it is absent. Default prices
    /// have it: a name of a model says nothing of what another seller asks for it.
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
    /// Of those written to a cache that keeps them for longer than five minutes; twice `input` when it is absent, and no less
    /// than `cache_write`.
    #[serde(default)]
    pub cache_write_1h: Option<String>,
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
    /// Of one call of a tool that the provider runs, in dollars, by the kind of the tool.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
    /// Of long prompts.
    #[serde(default)]
    pub above: Vec<PriceLevel>,
    /// Of other tiers of service than the standard one, by their names.
    #[serde(default)]
    pub tiers: BTreeMap<String, PriceLevel>,
    /// The most tokens that a prompt may have.
    #[serde(default)]
    pub max_input_tokens: Option<u64>,
    /// The most tokens that an answer may have.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
}

/// Prices of long prompts, or of a tier. A price that is absent is `input` or `output` of the same level, and those of what
/// is written to a cache and of audio are no less than they are without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PriceLevel {
    /// Of prompts with more tokens than this; only of long prompts.
    pub prompt_tokens: Option<u64>,
    /// As of an [`PriceEntry`].
    pub input: String,
    /// As of an [`PriceEntry`].
    pub cached_input: Option<String>,
    /// As of an [`PriceEntry`].
    pub cache_write: Option<String>,
    /// As of an [`PriceEntry`].
    pub cache_write_1h: Option<String>,
    /// As of an [`PriceEntry`].
    pub audio_input: Option<String>,
    /// As of an [`PriceEntry`].
    pub output: String,
    /// As of an [`PriceEntry`].
    pub audio_output: Option<String>,
    /// Of long prompts in this tier; only of a tier.
    pub above: Vec<PriceLevel>,
}

/// A price that cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// A number of it is none, or cannot be kept exactly.
    #[error("the price of {model:?}: {field} {reason}")]
    InvalidDecimal {
        /// The model's name there.
        model: String,
        /// Which number.
        field: &'static str,
        /// What is wrong with it.
        reason: DecimalError,
    },
    /// Two hold for the same from the same moment on.
    #[error("the price of {model:?} is given twice for the same provider and date")]
    Duplicate {
        /// The model's name there.
        model: String,
    },
    /// A `*` that is not at its end, or no name at all.
    #[error("the price of {model:?}: the name must not be empty, and may have only one *, at its end")]
    InvalidPattern {
        /// The model's name there.
        model: String,
    },
    /// Prices of long prompts that are not ordered, or that stand where none can.
    #[error(
        "the price of {model:?}: above must have ascending promptTokens without repetition, and must not be nested"
    )]
    InvalidAbove {
        /// The model's name there.
        model: String,
    },
}

/// The numbers of a price as they are written.
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
    /// Its price.
    ///
    /// # Errors
    /// [`PriceError`] for the first number that is none, and for prices of long prompts in a wrong order.
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

    /// `least`: what tokens cost at least that have no price of their own here, but one without this level.
    fn rates(&self, written: &RawRates<'_>, least: Rates) -> Result<Rates, PriceError> {
        // Dollars for a million tokens are microdollars for each.
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
