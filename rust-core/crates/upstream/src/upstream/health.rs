//! The health of a provider and its models, derived from the outcomes of earlier requests.
//!
//! Providers limit and overload each model separately, so their response to a request (429,
//! `Retry-After`, 503, a timeout) applies only to the requested model, under the provider's name
//! for it. A failure to connect or to send the whole request affects all models, and so the
//! provider.
//!
//! After [`circuit_breaker::FAILURE_THRESHOLD`] consecutive failures, requests go to another target
//! during a pause, if their model has one. After the pause, one request is sent as a probe. If it
//! has no result soon, the next request is the probe. Requests for a model without another target
//! are still sent to its provider, because rejecting them would gain nothing.

mod circuit_breaker;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proofgate_config::RateLimits;
use proofgate_ledger::record::SendOutcome;

use self::circuit_breaker::{CircuitBreaker, Probe};
use super::rate::{RateLimiter, RateReservation};

/// Number of requests for which one retry at the same provider is allowed. [`MAX_SAVED_RETRIES`] is
/// the maximum number of requests that are saved up for retries.
const REQUESTS_PER_RETRY: u32 = 10;
const MAX_SAVED_RETRIES: u32 = 10 * REQUESTS_PER_RETRY;
/// Maximum number of models of one provider whose failures are tracked. It is bounded because
/// clients choose the names that a wildcard matches.
const MAX_MODELS: usize = 1024;

/// The meaning of an attempt's outcome for the health of its provider and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The model responds.
    Healthy,
    /// The provider could not be reached, or did not accept the whole request.
    Unreachable,
    /// The model does not respond, or the provider reports that the model cannot respond.
    Failed,
    /// The model must not be called for this duration.
    Busy(Duration),
    /// The outcome says nothing about the health.
    Inconclusive,
}

/// The health of a provider.
pub struct Health {
    /// The circuit breaker of connections to the provider.
    connectivity: Rc<CircuitBreaker>,
    /// The circuit breakers of the unhealthy models, by the provider's names; at most
    /// [`MAX_MODELS`].
    models: RefCell<HashMap<Box<str>, Rc<CircuitBreaker>>>,
    in_flight: Cell<u32>,
    /// Saved-up retries, in units of requests.
    saved_retries: Cell<u32>,
    /// The provider's recent rate of requests and tokens.
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
    /// Whether the provider may be called, regardless of the model.
    pub(crate) fn is_reachable(&self, now: Instant) -> bool {
        self.connectivity.is_available(now)
    }

    /// Whether a request for the model that `name` returns should go to this provider even if
    /// another target could serve it. `name` is called only while some model is unhealthy.
    pub(crate) fn is_available<'n>(&self, name: impl FnOnce() -> Cow<'n, str>, now: Instant) -> bool {
        self.is_reachable(now) && {
            let models = self.models.borrow();
            models.is_empty() || models.get(&*name()).is_none_or(|model| model.is_available(now))
        }
    }

    /// Whether the provider, or one of its models, is currently skipped.
    pub fn is_skipped(&self, now: Instant) -> bool {
        let models = self.models.borrow();
        !self.is_reachable(now) || models.values().any(|model| !model.is_available(now))
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.get()
    }

    /// Returns how long `limits` forbid a request; `None` if a request may be sent now.
    pub(super) fn rate_limit_delay(&self, limits: RateLimits, now: Instant) -> Option<Duration> {
        self.rate.delay(limits, now)
    }

    /// Counts a request for `model` that may use up to `tokens` as in flight until the returned
    /// permit is dropped. `is_whole`: whether the gateway has received the complete request; other
    /// requests do not wait for a probe that is still incomplete.
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

    /// Takes one saved-up retry at this provider; returns false if there is none.
    pub fn take_retry(&self) -> bool {
        let left = self.saved_retries.get().checked_sub(REQUESTS_PER_RETRY);
        left.map(|left| self.saved_retries.set(left)).is_some()
    }

    /// Returns the breaker of an unhealthy model; `None` for a healthy one.
    fn breaker_for(&self, model: &str) -> Option<Rc<CircuitBreaker>> {
        let models = self.models.borrow();
        match models.is_empty() {
            true => None,
            false => models.get(model).cloned(),
        }
    }

    /// Returns the breaker of a model that failed, and creates it if necessary.
    fn breaker_or_insert(&self, model: &str) -> Rc<CircuitBreaker> {
        if let Some(known) = self.breaker_for(model) {
            return known;
        }
        let mut models = self.models.borrow_mut();
        if models.len() >= MAX_MODELS {
            // Evicts a breaker without a pause, whose loss matters least, or else the breaker whose
            // pause ends first.
            let first = models.iter().min_by_key(|(_, model)| model.paused_until());
            if let Some(name) = first.map(|(name, _)| name.clone()) {
                models.remove(&name);
            }
        }
        Rc::clone(models.entry(model.into()).or_default())
    }

    /// Records that a request for `model` that started at `began` got a response.
    fn record_success(&self, model: &str, began: Instant) {
        let is_over = self
            .breaker_for(model)
            .is_some_and(|model| model.record_success(began));
        if is_over {
            self.models.borrow_mut().remove(model);
        }
    }
}

/// A request in flight at a provider.
pub struct InFlightPermit {
    health: Rc<Health>,
    started_at: Instant,
    /// The provider's probe and the model's probe, if this request is one.
    probes: [Option<Probe>; 2],
    /// The request's reservation of the provider's rate limits; `None` after it is settled.
    reservation: Option<RateReservation>,
}

impl InFlightPermit {
    /// Records the outcome of the request; `model` is the same as at its start.
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

    /// Marks the request as complete. If it is a probe, other requests now wait for it.
    pub fn mark_complete(&mut self, now: Instant) {
        for probe in self.probes.iter_mut().flatten() {
            probe.mark_complete(now);
        }
    }

    /// Settles the request's reservation. `sent`: whether it was sent; `used`: its tokens, `None`
    /// if not known.
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
        // An unsettled request was rejected before any part of it was sent.
        if let Some(taken) = self.reservation.take() {
            self.health.rate.settle(taken, SendOutcome::No, Some(0));
        }
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
