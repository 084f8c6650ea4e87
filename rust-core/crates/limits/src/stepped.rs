//! What counts on days and in months to which a clock may come back.
//!
//! A clock that was set takes its tenants' days with it: it leaves one that has begun, and may come to it again. So what
//! was consumed there is remembered when the clock is set, and counts again once it is back, whichever way it went.

use crate::counts::{Counts, Periods};
use crate::demand::ActualUsage;
use crate::moment::Moment;

/// Days and months that are remembered of one subject: more than anybody sets a clock by hand.
const MOST: usize = 8;
/// For so many days by the clock's own pace they are: a clock that stayed for so long is right.
const KEPT_DAYS: u64 = 32;

/// The days and months of one subject that a clock has left because it was set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// What had been consumed there, the last left at the end.
    pub left: Vec<Periods>,
    /// What of the day and the month that count now had been consumed when the clock came to them.
    pub base: Periods,
    /// The day on which it is forgotten; not handed over.
    until: u64,
}

impl Stepped {
    /// As it was handed over.
    #[must_use]
    pub fn new(left: Vec<Periods>, base: Periods) -> Self {
        Self {
            left,
            base,
            until: u64::MAX,
        }
    }

    /// The clock was set to `to`: returns what counts there, of what counted `now`. Back from a time that had not come, what
    /// was consumed since the clock got there counts as well.
    pub(crate) fn step(&mut self, now: Periods, to: Moment) -> Periods {
        let since = self.since(now);
        self.remember(now);
        let mut there = Periods::begun(to);
        self.recall(&mut there);
        self.base = there;
        if to.day < now.day {
            there.of_day = there.of_day.plus(since.of_day);
            self.base.of_day = Counts::NONE;
        }
        if to.month == now.month {
            (there.of_month, self.base.of_month) = (now.of_month, now.of_month.less(since.of_month));
        } else if to.month < now.month {
            there.of_month = there.of_month.plus(since.of_month);
            self.base.of_month = Counts::NONE;
        }
        self.until = to.day.saturating_add(KEPT_DAYS);
        there
    }

    /// What counts on a day and in a month that have come by themselves: what had been consumed in them already.
    pub(crate) fn recall(&mut self, there: &mut Periods) {
        for left in &self.left {
            if left.day == there.day {
                there.of_day = left.of_day;
            }
            if left.month == there.month {
                there.of_month = there.of_month.max(left.of_month);
            }
        }
        self.base = *there;
    }

    /// Takes back what was not used of a reservation of a day that was left.
    pub(crate) fn take(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        for left in &mut self.left {
            left.take(at, requests, used);
        }
    }

    /// Whether nobody has to remember it any more.
    pub(crate) fn is_past(&self, day: u64) -> bool {
        day > self.until
    }

    /// What had been consumed in the day and the month of a moment when they were left.
    pub(crate) fn left_at(&self, at: Moment) -> Periods {
        let mut found = Periods::begun(at);
        for left in &self.left {
            if left.day == at.day {
                found.of_day = left.of_day;
            }
            if left.month == at.month {
                found.of_month = found.of_month.max(left.of_month);
            }
        }
        found
    }

    fn since(&self, now: Periods) -> Periods {
        let mut since = now;
        if self.base.day == now.day {
            since.of_day = now.of_day.less(self.base.of_day);
        }
        if self.base.month == now.month {
            since.of_month = now.of_month.less(self.base.of_month);
        }
        since
    }

    fn remember(&mut self, now: Periods) {
        self.left.retain(|left| left.day != now.day);
        if !now.is_empty() {
            self.left.push(now);
        }
        if self.left.len() > MOST {
            self.left.remove(0);
        }
    }
}
