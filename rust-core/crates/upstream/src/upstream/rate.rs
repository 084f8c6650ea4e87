//! Limits the requests and tokens per minute to the rates that a provider allows for the gateway's
//! key.
//!
//! Requests and tokens each have a bucket that refills steadily. A bucket is stored as the time at
//! which it is full (the generic cell rate algorithm), so a request costs one comparison and one
//! addition for each, and no extra reading of the clock.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use proofgate_config::RateLimits;
use proofgate_ledger::record::SendOutcome;

/// The capacity of a bucket, as the time in which it refills. Azure counts over ten seconds, other
/// providers over longer periods.
const BURST: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);

/// The recent use of a provider.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    requests: Bucket,
    tokens: Bucket,
}

/// The amounts that a request took from both buckets; the unused part is released.
#[derive(Debug, Clone, Copy, Default)]
pub struct RateReservation {
    limits: RateLimits,
    tokens: u64,
}

impl RateLimiter {
    /// Returns how long no request may be sent; `None` if a request may be sent now.
    ///
    /// Tokens can be overdrawn: a request is sent if any tokens are left, and later requests wait
    /// until the overdrawn tokens are refilled. So even a request that is larger than the bucket is
    /// served.
    pub fn delay(&self, limits: RateLimits, now: Instant) -> Option<Duration> {
        let requests = limits.requests_per_minute;
        let tokens = limits.tokens_per_minute;
        let requests = requests.and_then(|limit| self.requests.delay(limit, now));
        let tokens = tokens.and_then(|limit| self.tokens.delay(limit, now));
        requests.max(tokens)
    }

    /// Takes one request and up to `tokens` from the buckets.
    pub fn reserve(&self, limits: RateLimits, tokens: u64, now: Instant) -> RateReservation {
        if let Some(limit) = limits.requests_per_minute {
            self.requests.consume(limit, 1, now);
        }
        let Some(limit) = limits.tokens_per_minute else {
            return RateReservation { limits, tokens: 0 };
        };
        // Limits the reservation, so that no request delays others for more than a minute.
        let tokens = tokens.min(limit.get());
        self.tokens.consume(limit, tokens, now);
        RateReservation { limits, tokens }
    }

    /// Corrects a reservation to the actual use. `used`: the request's tokens; `None` if not known.
    pub fn settle(&self, taken: RateReservation, sent: SendOutcome, used: Option<u64>) {
        let RateReservation { limits, tokens } = taken;
        if sent == SendOutcome::No
            && let Some(limit) = limits.requests_per_minute
        {
            self.requests.release(limit, 1);
        }
        if let (Some(limit), Some(used)) = (limits.tokens_per_minute, used) {
            let used = used.min(limit.get());
            self.tokens.release(limit, tokens.saturating_sub(used));
            self.tokens.consume_more(limit, used.saturating_sub(tokens));
        }
    }
}

/// A bucket that refills steadily.
#[derive(Debug, Default)]
struct Bucket {
    /// The time at which the bucket is full; `None` if nothing was ever taken.
    full_at: Cell<Option<Instant>>,
}

impl Bucket {
    /// Returns the time until one unit is available; `None` if one is available now.
    fn delay(&self, limit: NonZeroU64, now: Instant) -> Option<Duration> {
        // The bucket can always hold one unit, even if it refills slowly.
        let most = BURST.max(refill_time(limit, 1));
        let missing = self.full_at.get()?.saturating_duration_since(now);
        let until_one = (missing + refill_time(limit, 1)).saturating_sub(most);
        (!until_one.is_zero()).then_some(until_one)
    }

    fn consume(&self, limit: NonZeroU64, amount: u64, now: Instant) {
        let full = self.full_at.get().map_or(now, |full| full.max(now));
        self.full_at.set(full.checked_add(refill_time(limit, amount)));
    }

    fn consume_more(&self, limit: NonZeroU64, amount: u64) {
        if let Some(full) = self.full_at.get() {
            self.full_at.set(full.checked_add(refill_time(limit, amount)));
        }
    }

    fn release(&self, limit: NonZeroU64, amount: u64) {
        if let Some(full) = self.full_at.get() {
            self.full_at.set(full.checked_sub(refill_time(limit, amount)));
        }
    }
}

/// Returns how long `amount` takes to refill.
fn refill_time(limit: NonZeroU64, amount: u64) -> Duration {
    let nanos = u128::from(amount) * MINUTE.as_nanos() / u128::from(limit.get());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(requests: u64, tokens: u64) -> RateLimits {
        RateLimits {
            requests_per_minute: NonZeroU64::new(requests),
            tokens_per_minute: NonZeroU64::new(tokens),
        }
    }

    /// Sends requests until the limit stops them; returns their number.
    fn send_all(rate: &RateLimiter, limits: RateLimits, tokens: u64, now: Instant) -> u32 {
        let mut sent = 0;
        while rate.delay(limits, now).is_none() && sent < 10_000 {
            let _ = rate.reserve(limits, tokens, now);
            sent += 1;
        }
        sent
    }

    #[test]
    fn ten_seconds_worth_goes_at_once_and_then_one_at_a_time() {
        let (rate, now, limits) = (RateLimiter::default(), Instant::now(), limits(60, 0));
        assert_eq!(send_all(&rate, limits, 0, now), 10);
        assert_eq!(rate.delay(limits, now), Some(Duration::from_secs(1)));
        let mut sent = 10;
        for second in 1..=60 {
            sent += send_all(&rate, limits, 0, now + Duration::from_secs(second));
        }
        assert_eq!(sent, 70, "a minute's worth in a minute, and the bucket");
    }

    #[test]
    fn after_the_wait_that_is_told_a_request_may_go_and_not_before() {
        for per_minute in [1, 7, 60, 9_999] {
            let (rate, now, limits) = (RateLimiter::default(), Instant::now(), limits(per_minute, 0));
            assert!(send_all(&rate, limits, 0, now) >= 1);
            let wait = rate.delay(limits, now).unwrap();
            assert!(rate.delay(limits, now + wait - Duration::from_nanos(1)).is_some());
            assert_eq!(send_all(&rate, limits, 0, now + wait), 1, "{per_minute}");
        }
    }

    #[test]
    fn a_request_larger_than_the_bucket_goes_and_those_behind_it_wait_for_what_it_took() {
        let (rate, now, limits) = (RateLimiter::default(), Instant::now(), limits(0, 6000));
        assert_eq!(send_all(&rate, limits, 3000, now), 1);
        let wait = rate.delay(limits, now).unwrap();
        assert_eq!(wait.as_millis(), 20_010, "2000 more than a bucket holds, and one");
        assert_eq!(send_all(&rate, limits, 100, now + wait), 1);
    }

    #[test]
    fn what_was_set_aside_and_not_used_is_given_back() {
        let (rate, now, limits) = (RateLimiter::default(), Instant::now(), limits(6, 6000));
        let taken = rate.reserve(limits, 3000, now);
        rate.settle(taken, SendOutcome::Answered, Some(200));
        assert_eq!(
            rate.delay(limits, now),
            Some(Duration::from_secs(10)),
            "it was a request"
        );
        let of_tokens = RateLimits {
            requests_per_minute: None,
            ..limits
        };
        assert_eq!(send_all(&rate, of_tokens, 100, now), 8);
    }

    #[test]
    fn what_was_never_sent_was_no_request() {
        let (rate, now, limits) = (RateLimiter::default(), Instant::now(), limits(6, 6000));
        let taken = rate.reserve(limits, 3000, now);
        rate.settle(taken, SendOutcome::No, Some(0));
        assert_eq!(rate.delay(limits, now), None);
        let taken = rate.reserve(limits, 3000, now);
        rate.settle(taken, SendOutcome::Maybe, None);
        assert!(rate.delay(limits, now) > Some(Duration::from_secs(20)));
    }

    #[test]
    fn what_came_to_more_than_was_set_aside_counts_whole() {
        let (rate, now, limits) = (RateLimiter::default(), Instant::now(), limits(0, 6000));
        let taken = rate.reserve(limits, 100, now);
        rate.settle(taken, SendOutcome::Answered, Some(1600));
        assert_eq!(rate.delay(limits, now).unwrap().as_millis(), 6_010);
    }

    #[test]
    fn whatever_a_request_may_come_to_it_holds_up_others_for_a_minute() {
        let (rate, now, limits) = (RateLimiter::default(), Instant::now(), limits(0, 1000));
        let taken = rate.reserve(limits, u64::MAX, now);
        assert!(rate.delay(limits, now) < Some(MINUTE));
        rate.settle(taken, SendOutcome::Answered, Some(u64::MAX));
        assert!(rate.delay(limits, now) < Some(MINUTE));
        assert!(rate.delay(limits, now + MINUTE).is_none());
    }

    #[test]
    fn without_limits_nothing_waits() {
        let (rate, now) = (RateLimiter::default(), Instant::now());
        assert_eq!(send_all(&rate, RateLimits::default(), u64::MAX, now), 10_000);
    }
}
