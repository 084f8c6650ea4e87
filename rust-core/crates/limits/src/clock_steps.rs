//! Consumption in days and months to which a clock may return.
//!
//! When a clock is set, it leaves a day that has started, and it may return to this day later. The
//! consumption of this day is therefore stored when the clock is set, and counts again once the
//! clock returns, from the future or the past.

use crate::counts::{Counts, Periods};
use crate::demand::ActualUsage;
use crate::moment::Moment;

/// The maximum number of days and months that are stored for one subject. A clock is never set more
/// often by hand.
const MAX_PERIODS: usize = 8;
/// Number of days for which they are stored. A clock that was not set for so many days is right.
const RETAINED_DAYS: u64 = 32;

/// The days and months that a clock left because it was set, for one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockStepHistory {
    /// Consumption in these days and months, with the most recently left ones at the end.
    pub past_periods: Vec<Periods>,
    /// Consumption in the current day and month at the time when the clock entered them.
    pub base: Periods,
    /// The last day on which this history is stored. It is not handed over.
    expires_on_day: u64,
}

impl ClockStepHistory {
    /// Creates a history from the parts that were handed over.
    #[must_use]
    pub fn new(left: Vec<Periods>, base: Periods) -> Self {
        Self {
            past_periods: left,
            base,
            expires_on_day: u64::MAX,
        }
    }

    /// Applies a step of the clock from the current periods, `now`, to the moment `to`, and returns
    /// the periods at `to`. If the clock returns from a time in the future, the consumption since
    /// it went there is added.
    pub(crate) fn step(&mut self, now: Periods, to: Moment) -> Periods {
        let since = self.delta_since(now);
        self.record(now);
        let mut there = Periods::empty_at(to);
        self.restore(&mut there);
        self.base = there;
        if to.day < now.day {
            there.day_counts = there.day_counts.plus(since.day_counts);
            self.base.day_counts = Counts::NONE;
        }
        if to.month == now.month {
            (there.month_counts, self.base.month_counts) =
                (now.month_counts, now.month_counts.minus(since.month_counts));
        } else if to.month < now.month {
            there.month_counts = there.month_counts.plus(since.month_counts);
            self.base.month_counts = Counts::NONE;
        }
        self.expires_on_day = to.day.saturating_add(RETAINED_DAYS);
        there
    }

    /// Restores the consumption of a day and a month that the clock reached without being set, if
    /// the clock had left them before.
    pub(crate) fn restore(&mut self, there: &mut Periods) {
        for left in &self.past_periods {
            if left.day == there.day {
                there.day_counts = left.day_counts;
            }
            if left.month == there.month {
                there.month_counts = there.month_counts.max(left.month_counts);
            }
        }
        self.base = *there;
    }

    /// Subtracts the unused part of a reservation from a day that the clock has left.
    pub(crate) fn subtract(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        for left in &mut self.past_periods {
            left.subtract(at, requests, used);
        }
    }

    /// Returns whether the history is no longer needed.
    pub(crate) fn is_expired(&self, day: u64) -> bool {
        day > self.expires_on_day
    }

    /// Returns the stored consumption of a moment's day and month, from the time when the clock
    /// left them.
    pub(crate) fn past_periods_at(&self, at: Moment) -> Periods {
        let mut found = Periods::empty_at(at);
        for left in &self.past_periods {
            if left.day == at.day {
                found.day_counts = left.day_counts;
            }
            if left.month == at.month {
                found.month_counts = found.month_counts.max(left.month_counts);
            }
        }
        found
    }

    fn delta_since(&self, now: Periods) -> Periods {
        let mut since = now;
        if self.base.day == now.day {
            since.day_counts = now.day_counts.minus(self.base.day_counts);
        }
        if self.base.month == now.month {
            since.month_counts = now.month_counts.minus(self.base.month_counts);
        }
        since
    }

    fn record(&mut self, now: Periods) {
        self.past_periods.retain(|left| left.day != now.day);
        if !now.is_empty() {
            self.past_periods.push(now);
        }
        if self.past_periods.len() > MAX_PERIODS {
            self.past_periods.remove(0);
        }
    }
}
