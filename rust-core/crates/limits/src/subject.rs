//! One subject's consumption, and whether a request fits into its limits.

use crate::MICROS;
use crate::config::Ceilings;
use crate::demand::ActualUsage;
use crate::exceeded::{Exceeded, Limit, RESERVED_WAIT, Scope};
use crate::moment::Moment;
use crate::stepped::{Periods, Stepped};
use crate::usage::{SubjectName, Usage};
use crate::window::{HELD_SECONDS, Second, Window};
use std::time::Duration;

/// A minute's ring, counts of a day and a month, and the requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Consumption {
    /// UTC day of `day_tokens` and `day_cost`.
    day: u64,
    day_tokens: u64,
    /// Nanodollars.
    day_cost: u64,
    /// UTC month of `month_cost`.
    month: u64,
    /// Nanodollars.
    month_cost: u64,
    /// What of the day's and of the month's is reserved by requests under way.
    day_reserved: ActualUsage,
    /// Nanodollars.
    month_reserved: u64,
    pub(crate) in_flight: u64,
    /// `None` while the last minute is empty.
    pub(crate) window: Option<Box<Window>>,
    /// What a clock that was set has left; most subjects have nothing.
    stepped: Option<Box<Stepped>>,
}

impl Consumption {
    /// Lets go of what no longer counts.
    #[inline]
    pub(crate) fn advance(&mut self, to: Moment) {
        if let Some(window) = &mut self.window {
            window.advance(to.second);
        }
        if self.day < to.day {
            let month = self.month.max(to.month);
            let month_cost = if self.month < to.month { 0 } else { self.month_cost };
            (self.day, self.day_tokens, self.day_cost) = (to.day, 0, 0);
            self.day_reserved = ActualUsage::default();
            if self.month < month {
                self.month_reserved = 0;
            }
            (self.month, self.month_cost) = (month, month_cost);
            self.come_again();
        }
    }

    /// A day that has come by itself may have begun before, by a clock that was ahead.
    fn come_again(&mut self) {
        let mut there = self.periods();
        if let Some(stepped) = &mut self.stepped {
            if stepped.is_past(there.day) {
                self.stepped = None;
                return;
            }
            stepped.recall(&mut there);
            self.set_periods(there);
        }
    }

    /// Goes on from a moment to a later one, because the clock was set ahead: what is left behind is remembered.
    pub(crate) fn leap(&mut self, from: Moment, to: Moment) {
        self.advance(from);
        if let Some(window) = &mut self.window {
            window.date(to.second);
        }
        if self.day < to.day {
            self.step(to);
            (self.day_reserved, self.month_reserved) = (ActualUsage::default(), 0);
        }
    }

    /// Goes back to a moment, because the clock had been wrong: what counts in a time that has not come counts in this one.
    pub(crate) fn date_back(&mut self, to: Moment) {
        if let Some(window) = &mut self.window {
            window.date_back(to.second);
        }
        if self.day > to.day {
            self.step(to);
        }
    }

    fn step(&mut self, to: Moment) {
        let now = self.periods();
        if self.stepped.is_none() && self.is_unused() {
            (self.day, self.month) = (to.day, to.month);
            return;
        }
        let there = self.stepped.get_or_insert_default().step(now, to);
        self.set_periods(there);
    }

    fn periods(&self) -> Periods {
        Periods {
            day: self.day,
            day_tokens: self.day_tokens,
            day_cost: self.day_cost,
            month: self.month,
            month_cost: self.month_cost,
        }
    }

    fn set_periods(&mut self, there: Periods) {
        (self.day, self.day_tokens, self.day_cost) = (there.day, there.day_tokens, there.day_cost);
        (self.month, self.month_cost) = (there.month, there.month_cost);
    }

    fn is_unused(&self) -> bool {
        self.day_tokens == 0 && self.day_cost == 0 && self.month_cost == 0
    }

    /// Takes back what was booked on a day that a clock has left since.
    pub(crate) fn take_left(&mut self, at: Moment, used: ActualUsage) {
        if let Some(stepped) = &mut self.stepped {
            stepped.take(at, used);
        }
    }

    /// Books consumption; the window must be there and have advanced to that moment.
    #[inline]
    pub(crate) fn add(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        if let Some(window) = &mut self.window {
            window.add(at.second, requests, used.tokens);
        }
        if self.day == at.day {
            self.day_tokens = self.day_tokens.saturating_add(used.tokens);
            self.day_cost = self.day_cost.saturating_add(used.cost);
        }
        if self.month == at.month {
            self.month_cost = self.month_cost.saturating_add(used.cost);
        }
    }

    /// Takes back what was booked in a second, where it still counts.
    #[inline]
    pub(crate) fn take(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        if let Some(window) = &mut self.window {
            window.take(at.second, requests, used.tokens);
        }
        if self.day == at.day {
            self.day_tokens = self.day_tokens.saturating_sub(used.tokens);
            self.day_cost = self.day_cost.saturating_sub(used.cost);
        }
        if self.month == at.month {
            self.month_cost = self.month_cost.saturating_sub(used.cost);
        }
    }

    /// Takes note that what was booked at `at` is reserved by a request under way.
    #[inline]
    pub(crate) fn reserve(&mut self, at: Moment, asked: ActualUsage) {
        if let Some(window) = &mut self.window {
            window.reserve(at.second, asked.tokens);
        }
        if self.day == at.day {
            self.day_reserved.tokens = self.day_reserved.tokens.saturating_add(asked.tokens);
            self.day_reserved.cost = self.day_reserved.cost.saturating_add(asked.cost);
        }
        if self.month == at.month {
            self.month_reserved = self.month_reserved.saturating_add(asked.cost);
        }
    }

    /// The request that reserved it has ended; what it used stays booked.
    #[inline]
    pub(crate) fn release(&mut self, at: Moment, asked: ActualUsage) {
        if let Some(window) = &mut self.window {
            window.release(at.second, asked.tokens);
        }
        if self.day == at.day {
            self.day_reserved = self.day_reserved.beyond(asked);
        }
        if self.month == at.month {
            self.month_reserved = self.month_reserved.saturating_sub(asked.cost);
        }
    }

    /// What of a limit's consumption is reserved by requests under way.
    fn reserved(&self, limit: Limit) -> u64 {
        match limit {
            Limit::TokensPerMinute => self.window.as_deref().map_or(0, Window::reserved),
            Limit::TokensPerDay => self.day_reserved.tokens,
            Limit::MoneyPerDay => self.day_reserved.cost,
            Limit::MoneyPerMonth => self.month_reserved,
            Limit::RequestsPerMinute | Limit::Concurrency => 0,
        }
    }

    /// Replaces everything; seconds that have not begun count as `second`, because clocks of workers differ.
    pub(crate) fn replace(&mut self, usage: &Usage, second: u64) {
        (self.day, self.day_tokens, self.day_cost) = (usage.day, usage.day_tokens, usage.day_cost);
        (self.month, self.month_cost) = (usage.month, usage.month_cost);
        (self.day_reserved, self.month_reserved) = (ActualUsage::default(), 0);
        self.stepped.clone_from(&usage.stepped);
        self.in_flight = usage.in_flight;
        if let Some(window) = &mut self.window {
            window.restart(second);
            for held in &usage.seconds {
                window.add(held.second.min(second), held.requests, held.tokens);
            }
        }
    }

    /// Whether it could be forgotten: nothing counts and nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        let nothing_counts = self.is_unused() && self.stepped.is_none();
        nothing_counts && self.in_flight == 0 && self.window.as_deref().is_none_or(Window::is_empty)
    }

    /// All but the last minute.
    pub(crate) fn without_seconds(&self) -> Usage {
        Usage {
            day: self.day,
            day_tokens: self.day_tokens,
            day_cost: self.day_cost,
            month: self.month,
            month_cost: self.month_cost,
            in_flight: self.in_flight,
            seconds: Vec::new(),
            stepped: self.stepped.clone(),
        }
    }

    pub(crate) fn seconds(&self) -> impl Iterator<Item = Second> + '_ {
        self.window.iter().flat_map(|window| window.seconds())
    }
}

/// Consumption of this worker and of all others together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests admitted in the last minute.
    pub requests: u64,
    /// Tokens reserved or used in the last minute.
    pub tokens: u64,
    /// Tokens reserved or used on this UTC day.
    pub day_tokens: u64,
    /// Requests admitted and not ended.
    pub in_flight: u64,
    /// Nanodollars set aside or spent on this UTC day.
    pub day_cost: u64,
    /// Nanodollars set aside or spent in this UTC month.
    pub month_cost: u64,
}

impl Totals {
    fn plus(&mut self, other: &Consumption) {
        let (requests, tokens) = other.window.as_deref().map_or((0, 0), Window::sums);
        self.requests = self.requests.saturating_add(requests);
        self.tokens = self.tokens.saturating_add(tokens);
        self.day_tokens = self.day_tokens.saturating_add(other.day_tokens);
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
        self.day_cost = self.day_cost.saturating_add(other.day_cost);
        self.month_cost = self.month_cost.saturating_add(other.month_cost);
    }

    /// Adds what of an origin's consumption counts in a second. `fresh`: whether its requests in flight do.
    pub(crate) fn add(&mut self, usage: &Usage, second: u64, fresh: bool) {
        let counts = |held: &&Second| held.second.saturating_add(HELD_SECONDS) > second;
        for held in usage.seconds.iter().filter(counts) {
            self.requests = self.requests.saturating_add(u64::from(held.requests));
            self.tokens = self.tokens.saturating_add(held.tokens);
        }
        let now = Moment::of_second(second);
        let counts = usage.counting(now);
        self.day_tokens = self.day_tokens.saturating_add(counts.day_tokens);
        self.day_cost = self.day_cost.saturating_add(counts.day_cost);
        self.month_cost = self.month_cost.saturating_add(counts.month_cost);
        if fresh {
            self.in_flight = self.in_flight.saturating_add(usage.in_flight);
        }
    }

    /// Whether one more request that uses so much fits.
    #[inline]
    pub(crate) fn fit(&self, ceilings: &Ceilings, asked: ActualUsage) -> bool {
        self.requests.saturating_add(1) <= ceilings.requests
            && self.tokens.saturating_add(asked.tokens) <= ceilings.tokens
            && self.day_tokens.saturating_add(asked.tokens) <= ceilings.day_tokens
            && self.in_flight.saturating_add(1) <= ceilings.in_flight
            && self.day_cost.saturating_add(asked.cost) <= ceilings.day_cost
            && self.month_cost.saturating_add(asked.cost) <= ceilings.month_cost
    }

    /// Whether so much money more fits.
    pub(crate) fn fits_money(&self, ceilings: &Ceilings, cost: u64) -> bool {
        self.day_cost.saturating_add(cost) <= ceilings.day_cost
            && self.month_cost.saturating_add(cost) <= ceilings.month_cost
    }

    /// What one limit is, how much of it is consumed, and how much of it one request needs.
    pub(crate) fn of(&self, limit: Limit, ceilings: &Ceilings, asked: ActualUsage) -> (u64, u64, u64) {
        match limit {
            Limit::RequestsPerMinute => (ceilings.requests, self.requests, 1),
            Limit::TokensPerMinute => (ceilings.tokens, self.tokens, asked.tokens),
            Limit::TokensPerDay => (ceilings.day_tokens, self.day_tokens, asked.tokens),
            Limit::Concurrency => (ceilings.in_flight, self.in_flight, 1),
            Limit::MoneyPerDay => (ceilings.day_cost, self.day_cost, asked.cost),
            Limit::MoneyPerMonth => (ceilings.month_cost, self.month_cost, asked.cost),
        }
    }
}

/// A tenant, or one of its keys.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: SubjectName,
    /// What this worker admitted.
    pub(crate) own: Consumption,
    /// What all others did, as far as it was told.
    pub(crate) foreign: Option<Box<Consumption>>,
    /// Whether it changed since changes were last taken.
    pub(crate) changed: bool,
    /// Whether the slot is free.
    pub(crate) vacant: bool,
}

impl Subject {
    pub(crate) fn new(name: SubjectName) -> Self {
        Self {
            name,
            own: Consumption::default(),
            foreign: None,
            changed: false,
            vacant: false,
        }
    }

    /// Lets go of what no longer counts and sums up the rest.
    #[inline]
    pub(crate) fn totals(&mut self, now: Moment) -> Totals {
        let mut totals = Totals::default();
        self.own.advance(now);
        totals.plus(&self.own);
        if let Some(foreign) = &mut self.foreign {
            foreign.advance(now);
            totals.plus(foreign);
        }
        totals
    }

    /// The oldest and the latest second in which anything that still counts was consumed.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        let windows = || self.windows();
        let oldest = windows().filter_map(Window::oldest).min()?;
        let latest = windows().filter_map(Window::latest).max()?;
        Some((oldest, latest))
    }

    fn windows(&self) -> impl Iterator<Item = &Window> {
        let foreign = self
            .foreign
            .as_deref()
            .and_then(|foreign| foreign.window.as_deref());
        self.own.window.as_deref().into_iter().chain(foreign)
    }

    /// The limit that keeps a request out longest, if any does. The subject must have been advanced to `now`; `told` is
    /// the time that the caller knows, in unix microseconds.
    pub(crate) fn exceeded(
        &self,
        scope: Scope,
        ceilings: &Ceilings,
        totals: &Totals,
        asked: ActualUsage,
        (now, told): (Moment, u64),
    ) -> Option<Exceeded> {
        let mut longest: Option<Exceeded> = None;
        for limit in Limit::ALL {
            let (value, used, needed) = totals.of(limit, ceilings, asked);
            if used.saturating_add(needed) <= value {
                continue;
            }
            let opens_at =
                |opens: u64| Duration::from_micros(opens.saturating_mul(MICROS).saturating_sub(told));
            let excess = used.saturating_add(needed) - value;
            let retry_after = match limit {
                _ if needed > value => None,
                Limit::Concurrency => Some(Duration::ZERO),
                Limit::TokensPerDay | Limit::MoneyPerDay => Some(opens_at(now.next_day())),
                Limit::MoneyPerMonth => Some(opens_at(now.next_month())),
                Limit::RequestsPerMinute => Some(opens_at(
                    self.leaves_at(now.second, excess, |held| u64::from(held.requests)),
                )),
                Limit::TokensPerMinute => {
                    Some(opens_at(self.leaves_at(now.second, excess, |held| held.tokens)))
                }
            };
            // Of what others have admitted, nobody tells how much is only reserved.
            let reserved = self.own.reserved(limit);
            let fits_settled = used.saturating_sub(reserved).saturating_add(needed) <= value;
            let waits_for_others = reserved > 0 && fits_settled;
            let new = Exceeded {
                limit,
                scope,
                value,
                remaining: value.saturating_sub(used),
                reserved: if waits_for_others { reserved } else { 0 },
                retry_after: match waits_for_others {
                    true => retry_after.map(|after| after.min(RESERVED_WAIT)),
                    false => retry_after,
                },
            };
            if longest.is_none_or(|longest| waits_longer(&new, &longest)) {
                longest = Some(new);
            }
        }
        longest
    }

    /// The second in which so much of the window has left that `excess` is gone.
    fn leaves_at(&self, second: u64, excess: u64, amount: impl Fn(&Second) -> u64) -> u64 {
        let mut in_second = [0u64; HELD_SECONDS as usize];
        for held in self.windows().flat_map(Window::seconds) {
            let age = usize::try_from(second.saturating_sub(held.second)).unwrap_or(usize::MAX);
            if let Some(sum) = in_second.get_mut(age) {
                *sum = sum.saturating_add(amount(&held));
            }
        }
        let mut left = excess;
        for age in (0..HELD_SECONDS).rev() {
            let sum = in_second[age as usize];
            if left <= sum {
                return second.saturating_add(HELD_SECONDS - age);
            }
            left -= sum;
        }
        second.saturating_add(HELD_SECONDS)
    }
}

/// Whether `new` keeps the request out longer than `old`; `None` is for ever.
pub(crate) fn waits_longer(new: &Exceeded, old: &Exceeded) -> bool {
    match (new.retry_after, old.retry_after) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(new), Some(old)) => new > old,
    }
}
