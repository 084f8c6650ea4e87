//! Tests of the limit of requests per UTC day.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{Changes, Limiter, Limits, Origin, Quotas, Replay, Snapshot, TenantId, TenantLimits};
use std::num::NonZeroU64;
use std::time::Duration;
use support::{KEY, MIDNIGHT, SECOND, START, consume};

const ACME: &str = "acme";

/// Creates a limiter that admits three requests a day.
fn limiter() -> (Limiter, TenantId) {
    let limits = Limits {
        requests_per_day: NonZeroU64::new(3),
        ..Limits::NONE
    };
    let mut limiter = Limiter::new();
    let acme = limiter.set_tenant(&TenantLimits {
        name: ACME.into(),
        quotas: Quotas::new(&limits, &Limits::NONE).into(),
    });
    (limiter, acme)
}

#[test]
fn the_request_beyond_a_days_limit_is_refused_until_midnight_utc() {
    let (mut limiter, acme) = limiter();
    for second in [0, 100, 200] {
        consume(&mut limiter, acme, KEY, 0, START + second * SECOND);
    }
    let now = START + 1000 * SECOND;
    let refused = limiter.admit(acme, KEY, 0, now).unwrap_err();
    assert_eq!(refused.code(), "requests_per_day_exceeded");
    assert_eq!(
        refused.retry_after,
        Some(Duration::from_micros(MIDNIGHT - now)),
        "midnight comes in an hour and a half"
    );
    assert_eq!(
        refused.to_string(),
        "this tenant's limit of 3 requests per day is reached: try again in 5400 s"
    );
    let mut fields = Vec::new();
    limiter.limit_status(acme, KEY, now).write(&mut fields);
    let expected = [
        r#"ratelimit-policy: "requests-day";q=3;w=86400"#,
        r#"ratelimit: "requests-day";r=0;t=5400"#,
        "x-ratelimit-limit-requests: 3",
        "x-ratelimit-remaining-requests: 0",
        "x-ratelimit-reset-requests: 1h30m0s",
    ];
    let fields = String::from_utf8(fields).unwrap();
    assert_eq!(fields.split_terminator("\r\n").collect::<Vec<_>>(), expected);

    assert!(limiter.admit(acme, KEY, 0, MIDNIGHT - 1).is_err());
    for _ in 0..3 {
        consume(&mut limiter, acme, KEY, 0, MIDNIGHT);
    }
    assert!(limiter.admit(acme, KEY, 0, MIDNIGHT).is_err());
}

#[test]
fn a_request_that_another_limit_refused_does_not_count_and_one_that_rules_denied_does() {
    let (mut limiter, acme) = limiter();
    for keep_request in [false, true] {
        let grant = limiter.admit(acme, KEY, 0, START).unwrap();
        limiter.refund(grant, keep_request);
    }
    let counted = limiter.report(acme, KEY, START).tenant;
    let of_day = counted.iter().find(|one| one.limit.name() == "requests_per_day");
    assert_eq!(of_day.map(|one| (one.used, one.value)), Some((1, Some(3))));
}

#[test]
fn a_successor_goes_on_with_the_days_requests_whether_its_predecessor_ended_or_crashed() {
    let origin = Origin {
        shard: 0,
        incarnation: 1,
    };
    let (mut before, acme) = limiter();
    let mut grant = before.admit(acme, KEY, 0, START).unwrap();
    before.mark_recorded(&mut grant);
    before.keep_reservation(grant);
    let mut changes = Changes::default();
    before.take_changes(1, START, &mut changes);
    assert!(changes.needs_all_counts());
    let mut ended = Snapshot::empty(origin);
    ended.apply(&changes);

    let mut replay = Replay::new(Snapshot::empty(origin));
    replay.record_counted_rejection(0, START, ACME, None, None);
    let crashed = replay.finish(1, START);

    for snapshot in [ended, crashed] {
        let (mut after, acme) = limiter();
        let consumed: Vec<_> = snapshot.subjects.into_iter().collect();
        after.apply_remote(&consumed, START + 70 * SECOND);
        for _ in 0..2 {
            consume(&mut after, acme, KEY, 0, START + 70 * SECOND);
        }
        assert!(after.admit(acme, KEY, 0, START + 70 * SECOND).is_err());
    }
}
