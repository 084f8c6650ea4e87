//! What a request asks for, and what it turns out to have used.

/// The most tokens that are booked for one request, so that sums stay far from their ends. No model answers with as many.
pub const MAX_TOKENS: u64 = 1 << 40;
/// The most nanodollars that are booked for one request, some nine million dollars.
pub const MAX_COST: u64 = 1 << 53;

/// What a request can use at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand<'m> {
    /// Tokens of its prompt and its answer.
    pub tokens: u64,
    /// The model's name in the configuration, as budgets name it.
    pub model: &'m str,
    /// Nanodollars; `None` when its price is not known, which no budget admits.
    pub cost: Option<u64>,
}

/// Tokens alone, of a request whose price nobody knows.
impl From<u64> for Demand<'_> {
    fn from(tokens: u64) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }
}

/// What a request has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActualUsage {
    /// Tokens of its prompt and its answer.
    pub tokens: u64,
    /// Nanodollars.
    pub cost: u64,
}

impl ActualUsage {
    /// What is booked of it.
    #[inline]
    pub(crate) fn bookable(self, money_counted: bool) -> Self {
        Self {
            tokens: self.tokens.min(MAX_TOKENS),
            cost: if money_counted { self.cost.min(MAX_COST) } else { 0 },
        }
    }

    /// How much more it is than the other.
    #[inline]
    pub(crate) fn excess_over(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: self.cost.saturating_sub(other.cost),
        }
    }
}

/// Tokens alone, at no cost.
impl From<u64> for ActualUsage {
    fn from(tokens: u64) -> Self {
        Self { tokens, cost: 0 }
    }
}
