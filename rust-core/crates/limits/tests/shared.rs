//! Tests of limits that the tenants of one namespace share, in addition to each tenant's own
//! limits.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{
    ActualUsage, AdmittedReservation, Changes, Demand, Grant, Limit, LimitExceeded, Limiter, Limits, Origin,
    Quotas, RemoteSnapshots, Replay, Scope, Snapshot, SubjectKind, SubjectName, TenantId, TenantLimits,
};
use std::num::NonZeroU64;
use std::sync::Arc;
use support::{KEY, MIDNIGHT, OTHER_KEY, SECOND, START, consume, limits};

const NOTHING: Limits = Limits::NONE;

fn money(day: u64) -> Limits {
    Limits {
        nanodollars_per_day: NonZeroU64::new(day),
        ..NOTHING
    }
}

fn quotas(plan: &str, own: &Limits, shared: &Limits) -> Arc<Quotas> {
    Arc::new(Quotas::new(own, &NOTHING).with_shared_limits(plan, shared))
}

/// Returns tenants of one plan.
fn limiter<const N: usize>(names: [&str; N], own: &Limits, shared: &Limits) -> (Limiter, [TenantId; N]) {
    let quotas = quotas("gold", own, shared);
    let mut limiter = Limiter::new();
    let ids = names.map(|name| {
        limiter.set_tenant(&TenantLimits {
            name: name.into(),
            quotas: Arc::clone(&quotas),
        })
    });
    (limiter, ids)
}

fn ask(limiter: &mut Limiter, tenant: TenantId, cost: u64, now: u64) -> Result<Grant, LimitExceeded> {
    let demand = Demand {
        tokens: cost,
        model: "m",
        cost: Some(cost),
    };
    limiter.admit(tenant, KEY, demand, now)
}

fn spend(limiter: &mut Limiter, tenant: TenantId, cost: u64, now: u64) {
    let grant = ask(limiter, tenant, cost, now).unwrap();
    limiter.settle(grant, ActualUsage { tokens: cost, cost }, now);
}

#[test]
fn the_tenants_of_a_namespace_spend_one_budget_and_those_of_another_have_their_own() {
    let names = ["blue/app", "blue/batch", "red/app"];
    let (mut limiter, [app, batch, red]) = limiter(names, &money(80), &money(100));
    spend(&mut limiter, app, 70, START);
    let own = ask(&mut limiter, app, 20, START).unwrap_err();
    assert_eq!(
        (own.scope, own.value),
        (Scope::Tenant, 80),
        "its own budget counts as well"
    );
    let refused = ask(&mut limiter, batch, 40, START).unwrap_err();
    assert_eq!(
        (refused.scope, refused.limit, refused.value, refused.remaining),
        (Scope::Namespace, Limit::MoneyPerDay, 100, 30)
    );
    assert!(
        refused
            .to_string()
            .starts_with("this namespace's budget of 0.0000001 dollars per day is reached"),
        "{refused}"
    );
    spend(&mut limiter, batch, 30, START);
    assert!(ask(&mut limiter, batch, 1, START).is_err());
    spend(&mut limiter, red, 80, START);
    spend(&mut limiter, batch, 80, MIDNIGHT);
}

#[test]
fn every_limit_can_be_shared() {
    let names = ["blue/app", "blue/batch"];
    for (shared, limit) in [
        (limits([1, 0, 0, 0]), Limit::RequestsPerMinute),
        (limits([0, 10, 0, 0]), Limit::TokensPerMinute),
        (limits([0, 0, 10, 0]), Limit::TokensPerDay),
        (limits([0, 0, 0, 1]), Limit::Concurrency),
        (money(10), Limit::MoneyPerDay),
        (
            Limits {
                nanodollars_per_month: NonZeroU64::new(10),
                ..NOTHING
            },
            Limit::MoneyPerMonth,
        ),
    ] {
        let (mut limiter, [app, batch]) = limiter(names, &NOTHING, &shared);
        let held = ask(&mut limiter, app, 10, START).unwrap();
        assert_eq!(&**held.shared_plan().unwrap(), "gold");
        let refused = ask(&mut limiter, batch, 10, START).unwrap_err();
        assert_eq!((refused.scope, refused.limit), (Scope::Namespace, limit));
        limiter.refund(held, false);
        ask(&mut limiter, batch, 10, START)
            .map(|grant| limiter.keep_reservation(grant))
            .unwrap();
    }
}

#[test]
fn what_is_not_used_goes_back_to_all_and_what_was_used_beyond_counts_for_all() {
    let (mut limiter, [app, batch]) = limiter(["blue/app", "blue/batch"], &NOTHING, &money(100));
    let held = ask(&mut limiter, app, 100, START).unwrap();
    let refused = ask(&mut limiter, batch, 60, START).unwrap_err();
    assert_eq!(refused.reserved, 100, "it may fit once the other is done");
    limiter.settle(held, ActualUsage { tokens: 0, cost: 30 }, START);
    let mut held = ask(&mut limiter, batch, 60, START).unwrap();
    assert!(
        !limiter.reserve_retry_cost(&mut held, 20, START),
        "90 of 100 are taken"
    );
    assert!(limiter.reserve_retry_cost(&mut held, 10, START));
    limiter.settle(held, ActualUsage { tokens: 0, cost: 75 }, START);
    assert_eq!(ask(&mut limiter, app, 1, START).unwrap_err().remaining, 0);
}

/// Lets a limiter remove idle subjects.
fn forget(limiter: &mut Limiter, now: u64) {
    limiter.take_changes(0, now, &mut Changes::default());
    limiter.sweep(10, now);
    limiter.sweep(10, now);
}

#[test]
fn neither_a_new_name_nor_another_plan_gives_a_namespace_its_budget_again() {
    let (mut limiter, [app]) = limiter(["blue/app"], &NOTHING, &money(100));
    spend(&mut limiter, app, 90, START);
    limiter.remove_tenant("blue/app");
    forget(&mut limiter, START + SECOND);
    let gold = quotas("gold", &NOTHING, &money(100));
    let tenant = |name: &str, quotas: &Arc<Quotas>| TenantLimits {
        name: name.into(),
        quotas: Arc::clone(quotas),
    };
    let again = limiter.set_tenant(&tenant("blue/again", &gold));
    assert_eq!(
        ask(&mut limiter, again, 11, START).unwrap_err().scope,
        Scope::Namespace
    );
    let silver = quotas("silver", &NOTHING, &money(100));
    limiter.set_tenant(&tenant("blue/again", &silver));
    spend(&mut limiter, again, 100, START);
    limiter.set_limits(&[tenant("blue/again", &gold), tenant("blue/other", &gold)]);
    let other = limiter.find("blue/other").unwrap();
    for tenant in [again, other] {
        assert_eq!(ask(&mut limiter, tenant, 11, START).unwrap_err().remaining, 10);
    }
    limiter.set_limits(&[]);
    let later = MIDNIGHT + 40 * 86_400 * SECOND;
    forget(&mut limiter, later);
    assert_eq!(
        limiter.subject_count(),
        0,
        "nothing is kept of what no longer counts"
    );
}

#[test]
fn a_request_under_way_pays_where_it_was_admitted() {
    let (mut limiter, [app]) = limiter(["blue/app"], &NOTHING, &money(100));
    let held = ask(&mut limiter, app, 60, START).unwrap();
    limiter.set_tenant(&TenantLimits {
        name: "blue/app".into(),
        quotas: quotas("silver", &NOTHING, &money(100)),
    });
    limiter.settle(held, ActualUsage { tokens: 0, cost: 10 }, START);
    spend(&mut limiter, app, 100, START);
    let gold = TenantLimits {
        name: "blue/app".into(),
        quotas: quotas("gold", &NOTHING, &money(100)),
    };
    limiter.set_tenant(&gold);
    assert_eq!(ask(&mut limiter, app, 91, START).unwrap_err().remaining, 90);
}

#[test]
fn a_tenant_without_a_namespace_shares_nothing() {
    let (mut limiter, [app]) = limiter(["app"], &NOTHING, &money(10));
    let held = ask(&mut limiter, app, 1000, START).unwrap();
    assert_eq!(held.shared_plan(), None);
    limiter.keep_reservation(held);
}

#[test]
fn a_sender_sees_what_is_left_of_what_its_namespace_shares() {
    let (mut limiter, [app, batch]) = limiter(
        ["blue/app", "blue/batch"],
        &limits([9, 0, 0, 0]),
        &limits([5, 0, 0, 0]),
    );
    consume(&mut limiter, batch, OTHER_KEY, 0, START);
    let mut lines = Vec::new();
    limiter.limit_status(app, KEY, START).write(&mut lines);
    let lines = String::from_utf8(lines).unwrap();
    for expected in [
        r#"ratelimit-policy: "requests";q=9;w=60, "namespace-requests";q=5;w=60"#,
        r#"ratelimit: "requests";r=9;t=60, "namespace-requests";r=4;t=61"#,
        "x-ratelimit-remaining-requests: 4",
    ] {
        assert!(lines.contains(expected), "{lines}");
    }
    let (plan, counted) = limiter.report(app, KEY, START).namespace.unwrap();
    assert_eq!((&*plan, counted[0].used, counted[0].value), ("gold", 1, Some(5)));
}

fn origin(incarnation: u128) -> Origin {
    Origin {
        shard: 0,
        incarnation,
    }
}

#[test]
fn a_successor_goes_on_with_what_a_namespace_has_shared() {
    let (mut before, [app]) = limiter(["blue/app"], &NOTHING, &money(100));
    spend(&mut before, app, 60, START);
    let mut changes = Changes::default();
    before.take_changes(3, START, &mut changes);
    let mut snapshot = Snapshot::empty(origin(1));
    snapshot.apply(&changes);
    // The worker was killed. Three records after the snapshot hold the rest.
    let mut replay = Replay::new(snapshot);
    let admission = |seq, shared_plan| AdmittedReservation {
        seq,
        ts: START,
        tenant: "blue/batch",
        key: None,
        model: "m",
        reserved: 0,
        reserved_cost: Some(20),
        shared_plan,
    };
    replay.record_admission(&admission(3, Some("gold")));
    replay.record_admission(&admission(4, None));
    replay.record_completion(5, START, 3, Some(ActualUsage { tokens: 0, cost: 15 }));
    let ended = replay.finish(6, START);
    let shared = SubjectName {
        tenant: "blue".into(),
        kind: SubjectKind::Shared("gold".into()),
    };
    assert_eq!(ended.subjects[&shared].periods.day_counts.cost, 75);

    let (mut after, [other]) = limiter(["blue/other"], &NOTHING, &money(100));
    let mut foreign = RemoteSnapshots::new(origin(2));
    foreign.insert(ended, START);
    after.apply_remote(&foreign.take_changes(usize::MAX, START), START);
    assert_eq!(ask(&mut after, other, 26, START).unwrap_err().remaining, 25);
}
