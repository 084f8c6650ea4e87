//! Counts for a day and a month.

use crate::demand::ActualUsage;
use crate::kinds::{Period, Quantity, is_limited};
use crate::moment::Moment;

/// The consumption in a period. A count that no limit uses is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of admitted requests.
    pub requests: u64,
    /// Tokens reserved or used.
    pub tokens: u64,
    /// Nanodollars reserved or spent.
    pub cost: u64,
}

impl Counts {
    /// No consumption.
    pub const NONE: Self = Self {
        requests: 0,
        tokens: 0,
        cost: 0,
    };

    /// Returns the counts of one request and its usage.
    pub(crate) fn from_request(used: ActualUsage) -> Self {
        Self {
            requests: 1,
            tokens: used.tokens,
            cost: used.cost,
        }
    }

    /// Returns the count of one quantity.
    #[inline]
    pub(crate) fn get(&self, quantity: Quantity) -> u64 {
        match quantity {
            Quantity::Requests | Quantity::Concurrency => self.requests,
            Quantity::Tokens => self.tokens,
            Quantity::Money => self.cost,
        }
    }

    /// Returns whether nothing was consumed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Returns the sums of the counts.
    #[inline]
    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip_with(other, u64::saturating_add)
    }

    /// Returns the differences of the counts.
    #[inline]
    pub(crate) fn minus(self, other: Self) -> Self {
        self.zip_with(other, u64::saturating_sub)
    }

    /// Returns the larger value of each count.
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

/// The quantities that limits count in a period.
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

/// The consumption on one UTC day and in one UTC month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// The UTC day, in days since 1970.
    pub day: u64,
    /// Consumption on that day.
    pub day_counts: Counts,
    /// The UTC month, in months since January 1970.
    pub month: u64,
    /// Consumption in that month.
    pub month_counts: Counts,
}

impl Periods {
    /// Returns the empty periods of a moment.
    pub(crate) fn empty_at(at: Moment) -> Self {
        Self {
            day: at.day,
            month: at.month,
            ..Self::default()
        }
    }

    /// Returns whether nothing was consumed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.day_counts.is_empty() && self.month_counts.is_empty()
    }

    /// Advances to the day of `to` if it is later. Returns whether it is later.
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

    /// Adds consumption to the periods that contain `at`.
    #[inline]
    pub(crate) fn add(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        let (of_day, of_month) = self.counted_at(at, requests, used);
        self.day_counts = self.day_counts.plus(of_day);
        self.month_counts = self.month_counts.plus(of_month);
    }

    /// Subtracts booked consumption from the periods that contain `at`.
    #[inline]
    pub(crate) fn subtract(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        let (of_day, of_month) = self.counted_at(at, requests, used);
        self.day_counts = self.day_counts.minus(of_day);
        self.month_counts = self.month_counts.minus(of_month);
    }

    /// Returns the parts of a usage at a moment that count on this day and in this month.
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
