//! What an exchange costs: dated prices of models, in integers.
//!
//! A [`PriceTable`] is what a configuration says; the [`Schedule`] of one model tells which [`Price`] holds when. A price
//! is kept in picodollars (10⁻¹² USD) for each token, so that a price for a million tokens with six decimal places is
//! exact. A cost is in nanodollars (10⁻⁹ USD): the exact sum of an exchange, rounded up once.
//!
//! The crate does no I/O and reads no clock. Nothing here is a floating-point number.
#![forbid(unsafe_code)]

mod decimal;
mod entry;
mod price;
mod rates;
mod table;

pub use decimal::DecimalError;
pub use entry::{PriceEntry, PriceError, PriceLevel};
pub use price::{Bands, MaxUsage, Price, ServedTier};
pub use rates::{MAX_COST, Rates, Tokens};
pub use table::{EffectivePrice, PriceTable, Schedule, Seller};

/// Nanodollars in a dollar.
pub const NANODOLLARS_PER_DOLLAR: u64 = 1_000_000_000;
