//! A circuit breaker, which decides from the outcomes of earlier requests whether further ones
//! should be sent.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Number of consecutive failures after which other targets are preferred.
pub(super) const FAILURE_THRESHOLD: u32 = 5;
/// The first pause; it doubles with each failed probe.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The maximum pause, even if a provider asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The circuit breaker of a provider, or of one of its models.
#[derive(Default)]
pub(super) struct CircuitBreaker {
    /// Number of failures since the last success.
    failures: Cell<u32>,
    /// Number of pauses since the provider or model was last healthy.
    pauses: Cell<u32>,
    /// The time at which a probe may be sent; `None` while the provider or model is healthy.
    paused_until: Cell<Option<Instant>>,
    /// The time since which other requests wait for a probe in flight; `None` without such a probe.
    probing_since: Cell<Option<Instant>>,
}

impl CircuitBreaker {
    /// Whether a request should be sent to the provider or model even if another target could serve
    /// it.
    pub(super) fn is_available(&self, now: Instant) -> bool {
        self.paused_until
            .get()
            .is_none_or(|until| until <= now && !self.is_probing(now))
    }

    /// Whether other requests wait for a probe in flight. They wait no longer than the preceding
    /// pause, because the probe may be slow.
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

    /// Returns a probe for the request that starts now; `None` unless the pause is over and no
    /// request waits for another probe.
    pub(super) fn probe(self: &Rc<Self>, now: Instant) -> Option<Probe> {
        let is_due = self.paused_until.get().is_some_and(|until| until <= now);
        (is_due && !self.is_probing(now)).then(|| Probe {
            breaker: Rc::clone(self),
            waiting_since: None,
        })
    }

    /// Whether a request that started at `began` is evidence for the time after the pause. A
    /// request that started before the end of the pause shows neither that the outage is over nor
    /// that the pause was too short.
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

    /// Records that a request that started at `began` failed. `probed`: whether it was the probe.
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

    /// Pauses the provider or model for `pause`, but at most [`MAX_PAUSE`]. Requests that have
    /// another target go to that target.
    pub(super) fn pause(&self, now: Instant, pause: Duration) {
        let until = now.checked_add(pause.min(MAX_PAUSE));
        self.paused_until.set(self.paused_until.get().max(until));
    }

    /// Returns the time at which the pause ends or ended; `None` if there is no pause.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until.get()
    }
}

/// A request that tests whether the outage is over.
pub(super) struct Probe {
    breaker: Rc<CircuitBreaker>,
    /// The time since which other requests wait for the probe; `None` if they do not wait.
    waiting_since: Option<Instant>,
}

impl Probe {
    /// Marks the request as complete. Other requests now wait for it, unless they already wait for
    /// another probe.
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
