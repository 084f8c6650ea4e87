//! Tests that 64 clients never use more in any 60 seconds or on any day than the limit plus the
//! usage that providers counted beyond reservations.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{CredentialId, Grant, Limit};
use proptest::prelude::*;
use support::{MIDNIGHT, SECOND, limiter};

const REQUESTS: u64 = 20;
const TOKENS: u64 = 1000;
const DAY: u64 = 3000;
const PLACES: u64 = 8;

/// A client's next step: it asks for admission if it holds no grant, otherwise it ends its request in one of four ways.
#[derive(Clone, Debug)]
struct Step {
    client: usize,
    /// Microseconds since the previous step; sometimes the clock steps back.
    passed: i64,
    reserve: u64,
    used: u64,
    end: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let passed = prop_oneof![
        8 => 0..2_000_000i64,
        2 => 0..40_000_000i64,
        1 => -90_000_000..0i64,
    ];
    (0..64usize, passed, 0..400u64, 0..500u64, 0..4u8).prop_map(|(client, passed, reserve, used, end)| Step {
        client,
        passed,
        reserve,
        used,
        end,
    })
}

/// An admitted request and its outcome.
struct Request {
    /// The time at which the request counts.
    at: u64,
    counts: bool,
    tokens: u64,
    open: bool,
    /// Time of the report of tokens beyond the reservation, and their number.
    beyond: Option<(u64, u64)>,
}

/// Returns the requests, the booked tokens, and the part of the tokens beyond reservations, in the
/// time that `within` selects.
fn booked(requests: &[Request], within: impl Fn(u64) -> bool) -> (u64, u64, u64) {
    let admitted = || requests.iter().filter(|request| within(request.at));
    let beyond = requests.iter().filter_map(|request| request.beyond);
    let beyond: u64 = beyond
        .filter(|(at, _)| within(*at))
        .map(|(_, tokens)| tokens)
        .sum();
    let tokens: u64 = admitted().map(|request| request.tokens).sum();
    (
        admitted().filter(|request| request.counts).count() as u64,
        tokens + beyond,
        beyond,
    )
}

fn day(micros: u64) -> u64 {
    micros / SECOND / 86_400
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_window_holds_more_than_the_limit(steps in prop::collection::vec(step(), 1..400)) {
        let (mut limiter, acme) = limiter([REQUESTS, TOKENS, DAY, PLACES], [0; 4]);
        let mut requests: Vec<Request> = Vec::new();
        let mut held: Vec<Option<(Grant, usize)>> = (0..64).map(|_| None).collect();
        // Ten minutes before midnight, so that a day ends within most runs.
        let (mut told, mut now) = (MIDNIGHT - 600 * SECOND, 0);
        for step in steps {
            told = told.saturating_add_signed(step.passed);
            // Ends of requests without a time do not advance the time.
            if held[step.client].is_none() || step.end > 1 {
                now = now.max(told);
            }
            let key = CredentialId::ApiKey([step.client as u8; 4]);
            let last_minute = |at: u64| at + 60 * SECOND > now;
            match held[step.client].take() {
                None => match limiter.admit(acme, key, step.reserve, told) {
                    Ok(grant) => {
                        prop_assert_eq!(grant.admitted_at(), now);
                        requests.push(Request {
                            at: now,
                            counts: true,
                            tokens: step.reserve,
                            open: true,
                            beyond: None,
                        });
                        held[step.client] = Some((grant, requests.len() - 1));
                        // Usage beyond reservations must expire first.
                        let (count, tokens, _) = booked(&requests, last_minute);
                        prop_assert!(count <= REQUESTS && tokens <= TOKENS, "{} requests, {} tokens", count, tokens);
                        let (_, tokens, _) = booked(&requests, |at| day(at) == day(now));
                        prop_assert!(tokens <= DAY);
                    }
                    Err(refused) => {
                        // No request is refused without need. At most the extra second of the
                        // window causes a refusal.
                        let held_seconds = |at: u64| at / SECOND + 61 > now / SECOND;
                        let (count, tokens, _) = booked(&requests, held_seconds);
                        let (_, on_day, _) = booked(&requests, |at| day(at) == day(now));
                        let open = requests.iter().filter(|request| request.open).count() as u64;
                        let (used, needed, limit) = match refused.limit {
                            Limit::RequestsPerMinute => (count, 1, REQUESTS),
                            Limit::TokensPerMinute => (tokens, step.reserve, TOKENS),
                            Limit::TokensPerDay => (on_day, step.reserve, DAY),
                            Limit::Concurrency => (open, 1, PLACES),
                            other => unreachable!("there is no limit {other:?}"),
                        };
                        prop_assert!(used + needed > limit, "{:?} with {} used", refused, used);
                        prop_assert_eq!(refused.remaining, limit.saturating_sub(used));
                    }
                },
                Some((grant, number)) => {
                    let request = &mut requests[number];
                    request.open = false;
                    match step.end {
                        0 => limiter.keep_reservation(grant),
                        1 => {
                            limiter.refund(grant, step.used % 2 == 0);
                            request.counts = step.used % 2 == 0;
                            request.tokens = 0;
                        }
                        _ => {
                            limiter.settle(grant, step.used, told);
                            let beyond = step.used.saturating_sub(request.tokens);
                            request.tokens = request.tokens.min(step.used);
                            request.beyond = (beyond > 0).then_some((now, beyond));
                        }
                    }
                }
            }
            let (count, tokens, beyond) = booked(&requests, last_minute);
            prop_assert!(count <= REQUESTS);
            prop_assert!(tokens <= TOKENS + beyond, "{} tokens, {} beyond reservations", tokens, beyond);
            let (_, tokens, beyond) = booked(&requests, |at| day(at) == day(now));
            prop_assert!(tokens <= DAY + beyond);
            prop_assert!(requests.iter().filter(|request| request.open).count() as u64 <= PLACES);
        }
    }

    /// Tests that a refused request is admitted after the reported time, and not a microsecond
    /// earlier.
    #[test]
    fn the_time_to_wait_is_exact(steps in prop::collection::vec(step(), 1..150)) {
        let (mut limiter, acme) = limiter([REQUESTS, TOKENS, DAY, 0], [10, 600, 2000, 0]);
        let mut now = MIDNIGHT - 600 * SECOND;
        for step in steps {
            now += step.passed.unsigned_abs();
            let key = CredentialId::ApiKey([step.client as u8 % 4; 4]);
            match limiter.admit(acme, key, step.reserve, now) {
                Ok(grant) => limiter.settle(grant, step.used, now),
                Err(refused) => {
                    let wait = refused.retry_after.unwrap().as_micros() as u64;
                    prop_assert!(wait > 0);
                    prop_assert!(limiter.admit(acme, key, step.reserve, now + wait - 1).is_err());
                    now += wait;
                    let admitted = limiter.admit(acme, key, step.reserve, now);
                    prop_assert!(admitted.is_ok(), "{:?} after {:?}", admitted, refused);
                    limiter.keep_reservation(admitted.unwrap());
                }
            }
        }
    }
}
