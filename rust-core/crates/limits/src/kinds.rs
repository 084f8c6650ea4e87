//! The kinds of limits: one row for each. What names, counts, compares or shows limits reads this table, in Python by
//! `_core.limit_kinds()`; the schema has a field for each row, and a test compares both.

use serde::Deserialize;
use std::num::NonZeroU64;

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Requests admitted.
    Requests,
    /// Tokens of prompts and answers.
    Tokens,
    /// Requests admitted and not ended.
    Concurrency,
    /// What exchanges cost, in nanodollars (10⁻⁹ USD).
    Money,
}

/// In which time it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Any 60 seconds.
    Minute,
    /// A UTC day.
    Day,
    /// A UTC month.
    Month,
    /// This moment.
    Now,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct LimitKind {
    /// What `GET /v1/usage` calls it; the schema's field is the same.
    pub name: &'static str,
    /// Its field in the worker's configuration, in whose unit it is counted.
    pub field: &'static str,
    /// The code of a request that it keeps out.
    pub code: &'static str,
    /// What it counts.
    pub quantity: Quantity,
    /// In which time.
    pub period: Period,
}

/// Makes of each row a variant of [`Limit`], a field of [`Limits`] and a [`LimitKind`].
macro_rules! table {
    ($($(#[$meaning:meta])+ $kind:ident = $quantity:ident, $period:ident, $field:ident, $name:literal;)+) => {
        /// One of the things that are limited.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Limit {
            $($(#[$meaning])+ $kind,)+
        }

        impl Limit {
            /// Every limit, in the order in which they are told.
            pub const ALL: [Self; KINDS.len()] = [$(Self::$kind,)+];
        }

        /// What one tenant, or one API key, may use. `None` is no limit; a limit is at least 1.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Limits {
            $($(#[$meaning])+ pub $field: Option<NonZeroU64>,)+
        }

        impl Limits {
            /// Nothing is limited.
            pub const NONE: Self = Self { $($field: None,)+ };

            /// One of them.
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
    /// Tokens of prompts and answers in any 60 seconds.
    TokensPerMinute = Tokens, Minute, tokens_per_minute, "tokens_per_minute";
    /// Tokens of prompts and answers on one UTC day.
    TokensPerDay = Tokens, Day, tokens_per_day, "tokens_per_day";
    /// Requests admitted and not ended.
    Concurrency = Concurrency, Now, concurrency, "concurrency";
    /// What exchanges cost on one UTC day, in nanodollars (10⁻⁹ USD).
    MoneyPerDay = Money, Day, nanodollars_per_day, "dollars_per_day";
    /// What they cost in one UTC month.
    MoneyPerMonth = Money, Month, nanodollars_per_month, "dollars_per_month";
}

/// Whether a limit counts this, so that it has to be counted.
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
    /// How many there are.
    pub const COUNT: usize = KINDS.len();

    /// Its row.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> &'static LimitKind {
        &KINDS[self as usize]
    }

    /// What `GET /v1/usage` calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.kind().name
    }

    /// Whether it is counted in nanodollars.
    #[must_use]
    pub fn is_money(self) -> bool {
        self.kind().quantity == Quantity::Money
    }

    /// Whether it counts what a request uses, in tokens or in money, and not the request itself.
    #[must_use]
    pub fn counts_usage(self) -> bool {
        matches!(self.kind().quantity, Quantity::Tokens | Quantity::Money)
    }

    /// It in the middle of a sentence, after its value, which `is_one` or not.
    pub(crate) fn noun(self, is_one: bool) -> String {
        let kind = self.kind();
        let plural = kind.quantity.noun();
        let quantity = plural.strip_suffix('s').filter(|_| is_one).unwrap_or(plural);
        format!("{quantity}{}", kind.period.noun())
    }
}

impl Quantity {
    /// Lower-case name.
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
    /// Lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Day => "day",
            Self::Month => "month",
            Self::Now => "now",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Minute => " per minute",
            Self::Day => " per day",
            Self::Month => " per month",
            Self::Now => "",
        }
    }
}

impl Limits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether tokens or money are limited.
    #[must_use]
    pub fn counts_usage(&self) -> bool {
        self.any(Limit::counts_usage)
    }

    /// Whether money is limited.
    #[must_use]
    pub fn has_budget(&self) -> bool {
        self.any(Limit::is_money)
    }

    /// Whether anything is limited that state files before version 4 have no count of.
    pub(crate) fn needs_all_counts(&self) -> bool {
        self.any(|limit| {
            let LimitKind { quantity, period, .. } = *limit.kind();
            match period {
                Period::Day => quantity == Quantity::Requests,
                Period::Month => quantity != Quantity::Money,
                Period::Minute | Period::Now => false,
            }
        })
    }

    fn any(&self, wanted: impl Fn(Limit) -> bool) -> bool {
        let mut limits = Limit::ALL.into_iter();
        limits.any(|limit| wanted(limit) && self.get(limit).is_some())
    }
}
