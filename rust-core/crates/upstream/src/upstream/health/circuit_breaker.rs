//! A circuit breaker: whether requests should be sent, from the outcomes of earlier ones.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Consecutive failures after which other targets are preferred.
pub(super) const FAILURE_THRESHOLD: u32 = 5;
/// The first pause; it doubles with each failed probe.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause, also if a provider asks for more.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The circuit breaker of a provider, or of one of its models.
#[derive(Default)]
pub(super) struct CircuitBreaker {
    /// Failures since it was last healthy.
    failures: Cell<u32>,
    /// Pauses since it was last healthy.
    pauses: Cell<u32>,
    /// When a probe may be sent; `None` while it is healthy.
    paused_until: Cell<Option<Instant>>,
    /// Since when a probe is in flight, if one is.
    probing_since: Cell<Option<Instant>>,
}

impl CircuitBreaker {
    /// Whether a request that could go to another target should be sent here.
    pub(super) fn is_available(&self, now: Instant) -> bool {
        self.paused_until
            .get()
            .is_none_or(|until| until <= now && !self.is_probing(now))
    }

    /// Whether a probe is in flight for which others wait. They wait no longer than the preceding pause, because the probe
    /// may be slow.
    fn is_probing(&self, now: Instant) -> bool {
        let since = self.probing_since.get();
        let patience = Self::pause_after(self.pauses.get().saturating_sub(1));
        since.is_some_and(|since| now.saturating_duration_since(since) < patience)
    }

    /// Returns the length of the next pause after `pauses` pauses.
    fn pause_after(pauses: u32) -> Duration {
        let factor = 1_u32.checked_shl(pauses).unwrap_or(u32::MAX);
        FIRST_PAUSE.saturating_mul(factor).min(MAX_PAUSE)
    }

    /// Returns a probe for the request that starts now, if the pause is over and no other probe is in flight.
    pub(super) fn probe(self: &Rc<Self>, now: Instant) -> Option<Probe> {
        let is_due = self.paused_until.get().is_some_and(|until| until <= now);
        (is_due && !self.is_probing(now)).then(|| Probe {
            breaker: Rc::clone(self),
            waiting_since: None,
        })
    }

    /// Whether a request that started at `began` is evidence for the time after the pause. A request that was in flight
    /// before shows neither that the outage is over nor that the pause was too short.
    fn started_after_pause(&self, began: Instant) -> bool {
        self.paused_until.get().is_none_or(|until| until <= began)
    }

    /// Records that a request that started at `began` got a response. Returns whether the breaker is fully reset.
    pub(super) fn record_success(&self, began: Instant) -> bool {
        self.failures.set(0);
        let is_after = self.started_after_pause(began);
        if is_after {
            self.pauses.set(0);
            self.paused_until.set(None);
        }
        is_after
    }

    /// Records that a request that started at `began` failed; `probed`: it was the probe.
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

    /// Sends requests that have another target there for `pause`, but for at most a minute.
    pub(super) fn pause(&self, now: Instant, pause: Duration) {
        let until = now.checked_add(pause.min(MAX_PAUSE));
        self.paused_until.set(self.paused_until.get().max(until));
    }

    /// Returns when the pause ends or ended; `None` if there is none.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until.get()
    }
}

/// A request that tests whether the outage is over.
pub(super) struct Probe {
    breaker: Rc<CircuitBreaker>,
    /// Since when others wait for it, if they do.
    waiting_since: Option<Instant>,
}

impl Probe {
    /// Marks the request as complete: from now on others wait for it, unless they wait for another probe.
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
