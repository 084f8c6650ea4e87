//! Keeps requests from waiting for a policy that has failed again and again.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open it.
pub const FAILURES: u32 = 5;
/// How long it stays open; then one request tries.
pub const PAUSE: Duration = Duration::from_secs(10);

/// The breaker of one policy. Only the data-plane thread changes it.
pub struct Breaker {
    began: Instant,
    failures: AtomicU32,
    /// Milliseconds from `began` to its end of the pause; zero while it is closed.
    until: AtomicU64,
    trying: AtomicBool,
}

/// The leave to ask the policy; dropped without a word of the outcome, the next request may try.
pub struct Leave<'b> {
    breaker: &'b Breaker,
    tries: bool,
}

impl Breaker {
    pub fn new() -> Self {
        Breaker {
            began: Instant::now(),
            failures: AtomicU32::new(0),
            until: AtomicU64::new(0),
            trying: AtomicBool::new(false),
        }
    }

    /// Whether the policy is not asked now, but for the one request that tries.
    pub fn is_open(&self) -> bool {
        self.until.load(Relaxed) != 0
    }

    /// The leave to ask; `None` while it is open, or another request tries.
    pub fn leave(&self) -> Option<Leave<'_>> {
        let until = self.until.load(Relaxed);
        if until == 0 {
            return Some(Leave {
                breaker: self,
                tries: false,
            });
        }
        if self.elapsed(Duration::ZERO) < until || self.trying.load(Relaxed) {
            return None;
        }
        self.trying.store(true, Relaxed);
        Some(Leave {
            breaker: self,
            tries: true,
        })
    }

    fn elapsed(&self, more: Duration) -> u64 {
        let elapsed = self.began.elapsed().saturating_add(more);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

impl Leave<'_> {
    /// The policy gave a verdict.
    pub(crate) fn succeeded(self) {
        self.breaker.failures.store(0, Relaxed);
        self.breaker.until.store(0, Relaxed);
    }

    /// It did not.
    pub fn failed(self) {
        let failures = self.breaker.failures.load(Relaxed).saturating_add(1);
        self.breaker.failures.store(failures, Relaxed);
        if failures >= FAILURES {
            self.breaker.until.store(self.breaker.elapsed(PAUSE), Relaxed);
        }
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.tries {
            self.breaker.trying.store(false, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::{Breaker, FAILURES, PAUSE};

    fn opened() -> Breaker {
        let breaker = Breaker::new();
        for _ in 0..FAILURES {
            breaker.leave().unwrap().failed();
        }
        breaker
    }

    #[tokio::test(start_paused = true)]
    async fn failures_in_a_row_open_it_and_one_success_between_them_does_not_let_it_come_to_that() {
        let breaker = Breaker::new();
        for _ in 1..FAILURES {
            breaker.leave().unwrap().failed();
        }
        breaker.leave().unwrap().succeeded();
        breaker.leave().unwrap().failed();
        assert!(!breaker.is_open());
        assert!(opened().is_open());
        assert!(opened().leave().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_pause_one_request_tries_and_its_success_closes_it() {
        let breaker = opened();
        advance(PAUSE).await;
        let first = breaker.leave().unwrap();
        assert!(breaker.leave().is_none());
        first.succeeded();
        assert!(!breaker.is_open());
        assert!(breaker.leave().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_fails_opens_it_for_another_pause() {
        let breaker = opened();
        advance(PAUSE).await;
        breaker.leave().unwrap().failed();
        assert!(breaker.leave().is_none());
        advance(PAUSE).await;
        assert!(breaker.leave().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_goes_away_while_it_tries_leaves_the_try_to_the_next_one() {
        let breaker = opened();
        advance(PAUSE).await;
        drop(breaker.leave());
        assert!(breaker.leave().is_some());
    }
}
