//! What is counted in a day and a month.

use crate::demand::ActualUsage;
use crate::kinds::{Period, Quantity, is_limited};
use crate::moment::Moment;

/// What was consumed in a time. What no limit counts is 0 in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests admitted.
    pub requests: u64,
    /// Tokens reserved or used.
    pub tokens: u64,
    /// Nanodollars set aside or spent.
    pub cost: u64,
}

impl Counts {
    /// Nothing.
    pub const NONE: Self = Self {
        requests: 0,
        tokens: 0,
        cost: 0,
    };

    /// One request and what it uses.
    pub(crate) fn from_request(used: ActualUsage) -> Self {
        Self {
            requests: 1,
            tokens: used.tokens,
            cost: used.cost,
        }
    }

    /// How much of one thing.
    #[inline]
    pub(crate) fn get(&self, quantity: Quantity) -> u64 {
        match quantity {
            Quantity::Requests | Quantity::Concurrency => self.requests,
            Quantity::Tokens => self.tokens,
            Quantity::Money => self.cost,
        }
    }

    /// Whether nothing was consumed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Both together.
    #[inline]
    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip_with(other, u64::saturating_add)
    }

    /// Without the other.
    #[inline]
    pub(crate) fn minus(self, other: Self) -> Self {
        self.zip_with(other, u64::saturating_sub)
    }

    /// Of each the larger.
    pub(crate) fn max(self, other: Self) -> Self {
        self.zip_with(other, u64::max)
    }

    #[inline]
    fn zip_with(self, other: Self, combined: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            requests: combined(self.requests, other.requests),
            tokens: combined(self.tokens, other.tokens),
            cost: combined(self.cost, other.cost),
        }
    }
}

/// What limits count in a period.
struct LimitedQuantities {
    requests: bool,
    tokens: bool,
    cost: bool,
}

impl LimitedQuantities {
    const fn for_period(period: Period) -> Self {
        Self {
            requests: is_limited(Quantity::Requests, period),
            tokens: is_limited(Quantity::Tokens, period),
            cost: is_limited(Quantity::Money, period),
        }
    }

    #[inline]
    fn counts(&self, requests: u32, used: ActualUsage) -> Counts {
        Counts {
            requests: if self.requests { u64::from(requests) } else { 0 },
            tokens: if self.tokens { used.tokens } else { 0 },
            cost: if self.cost { used.cost } else { 0 },
        }
    }
}

const LIMITED_PER_DAY: LimitedQuantities = LimitedQuantities::for_period(Period::Day);
const LIMITED_PER_MONTH: LimitedQuantities = LimitedQuantities::for_period(Period::Month);

/// What was consumed on one UTC day and in one UTC month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// The UTC day, in days since 1970.
    pub day: u64,
    /// On that day.
    pub day_counts: Counts,
    /// The UTC month, in months since January 1970.
    pub month: u64,
    /// In that month.
    pub month_counts: Counts,
}

impl Periods {
    /// Those of a moment, in which nothing was consumed yet.
    pub(crate) fn empty_at(at: Moment) -> Self {
        Self {
            day: at.day,
            month: at.month,
            ..Self::default()
        }
    }

    /// Whether nothing was consumed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.day_counts.is_empty() && self.month_counts.is_empty()
    }

    /// Goes on to a later day; says whether it is one.
    #[inline]
    pub(crate) fn advance(&mut self, to: Moment) -> bool {
        if self.day >= to.day {
            return false;
        }
        (self.day, self.day_counts) = (to.day, Counts::NONE);
        if self.month < to.month {
            (self.month, self.month_counts) = (to.month, Counts::NONE);
        }
        true
    }

    /// Books consumption, where it counts.
    #[inline]
    pub(crate) fn add(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        let (of_day, of_month) = self.counted_at(at, requests, used);
        self.day_counts = self.day_counts.plus(of_day);
        self.month_counts = self.month_counts.plus(of_month);
    }

    /// Takes back what was booked, where it still counts.
    #[inline]
    pub(crate) fn subtract(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        let (of_day, of_month) = self.counted_at(at, requests, used);
        self.day_counts = self.day_counts.minus(of_day);
        self.month_counts = self.month_counts.minus(of_month);
    }

    /// What of a use at a moment counts on this day and in this month.
    #[inline]
    pub(crate) fn counted_at(&self, at: Moment, requests: u32, used: ActualUsage) -> (Counts, Counts) {
        let of_day = match self.day == at.day {
            true => LIMITED_PER_DAY.counts(requests, used),
            false => Counts::NONE,
        };
        let of_month = match self.month == at.month {
            true => LIMITED_PER_MONTH.counts(requests, used),
            false => Counts::NONE,
        };
        (of_day, of_month)
    }
}
