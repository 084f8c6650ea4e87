//! The cost of an exchange: dated prices of models, in integers.
//!
//! A [`PriceTable`] holds the prices of a configuration; the [`Schedule`] of one model returns the [`Price`] that applies at
//! a given time. Prices are in picodollars (10⁻¹² USD) per token, so that a price per million tokens with six decimal places
//! is exact. Costs are in nanodollars (10⁻⁹ USD): the exact sum of an exchange, rounded up once.
//!
//! The crate does no I/O, reads no clock and uses no floating-point numbers.
#![forbid(unsafe_code)]

mod day;
mod decimal;
mod entry;
mod price;
mod rates;
mod table;

pub use decimal::{DecimalError, nanodollars};
pub use entry::{PriceEntry, PriceError, PriceLevel};
pub use price::{Bands, MaxUsage, Price, ServedTier};
pub use rates::{MAX_COST, Rates, Tokens};
pub use table::{EffectivePrice, PriceTable, ProviderRef, Schedule};

/// Nanodollars in a dollar.
pub const NANODOLLARS_PER_DOLLAR: u64 = 1_000_000_000;
