//! Whether a provider is worth asking, by what came of asking it.
//!
//! After [`FAILURES`] attempts in a row that failed it is passed over for a while, wherever a model has somewhere else to
//! go; then one request is let through to see, and the next one if nothing is heard of that soon. A model that has nowhere
//! else is sent to its provider all the same: nothing would be gained by failing for it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proofgate_ledger::record::Sent;

use super::rate::{Rate, RateLimits, Taken};

/// Failures in a row from which on a provider is passed over.
const FAILURES: u32 = 5;
/// How long, at first; twice as long with each request in vain after that.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// How long at most, also when a provider asks for more.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Requests for each of which one may be sent again to the same provider, and what is saved up of that at most.
const REQUESTS_PER_RETRY: u32 = 10;
const MOST_SAVED: u32 = 10 * REQUESTS_PER_RETRY;

/// What came of an attempt, as far as it tells how its provider is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answers.
    Well,
    /// It could not be reached, or says itself that it cannot answer.
    Failed,
    /// It wants to be left alone for so long.
    Busy(Duration),
    /// Nothing follows from it.
    Nothing,
}

/// How a provider is.
pub(crate) struct Health {
    /// Failures since it was last well.
    failures: Cell<u32>,
    /// Pauses since then.
    pauses: Cell<u32>,
    /// When the one request may go that tells whether it is well again; `None` while it is.
    paused_until: Cell<Option<Instant>>,
    /// Since when that request is under way, if it is.
    probing: Cell<Option<Instant>>,
    in_flight: Cell<u32>,
    /// What is left for sending again.
    saved: Cell<u32>,
    /// What it was asked of late.
    rate: Rate,
}

impl Default for Health {
    fn default() -> Self {
        Health {
            failures: Cell::default(),
            pauses: Cell::default(),
            paused_until: Cell::default(),
            probing: Cell::default(),
            in_flight: Cell::default(),
            saved: Cell::new(MOST_SAVED),
            rate: Rate::default(),
        }
    }
}

impl Health {
    /// Whether a request that could go elsewhere should come here.
    pub(crate) fn is_available(&self, now: Instant) -> bool {
        self.paused_until
            .get()
            .is_none_or(|until| until <= now && !self.is_probed(now))
    }

    /// Whether a request is under way for which others wait. They do for no longer than for the pause before it: it may be a
    /// slow one.
    fn is_probed(&self, now: Instant) -> bool {
        let since = self.probing.get();
        let patience = Self::pause_after(self.pauses.get().saturating_sub(1));
        since.is_some_and(|since| now.saturating_duration_since(since) < patience)
    }

    /// How long the next pause is after so many.
    fn pause_after(pauses: u32) -> Duration {
        let factor = 1_u32.checked_shl(pauses).unwrap_or(u32::MAX);
        FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
    }

    /// Requests that are under way there.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.get()
    }

    /// How long no request may be sent there within `limits`; `None` when one may be.
    pub(super) fn wait(&self, limits: RateLimits, now: Instant) -> Option<Duration> {
        self.rate.wait(limits, now)
    }

    /// Counts a request that may come to `tokens` as under way, until what is returned is dropped. `is_whole`: whether all of it
    /// is there; for one that its client still sends nobody waits.
    pub(super) fn begin(
        self: &Rc<Self>,
        now: Instant,
        limits: RateLimits,
        tokens: u64,
        is_whole: bool,
    ) -> Attending {
        self.in_flight.set(self.in_flight.get().saturating_add(1));
        self.saved.set(MOST_SAVED.min(self.saved.get() + 1));
        let is_due = self.paused_until.get().is_some_and(|until| until <= now);
        let probes = is_due && !self.is_probed(now);
        let mut attending = Attending {
            began: now,
            probes,
            probing: None,
            taken: Some(self.rate.take(limits, tokens, now)),
            health: Rc::clone(self),
        };
        if is_whole {
            attending.is_whole(now);
        }
        attending
    }

    /// Whether a request may be sent here once more; that it is counts then.
    pub(crate) fn take_retry(&self) -> bool {
        let left = self.saved.get().checked_sub(REQUESTS_PER_RETRY);
        left.map(|left| self.saved.set(left)).is_some()
    }

    fn pause(&self, now: Instant, pause: Duration) {
        let until = now.checked_add(pause.min(LONGEST_PAUSE));
        self.paused_until.set(self.paused_until.get().max(until));
    }

    fn failed(&self, now: Instant, in_vain: bool) {
        self.failures.set(self.failures.get().saturating_add(1));
        let is_enough = match self.paused_until.get() {
            Some(_) => in_vain,
            None => self.failures.get() >= FAILURES,
        };
        if is_enough {
            let pause = Self::pause_after(self.pauses.get());
            self.pauses.set(self.pauses.get().saturating_add(1));
            self.pause(now, pause);
        }
    }
}

/// A request that is under way at a provider.
pub(crate) struct Attending {
    health: Rc<Health>,
    began: Instant,
    /// Whether it was let through to see whether the provider is well again.
    probes: bool,
    /// Since when others wait for it, if they do.
    probing: Option<Instant>,
    /// What it took of the provider's limits, until that is settled.
    taken: Option<Taken>,
}

impl Attending {
    /// Takes note of what came of it.
    pub(crate) fn heard(&mut self, verdict: Verdict, now: Instant) {
        let probed = self.end_probe();
        let health = &*self.health;
        // What was under way before a pause does not tell that it is over, nor that it was too short.
        let is_after = health.paused_until.get().is_none_or(|until| until <= self.began);
        match verdict {
            Verdict::Well => {
                health.failures.set(0);
                if is_after {
                    health.pauses.set(0);
                    health.paused_until.set(None);
                }
            }
            Verdict::Failed => health.failed(now, probed && is_after),
            Verdict::Busy(pause) => health.pause(now, pause),
            Verdict::Nothing => {}
        }
    }

    /// Has nobody wait for it any longer; says whether it was let through to see.
    fn end_probe(&mut self) -> bool {
        let since = self.probing.take();
        if since.is_some() && self.health.probing.get() == since {
            self.health.probing.set(None);
        }
        std::mem::take(&mut self.probes)
    }

    /// All of it is there: from now on others wait for it, if it was let through to see.
    pub(crate) fn is_whole(&mut self, now: Instant) {
        if self.probes && !self.health.is_probed(now) {
            self.health.probing.set(Some(now));
            self.probing = Some(now);
        }
    }

    /// Its end: how far it came, and the tokens that it used, where they are known.
    pub(crate) fn settle(mut self, sent: Sent, used: Option<u64>) {
        if let Some(taken) = self.taken.take() {
            self.health.rate.settle(taken, sent, used);
        }
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.health
            .in_flight
            .set(self.health.in_flight.get().saturating_sub(1));
        self.end_probe();
        // It was turned away before anything of it was sent.
        if let Some(taken) = self.taken.take() {
            self.health.rate.settle(taken, Sent::No, Some(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(health: &Rc<Health>, now: Instant) -> Attending {
        health.begin(now, RateLimits::default(), 0, true)
    }

    fn fail(health: &Rc<Health>, now: Instant) {
        begin(health, now).heard(Verdict::Failed, now);
    }

    /// A provider that has just been paused.
    fn paused(now: Instant) -> Rc<Health> {
        let health = Rc::new(Health::default());
        (0..FAILURES).for_each(|_| fail(&health, now));
        health
    }

    #[test]
    fn failures_in_a_row_pause_a_provider_and_fewer_do_not() {
        let (health, now) = (Rc::new(Health::default()), Instant::now());
        for _ in 0..3 {
            (1..FAILURES).for_each(|_| fail(&health, now));
            assert!(health.is_available(now));
            begin(&health, now).heard(Verdict::Well, now);
        }
        (0..FAILURES).for_each(|_| fail(&health, now));
        assert!(!health.is_available(now));
    }

    #[test]
    fn after_the_pause_one_request_is_let_through_and_its_success_ends_it() {
        let now = Instant::now();
        let (health, later) = (paused(now), now + FIRST_PAUSE);
        assert!(health.is_available(later));
        let mut probe = begin(&health, later);
        assert!(!health.is_available(later), "the probe is under way");
        // Another that goes there all the same, because it has nowhere else, is no probe.
        let mut other = begin(&health, later);
        other.heard(Verdict::Nothing, later);
        assert!(!health.is_available(later));
        probe.heard(Verdict::Well, later);
        assert!(health.is_available(later));
        (1..FAILURES).for_each(|_| fail(&health, later));
        assert!(health.is_available(later), "failures count from zero again");
    }

    #[test]
    fn each_probe_in_vain_doubles_the_pause_up_to_a_minute() {
        let mut now = Instant::now();
        let health = paused(now);
        for seconds in [5, 10, 20, 40, 60, 60] {
            let end = now + Duration::from_secs(seconds);
            assert!(!health.is_available(end - Duration::from_millis(1)));
            assert!(health.is_available(end));
            now = end;
            fail(&health, now);
        }
    }

    #[test]
    fn a_probe_whose_client_goes_lets_the_next_one_try() {
        let now = Instant::now();
        let (health, later) = (paused(now), now + FIRST_PAUSE);
        drop(begin(&health, later));
        assert!(health.is_available(later));
        assert_eq!(health.in_flight(), 0);
    }

    #[test]
    fn an_answer_to_what_was_asked_after_the_pause_ends_it_while_the_probe_is_under_way() {
        let now = Instant::now();
        let (health, later) = (paused(now), now + FIRST_PAUSE);
        let mut probe = begin(&health, later);
        let after = later + Duration::from_secs(1);
        begin(&health, after).heard(Verdict::Well, after);
        assert!(health.is_available(after));
        // It came last, and was asked before the others.
        probe.heard(Verdict::Failed, after);
        assert!(health.is_available(after));
    }

    #[test]
    fn a_probe_that_hears_nothing_keeps_others_away_for_no_longer_than_the_pause_before_it() {
        let now = Instant::now();
        let (health, later) = (paused(now), now + FIRST_PAUSE);
        let first = begin(&health, later);
        let end = later + FIRST_PAUSE;
        assert!(!health.is_available(end - Duration::from_millis(1)));
        assert!(health.is_available(end));
        let second = begin(&health, end);
        drop(first);
        assert!(!health.is_available(end), "the second probe is under way");
        drop(second);
        assert!(health.is_available(end));
    }

    #[test]
    fn for_what_a_client_still_sends_nobody_waits_and_its_failure_tells_as_much() {
        let now = Instant::now();
        let (health, later) = (paused(now), now + FIRST_PAUSE);
        let mut coming = health.begin(later, RateLimits::default(), 0, false);
        assert!(health.is_available(later));
        coming.heard(Verdict::Failed, later);
        assert!(
            !health.is_available(later + FIRST_PAUSE),
            "the pause is twice as long"
        );
        assert!(health.is_available(later + 2 * FIRST_PAUSE));
    }

    #[test]
    fn what_a_client_has_sent_in_the_end_is_waited_for() {
        let now = Instant::now();
        let (health, later) = (paused(now), now + FIRST_PAUSE);
        let mut coming = health.begin(later, RateLimits::default(), 0, false);
        let mut second = health.begin(later, RateLimits::default(), 0, false);
        coming.is_whole(later);
        second.is_whole(later);
        assert!(!health.is_available(later));
        drop(second);
        assert!(!health.is_available(later), "nobody waited for that one");
        drop(coming);
        assert!(health.is_available(later));
    }

    #[test]
    fn a_probe_is_waited_for_as_long_as_the_pause_before_it_was() {
        let mut now = Instant::now();
        let health = paused(now);
        for seconds in [5, 10, 20] {
            now += Duration::from_secs(seconds);
            fail(&health, now);
        }
        now += Duration::from_secs(40);
        let _silent = begin(&health, now);
        assert!(!health.is_available(now + Duration::from_secs(39)));
        assert!(health.is_available(now + Duration::from_secs(40)));
    }

    #[test]
    fn an_answer_from_before_the_pause_does_not_end_it() {
        let now = Instant::now();
        let health = Rc::new(Health::default());
        let mut early = begin(&health, now);
        (0..FAILURES).for_each(|_| fail(&health, now));
        early.heard(Verdict::Well, now);
        assert!(!health.is_available(now));
    }

    #[test]
    fn a_provider_that_asks_for_a_pause_gets_it_but_not_for_longer_than_a_minute() {
        for (asked, given) in [(7, 7), (3600, 60)] {
            let (health, now) = (Rc::new(Health::default()), Instant::now());
            begin(&health, now).heard(Verdict::Busy(Duration::from_secs(asked)), now);
            let end = now + Duration::from_secs(given);
            assert!(!health.is_available(end - Duration::from_millis(1)));
            assert!(health.is_available(end));
        }
    }

    #[test]
    fn of_ten_requests_one_may_be_sent_again_beyond_what_was_saved() {
        let (health, now) = (Rc::new(Health::default()), Instant::now());
        assert_eq!((0..100).filter(|_| health.take_retry()).count(), 10);
        (0..30).for_each(|_| drop(begin(&health, now)));
        assert_eq!((0..100).filter(|_| health.take_retry()).count(), 3);
    }
}
