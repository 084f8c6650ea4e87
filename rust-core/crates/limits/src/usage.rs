//! One subject's consumption, in the form in which it is stored and handed over.

use crate::CredentialId;
use crate::demand::ActualUsage;
use crate::moment::Moment;
use crate::stepped::{Periods, Stepped};
use crate::window::{HELD_SECONDS, Second};
use std::sync::Arc;

/// Whose consumption: a tenant's, one of its keys', its consumption of a model, or what the tenants of a namespace share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectName {
    /// The tenant; the namespace, of what is shared.
    pub tenant: Arc<str>,
    /// All of it, or which part.
    pub part: Part,
}

impl SubjectName {
    /// What a tenant of a plan shares with the others of its namespace; `None` for a tenant without a namespace.
    pub(crate) fn shared(tenant: &str, plan: &Arc<str>) -> Option<Self> {
        let (namespace, _) = tenant.split_once('/')?;
        Some(Self {
            tenant: namespace.into(),
            part: Part::Shared(Arc::clone(plan)),
        })
    }
}

/// What of a tenant's consumption is counted by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// All of it.
    Whole,
    /// That of one key.
    Key(CredentialId),
    /// What one model costs, by its name: no requests and no tokens, and only while it has a budget.
    Model(Arc<str>),
    /// That of all tenants of a namespace that share the limits of a plan, by the plan's name.
    Shared(Arc<str>),
}

/// One subject's consumption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The UTC day that `day_tokens` and `day_cost` are of, in days since 1970.
    pub day: u64,
    /// Tokens on that day.
    pub day_tokens: u64,
    /// Nanodollars on that day.
    pub day_cost: u64,
    /// The UTC month that `month_cost` is of, in months since January 1970.
    pub month: u64,
    /// Nanodollars in that month.
    pub month_cost: u64,
    /// Requests admitted and not ended.
    pub in_flight: u64,
    /// The last minute, oldest second first, no second twice.
    pub seconds: Vec<Second>,
    /// What a clock that was set has left; most have nothing.
    pub stepped: Option<Box<Stepped>>,
}

impl Usage {
    /// Whether nothing was consumed and nothing is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let nothing_counts = self.day_tokens == 0 && self.day_cost == 0 && self.month_cost == 0;
        nothing_counts && self.in_flight == 0 && self.seconds.is_empty() && self.stepped.is_none()
    }

    /// What of it counts on the day and in the month of a moment.
    pub(crate) fn counting(&self, now: Moment) -> Periods {
        let left = self.stepped.as_ref();
        let mut counts = left.map(|stepped| stepped.left_at(now)).unwrap_or_default();
        // A day that has not started is that of a worker whose clock is ahead.
        if self.day >= now.day {
            let of_now = self.day == now.day;
            let before = if of_now {
                (0, 0)
            } else {
                (counts.day_tokens, counts.day_cost)
            };
            counts.day_tokens = self.day_tokens.saturating_add(before.0);
            counts.day_cost = self.day_cost.saturating_add(before.1);
        }
        if self.month >= now.month {
            let before = if self.month == now.month {
                0
            } else {
                counts.month_cost
            };
            counts.month_cost = self.month_cost.saturating_add(before);
        }
        counts
    }

    /// The clock was set from one moment to another: what is left is remembered.
    pub(crate) fn step(&mut self, from: Moment, to: Moment) {
        self.turn(from);
        if self.day == to.day
            || (self.stepped.is_none() && self.day_tokens == 0 && self.month_cost == 0 && self.day_cost == 0)
        {
            return;
        }
        let now = Periods {
            day: self.day,
            day_tokens: self.day_tokens,
            day_cost: self.day_cost,
            month: self.month,
            month_cost: self.month_cost,
        };
        let there = self.stepped.get_or_insert_default().step(now, to);
        self.set_periods(there);
    }

    fn set_periods(&mut self, there: Periods) {
        (self.day, self.day_tokens, self.day_cost) = (there.day, there.day_tokens, there.day_cost);
        (self.month, self.month_cost) = (there.month, there.month_cost);
    }

    /// Books consumption. Seconds that are no longer held when this one comes are dropped.
    pub(crate) fn book(&mut self, second: u64, requests: u32, used: ActualUsage) {
        let at = Moment::of_second(second);
        let tokens = used.tokens;
        self.turn(at);
        if self.day == at.day {
            self.day_tokens = self.day_tokens.saturating_add(tokens);
            self.day_cost = self.day_cost.saturating_add(used.cost);
        }
        if self.month == at.month {
            self.month_cost = self.month_cost.saturating_add(used.cost);
        }
        if requests == 0 && tokens == 0 {
            return;
        }
        match self.seconds.binary_search_by_key(&second, |held| held.second) {
            Ok(at) => {
                let held = &mut self.seconds[at];
                held.requests = held.requests.saturating_add(requests);
                held.tokens = held.tokens.saturating_add(tokens);
            }
            Err(at) => {
                let new = Second {
                    second,
                    requests,
                    tokens,
                };
                self.seconds.insert(at, new);
                self.forget_before(second);
            }
        }
    }

    /// Takes back what was booked in a second, where it still counts.
    pub(crate) fn release(&mut self, second: u64, used: ActualUsage) {
        let at = Moment::of_second(second);
        let tokens = used.tokens;
        if self.day == at.day {
            self.day_tokens = self.day_tokens.saturating_sub(tokens);
            self.day_cost = self.day_cost.saturating_sub(used.cost);
        }
        if self.month == at.month {
            self.month_cost = self.month_cost.saturating_sub(used.cost);
        }
        if let Ok(at) = self.seconds.binary_search_by_key(&second, |held| held.second) {
            let held = &mut self.seconds[at];
            held.tokens = held.tokens.saturating_sub(tokens);
            if held.requests == 0 && held.tokens == 0 {
                self.seconds.remove(at);
            }
        }
    }

    /// Drops what no longer counts at a second.
    pub(crate) fn prune(&mut self, second: u64) {
        self.forget_before(second);
        self.turn(Moment::of_second(second));
    }

    /// Dates what is of a time behind `latest` to `now`, which is before it.
    pub(crate) fn date_back(&mut self, now: Moment, latest: Moment) {
        let counts = self.counting(now);
        if self.day > latest.day {
            (self.day, self.day_tokens, self.day_cost) = (now.day, counts.day_tokens, counts.day_cost);
        }
        if self.month > latest.month {
            (self.month, self.month_cost) = (now.month, counts.month_cost);
        }
        if self
            .seconds
            .last()
            .is_none_or(|last| last.second <= latest.second)
        {
            return;
        }
        let begun = self.seconds.partition_point(|held| held.second < now.second);
        let sum = self
            .seconds
            .drain(begun..)
            .fold((0u32, 0u64), |(requests, tokens), held| {
                (
                    requests.saturating_add(held.requests),
                    tokens.saturating_add(held.tokens),
                )
            });
        self.seconds.push(Second {
            second: now.second,
            requests: sum.0,
            tokens: sum.1,
        });
    }

    fn turn(&mut self, at: Moment) {
        if self.day < at.day {
            let month_cost = if self.month < at.month { 0 } else { self.month_cost };
            (self.day, self.day_tokens, self.day_cost) = (at.day, 0, 0);
            (self.month, self.month_cost) = (self.month.max(at.month), month_cost);
            if let Some(stepped) = &mut self.stepped {
                let mut there = Periods {
                    day: self.day,
                    month: self.month,
                    month_cost,
                    ..Periods::default()
                };
                stepped.recall(&mut there);
                self.set_periods(there);
            }
        }
    }

    fn forget_before(&mut self, second: u64) {
        let held = |old: &Second| old.second.saturating_add(HELD_SECONDS) > second;
        let past = self.seconds.partition_point(|old| !held(old));
        self.seconds.drain(..past);
    }
}
