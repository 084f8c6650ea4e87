//! What counts on days and in months to which a clock may come back.
//!
//! A clock that was set takes its tenants' days with it: it leaves one that has begun, and may come to it again. So what
//! was consumed there is remembered when the clock is set, and counts again once it is back, whichever way it went.

use crate::counts::{Counts, Periods};
use crate::demand::ActualUsage;
use crate::moment::Moment;

/// Days and months that are remembered of one subject: more than anybody sets a clock by hand.
const MAX_PERIODS: usize = 8;
/// For so many days by the clock's own pace they are: a clock that stayed for so long is right.
const RETAINED_DAYS: u64 = 32;

/// The days and months of one subject that a clock has left because it was set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockStepHistory {
    /// What had been consumed there, the last left at the end.
    pub past_periods: Vec<Periods>,
    /// What of the day and the month that count now had been consumed when the clock came to them.
    pub base: Periods,
    /// The day on which it is forgotten; not handed over.
    expires_on_day: u64,
}

impl ClockStepHistory {
    /// As it was handed over.
    #[must_use]
    pub fn new(left: Vec<Periods>, base: Periods) -> Self {
        Self {
            past_periods: left,
            base,
            expires_on_day: u64::MAX,
        }
    }

    /// The clock was set to `to`: returns what counts there, of what counted `now`. Back from a time that had not come, what
    /// was consumed since the clock got there counts as well.
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

    /// What counts on a day and in a month that have come by themselves: what had been consumed in them already.
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

    /// Takes back what was not used of a reservation of a day that was left.
    pub(crate) fn subtract(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        for left in &mut self.past_periods {
            left.subtract(at, requests, used);
        }
    }

    /// Whether nobody has to remember it any more.
    pub(crate) fn is_expired(&self, day: u64) -> bool {
        day > self.expires_on_day
    }

    /// What had been consumed in the day and the month of a moment when they were left.
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
