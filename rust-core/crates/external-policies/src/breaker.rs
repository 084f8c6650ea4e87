//! The circuit breaker of an external policy: it keeps requests from waiting for a policy that fails repeatedly.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// Number of consecutive failures that opens the breaker.
pub const MAX_CONSECUTIVE_FAILURES: u32 = 5;
/// The time for which the breaker stays open. After this time it permits one probe request.
pub const OPEN_DURATION: Duration = Duration::from_secs(10);

/// The breaker of one policy. Only the data-plane thread changes it.
pub struct Breaker {
    started_at: Instant,
    failures: AtomicU32,
    /// End of the open period, in milliseconds since `started_at`; zero while the breaker is closed.
    open_until_ms: AtomicU64,
    is_probing: AtomicBool,
}

/// Permission to call the policy. If it is dropped without a recorded outcome, the next request may probe.
pub struct BreakerPermit<'b> {
    breaker: &'b Breaker,
    is_probe: bool,
}

impl Breaker {
    pub fn new() -> Self {
        Breaker {
            started_at: Instant::now(),
            failures: AtomicU32::new(0),
            open_until_ms: AtomicU64::new(0),
            is_probing: AtomicBool::new(false),
        }
    }

    /// Whether the breaker is open: calls are refused, except for one probe.
    pub fn is_open(&self) -> bool {
        self.open_until_ms.load(Relaxed) != 0
    }

    /// Returns a permit to call the policy; `None` while the breaker is open or another request probes.
    pub fn try_acquire(&self) -> Option<BreakerPermit<'_>> {
        let until = self.open_until_ms.load(Relaxed);
        if until == 0 {
            return Some(BreakerPermit {
                breaker: self,
                is_probe: false,
            });
        }
        if self.elapsed_plus(Duration::ZERO) < until || self.is_probing.load(Relaxed) {
            return None;
        }
        self.is_probing.store(true, Relaxed);
        Some(BreakerPermit {
            breaker: self,
            is_probe: true,
        })
    }

    fn elapsed_plus(&self, more: Duration) -> u64 {
        let elapsed = self.started_at.elapsed().saturating_add(more);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

impl BreakerPermit<'_> {
    /// Records that the policy returned a verdict.
    pub(crate) fn record_success(self) {
        self.breaker.failures.store(0, Relaxed);
        self.breaker.open_until_ms.store(0, Relaxed);
    }

    /// Records that the policy returned no verdict.
    pub fn record_failure(self) {
        let failures = self.breaker.failures.load(Relaxed).saturating_add(1);
        self.breaker.failures.store(failures, Relaxed);
        if failures >= MAX_CONSECUTIVE_FAILURES {
            self.breaker
                .open_until_ms
                .store(self.breaker.elapsed_plus(OPEN_DURATION), Relaxed);
        }
    }
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.is_probing.store(false, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::{Breaker, MAX_CONSECUTIVE_FAILURES, OPEN_DURATION};

    fn opened() -> Breaker {
        let breaker = Breaker::new();
        for _ in 0..MAX_CONSECUTIVE_FAILURES {
            breaker.try_acquire().unwrap().record_failure();
        }
        breaker
    }

    #[tokio::test(start_paused = true)]
    async fn failures_in_a_row_open_it_and_one_success_between_them_does_not_let_it_come_to_that() {
        let breaker = Breaker::new();
        for _ in 1..MAX_CONSECUTIVE_FAILURES {
            breaker.try_acquire().unwrap().record_failure();
        }
        breaker.try_acquire().unwrap().record_success();
        breaker.try_acquire().unwrap().record_failure();
        assert!(!breaker.is_open());
        assert!(opened().is_open());
        assert!(opened().try_acquire().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_pause_one_request_tries_and_its_success_closes_it() {
        let breaker = opened();
        advance(OPEN_DURATION).await;
        let first = breaker.try_acquire().unwrap();
        assert!(breaker.try_acquire().is_none());
        first.record_success();
        assert!(!breaker.is_open());
        assert!(breaker.try_acquire().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_fails_opens_it_for_another_pause() {
        let breaker = opened();
        advance(OPEN_DURATION).await;
        breaker.try_acquire().unwrap().record_failure();
        assert!(breaker.try_acquire().is_none());
        advance(OPEN_DURATION).await;
        assert!(breaker.try_acquire().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_goes_away_while_it_tries_leaves_the_try_to_the_next_one() {
        let breaker = opened();
        advance(OPEN_DURATION).await;
        drop(breaker.try_acquire());
        assert!(breaker.try_acquire().is_some());
    }
}
