//! Tests which requests are admitted or refused, and how long a refused request must wait.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{CredentialId, Limit, LimitExceeded, Limiter, Limits, Scope};
use std::time::Duration;
use support::{KEY, MIDNIGHT, OTHER_KEY, SECOND, START, consume, limiter, tenant};

fn seconds(seconds: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(seconds))
}

#[test]
fn a_tenant_gets_as_many_requests_in_a_minute_as_it_may() {
    let (mut limiter, acme) = limiter([3, 0, 0, 0], [0; 4]);
    for second in 0..3 {
        let grant = limiter.admit(acme, KEY, 10, START + second * SECOND).unwrap();
        limiter.settle(grant, 10, START + second * SECOND);
    }
    let refused = limiter
        .admit(acme, OTHER_KEY, 10, START + 3 * SECOND)
        .unwrap_err();
    // The first request was in second 0, whose last moment is 60 seconds before the start of second 61.
    assert_eq!(
        refused,
        LimitExceeded {
            limit: Limit::RequestsPerMinute,
            scope: Scope::Tenant,
            value: 3,
            remaining: 0,
            reserved: 0,
            retry_after: seconds(57.5),
        }
    );
    assert_eq!(refused.retry_after_seconds(), Some(58));
    let again = START + 3 * SECOND + 57_500_000;
    assert!(limiter.admit(acme, KEY, 10, again - 1).is_err());
    consume(&mut limiter, acme, KEY, 10, again);
    assert!(limiter.admit(acme, KEY, 10, again).is_err());
}

#[test]
fn each_key_has_its_own_limit_below_the_tenants() {
    let (mut limiter, acme) = limiter([3, 0, 0, 0], [2, 0, 0, 0]);
    for _ in 0..2 {
        consume(&mut limiter, acme, KEY, 10, START);
    }
    let refused = limiter.admit(acme, KEY, 0, START).unwrap_err();
    assert_eq!((refused.scope, refused.value), (Scope::Key, 2));
    let grant = limiter.admit(acme, OTHER_KEY, 0, START).unwrap();
    limiter.keep_reservation(grant);
    let refused = limiter.admit(acme, OTHER_KEY, 0, START).unwrap_err();
    assert_eq!((refused.scope, refused.value), (Scope::Tenant, 3));
}

#[test]
fn a_refused_request_consumes_nothing() {
    let (mut limiter, acme) = limiter([0, 100, 0, 1], [5, 0, 0, 0]);
    let held = limiter.admit(acme, KEY, 60, START).unwrap();
    for _ in 0..10 {
        limiter.admit(acme, KEY, 30, START).unwrap_err();
    }
    limiter.settle(held, 60, START);
    for _ in 0..4 {
        let grant = limiter.admit(acme, KEY, 10, START).unwrap();
        limiter.settle(grant, 10, START);
    }
    assert_eq!(limiter.admit(acme, KEY, 0, START).unwrap_err().scope, Scope::Key);
}

#[test]
fn tokens_are_reserved_before_they_are_used() {
    let (mut limiter, acme) = limiter([0, 1000, 0, 0], [0; 4]);
    let first = limiter.admit(acme, KEY, 600, START).unwrap();
    assert_eq!(first.reserved(), Some(600));
    let refused = limiter.admit(acme, KEY, 500, START).unwrap_err();
    assert_eq!((refused.limit, refused.remaining), (Limit::TokensPerMinute, 400));
    limiter.settle(first, 100, START + SECOND);
    let second = limiter.admit(acme, KEY, 900, START + SECOND).unwrap();
    // Usage beyond the reservation is booked in full, and must expire before anything else is admitted.
    limiter.settle(second, 1400, START + 2 * SECOND);
    let refused = limiter.admit(acme, KEY, 1, START + 2 * SECOND).unwrap_err();
    assert_eq!(refused.remaining, 0);
    // There are 100 in second 0, 900 in second 1 and 500 in second 2: below 1000 once second 1 has
    // left the window.
    assert_eq!(refused.retry_after, seconds(59.5));
}

#[test]
fn a_request_that_can_never_pass_is_told_so() {
    let (mut limiter, acme) = limiter([1, 1000, 0, 0], [0, 0, 500, 0]);
    let refused = limiter.admit(acme, KEY, 1001, START).unwrap_err();
    assert!(refused.is_permanent());
    assert_eq!(refused.retry_after_seconds(), None);
    assert_eq!(
        (refused.limit, refused.code()),
        (Limit::TokensPerMinute, "request_exceeds_limit")
    );
    let refused = limiter.admit(acme, KEY, 501, START).unwrap_err();
    assert!(refused.is_permanent());
    assert_eq!((refused.limit, refused.scope), (Limit::TokensPerDay, Scope::Key));
    assert!(refused.to_string().contains("500 tokens per day"), "{refused}");
    consume(&mut limiter, acme, KEY, 10, START);
    let refused = limiter.admit(acme, KEY, 2000, START).unwrap_err();
    assert!(
        refused.is_permanent(),
        "also when another limit is only reached for now"
    );
}

#[test]
fn a_days_tokens_come_back_at_midnight_utc() {
    let (mut limiter, acme) = limiter([0, 0, 1000, 0], [0; 4]);
    let grant = limiter.admit(acme, KEY, 900, START).unwrap();
    limiter.settle(grant, 900, START);
    let refused = limiter.admit(acme, KEY, 200, START + 1).unwrap_err();
    assert_eq!((refused.limit, refused.remaining), (Limit::TokensPerDay, 100));
    assert_eq!(
        refused.retry_after,
        Some(Duration::from_micros(MIDNIGHT - START - 1))
    );
    assert!(limiter.admit(acme, KEY, 200, MIDNIGHT - 1).is_err());
    let grant = limiter.admit(acme, KEY, 1000, MIDNIGHT).unwrap();
    limiter.keep_reservation(grant);
}

#[test]
fn unused_tokens_of_yesterday_are_not_given_back_today() {
    let (mut limiter, acme) = limiter([0, 0, 1000, 0], [0; 4]);
    let late = limiter.admit(acme, KEY, 800, MIDNIGHT - SECOND).unwrap();
    let grant = limiter.admit(acme, KEY, 900, MIDNIGHT).unwrap();
    limiter.settle(grant, 900, MIDNIGHT);
    limiter.settle(late, 0, MIDNIGHT + SECOND);
    let refused = limiter.admit(acme, KEY, 200, MIDNIGHT + SECOND).unwrap_err();
    assert_eq!(refused.remaining, 100);
}

#[test]
fn a_place_among_the_concurrent_requests_is_free_when_a_request_ends() {
    let (mut limiter, acme) = limiter([0, 0, 0, 4], [0; 4]);
    let mut held: Vec<_> = (0..4)
        .map(|_| limiter.admit(acme, KEY, 10, START).unwrap())
        .collect();
    let refused = limiter.admit(acme, KEY, 10, START).unwrap_err();
    assert_eq!(
        (refused.limit, refused.code()),
        (Limit::Concurrency, "concurrency_exceeded")
    );
    assert_eq!(refused.retry_after, Some(Duration::ZERO), "any moment");
    assert_eq!(refused.retry_after_seconds(), Some(1));
    limiter.settle(held.pop().unwrap(), 5, START);
    held.push(limiter.admit(acme, KEY, 10, START).unwrap());
    limiter.keep_reservation(held.pop().unwrap());
    held.push(limiter.admit(acme, KEY, 10, START).unwrap());
    limiter.refund(held.pop().unwrap(), true);
    held.push(limiter.admit(acme, KEY, 10, START).unwrap());
    limiter.refund(held.pop().unwrap(), false);
    held.push(limiter.admit(acme, KEY, 10, START).unwrap());
    assert!(limiter.admit(acme, KEY, 10, START).is_err());
}

#[test]
fn the_limit_that_keeps_a_request_out_longest_is_told() {
    let (mut limiter, acme) = limiter([1, 0, 100, 1], [0, 50, 0, 0]);
    let _held = limiter.admit(acme, KEY, 50, START).unwrap();
    let told = |limiter: &mut Limiter, tokens| {
        let refused = limiter.admit(acme, KEY, tokens, START).unwrap_err();
        (refused.limit, refused.scope)
    };
    assert_eq!(told(&mut limiter, 0), (Limit::RequestsPerMinute, Scope::Tenant));
    assert_eq!(
        told(&mut limiter, 20),
        (Limit::RequestsPerMinute, Scope::Tenant),
        "as long, and the tenant's"
    );
    assert_eq!(
        told(&mut limiter, 51),
        (Limit::TokensPerMinute, Scope::Key),
        "for ever"
    );
    let (mut limiter, acme) = support::limiter([1, 0, 100, 0], [0; 4]);
    consume(&mut limiter, acme, KEY, 60, START);
    assert_eq!(
        limiter.admit(acme, KEY, 60, START).unwrap_err().limit,
        Limit::TokensPerDay
    );
}

#[test]
fn what_fits_once_requests_under_way_have_ended_is_told_to_come_back_soon() {
    for limits in [[0, 1000, 0, 0], [0, 0, 1000, 0]] {
        let (mut limiter, acme) = limiter(limits, [0; 4]);
        consume(&mut limiter, acme, KEY, 100, START);
        let held = limiter.admit(acme, KEY, 800, START).unwrap();
        let refused = limiter.admit(acme, KEY, 500, START).unwrap_err();
        assert_eq!((refused.reserved, refused.remaining), (800, 100));
        assert_eq!(refused.retry_after_seconds(), Some(2));
        assert!(
            refused
                .to_string()
                .contains("because requests in flight reserve 800 of it")
        );
        // A request that does not fit even without the reservations has to wait until the usage expires.
        let refused = limiter.admit(acme, KEY, 901, START).unwrap_err();
        assert_eq!(refused.reserved, 0);
        assert!(refused.retry_after_seconds() > Some(60));
        assert!(refused.to_string().contains("is reached"));
        limiter.settle(held, 20, START);
        let held = limiter.admit(acme, KEY, 500, START).unwrap();
        // A reservation of unknown usage remains booked and is never released.
        limiter.keep_reservation(held);
        let refused = limiter.admit(acme, KEY, 500, START).unwrap_err();
        assert_eq!(refused.reserved, 0);
        assert!(refused.retry_after_seconds() > Some(50));
    }
}

#[test]
fn a_reservation_that_has_left_the_window_or_the_day_keeps_nobody_out_and_promises_nothing() {
    let (mut limiter, acme) = limiter([0, 1000, 1000, 0], [0; 4]);
    let early = limiter.admit(acme, KEY, 900, MIDNIGHT - SECOND).unwrap();
    let later = MIDNIGHT + 61 * SECOND;
    consume(&mut limiter, acme, KEY, 900, later);
    let refused = limiter.admit(acme, KEY, 200, later).unwrap_err();
    assert_eq!(refused.reserved, 0, "{refused}");
    limiter.settle(early, 0, later);
    let refused = limiter.admit(acme, KEY, 200, later).unwrap_err();
    assert_eq!((refused.reserved, refused.remaining), (0, 100));
}

#[test]
fn a_refunded_request_counts_only_if_it_is_kept() {
    let (mut limiter, acme) = limiter([2, 100, 100, 0], [2, 100, 100, 0]);
    for _ in 0..5 {
        let grant = limiter.admit(acme, KEY, 100, START).unwrap();
        limiter.refund(grant, false);
    }
    for _ in 0..2 {
        let grant = limiter.admit(acme, KEY, 100, START).unwrap();
        limiter.refund(grant, true);
    }
    let refused = limiter.admit(acme, KEY, 100, START).unwrap_err();
    assert_eq!(refused.limit, Limit::RequestsPerMinute);
}

#[test]
fn a_clock_that_steps_back_gives_nothing_out() {
    let (mut limiter, acme) = limiter([2, 0, 10, 0], [0; 4]);
    for now in [MIDNIGHT + SECOND, MIDNIGHT - 100 * SECOND] {
        let grant = limiter.admit(acme, KEY, 5, now).unwrap();
        assert_eq!(grant.admitted_at(), MIDNIGHT + SECOND);
        limiter.settle(grant, 5, 0);
    }
    for now in [0, 1, MIDNIGHT - 100 * SECOND, MIDNIGHT + SECOND] {
        assert!(limiter.admit(acme, KEY, 0, now).is_err());
    }
    // It was already the day after midnight, and it remains that day.
    let refused = limiter.admit(acme, KEY, 1, MIDNIGHT - SECOND).unwrap_err();
    assert_eq!(refused.limit, Limit::TokensPerDay);
    assert_eq!(refused.retry_after, seconds(86_401.0));
    assert!(limiter.admit(acme, KEY, 0, MIDNIGHT + 61 * SECOND).is_err());
    consume(&mut limiter, acme, KEY, 0, MIDNIGHT + 62 * SECOND);
}

#[test]
fn times_at_the_ends_of_the_scale_do_no_harm() {
    let (mut limiter, acme) = limiter([2, 10, 10, 1], [2, 10, 10, 1]);
    for now in [0, 1, u64::MAX, 0, u64::MAX] {
        if let Ok(grant) = limiter.admit(acme, KEY, u64::MAX, now) {
            limiter.keep_reservation(grant);
        }
        if let Ok(grant) = limiter.admit(acme, KEY, 5, now) {
            limiter.settle(grant, u64::MAX, now);
        }
        limiter.sweep(10, now);
        limiter.limit_status(acme, KEY, now).write(&mut Vec::new());
    }
}

#[test]
fn without_a_limit_nothing_is_counted() {
    let (mut limiter, acme) = limiter([0; 4], [0; 4]);
    let grant = limiter.admit(acme, KEY, u64::MAX, START).unwrap();
    assert_eq!(grant.reserved(), None);
    limiter.settle(grant, 5, START);
    assert_eq!(limiter.subject_count(), 0);
    let mut lines = Vec::new();
    limiter.limit_status(acme, KEY, START).write(&mut lines);
    assert_eq!(lines, b"");
}

#[test]
fn new_limits_apply_to_what_was_consumed_before() {
    let (mut limiter, acme) = limiter([0, 0, 0, 10], [0; 4]);
    let held = limiter.admit(acme, KEY, 80, START).unwrap();
    consume(&mut limiter, acme, KEY, 10, START);
    let ids = limiter.set_limits(&[
        tenant("other", [1, 0, 0, 0], [0; 4]),
        tenant("acme", [0, 100, 0, 1], [0; 4]),
    ]);
    assert_eq!(ids[1], acme, "a tenant keeps its id");
    assert_eq!(
        limiter.admit(acme, KEY, 1, START).unwrap_err().limit,
        Limit::Concurrency
    );
    limiter.settle(held, 80, START);
    assert_eq!(
        limiter.admit(acme, KEY, 11, START).unwrap_err().limit,
        Limit::TokensPerMinute
    );
    consume(&mut limiter, acme, KEY, 10, START);
    // A tenant that is no longer configured is unlimited, and its consumption counts again when it returns.
    limiter.set_limits(&[]);
    consume(&mut limiter, acme, KEY, 1 << 50, START);
    limiter.set_limits(&[tenant("acme", [0, 100, 0, 0], [0; 4])]);
    assert_eq!(limiter.admit(acme, KEY, 1, START).unwrap_err().remaining, 0);
}

#[test]
fn one_tenant_gets_other_limits_and_nobody_else_does() {
    let (mut limiter, acme) = limiter([1, 0, 0, 0], [0; 4]);
    let beta = limiter.set_tenant(&tenant("beta", [1, 0, 0, 0], [0; 4]));
    consume(&mut limiter, acme, KEY, 0, START);
    consume(&mut limiter, beta, KEY, 0, START);
    assert_eq!(
        limiter.set_tenant(&tenant("beta", [2, 0, 0, 0], [0; 4])),
        beta,
        "it keeps its id, and what it consumed"
    );
    consume(&mut limiter, beta, KEY, 0, START);
    assert!(limiter.admit(beta, KEY, 0, START).is_err());
    assert!(limiter.admit(acme, KEY, 0, START).is_err());
}

#[test]
fn a_tenant_that_comes_back_in_time_finds_what_it_consumed() {
    let (mut limiter, acme) = limiter([1, 0, 0, 0], [0; 4]);
    consume(&mut limiter, acme, KEY, 0, START);
    limiter.remove_tenant("acme");
    assert_eq!(limiter.find("acme"), None);
    limiter.sweep(10, START);
    let acme = limiter.set_tenant(&tenant("acme", [1, 0, 0, 0], [0; 4]));
    assert_eq!(limiter.find("acme"), Some(acme));
    assert!(limiter.admit(acme, KEY, 0, START).is_err());
}

#[test]
fn tenants_that_come_and_go_leave_nothing_behind() {
    let mut limiter = Limiter::new();
    let mut ids = std::collections::HashSet::new();
    let mut now = START;
    for number in 0..1000 {
        let name = format!("team/{number}");
        let limits = if number % 2 == 0 { [5, 0, 0, 0] } else { [0; 4] };
        let id = limiter.set_tenant(&tenant(&name, limits, limits));
        ids.insert(format!("{id:?}"));
        consume(&mut limiter, id, KEY, 0, now);
        limiter.remove_tenant(&name);
        limiter.take_changes(1, now, &mut proofgate_limits::Changes::default());
        // If a tenant has a count of the day, it exists until midnight.
        now += 86_400 * SECOND;
        limiter.sweep(10, now);
        limiter.sweep(10, now);
    }
    assert_eq!(limiter.subject_count(), 0);
    assert!(ids.len() <= 2, "{ids:?}");
}

#[test]
fn a_hundred_thousand_keys_are_forgotten_when_nothing_of_them_counts() {
    let (mut limiter, acme) = limiter([0; 4], [10, 0, 0, 0]);
    let key = |number: u32| CredentialId::ApiKey(number.to_be_bytes());
    for number in 0..100_000 {
        let grant = limiter.admit(acme, key(number), 0, START).unwrap();
        limiter.settle(grant, u64::from(number % 2), START);
    }
    let held = limiter.admit(acme, key(200_000), 0, START).unwrap();
    assert_eq!(limiter.subject_count(), 100_002);
    limiter.take_changes(1, START, &mut proofgate_limits::Changes::default());
    let all = |limiter: &mut Limiter, now| limiter.sweep(1_000_000, now);
    all(&mut limiter, START + 60 * SECOND);
    assert_eq!(limiter.subject_count(), 100_002, "the minute still counts");
    all(&mut limiter, START + 61 * SECOND);
    let held_today = limiter.subject_count();
    assert!(
        held_today >= 50_002,
        "those with tokens today, the one in flight and the tenant"
    );
    all(&mut limiter, MIDNIGHT);
    assert_eq!(limiter.subject_count(), 2);
    limiter.settle(held, 0, MIDNIGHT);
    limiter.take_changes(1, MIDNIGHT, &mut proofgate_limits::Changes::default());
    all(&mut limiter, MIDNIGHT);
    assert_eq!(limiter.subject_count(), 1);
    consume(&mut limiter, acme, key(7), 0, MIDNIGHT);
    assert_eq!(limiter.subject_count(), 2);
}

#[test]
fn configured_limits_are_at_least_one() {
    let parse = serde_json::from_str::<Limits>;
    let limits = parse(r#"{"requestsPerMinute": 5, "tokensPerMinute": null}"#).unwrap();
    assert_eq!(limits, support::limits([5, 0, 0, 0]));
    assert!(parse(r#"{"concurrency": 0}"#).is_err());
    assert!(parse(r#"{"requestsPerSecond": 1}"#).is_err());
}

#[test]
fn a_key_is_named_by_the_first_digits_of_its_hash() {
    let mut hash = [0xff; 32];
    hash[..4].copy_from_slice(&[0, 0x1a, 0xb2, 3]);
    let key = CredentialId::from_api_key_hash(&hash);
    assert_eq!(key.to_string(), "001ab203");
    assert_eq!(CredentialId::parse("001ab203"), Some(key));
    let subject = CredentialId::from_subject_hash(&hash);
    assert_eq!(subject.to_string(), "001ab203ffffffffffffffffffffffff");
    assert_eq!(CredentialId::parse(&subject.to_string()), Some(subject));
    for bad in ["", "001ab20", "001ab2030", "001AB203", "+01ab203", "001ab20é"] {
        assert_eq!(CredentialId::parse(bad), None);
    }
}

#[test]
fn subjects_that_share_the_beginning_of_their_digest_have_limits_of_their_own() {
    let (mut limiter, acme) = support::limiter([0; 4], [1, 0, 0, 0]);
    let mut digest = [7; 32];
    let victim = CredentialId::from_subject_hash(&digest);
    digest[15] = 8;
    let other = CredentialId::from_subject_hash(&digest);
    consume(&mut limiter, acme, other, 0, START);
    assert!(limiter.admit(acme, other, 0, START).is_err());
    assert!(
        limiter
            .admit(acme, CredentialId::from_api_key_hash(&digest), 0, START)
            .is_ok()
    );
    assert!(limiter.admit(acme, victim, 0, START).is_ok());
}
