//! The table of the kinds of limits, with one row for each kind. All code that names, counts,
//! compares or reports limits reads this table; Python reads it through `_core.limit_kinds()`. The
//! schema has a field for each row, and a test compares both.

use crate::money::nanodollars;
use serde::Deserialize;
use std::num::NonZeroU64;

/// The quantity that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Admitted requests.
    Requests,
    /// Tokens of prompts and responses.
    Tokens,
    /// Requests in flight.
    Concurrency,
    /// The cost of exchanges, in nanodollars (10⁻⁹ USD).
    Money,
}

/// The period in which a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Any 60 seconds.
    Minute,
    /// A UTC day.
    Day,
    /// A UTC month.
    Month,
    /// The present moment.
    Instant,
}

/// A row of the table of limits.
#[derive(Clone, Copy, Debug)]
pub struct LimitKind {
    /// Name of the limit in `GET /v1/usage`, which is also the name of the schema's field.
    pub name: &'static str,
    /// Name of the limit's field in [`Limits`] and on the admin port. It contains the unit.
    pub field: &'static str,
    /// Error code for a request that exceeds the limit.
    pub code: &'static str,
    /// Quantity that the limit counts.
    pub quantity: Quantity,
    /// Period in which the limit counts.
    pub period: Period,
}

/// Generates from each row a variant of [`Limit`], a field of [`Limits`] and a [`LimitKind`].
macro_rules! table {
    ($($(#[$meaning:meta])+ $kind:ident = $quantity:ident, $period:ident, $field:ident, $name:literal $(, #[$read:meta])?;)+) => {
        /// A kind of limit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Limit {
            $($(#[$meaning])+ $kind,)+
        }

        impl Limit {
            /// Every limit, in the order in which they are reported.
            pub const ALL: [Self; KINDS.len()] = [$(Self::$kind,)+];
        }

        /// Limits of one tenant, or of one API key. `None` means no limit; a limit is at least 1.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Limits {
            $($(#[$meaning])+ $(#[$read])? pub $field: Option<NonZeroU64>,)+
        }

        impl Limits {
            /// No limits.
            pub const NONE: Self = Self { $($field: None,)+ };

            /// Returns one limit.
            #[must_use]
            pub fn get(&self, limit: Limit) -> Option<NonZeroU64> {
                match limit {
                    $(Limit::$kind => self.$field,)+
                }
            }
        }

        const KINDS: &[LimitKind] = &[$(LimitKind {
            name: $name,
            field: stringify!($field),
            code: concat!($name, "_exceeded"),
            quantity: Quantity::$quantity,
            period: Period::$period,
        },)+];
    };
}

table! {
    /// Requests admitted in any 60 seconds.
    RequestsPerMinute = Requests, Minute, requests_per_minute, "requests_per_minute";
    /// Requests admitted on one UTC day.
    RequestsPerDay = Requests, Day, requests_per_day, "requests_per_day";
    /// Tokens of prompts and responses in any 60 seconds.
    TokensPerMinute = Tokens, Minute, tokens_per_minute, "tokens_per_minute";
    /// Tokens of prompts and responses on one UTC day.
    TokensPerDay = Tokens, Day, tokens_per_day, "tokens_per_day";
    /// Requests in flight.
    Concurrency = Concurrency, Instant, concurrency, "concurrency";
    /// The cost of exchanges on one UTC day, in nanodollars (10⁻⁹ USD).
    MoneyPerDay = Money, Day, nanodollars_per_day, "dollars_per_day",
        #[serde(rename = "dollarsPerDay", deserialize_with = "nanodollars")];
    /// The cost of exchanges in one UTC month, in nanodollars (10⁻⁹ USD).
    MoneyPerMonth = Money, Month, nanodollars_per_month, "dollars_per_month",
        #[serde(rename = "dollarsPerMonth", deserialize_with = "nanodollars")];
}

/// Returns whether any limit counts this quantity in this period.
pub(crate) const fn is_limited(quantity: Quantity, period: Period) -> bool {
    let mut at = 0;
    while at < KINDS.len() {
        if KINDS[at].quantity as u8 == quantity as u8 && KINDS[at].period as u8 == period as u8 {
            return true;
        }
        at += 1;
    }
    false
}

const _: () = assert!(
    !is_limited(Quantity::Money, Period::Minute),
    "the last minute has no money"
);

impl Limit {
    /// The number of limits.
    pub const COUNT: usize = KINDS.len();

    /// Returns the limit's row in the table.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> &'static LimitKind {
        &KINDS[self as usize]
    }

    /// Returns the limit's name in `GET /v1/usage`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.kind().name
    }

    /// Returns whether the limit is counted in nanodollars.
    #[must_use]
    pub fn is_money(self) -> bool {
        self.kind().quantity == Quantity::Money
    }

    /// Returns whether the limit counts the usage of a request (tokens or money) and not the
    /// request itself.
    #[must_use]
    pub fn counts_usage(self) -> bool {
        matches!(self.kind().quantity, Quantity::Tokens | Quantity::Money)
    }

    /// Returns the noun that follows the limit's value in a sentence, in the singular if `is_one`.
    pub(crate) fn noun(self, is_one: bool) -> String {
        let kind = self.kind();
        let plural = kind.quantity.noun();
        let quantity = plural.strip_suffix('s').filter(|_| is_one).unwrap_or(plural);
        format!("{quantity}{}", kind.period.noun())
    }
}

impl Quantity {
    /// Returns the lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Concurrency => "concurrency",
            Self::Money => "money",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Concurrency => "concurrent requests",
            Self::Money => "dollars",
            Self::Requests | Self::Tokens => self.as_str(),
        }
    }
}

impl Period {
    /// Returns the lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Day => "day",
            Self::Month => "month",
            Self::Instant => "now",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Minute => " per minute",
            Self::Day => " per day",
            Self::Month => " per month",
            Self::Instant => "",
        }
    }
}

impl Limits {
    /// Returns whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether tokens or money are limited.
    #[must_use]
    pub fn counts_usage(&self) -> bool {
        self.any(Limit::counts_usage)
    }

    /// Returns whether money is limited.
    #[must_use]
    pub fn has_budget(&self) -> bool {
        self.any(Limit::is_money)
    }

    /// Returns whether a limit needs counts that are missing in state files before version 4.
    pub(crate) fn needs_all_counts(&self) -> bool {
        self.any(|limit| {
            let LimitKind { quantity, period, .. } = *limit.kind();
            match period {
                Period::Day => quantity == Quantity::Requests,
                Period::Month => quantity != Quantity::Money,
                Period::Minute | Period::Instant => false,
            }
        })
    }

    fn any(&self, wanted: impl Fn(Limit) -> bool) -> bool {
        let mut limits = Limit::ALL.into_iter();
        limits.any(|limit| wanted(limit) && self.get(limit).is_some())
    }
}
