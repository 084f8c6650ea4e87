//! Whether a provider is worth asking for a model, by the outcomes of earlier requests.
//!
//! Providers limit and overload each model by itself, so what one says of a request (429, `Retry-After`, 503, silence) holds for
//! the model that was asked for, as the provider names it. Only where no connection comes about, or the provider takes not
//! all of a request, no model can be reached: that holds for the whole provider.
//!
//! After [`condition::FAILURE_THRESHOLD`] attempts in a row that failed, requests go to another target for a while, wherever their model has one;
//! then one request is let through as a probe, and the next one if nothing is heard of that soon. A model that has no other
//! target is sent to its provider all the same: nothing would be gained by failing for it.

mod condition;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proofgate_config::RateLimits;
use proofgate_ledger::record::SendOutcome;

use self::condition::{CircuitBreaker, Probe};
use super::rate::{RateLimiter, RateReservation};

/// Requests for each of which one may be sent again to the same provider, and what is saved up of that at most.
const REQUESTS_PER_RETRY: u32 = 10;
const MAX_SAVED_RETRIES: u32 = 10 * REQUESTS_PER_RETRY;
/// Models of one provider whose failures are remembered, at most: behind a wildcard, clients choose the names.
const MAX_MODELS: usize = 1024;

/// What the outcome of an attempt says of its provider and the model there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The model answers.
    Healthy,
    /// The provider could not be reached, or took not all of the request.
    Unreachable,
    /// The model does not answer, or the provider says that it cannot.
    Failed,
    /// The model is to be left alone for so long.
    Busy(Duration),
    /// Nothing follows from it.
    Inconclusive,
}

/// The health of a provider.
pub struct Health {
    /// Whether it can be reached.
    connectivity: Rc<CircuitBreaker>,
    /// Those of its models that are not well, by the names that it has for them; at most [`MAX_MODELS`].
    models: RefCell<HashMap<Box<str>, Rc<CircuitBreaker>>>,
    in_flight: Cell<u32>,
    /// What is left for sending again.
    saved_retries: Cell<u32>,
    /// What it was asked of late.
    rate: RateLimiter,
}

impl Default for Health {
    fn default() -> Self {
        Health {
            connectivity: Rc::default(),
            models: RefCell::default(),
            in_flight: Cell::default(),
            saved_retries: Cell::new(MAX_SAVED_RETRIES),
            rate: RateLimiter::default(),
        }
    }
}

impl Health {
    /// Whether the provider is to be asked, apart from what is known of a model.
    pub(crate) fn is_reachable(&self, now: Instant) -> bool {
        self.connectivity.is_available(now)
    }

    /// Whether a request for the model that `name` returns, if it could go to another target, should come here. The name is
    /// asked for only while some model is not well.
    pub(crate) fn is_available<'n>(&self, name: impl FnOnce() -> Cow<'n, str>, now: Instant) -> bool {
        self.is_reachable(now) && {
            let models = self.models.borrow();
            models.is_empty() || models.get(&*name()).is_none_or(|model| model.is_available(now))
        }
    }

    /// Whether it, or one of its models, is passed over.
    pub fn is_skipped(&self, now: Instant) -> bool {
        let models = self.models.borrow();
        !self.is_reachable(now) || models.values().any(|model| !model.is_available(now))
    }

    /// Requests that are under way there.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.get()
    }

    /// How long no request may be sent there within `limits`; `None` when one may be.
    pub(super) fn rate_limit_delay(&self, limits: RateLimits, now: Instant) -> Option<Duration> {
        self.rate.delay(limits, now)
    }

    /// Counts a request for `model` that may come to `tokens` as under way, until what is returned is dropped. `mark_complete`:
    /// whether all of it is there; for one that its client still sends nobody waits.
    pub(super) fn start_request(
        self: &Rc<Self>,
        now: Instant,
        model: &str,
        limits: RateLimits,
        tokens: u64,
        is_whole: bool,
    ) -> InFlightPermit {
        self.in_flight.set(self.in_flight.get().saturating_add(1));
        self.saved_retries
            .set(MAX_SAVED_RETRIES.min(self.saved_retries.get() + 1));
        let of_model = self.breaker_for(model).and_then(|model| model.probe(now));
        let mut attending = InFlightPermit {
            started_at: now,
            probes: [self.connectivity.probe(now), of_model],
            reservation: Some(self.rate.reserve(limits, tokens, now)),
            health: Rc::clone(self),
        };
        if is_whole {
            attending.mark_complete(now);
        }
        attending
    }

    /// Whether a request may be sent here once more; that it is counts then.
    pub fn take_retry(&self) -> bool {
        let left = self.saved_retries.get().checked_sub(REQUESTS_PER_RETRY);
        left.map(|left| self.saved_retries.set(left)).is_some()
    }

    /// The condition of a model that is not well; `None` of one that is.
    fn breaker_for(&self, model: &str) -> Option<Rc<CircuitBreaker>> {
        let models = self.models.borrow();
        match models.is_empty() {
            true => None,
            false => models.get(model).cloned(),
        }
    }

    /// The condition of a model of which something bad is to be remembered.
    fn breaker_or_insert(&self, model: &str) -> Rc<CircuitBreaker> {
        if let Some(known) = self.breaker_for(model) {
            return known;
        }
        let mut models = self.models.borrow_mut();
        if models.len() >= MAX_MODELS {
            // One without a pause has least to lose, else the one whose pause ends first.
            let first = models.iter().min_by_key(|(_, model)| model.paused_until());
            if let Some(name) = first.map(|(name, _)| name.clone()) {
                models.remove(&name);
            }
        }
        Rc::clone(models.entry(model.into()).or_default())
    }

    /// A request for `model` that began at `began` was answered.
    fn record_success(&self, model: &str, began: Instant) {
        let is_over = self
            .breaker_for(model)
            .is_some_and(|model| model.record_success(began));
        if is_over {
            self.models.borrow_mut().remove(model);
        }
    }
}

/// A request that is under way at a provider.
pub struct InFlightPermit {
    health: Rc<Health>,
    started_at: Instant,
    /// What it was let through to show: whether the provider is well again, and the model.
    probes: [Option<Probe>; 2],
    /// What it took of the provider's limits, until that is settled.
    reservation: Option<RateReservation>,
}

impl InFlightPermit {
    /// Takes note of its outcome; `model` is what it was sent for, as at its begin.
    pub fn record_verdict(&mut self, verdict: Verdict, model: &str, now: Instant) {
        let [probed_reach, probed_model] = self.probes.each_mut().map(|probe| probe.take().is_some());
        let (health, began) = (&*self.health, self.started_at);
        match verdict {
            Verdict::Healthy => {
                health.connectivity.record_success(began);
                health.record_success(model, began);
            }
            Verdict::Unreachable => health.connectivity.record_failure(began, now, probed_reach),
            Verdict::Failed => {
                health.connectivity.record_success(began);
                health
                    .breaker_or_insert(model)
                    .record_failure(began, now, probed_model);
            }
            Verdict::Busy(pause) => {
                health.connectivity.record_success(began);
                health.breaker_or_insert(model).pause(now, pause);
            }
            Verdict::Inconclusive => {}
        }
    }

    /// All of it is there: from now on others wait for it, if it was let through as a probe.
    pub fn mark_complete(&mut self, now: Instant) {
        for probe in self.probes.iter_mut().flatten() {
            probe.mark_complete(now);
        }
    }

    /// Its end: how far it came, and the tokens that it used, where they are known.
    pub fn settle(mut self, sent: SendOutcome, used: Option<u64>) {
        if let Some(taken) = self.reservation.take() {
            self.health.rate.settle(taken, sent, used);
        }
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        self.health
            .in_flight
            .set(self.health.in_flight.get().saturating_sub(1));
        // It was turned away before anything of it was sent.
        if let Some(taken) = self.reservation.take() {
            self.health.rate.settle(taken, SendOutcome::No, Some(0));
        }
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
