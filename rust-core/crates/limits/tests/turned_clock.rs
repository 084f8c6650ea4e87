//! Tests of a wrong clock that is corrected: nothing is released, and no request waits until the
//! wrong time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{
    ActualUsage, AdmittedReservation, Changes, Demand, Grant, Limit, Limiter, Limits, Origin, Quotas,
    RemoteSnapshots, Replay, Snapshot, TenantId, TenantLimits,
};
use std::num::NonZeroU64;
use std::sync::Arc;
use support::{KEY, SECOND, START};

const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 86_400 * SECOND;
const YEAR: u64 = 365 * DAY;
/// Time by which the clock was ahead.
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
    limiter.settle(grant, ActualUsage { tokens: 0, cost }, now);
}

#[test]
fn what_was_used_by_a_wrong_clock_counts_now_and_ends_with_this_minute_day_and_month() {
    for ahead in AHEAD {
        let (mut limiter, acme) = limiter();
        for _ in 0..3 {
            spend(&mut limiter, acme, 30, START + ahead);
        }
        limiter.roll_back_clock(START);
        assert_eq!(limiter.effective_now(START), START);
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
        // A day that had started by the wrong clock continues with its counts.
        let had_begun = (START + ahead) / DAY == tomorrow / DAY;
        spend(&mut limiter, acme, if had_begun { 10 } else { 100 }, tomorrow);
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
        limiter.mark_recorded(&mut open);
        limiter.roll_back_clock(START);
        assert_eq!(
            ask(&mut limiter, acme, 10, START).unwrap_err(),
            Limit::MoneyPerDay
        );
        limiter.settle(open, ActualUsage { tokens: 0, cost: 20 }, START);
        limiter.refund(unrecorded, false);
        spend(&mut limiter, acme, 80, START);
        assert_eq!(ask(&mut limiter, acme, 1, START).unwrap_err(), Limit::MoneyPerDay);
    }
}

#[test]
fn an_earlier_time_without_a_turn_gives_nothing_out() {
    let (mut limiter, acme) = limiter();
    spend(&mut limiter, acme, 30, START);
    limiter.roll_back_clock(START + MINUTE);
    assert_eq!(limiter.effective_now(START), START, "it is turned back only");
    assert_eq!(limiter.effective_now(START - DAY), START);
}

fn origin(incarnation: u128) -> Origin {
    Origin {
        shard: 0,
        incarnation,
    }
}

/// Returns the consumption of a worker whose clock was ahead.
fn used_ahead(ahead: u64) -> Snapshot {
    let (mut other, acme) = limiter();
    spend(&mut other, acme, 100, START + ahead);
    let mut changes = Changes::default();
    other.take_changes(2, START + ahead, &mut changes);
    let mut snapshot = Snapshot::empty(origin(1));
    snapshot.apply(&changes);
    snapshot
}

fn left_on(foreign: &mut RemoteSnapshots, limiter: &mut Limiter, acme: TenantId, now: u64) -> bool {
    foreign.tick(now);
    limiter.apply_remote(&foreign.take_changes(usize::MAX, now), now);
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
        let mut foreign = RemoteSnapshots::new(origin(2));
        foreign.insert(used_ahead(ahead), START);
        assert!(!left_on(&mut foreign, &mut here, acme, START));
        assert!(!left_on(&mut foreign, &mut here, acme, START + MINUTE));
        assert!(left_on(&mut foreign, &mut here, acme, START + 2 * DAY), "{ahead}");
    }
}

#[test]
fn what_others_told_before_the_clock_was_set_right_counts_in_one_day_as_well() {
    for ahead in &AHEAD[2..] {
        let (mut here, acme) = limiter();
        let mut foreign = RemoteSnapshots::new(origin(2));
        foreign.insert(used_ahead(*ahead), START + ahead);
        assert!(!left_on(&mut foreign, &mut here, acme, START + ahead));
        here.roll_back_clock(START);
        assert!(!left_on(&mut foreign, &mut here, acme, START));
        assert!(left_on(&mut foreign, &mut here, acme, START + 2 * DAY), "{ahead}");
    }
}

const STEPS: [u64; 5] = [SECOND, 2 * 3600 * SECOND, DAY, 40 * DAY, 10 * YEAR];

/// Creates a limiter with one limit.
fn limited(limits: Limits) -> (Limiter, TenantId) {
    let mut limiter = Limiter::new();
    let id = limiter.set_tenant(&TenantLimits {
        name: "acme".into(),
        quotas: Arc::new(Quotas::new(&limits, &Limits::default())),
    });
    (limiter, id)
}

/// Limits of 100 per minute, day and month, used by requests according to their cost.
fn hundred() -> [(Limits, Limit); 4] {
    let hundred = NonZeroU64::new(100);
    let none = Limits::default();
    [
        (
            Limits {
                tokens_per_minute: hundred,
                ..none
            },
            Limit::TokensPerMinute,
        ),
        (
            Limits {
                tokens_per_day: hundred,
                ..none
            },
            Limit::TokensPerDay,
        ),
        (
            Limits {
                nanodollars_per_day: hundred,
                ..none
            },
            Limit::MoneyPerDay,
        ),
        (
            Limits {
                nanodollars_per_month: hundred,
                ..none
            },
            Limit::MoneyPerMonth,
        ),
    ]
}

fn use_up(limiter: &mut Limiter, tenant: TenantId, amount: u64, now: u64) -> Result<(), Limit> {
    let demand = Demand {
        tokens: amount,
        model: "m",
        cost: Some(amount),
    };
    let grant = limiter.admit(tenant, KEY, demand, now);
    let grant = grant.map_err(|exceeded| exceeded.limit)?;
    let used = ActualUsage {
        tokens: amount,
        cost: amount,
    };
    limiter.settle(grant, used, now);
    Ok(())
}

#[test]
fn a_clock_that_was_ahead_and_came_back_gives_nothing_out_again() {
    for step in STEPS {
        for (limits, limit) in hundred() {
            let (mut limiter, acme) = limited(limits);
            use_up(&mut limiter, acme, 90, START).unwrap();
            limiter.jump_forward(START, START + step);
            limiter.sweep(10, START + step);
            limiter.roll_back_clock(START);
            let refused = use_up(&mut limiter, acme, 20, START);
            assert_eq!(refused, Err(limit), "{step} ahead and back");
            use_up(&mut limiter, acme, 10, START).unwrap();
        }
    }
}

#[test]
fn a_clock_that_was_behind_and_came_back_gives_nothing_out_again() {
    for step in STEPS {
        for (limits, limit) in hundred() {
            let (mut limiter, acme) = limited(limits);
            use_up(&mut limiter, acme, 90, START).unwrap();
            limiter.roll_back_clock(START - step);
            assert_eq!(
                use_up(&mut limiter, acme, 20, START - step),
                Err(limit),
                "{step} back"
            );
            limiter.sweep(10, START - step);
            limiter.jump_forward(START - step, START);
            assert_eq!(
                use_up(&mut limiter, acme, 20, START),
                Err(limit),
                "{step} back and ahead"
            );
            use_up(&mut limiter, acme, 10, START).unwrap();
        }
    }
}

#[test]
fn a_clock_that_goes_to_and_fro_counts_nothing_twice() {
    for step in STEPS {
        for (limits, _) in hundred() {
            let (mut limiter, acme) = limited(limits);
            use_up(&mut limiter, acme, 40, START).unwrap();
            for turn in 0..20 {
                limiter.jump_forward(START, START + step);
                if turn == 0 {
                    use_up(&mut limiter, acme, 10, START + step).unwrap();
                }
                limiter.roll_back_clock(START);
            }
            use_up(&mut limiter, acme, 50, START).unwrap();
            assert!(use_up(&mut limiter, acme, 1, START).is_err());
        }
    }
}

#[test]
fn what_a_request_did_not_use_goes_back_to_the_day_that_the_clock_left() {
    for step in &STEPS[2..] {
        let (mut limiter, acme) = limited(hundred()[2].0);
        let open = ask(&mut limiter, acme, 90, START).unwrap();
        limiter.jump_forward(START, START + step);
        limiter.settle(open, ActualUsage { tokens: 0, cost: 20 }, START + step);
        limiter.roll_back_clock(START);
        assert_eq!(
            ask(&mut limiter, acme, 81, START).unwrap_err(),
            Limit::MoneyPerDay
        );
        spend(&mut limiter, acme, 80, START);
    }
}

/// Returns the consumption of a worker before its clock was set ahead, which its file contains in
/// the meantime.
fn left_behind(limits: Limits, step: u64) -> Snapshot {
    let (mut other, acme) = limited(limits);
    use_up(&mut other, acme, 90, START).unwrap();
    let mut snapshot = Snapshot::empty(origin(1));
    let mut changes = Changes::default();
    other.take_changes(2, START, &mut changes);
    snapshot.apply(&changes);
    other.jump_forward(START, START + step);
    other.take_changes(3, START + step, &mut changes);
    snapshot.apply(&changes);
    snapshot.prune(START + step);
    snapshot
}

#[test]
fn others_and_a_successor_count_what_a_worker_used_before_its_clock_was_set_ahead() {
    for step in &STEPS[1..] {
        for (limits, limit) in &hundred()[1..] {
            let (mut here, acme) = limited(*limits);
            let mut foreign = RemoteSnapshots::new(origin(2));
            foreign.insert(left_behind(*limits, *step), START);
            foreign.tick(START);
            here.apply_remote(&foreign.take_changes(usize::MAX, START), START);
            assert_eq!(use_up(&mut here, acme, 20, START), Err(*limit), "{step}");
            use_up(&mut here, acme, 10, START).unwrap();
        }
    }
}

#[test]
fn a_log_in_which_the_clock_was_set_ahead_and_back_is_counted_on_both_days() {
    let admission = |seq, ts, cost| AdmittedReservation {
        seq,
        ts,
        tenant: "acme",
        key: None,
        model: "m",
        reserved: 0,
        reserved_cost: Some(cost),
        shared_plan: None,
    };
    for step in &STEPS[1..] {
        let (ahead, hour) = (START + step, 3600 * SECOND);
        for comes_back in [false, true] {
            let mut replay = Replay::new(Snapshot::empty(origin(1)));
            replay.record_admission(&admission(1, START, 60));
            replay.record_clock_step(2, START, ahead, hour);
            replay.record_admission(&admission(3, ahead, 30));
            if comes_back {
                replay.record_clock_step(4, ahead, START, hour);
            }
            let ended = replay.finish(5, START);
            let (mut here, acme) = limited(hundred()[2].0);
            let mut foreign = RemoteSnapshots::new(origin(2));
            foreign.insert(ended, START);
            here.apply_remote(&foreign.take_changes(usize::MAX, START), START);
            let refused = use_up(&mut here, acme, 11, START);
            assert_eq!(refused, Err(Limit::MoneyPerDay), "{step}, back: {comes_back}");
            use_up(&mut here, acme, 10, START).unwrap();
        }
    }
}
