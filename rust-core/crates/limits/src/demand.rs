//! The maximum usage that a request reserves, and its actual usage.

/// The maximum number of tokens that are booked for one request, so that sums cannot overflow. No
/// model returns as many tokens.
pub const MAX_TOKENS: u64 = 1 << 40;
/// The maximum number of nanodollars booked for one request, about nine million dollars.
pub const MAX_COST: u64 = 1 << 53;

/// The maximum usage of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand<'m> {
    /// Number of tokens in the prompt and the response.
    pub tokens: u64,
    /// The model's name in the configuration, as budgets use it.
    pub model: &'m str,
    /// Nanodollars; `None` if the price is not known. No budget admits a request without a known price.
    pub cost: Option<u64>,
}

/// A demand of tokens only, for a request whose price is not known.
impl From<u64> for Demand<'_> {
    fn from(tokens: u64) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }
}

/// The actual usage of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActualUsage {
    /// Number of tokens in the prompt and the response.
    pub tokens: u64,
    /// Nanodollars.
    pub cost: u64,
}

impl ActualUsage {
    /// Returns the part that is booked: capped, and without cost unless `money_counted`.
    #[inline]
    pub(crate) fn bookable(self, money_counted: bool) -> Self {
        Self {
            tokens: self.tokens.min(MAX_TOKENS),
            cost: if money_counted { self.cost.min(MAX_COST) } else { 0 },
        }
    }

    /// Returns the part of this usage that exceeds `other`.
    #[inline]
    pub(crate) fn excess_over(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: self.cost.saturating_sub(other.cost),
        }
    }
}

/// A usage of tokens only, without cost.
impl From<u64> for ActualUsage {
    fn from(tokens: u64) -> Self {
        Self { tokens, cost: 0 }
    }
}
