//! Consumption as it is handed over: by origin, tenant and key.

use crate::demand::Used;
use crate::stepped::{Periods, Stepped};
use crate::subject::{Moment, Totals};
use crate::window::HELD_SECONDS;
use crate::{CredentialId, IN_FLIGHT_FRESH_SECONDS, MICROS};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// By how much the clock of another worker may be ahead, in microseconds: a day, as where somebody set it to the wrong zone.
const AHEAD: u64 = 86_400 * MICROS;

/// Who consumed: one incarnation of a worker. It alone publishes what it consumed, until its successor does for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The shard.
    pub shard: u32,
    /// The ULID of the incarnation, as a number.
    pub incarnation: u128,
}

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

/// What was consumed in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// Unix seconds.
    pub second: u64,
    /// Requests admitted.
    pub requests: u32,
    /// Tokens reserved or used.
    pub tokens: u64,
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
        // A day that has not begun is that of a worker whose clock is ahead.
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
    pub(crate) fn book(&mut self, second: u64, requests: u32, used: Used) {
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
    pub(crate) fn release(&mut self, second: u64, used: Used) {
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
    fn date_back(&mut self, now: Moment, latest: Moment) {
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

/// What one origin consumed, as far as it still counts.
///
/// Of two snapshots of one origin the newer one is the truth: the one that knows more records, then the one made after
/// the origin's end, then the later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Who consumed.
    pub origin: Origin,
    /// Records 0 to `through_seq` − 1 of the origin's log are in it, and nothing that a later record says.
    pub through_seq: u64,
    /// Whether the origin has ended and will consume no more.
    pub ended: bool,
    /// When it was true, in unix microseconds.
    pub at: u64,
    /// Consumption by subject; none is empty.
    pub subjects: BTreeMap<SubjectName, Usage>,
}

impl Snapshot {
    /// An origin that has consumed nothing yet.
    #[must_use]
    pub fn empty(origin: Origin) -> Self {
        Self {
            origin,
            through_seq: 0,
            ended: false,
            at: 0,
            subjects: BTreeMap::new(),
        }
    }

    /// Whether this one is the truth, rather than `other` of the same origin.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        let version = |snapshot: &Self| (snapshot.through_seq, snapshot.ended, snapshot.at);
        version(self) > version(other)
    }

    /// Brings this snapshot to the state that the limiter had when the changes were taken. Changes are applied in the
    /// order in which they were taken, and none is left out.
    pub fn apply(&mut self, changes: &Changes) {
        self.through_seq = self.through_seq.max(changes.through_seq);
        // A limiter that was turned back tells an earlier time.
        self.at = changes.at;
        for change in &changes.entries {
            let seconds = changes.seconds.get(change.seconds.clone()).unwrap_or_default();
            if change.usage.is_empty() && seconds.is_empty() {
                self.subjects.remove(&change.name);
                continue;
            }
            let usage = self.subjects.entry(change.name.clone()).or_default();
            let mut held = std::mem::take(&mut usage.seconds);
            held.clear();
            held.extend_from_slice(seconds);
            *usage = Usage {
                seconds: held,
                ..change.usage.clone()
            };
        }
    }

    /// Adds to the totals of each tenant, and of what the tenants of each namespace share, what of this origin's
    /// consumption counts at `now` (unix microseconds). `fresh`: whether its requests in flight do.
    pub fn add_to(&self, totals: &mut HashMap<SubjectName, Totals>, now: u64, fresh: bool) {
        let is_shown = |part: &Part| matches!(part, Part::Whole | Part::Shared(_));
        for (name, usage) in self.subjects.iter().filter(|(name, _)| is_shown(&name.part)) {
            let totals = totals.entry(name.clone()).or_default();
            totals.add(usage, now / MICROS, fresh);
        }
    }

    /// Drops what no longer counts at `now` (unix microseconds).
    pub fn prune(&mut self, now: u64) {
        let second = now / MICROS;
        self.subjects.retain(|_, usage| {
            usage.prune(second);
            !usage.is_empty()
        });
    }

    /// Whether nothing in it counts any more at `now` (unix microseconds).
    #[must_use]
    pub fn is_past(&self, now: u64) -> bool {
        let second = now / MICROS;
        let at = Moment::of_second(second);
        let fresh = self.is_fresh(now);
        self.subjects.values().all(|usage| {
            let minute_is_past = usage
                .seconds
                .iter()
                .all(|held| held.second.saturating_add(HELD_SECONDS) <= second);
            let counts = usage.counting(at);
            let day_is_past = counts.day_tokens == 0 && counts.day_cost == 0;
            let month_is_past = counts.month_cost == 0;
            minute_is_past && day_is_past && month_is_past && (usage.in_flight == 0 || !fresh)
        })
    }

    /// Dates what is more than a day ahead of `now` (unix microseconds) to `now`: it is of a worker whose clock was wrong,
    /// and would count in every day until that one comes. So it counts in this day, and in no other.
    pub(crate) fn date_back(&mut self, now: u64) {
        let latest = now.saturating_add(AHEAD);
        if self.at > latest {
            self.at = now;
        }
        let (now, latest) = (Moment::of_micros(now), Moment::of_micros(latest));
        for usage in self.subjects.values_mut() {
            usage.date_back(now, latest);
        }
    }

    /// Whether its requests in flight can be believed at `now` (unix microseconds).
    #[must_use]
    pub(crate) fn is_fresh(&self, now: u64) -> bool {
        let end = self
            .at
            .saturating_add(IN_FLIGHT_FRESH_SECONDS.saturating_mul(MICROS));
        !self.ended && now <= end
    }
}

/// What changed in a limiter since changes were last taken; reused, so that taking them allocates nothing.
#[derive(Debug, Default)]
pub struct Changes {
    pub(crate) through_seq: u64,
    /// Unix microseconds.
    pub(crate) at: u64,
    pub(crate) entries: Vec<Change>,
    pub(crate) seconds: Vec<Second>,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) name: SubjectName,
    /// Without its seconds.
    pub(crate) usage: Usage,
    /// Where its seconds are in `Changes::seconds`.
    pub(crate) seconds: Range<usize>,
}

impl Changes {
    /// Whether no subject changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of subjects that changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
