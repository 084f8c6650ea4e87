//! Consumption on days and in months to which a clock may return.
//!
//! When a clock is set, it leaves a day that has begun and may return to it later. So the consumption of that day is
//! remembered when the clock is set, and counts again once the clock is back, whichever direction it went.

use crate::counts::{Counts, Periods};
use crate::demand::ActualUsage;
use crate::moment::Moment;

/// The maximum number of days and months remembered for one subject: more than a clock is ever set by hand.
const MAX_PERIODS: usize = 8;
/// Days, by the clock's own pace, for which they are remembered: a clock that stayed for so long is right.
const RETAINED_DAYS: u64 = 32;

/// The days and months that a clock left because it was set, for one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockStepHistory {
    /// Their consumption, the last one left at the end.
    pub past_periods: Vec<Periods>,
    /// Consumption of the current day and month when the clock arrived there.
    pub base: Periods,
    /// The day on which it is forgotten; not handed over.
    expires_on_day: u64,
}

impl ClockStepHistory {
    /// Creates it from the parts handed over.
    #[must_use]
    pub fn new(left: Vec<Periods>, base: Periods) -> Self {
        Self {
            past_periods: left,
            base,
            expires_on_day: u64::MAX,
        }
    }

    /// Applies a clock set to `to` and returns the periods there, given the current ones, `now`. If the clock returns from a
    /// time that had not come, the consumption since it got there is added.
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

    /// Restores the consumption of a day and a month that the clock reached by itself, if it had left them before.
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

    /// Subtracts the unused part of a reservation from a day that was left.
    pub(crate) fn subtract(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        for left in &mut self.past_periods {
            left.subtract(at, requests, used);
        }
    }

    /// Returns whether it is no longer needed.
    pub(crate) fn is_expired(&self, day: u64) -> bool {
        day > self.expires_on_day
    }

    /// Returns the consumption in the day and the month of a moment when they were left.
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
