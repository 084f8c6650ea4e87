//! The consumption of one subject, and the check whether a request fits the subject's limits.

use crate::MICROS_PER_SECOND;
use crate::clock_steps::ClockStepHistory;
use crate::config::Ceilings;
use crate::counts::{Counts, Periods};
use crate::demand::ActualUsage;
use crate::kinds::{Limit, Period, Quantity};
use crate::limit_exceeded::{LimitExceeded, RESERVATION_RETRY_AFTER, Scope};
use crate::moment::Moment;
use crate::usage::{SubjectName, Usage};
use crate::window::{Second, WINDOW_SECONDS, Window};
use std::time::Duration;

/// The consumption of a subject: the window of the last minute, the counts of a day and a month,
/// and the requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Consumption {
    periods: Periods,
    /// The part of the day's counts that is reserved by requests in flight; `month_reserved` is the
    /// part of the month's counts.
    day_reserved: Counts,
    month_reserved: Counts,
    pub(crate) in_flight: u64,
    /// The window of the last minute; `None` while it is empty.
    pub(crate) window: Option<Box<Window>>,
    /// The days and months that the clock left because it was set; `None` for most subjects.
    clock_history: Option<Box<ClockStepHistory>>,
}

impl Consumption {
    /// Drops consumption that no longer counts.
    #[inline]
    pub(crate) fn advance(&mut self, to: Moment) {
        if let Some(window) = &mut self.window {
            window.advance(to.second);
        }
        let month = self.periods.month;
        if self.periods.advance(to) {
            self.day_reserved = Counts::NONE;
            if self.periods.month != month {
                self.month_reserved = Counts::NONE;
            }
            self.restore_periods();
        }
    }

    /// Restores the counts of a day that the clock reached without being set and that it may have
    /// reached before, while it was ahead.
    fn restore_periods(&mut self) {
        if let Some(stepped) = &mut self.clock_history {
            if stepped.is_expired(self.periods.day) {
                self.clock_history = None;
                return;
            }
            stepped.restore(&mut self.periods);
        }
    }

    /// Jumps to a later moment, because the clock was set ahead. The consumption of the periods
    /// that it leaves is stored.
    pub(crate) fn jump_forward(&mut self, from: Moment, to: Moment) {
        self.advance(from);
        if let Some(window) = &mut self.window {
            window.move_to(to.second);
        }
        if self.periods.day < to.day {
            self.step(to);
            (self.day_reserved, self.month_reserved) = (Counts::NONE, Counts::NONE);
        }
    }

    /// Goes back to a moment, because the clock was wrong. Consumption at a future time counts at
    /// this moment.
    pub(crate) fn backdate(&mut self, to: Moment) {
        if let Some(window) = &mut self.window {
            window.backdate(to.second);
        }
        if self.periods.day > to.day {
            self.step(to);
        }
    }

    fn step(&mut self, to: Moment) {
        if self.clock_history.is_none() && self.periods.is_empty() {
            self.periods = Periods::empty_at(to);
            return;
        }
        self.periods = self.clock_history.get_or_insert_default().step(self.periods, to);
    }

    /// Subtracts a booking from a day that the clock has left in the meantime.
    pub(crate) fn subtract_past(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        if let Some(stepped) = &mut self.clock_history {
            stepped.subtract(at, requests, used);
        }
    }

    /// Books consumption. The window must exist and have advanced to the moment `at`.
    #[inline]
    pub(crate) fn add(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        if let Some(window) = &mut self.window {
            window.add(at.second, requests, used.tokens);
        }
        self.periods.add(at, requests, used);
    }

    /// Subtracts a booking of a second from the periods in which it still counts.
    #[inline]
    pub(crate) fn subtract(&mut self, at: Moment, requests: u32, used: ActualUsage) {
        if let Some(window) = &mut self.window {
            window.subtract(at.second, requests, used.tokens);
        }
        self.periods.subtract(at, requests, used);
    }

    /// Marks the booking at `at` as reserved by a request in flight.
    #[inline]
    pub(crate) fn reserve(&mut self, at: Moment, asked: ActualUsage) {
        if let Some(window) = &mut self.window {
            window.reserve(at.second, asked.tokens);
        }
        let (of_day, of_month) = self.periods.counted_at(at, 0, asked);
        self.day_reserved = self.day_reserved.plus(of_day);
        self.month_reserved = self.month_reserved.plus(of_month);
    }

    /// Removes the reserved mark of a request that has ended. Its booking remains.
    #[inline]
    pub(crate) fn release(&mut self, at: Moment, asked: ActualUsage) {
        if let Some(window) = &mut self.window {
            window.release(at.second, asked.tokens);
        }
        let (of_day, of_month) = self.periods.counted_at(at, 0, asked);
        self.day_reserved = self.day_reserved.minus(of_day);
        self.month_reserved = self.month_reserved.minus(of_month);
    }

    /// Returns the part of a limit's consumption that is reserved by requests in flight.
    fn reserved(&self, limit: Limit) -> u64 {
        let kind = limit.kind();
        match kind.period {
            Period::Minute if kind.quantity == Quantity::Tokens => {
                self.window.as_deref().map_or(0, Window::reserved)
            }
            Period::Day => self.day_reserved.get(kind.quantity),
            Period::Month => self.month_reserved.get(kind.quantity),
            Period::Minute | Period::Instant => 0,
        }
    }

    /// Replaces the whole consumption. Seconds in the future count as `second`, because the clocks
    /// of workers differ.
    pub(crate) fn replace(&mut self, usage: &Usage, second: u64) {
        self.periods = usage.periods;
        (self.day_reserved, self.month_reserved) = (Counts::NONE, Counts::NONE);
        self.clock_history.clone_from(&usage.clock_history);
        self.in_flight = usage.in_flight;
        if let Some(window) = &mut self.window {
            window.reset(second);
            for held in &usage.seconds {
                window.add(held.second.min(second), held.requests, held.tokens);
            }
        }
    }

    /// Returns whether the subject can be removed, because no consumption counts and no request is
    /// in flight.
    pub(crate) fn is_idle(&self) -> bool {
        let nothing_counts = self.periods.is_empty() && self.clock_history.is_none();
        nothing_counts && self.in_flight == 0 && self.window.as_deref().is_none_or(Window::is_empty)
    }

    /// Returns the usage without the last minute.
    pub(crate) fn without_seconds(&self) -> Usage {
        Usage {
            periods: self.periods,
            in_flight: self.in_flight,
            seconds: Vec::new(),
            clock_history: self.clock_history.clone(),
        }
    }

    pub(crate) fn seconds(&self) -> impl Iterator<Item = Second> + '_ {
        self.window.iter().flat_map(|window| window.seconds())
    }
}

/// The total consumption of this worker and of all other workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Consumption in the last minute, without money.
    pub minute: Counts,
    /// Consumption on this UTC day.
    pub day: Counts,
    /// Consumption in this UTC month.
    pub month: Counts,
    /// Requests in flight.
    pub in_flight: u64,
}

impl Totals {
    fn add_consumption(&mut self, other: &Consumption) {
        let (requests, tokens) = other.window.as_deref().map_or((0, 0), Window::sums);
        self.add_minute(requests, tokens);
        self.day = self.day.plus(other.periods.day_counts);
        self.month = self.month.plus(other.periods.month_counts);
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
    }

    /// Adds the part of an origin's usage that counts in a second. `fresh` states whether the
    /// origin's requests in flight count.
    pub(crate) fn add(&mut self, usage: &Usage, second: u64, fresh: bool) {
        let counts = |held: &&Second| held.second.saturating_add(WINDOW_SECONDS) > second;
        for held in usage.seconds.iter().filter(counts) {
            self.add_minute(u64::from(held.requests), held.tokens);
        }
        let now = Moment::from_second(second);
        let counts = usage.periods_at(now);
        self.day = self.day.plus(counts.day_counts);
        self.month = self.month.plus(counts.month_counts);
        if fresh {
            self.in_flight = self.in_flight.saturating_add(usage.in_flight);
        }
    }

    fn add_minute(&mut self, requests: u64, tokens: u64) {
        let more = Counts {
            requests,
            tokens,
            cost: 0,
        };
        self.minute = self.minute.plus(more);
    }

    /// Returns the used amount of one limit, in the limit's unit.
    #[inline]
    #[must_use]
    pub fn used(&self, limit: Limit) -> u64 {
        let kind = limit.kind();
        match kind.period {
            Period::Minute => self.minute.get(kind.quantity),
            Period::Day => self.day.get(kind.quantity),
            Period::Month => self.month.get(kind.quantity),
            Period::Instant => self.in_flight,
        }
    }

    /// Returns whether one more request with this usage fits.
    #[inline]
    pub(crate) fn fits(&self, ceilings: &Ceilings, asked: ActualUsage) -> bool {
        self.fits_where(ceilings, asked, |_| true)
    }

    /// Returns whether this much more money fits.
    pub(crate) fn fits_money(&self, ceilings: &Ceilings, cost: u64) -> bool {
        let asked = ActualUsage { tokens: 0, cost };
        self.fits_where(ceilings, asked, Limit::is_money)
    }

    #[inline]
    fn fits_where(&self, ceilings: &Ceilings, asked: ActualUsage, those: impl Fn(Limit) -> bool) -> bool {
        let needed = Counts::from_request(asked);
        Limit::ALL.into_iter().filter(|limit| those(*limit)).all(|limit| {
            let needed = needed.get(limit.kind().quantity);
            self.used(limit).saturating_add(needed) <= ceilings.get(limit)
        })
    }
}

/// A tenant, one of its keys or models, or a group of tenants.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: SubjectName,
    /// Consumption of requests that this worker admitted.
    pub(crate) local: Consumption,
    /// The last known consumption of all other workers.
    pub(crate) remote: Option<Box<Consumption>>,
    /// Whether the subject changed since changes were last taken.
    pub(crate) changed: bool,
    /// Whether the slot is free.
    pub(crate) vacant: bool,
}

impl Subject {
    pub(crate) fn new(name: SubjectName) -> Self {
        Self {
            name,
            local: Consumption::default(),
            remote: None,
            changed: false,
            vacant: false,
        }
    }

    /// Drops consumption that no longer counts and returns the sum of the rest.
    #[inline]
    pub(crate) fn totals(&mut self, now: Moment) -> Totals {
        let mut totals = Totals::default();
        self.local.advance(now);
        totals.add_consumption(&self.local);
        if let Some(foreign) = &mut self.remote {
            foreign.advance(now);
            totals.add_consumption(foreign);
        }
        totals
    }

    /// Returns the oldest and the latest second with consumption that still counts.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        let windows = || self.windows();
        let oldest = windows().filter_map(Window::oldest).min()?;
        let latest = windows().filter_map(Window::latest).max()?;
        Some((oldest, latest))
    }

    fn windows(&self) -> impl Iterator<Item = &Window> {
        let foreign = self
            .remote
            .as_deref()
            .and_then(|foreign| foreign.window.as_deref());
        self.local.window.as_deref().into_iter().chain(foreign)
    }

    /// Returns the limit with the longest wait, if any is exceeded. The subject must have been
    /// advanced to `now`. `told` is the caller's time in unix microseconds.
    pub(crate) fn exceeded_limit(
        &self,
        scope: Scope,
        ceilings: &Ceilings,
        totals: &Totals,
        asked: ActualUsage,
        (now, told): (Moment, u64),
    ) -> Option<LimitExceeded> {
        let mut longest: Option<LimitExceeded> = None;
        for limit in Limit::ALL {
            let kind = limit.kind();
            let (value, used) = (ceilings.get(limit), totals.used(limit));
            let needed = Counts::from_request(asked).get(kind.quantity);
            if used.saturating_add(needed) <= value {
                continue;
            }
            let opens_at = |opens: u64| {
                Duration::from_micros(opens.saturating_mul(MICROS_PER_SECOND).saturating_sub(told))
            };
            let excess = used.saturating_add(needed) - value;
            let retry_after = match kind.period {
                _ if needed > value => None,
                Period::Instant => Some(Duration::ZERO),
                Period::Day => Some(opens_at(now.next_day())),
                Period::Month => Some(opens_at(now.next_month())),
                Period::Minute => Some(opens_at(self.expires_at(now.second, excess, kind.quantity))),
            };
            // Other workers do not report which part of their consumption is only reserved.
            let reserved = self.local.reserved(limit);
            let fits_settled = used.saturating_sub(reserved).saturating_add(needed) <= value;
            let waits_for_others = reserved > 0 && fits_settled;
            let new = LimitExceeded {
                limit,
                scope,
                value,
                remaining: value.saturating_sub(used),
                reserved: if waits_for_others { reserved } else { 0 },
                retry_after: match waits_for_others {
                    true => retry_after.map(|after| after.min(RESERVATION_RETRY_AFTER)),
                    false => retry_after,
                },
            };
            if longest.is_none_or(|longest| has_longer_wait(&new, &longest)) {
                longest = Some(new);
            }
        }
        longest
    }

    /// Returns the first second in which `excess` is no longer in the window.
    fn expires_at(&self, second: u64, excess: u64, quantity: Quantity) -> u64 {
        let amount = |held: &Second| match quantity {
            Quantity::Tokens => held.tokens,
            _ => u64::from(held.requests),
        };
        let mut in_second = [0u64; WINDOW_SECONDS as usize];
        for held in self.windows().flat_map(Window::seconds) {
            let age = usize::try_from(second.saturating_sub(held.second)).unwrap_or(usize::MAX);
            if let Some(sum) = in_second.get_mut(age) {
                *sum = sum.saturating_add(amount(&held));
            }
        }
        let mut left = excess;
        for age in (0..WINDOW_SECONDS).rev() {
            let sum = in_second[age as usize];
            if left <= sum {
                return second.saturating_add(WINDOW_SECONDS - age);
            }
            left -= sum;
        }
        second.saturating_add(WINDOW_SECONDS)
    }
}

/// Returns whether `new` has a longer wait than `old`. `None` is the longest wait.
pub(crate) fn has_longer_wait(new: &LimitExceeded, old: &LimitExceeded) -> bool {
    match (new.retry_after, old.retry_after) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(new), Some(old)) => new > old,
    }
}
