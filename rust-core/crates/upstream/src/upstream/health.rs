//! Whether a provider is worth asking for a model, by the outcomes of earlier requests.
//!
//! Providers limit and overload each model by itself, so what one says of a request (429, `Retry-After`, 503, silence) holds for
//! the model that was asked for, as the provider names it. Only where no connection comes about, or the provider takes not
//! all of a request, no model can be reached: that holds for the whole provider.
//!
//! After [`condition::FAILURES`] attempts in a row that failed, requests go to another target for a while, wherever their model has one;
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

use self::condition::{Condition, Probe};
use super::rate::{Rate, Taken};

/// Requests for each of which one may be sent again to the same provider, and what is saved up of that at most.
const REQUESTS_PER_RETRY: u32 = 10;
const MOST_SAVED: u32 = 10 * REQUESTS_PER_RETRY;
/// Models of one provider whose failures are remembered, at most: behind a wildcard, clients choose the names.
const MOST_MODELS: usize = 1024;

/// What the outcome of an attempt says of its provider and the model there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The model answers.
    Well,
    /// The provider could not be reached, or took not all of the request.
    Unreachable,
    /// The model does not answer, or the provider says that it cannot.
    Failed,
    /// The model is to be left alone for so long.
    Busy(Duration),
    /// Nothing follows from it.
    Nothing,
}

/// The health of a provider.
pub struct Health {
    /// Whether it can be reached.
    reach: Rc<Condition>,
    /// Those of its models that are not well, by the names that it has for them; at most [`MOST_MODELS`].
    models: RefCell<HashMap<Box<str>, Rc<Condition>>>,
    in_flight: Cell<u32>,
    /// What is left for sending again.
    saved: Cell<u32>,
    /// What it was asked of late.
    rate: Rate,
}

impl Default for Health {
    fn default() -> Self {
        Health {
            reach: Rc::default(),
            models: RefCell::default(),
            in_flight: Cell::default(),
            saved: Cell::new(MOST_SAVED),
            rate: Rate::default(),
        }
    }
}

impl Health {
    /// Whether the provider is to be asked, apart from what is known of a model.
    pub(crate) fn is_reachable(&self, now: Instant) -> bool {
        self.reach.is_available(now)
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
    pub fn is_passed_over(&self, now: Instant) -> bool {
        let models = self.models.borrow();
        !self.is_reachable(now) || models.values().any(|model| !model.is_available(now))
    }

    /// Requests that are under way there.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.get()
    }

    /// How long no request may be sent there within `limits`; `None` when one may be.
    pub(super) fn wait(&self, limits: RateLimits, now: Instant) -> Option<Duration> {
        self.rate.wait(limits, now)
    }

    /// Counts a request for `model` that may come to `tokens` as under way, until what is returned is dropped. `is_whole`:
    /// whether all of it is there; for one that its client still sends nobody waits.
    pub(super) fn begin(
        self: &Rc<Self>,
        now: Instant,
        model: &str,
        limits: RateLimits,
        tokens: u64,
        is_whole: bool,
    ) -> InFlightPermit {
        self.in_flight.set(self.in_flight.get().saturating_add(1));
        self.saved.set(MOST_SAVED.min(self.saved.get() + 1));
        let of_model = self.of(model).and_then(|model| model.probe(now));
        let mut attending = InFlightPermit {
            began: now,
            probes: [self.reach.probe(now), of_model],
            taken: Some(self.rate.take(limits, tokens, now)),
            health: Rc::clone(self),
        };
        if is_whole {
            attending.is_whole(now);
        }
        attending
    }

    /// Whether a request may be sent here once more; that it is counts then.
    pub fn take_retry(&self) -> bool {
        let left = self.saved.get().checked_sub(REQUESTS_PER_RETRY);
        left.map(|left| self.saved.set(left)).is_some()
    }

    /// The condition of a model that is not well; `None` of one that is.
    fn of(&self, model: &str) -> Option<Rc<Condition>> {
        let models = self.models.borrow();
        match models.is_empty() {
            true => None,
            false => models.get(model).cloned(),
        }
    }

    /// The condition of a model of which something bad is to be remembered.
    fn of_unwell(&self, model: &str) -> Rc<Condition> {
        if let Some(known) = self.of(model) {
            return known;
        }
        let mut models = self.models.borrow_mut();
        if models.len() >= MOST_MODELS {
            // One without a pause has least to lose, else the one whose pause ends first.
            let first = models.iter().min_by_key(|(_, model)| model.paused_until());
            if let Some(name) = first.map(|(name, _)| name.clone()) {
                models.remove(&name);
            }
        }
        Rc::clone(models.entry(model.into()).or_default())
    }

    /// A request for `model` that began at `began` was answered.
    fn recover(&self, model: &str, began: Instant) {
        let is_over = self.of(model).is_some_and(|model| model.recover(began));
        if is_over {
            self.models.borrow_mut().remove(model);
        }
    }
}

/// A request that is under way at a provider.
pub struct InFlightPermit {
    health: Rc<Health>,
    began: Instant,
    /// What it was let through to show: whether the provider is well again, and the model.
    probes: [Option<Probe>; 2],
    /// What it took of the provider's limits, until that is settled.
    taken: Option<Taken>,
}

impl InFlightPermit {
    /// Takes note of its outcome; `model` is what it was sent for, as at its begin.
    pub fn heard(&mut self, verdict: Verdict, model: &str, now: Instant) {
        let [probed_reach, probed_model] = self.probes.each_mut().map(|probe| probe.take().is_some());
        let (health, began) = (&*self.health, self.began);
        match verdict {
            Verdict::Well => {
                health.reach.recover(began);
                health.recover(model, began);
            }
            Verdict::Unreachable => health.reach.fail(began, now, probed_reach),
            Verdict::Failed => {
                health.reach.recover(began);
                health.of_unwell(model).fail(began, now, probed_model);
            }
            Verdict::Busy(pause) => {
                health.reach.recover(began);
                health.of_unwell(model).pause(now, pause);
            }
            Verdict::Nothing => {}
        }
    }

    /// All of it is there: from now on others wait for it, if it was let through as a probe.
    pub fn is_whole(&mut self, now: Instant) {
        for probe in self.probes.iter_mut().flatten() {
            probe.is_whole(now);
        }
    }

    /// Its end: how far it came, and the tokens that it used, where they are known.
    pub fn settle(mut self, sent: SendOutcome, used: Option<u64>) {
        if let Some(taken) = self.taken.take() {
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
        if let Some(taken) = self.taken.take() {
            self.health.rate.settle(taken, SendOutcome::No, Some(0));
        }
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
