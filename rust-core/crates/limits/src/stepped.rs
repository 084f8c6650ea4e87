//! What counts on days and in months to which a clock may come back.
//!
//! A clock that was set takes its tenants' days with it: it leaves one that has begun, and may come to it again. So what
//! was consumed there is remembered when the clock is set, and counts again once it is back, whichever way it went.

use crate::demand::ActualUsage;
use crate::moment::Moment;

/// Days and months that are remembered of one subject: more than anybody sets a clock by hand.
const MOST: usize = 8;
/// For so many days by the clock's own pace they are: a clock that stayed for so long is right.
const KEPT_DAYS: u64 = 32;

/// What was consumed on one UTC day and in one UTC month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Periods {
    /// The UTC day, in days since 1970.
    pub day: u64,
    /// Tokens on that day.
    pub day_tokens: u64,
    /// Nanodollars on that day.
    pub day_cost: u64,
    /// The UTC month, in months since January 1970.
    pub month: u64,
    /// Nanodollars in that month.
    pub month_cost: u64,
}

impl Periods {
    fn is_empty(&self) -> bool {
        self.day_tokens == 0 && self.day_cost == 0 && self.month_cost == 0
    }

    fn take(&mut self, at: Moment, used: ActualUsage) {
        if self.day == at.day {
            self.day_tokens = self.day_tokens.saturating_sub(used.tokens);
            self.day_cost = self.day_cost.saturating_sub(used.cost);
        }
        if self.month == at.month {
            self.month_cost = self.month_cost.saturating_sub(used.cost);
        }
    }
}

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
        let mut there = Periods {
            day: to.day,
            month: to.month,
            ..Periods::default()
        };
        self.recall(&mut there);
        self.base = there;
        if to.day < now.day {
            there.day_tokens = there.day_tokens.saturating_add(since.day_tokens);
            there.day_cost = there.day_cost.saturating_add(since.day_cost);
            self.base.day_tokens = 0;
            self.base.day_cost = 0;
        }
        if to.month == now.month {
            (there.month_cost, self.base.month_cost) = (now.month_cost, now.month_cost - since.month_cost);
        } else if to.month < now.month {
            there.month_cost = there.month_cost.saturating_add(since.month_cost);
            self.base.month_cost = 0;
        }
        self.until = to.day.saturating_add(KEPT_DAYS);
        there
    }

    /// What counts on a day and in a month that have come by themselves: what had been consumed in them already.
    pub(crate) fn recall(&mut self, there: &mut Periods) {
        for left in &self.left {
            if left.day == there.day {
                (there.day_tokens, there.day_cost) = (left.day_tokens, left.day_cost);
            }
            if left.month == there.month {
                there.month_cost = there.month_cost.max(left.month_cost);
            }
        }
        self.base = *there;
    }

    /// Takes back what was not used of a reservation of a day that was left.
    pub(crate) fn take(&mut self, at: Moment, used: ActualUsage) {
        for left in &mut self.left {
            left.take(at, used);
        }
    }

    /// Whether nobody has to remember it any more.
    pub(crate) fn is_past(&self, day: u64) -> bool {
        day > self.until
    }

    /// What had been consumed in the day and the month of a moment when they were left.
    pub(crate) fn left_at(&self, at: Moment) -> Periods {
        let mut found = Periods {
            day: at.day,
            month: at.month,
            ..Periods::default()
        };
        for left in &self.left {
            if left.day == at.day {
                (found.day_tokens, found.day_cost) = (left.day_tokens, left.day_cost);
            }
            if left.month == at.month {
                found.month_cost = found.month_cost.max(left.month_cost);
            }
        }
        found
    }

    fn since(&self, now: Periods) -> Periods {
        let mut since = now;
        if self.base.day == now.day {
            since.day_tokens = now.day_tokens.saturating_sub(self.base.day_tokens);
            since.day_cost = now.day_cost.saturating_sub(self.base.day_cost);
        }
        if self.base.month == now.month {
            since.month_cost = now.month_cost.saturating_sub(self.base.month_cost);
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
