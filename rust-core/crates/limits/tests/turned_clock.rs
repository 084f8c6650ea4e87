//! A clock that had been wrong and is set right: nothing is given out, and nobody waits until a wrong time has come.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{
    Changes, Demand, Foreign, Grant, Limit, Limiter, Limits, Origin, Quotas, Snapshot, TenantId,
    TenantLimits, Used,
};
use std::num::NonZeroU64;
use std::sync::Arc;
use support::{KEY, SECOND, START};

const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 86_400 * SECOND;
const YEAR: u64 = 365 * DAY;
/// By how much the clock was ahead.
const AHEAD: [u64; 6] = [
    2 * 3600 * SECOND,
    20 * 3600 * SECOND,
    DAY,
    31 * DAY,
    YEAR,
    10 * YEAR,
];

fn limiter() -> (Limiter, TenantId) {
    let limits = Limits {
        requests_per_minute: NonZeroU64::new(3),
        nanodollars_per_day: NonZeroU64::new(100),
        nanodollars_per_month: NonZeroU64::new(1000),
        ..Limits::default()
    };
    let mut limiter = Limiter::new();
    let id = limiter.set_tenant(&TenantLimits {
        name: "acme".into(),
        quotas: Arc::new(Quotas::new(&limits, &Limits::default())),
    });
    (limiter, id)
}

fn ask(limiter: &mut Limiter, tenant: TenantId, cost: u64, now: u64) -> Result<Grant, Limit> {
    let demand = Demand {
        tokens: 0,
        model: "m",
        cost: Some(cost),
    };
    limiter
        .admit(tenant, KEY, demand, now)
        .map_err(|exceeded| exceeded.limit)
}

fn spend(limiter: &mut Limiter, tenant: TenantId, cost: u64, now: u64) {
    let grant = ask(limiter, tenant, cost, now).unwrap();
    limiter.settle(grant, Used { tokens: 0, cost }, now);
}

#[test]
fn what_was_used_by_a_wrong_clock_counts_now_and_ends_with_this_minute_day_and_month() {
    for ahead in AHEAD {
        let (mut limiter, acme) = limiter();
        for _ in 0..3 {
            spend(&mut limiter, acme, 30, START + ahead);
        }
        limiter.turn_back(START);
        assert_eq!(limiter.now_after(START), START);
        assert_eq!(
            ask(&mut limiter, acme, 1, START).unwrap_err(),
            Limit::RequestsPerMinute
        );
        let later = START + 2 * MINUTE;
        assert_eq!(
            ask(&mut limiter, acme, 30, later).unwrap_err(),
            Limit::MoneyPerDay
        );
        spend(&mut limiter, acme, 10, later);
        let tomorrow = START - START % DAY + DAY;
        spend(&mut limiter, acme, 100, tomorrow);
        assert_eq!(
            ask(&mut limiter, acme, 1, tomorrow).unwrap_err(),
            Limit::MoneyPerDay
        );
    }
}

#[test]
fn a_request_under_way_gives_back_what_it_did_not_use_in_the_day_that_it_counts_in() {
    for ahead in AHEAD {
        let (mut limiter, acme) = limiter();
        let mut open = ask(&mut limiter, acme, 90, START + ahead).unwrap();
        let unrecorded = ask(&mut limiter, acme, 5, START + ahead).unwrap();
        limiter.recorded(&mut open);
        limiter.turn_back(START);
        assert_eq!(
            ask(&mut limiter, acme, 10, START).unwrap_err(),
            Limit::MoneyPerDay
        );
        limiter.settle(open, Used { tokens: 0, cost: 20 }, START);
        limiter.refund(unrecorded, false);
        spend(&mut limiter, acme, 80, START);
        assert_eq!(ask(&mut limiter, acme, 1, START).unwrap_err(), Limit::MoneyPerDay);
    }
}

#[test]
fn an_earlier_time_without_a_turn_gives_nothing_out() {
    let (mut limiter, acme) = limiter();
    spend(&mut limiter, acme, 30, START);
    limiter.turn_back(START + MINUTE);
    assert_eq!(limiter.now_after(START), START, "it is turned back only");
    assert_eq!(limiter.now_after(START - DAY), START);
}

fn origin(incarnation: u128) -> Origin {
    Origin {
        shard: 0,
        incarnation,
    }
}

/// What a worker has used whose clock was ahead.
fn used_ahead(ahead: u64) -> Snapshot {
    let (mut other, acme) = limiter();
    spend(&mut other, acme, 100, START + ahead);
    let mut changes = Changes::default();
    other.take_changes(2, START + ahead, &mut changes);
    let mut snapshot = Snapshot::empty(origin(1));
    snapshot.apply(&changes);
    snapshot
}

fn left_on(foreign: &mut Foreign, limiter: &mut Limiter, acme: TenantId, now: u64) -> bool {
    foreign.tick(now);
    limiter.absorb(&foreign.take_changes(usize::MAX, now), now);
    let asked = ask(limiter, acme, 100, now);
    let is_left = asked.is_ok();
    if let Ok(grant) = asked {
        limiter.refund(grant, false);
    }
    is_left
}

#[test]
fn what_another_worker_used_by_a_clock_years_ahead_counts_in_one_day_and_not_in_all() {
    for ahead in AHEAD {
        let (mut here, acme) = limiter();
        let mut foreign = Foreign::new(origin(2));
        foreign.absorb(used_ahead(ahead), START);
        assert!(!left_on(&mut foreign, &mut here, acme, START));
        assert!(!left_on(&mut foreign, &mut here, acme, START + MINUTE));
        assert!(left_on(&mut foreign, &mut here, acme, START + 2 * DAY), "{ahead}");
    }
}

#[test]
fn what_others_told_before_the_clock_was_set_right_counts_in_one_day_as_well() {
    for ahead in &AHEAD[2..] {
        let (mut here, acme) = limiter();
        let mut foreign = Foreign::new(origin(2));
        foreign.absorb(used_ahead(*ahead), START + ahead);
        assert!(!left_on(&mut foreign, &mut here, acme, START + ahead));
        here.turn_back(START);
        assert!(!left_on(&mut foreign, &mut here, acme, START));
        assert!(left_on(&mut foreign, &mut here, acme, START + 2 * DAY), "{ahead}");
    }
}
