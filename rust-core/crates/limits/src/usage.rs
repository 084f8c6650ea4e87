//! The consumption of one subject, in the form for storing and handing over.

use crate::CredentialId;
use crate::clock_steps::ClockStepHistory;
use crate::counts::{Counts, Periods};
use crate::demand::ActualUsage;
use crate::moment::Moment;
use crate::window::{Second, WINDOW_SECONDS};
use std::sync::Arc;

/// The subject of consumption: a tenant, one of its keys, one of its models, or a namespace with shared limits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectName {
    /// The tenant, or the namespace for shared limits.
    pub tenant: Arc<str>,
    /// The part of the tenant's consumption that is counted.
    pub kind: SubjectKind,
}

impl SubjectName {
    /// Returns the subject that a tenant shares with the other tenants of its namespace and plan;
    /// `None` for a tenant without a namespace.
    pub(crate) fn for_shared(tenant: &str, plan: &Arc<str>) -> Option<Self> {
        let (namespace, _) = tenant.split_once('/')?;
        Some(Self {
            tenant: namespace.into(),
            kind: SubjectKind::Shared(Arc::clone(plan)),
        })
    }
}

/// The parts of a tenant's consumption that are counted separately.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// All consumption of the tenant.
    Tenant,
    /// The consumption of one key.
    Key(CredentialId),
    /// The cost of one model, by name, without requests and tokens. It is counted only while the
    /// model has a budget.
    Model(Arc<str>),
    /// The consumption of all tenants of a namespace that share a plan's limits, by the plan's name.
    Shared(Arc<str>),
}

/// The consumption of one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Consumption on the last known day and in the last known month.
    pub periods: Periods,
    /// Requests in flight.
    pub in_flight: u64,
    /// Consumption of the last minute, in ascending order of seconds without duplicates.
    pub seconds: Vec<Second>,
    /// The days and months that the clock left because it was set; `None` for most subjects.
    pub clock_history: Option<Box<ClockStepHistory>>,
}

impl Usage {
    /// Returns whether nothing was consumed and nothing is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.periods.is_empty()
            && self.in_flight == 0
            && self.seconds.is_empty()
            && self.clock_history.is_none()
    }

    /// Returns the part of the periods that counts on the day and in the month of a moment.
    pub(crate) fn periods_at(&self, now: Moment) -> Periods {
        let left = self.clock_history.as_ref();
        let mut counts = left
            .map(|stepped| stepped.past_periods_at(now))
            .unwrap_or_default();
        // A day in the future comes from a worker whose clock is ahead.
        let Periods {
            day,
            day_counts: of_day,
            month,
            month_counts: of_month,
        } = self.periods;
        if day >= now.day {
            let before = if day == now.day {
                Counts::NONE
            } else {
                counts.day_counts
            };
            counts.day_counts = of_day.plus(before);
        }
        if month >= now.month {
            let before = if month == now.month {
                Counts::NONE
            } else {
                counts.month_counts
            };
            counts.month_counts = of_month.plus(before);
        }
        counts
    }

    /// Applies a step of the clock from one moment to another. The consumption of the periods that
    /// it leaves is stored.
    pub(crate) fn step(&mut self, from: Moment, to: Moment) {
        self.advance(from);
        if self.periods.day == to.day || (self.clock_history.is_none() && self.periods.is_empty()) {
            return;
        }
        self.periods = self.clock_history.get_or_insert_default().step(self.periods, to);
    }

    /// Books consumption. Drops seconds that are no longer in the window at `second`.
    pub(crate) fn book(&mut self, second: u64, requests: u32, used: ActualUsage) {
        let at = Moment::from_second(second);
        let tokens = used.tokens;
        self.advance(at);
        self.periods.add(at, requests, used);
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
                self.prune_before(second);
            }
        }
    }

    /// Subtracts a booking of a second from the periods in which it still counts.
    pub(crate) fn release(&mut self, second: u64, used: ActualUsage) {
        let at = Moment::from_second(second);
        let tokens = used.tokens;
        self.periods.subtract(at, 0, used);
        if let Ok(at) = self.seconds.binary_search_by_key(&second, |held| held.second) {
            let held = &mut self.seconds[at];
            held.tokens = held.tokens.saturating_sub(tokens);
            if held.requests == 0 && held.tokens == 0 {
                self.seconds.remove(at);
            }
        }
    }

    /// Drops consumption that no longer counts at a second.
    pub(crate) fn prune(&mut self, second: u64) {
        self.prune_before(second);
        self.advance(Moment::from_second(second));
    }

    /// Moves consumption with a time after `latest` to `now`, which is before `latest`.
    pub(crate) fn backdate(&mut self, now: Moment, latest: Moment) {
        let counts = self.periods_at(now);
        if self.periods.day > latest.day {
            (self.periods.day, self.periods.day_counts) = (now.day, counts.day_counts);
        }
        if self.periods.month > latest.month {
            (self.periods.month, self.periods.month_counts) = (now.month, counts.month_counts);
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

    fn advance(&mut self, at: Moment) {
        if self.periods.advance(at)
            && let Some(stepped) = &mut self.clock_history
        {
            stepped.restore(&mut self.periods);
        }
    }

    fn prune_before(&mut self, second: u64) {
        let held = |old: &Second| old.second.saturating_add(WINDOW_SECONDS) > second;
        let past = self.seconds.partition_point(|old| !held(old));
        self.seconds.drain(..past);
    }
}
