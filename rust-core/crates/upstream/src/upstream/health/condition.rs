//! Whether requests should come, by the outcomes of those before.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Failures in a row from which on others are preferred.
pub(super) const FAILURE_THRESHOLD: u32 = 5;
/// How long, at first; twice as long with each request in vain after that.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// How long at most, also when a provider asks for more.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The condition of a provider, or of one of its models.
#[derive(Default)]
pub(super) struct CircuitBreaker {
    /// Failures since it was last well.
    failures: Cell<u32>,
    /// Pauses since then.
    pauses: Cell<u32>,
    /// When the one request may go that shows whether it is well again; `None` while it is.
    paused_until: Cell<Option<Instant>>,
    /// Since when that request is under way, if it is.
    probing_since: Cell<Option<Instant>>,
}

impl CircuitBreaker {
    /// Whether a request that could go to another target should come here.
    pub(super) fn is_available(&self, now: Instant) -> bool {
        self.paused_until
            .get()
            .is_none_or(|until| until <= now && !self.is_probing(now))
    }

    /// Whether a request is under way for which others wait. They do for no longer than for the pause before it: it may be a
    /// slow one.
    fn is_probing(&self, now: Instant) -> bool {
        let since = self.probing_since.get();
        let patience = Self::pause_after(self.pauses.get().saturating_sub(1));
        since.is_some_and(|since| now.saturating_duration_since(since) < patience)
    }

    /// How long the next pause is after so many.
    fn pause_after(pauses: u32) -> Duration {
        let factor = 1_u32.checked_shl(pauses).unwrap_or(u32::MAX);
        FIRST_PAUSE.saturating_mul(factor).min(MAX_PAUSE)
    }

    /// The request that begins now as a probe, if the pause is over and no other one is under way.
    pub(super) fn probe(self: &Rc<Self>, now: Instant) -> Option<Probe> {
        let is_due = self.paused_until.get().is_some_and(|until| until <= now);
        (is_due && !self.is_probing(now)).then(|| Probe {
            breaker: Rc::clone(self),
            waiting_since: None,
        })
    }

    /// Whether a request that began at `began` says something of the time after the pause: what was under way before it does
    /// not show that it is over, nor that it was too short.
    fn started_after_pause(&self, began: Instant) -> bool {
        self.paused_until.get().is_none_or(|until| until <= began)
    }

    /// A request that began at `began` was answered. Returns whether nothing of the past is left.
    pub(super) fn record_success(&self, began: Instant) -> bool {
        self.failures.set(0);
        let is_after = self.started_after_pause(began);
        if is_after {
            self.pauses.set(0);
            self.paused_until.set(None);
        }
        is_after
    }

    /// A request that began at `began` failed; `probed`: it was the probe.
    pub(super) fn record_failure(&self, began: Instant, now: Instant, probed: bool) {
        self.failures.set(self.failures.get().saturating_add(1));
        let is_enough = match self.paused_until.get() {
            Some(_) => probed && self.started_after_pause(began),
            None => self.failures.get() >= FAILURE_THRESHOLD,
        };
        if is_enough {
            let pause = Self::pause_after(self.pauses.get());
            self.pauses.set(self.pauses.get().saturating_add(1));
            self.pause(now, pause);
        }
    }

    /// Requests that could go to another target should do so for so long, but at most a minute.
    pub(super) fn pause(&self, now: Instant, pause: Duration) {
        let until = now.checked_add(pause.min(MAX_PAUSE));
        self.paused_until.set(self.paused_until.get().max(until));
    }

    /// When the pause ends or has ended; `None` without one.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until.get()
    }
}

/// A request that shows whether a pause is over.
pub(super) struct Probe {
    breaker: Rc<CircuitBreaker>,
    /// Since when others wait for it, if they do.
    waiting_since: Option<Instant>,
}

impl Probe {
    /// All of the request is there: from now on others wait for it, unless they wait for another one.
    pub(super) fn mark_complete(&mut self, now: Instant) {
        if !self.breaker.is_probing(now) {
            self.breaker.probing_since.set(Some(now));
            self.waiting_since = Some(now);
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if self.waiting_since.is_some() && self.breaker.probing_since.get() == self.waiting_since {
            self.breaker.probing_since.set(None);
        }
    }
}
