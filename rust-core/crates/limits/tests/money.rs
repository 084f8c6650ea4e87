//! Tests that budgets are exact for a tenant, a key and a model, on every day and in every month.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{
    ActualUsage, Changes, CredentialId, Demand, Grant, Limit, LimitExceeded, Limiter, Limits, MAX_COST,
    ModelBudget, Origin, Quotas, RemoteSnapshots, Scope, Snapshot, TenantId, TenantLimits,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use support::{KEY, MIDNIGHT, OTHER_KEY, SECOND, START};

/// The day after the month of `START` ends: 2023-12-01.
const NEXT_MONTH: u64 = 19_692 * 86_400 * SECOND;

/// Nanodollars per day and per month; 0 is no limit.
fn budget([day, month]: [u64; 2]) -> Limits {
    Limits {
        nanodollars_per_day: NonZeroU64::new(day),
        nanodollars_per_month: NonZeroU64::new(month),
        ..Limits::default()
    }
}

fn quotas(of_tenant: [u64; 2], of_key: [u64; 2], of_large: [u64; 2]) -> Quotas {
    let large = ModelBudget {
        model: "large".to_owned(),
        nanodollars_per_day: NonZeroU64::new(of_large[0]),
        nanodollars_per_month: NonZeroU64::new(of_large[1]),
    };
    let models = if of_large == [0; 2] { vec![] } else { vec![large] };
    Quotas::with_budgets(&budget(of_tenant), &budget(of_key), &models)
}

fn limiter(of_tenant: [u64; 2], of_key: [u64; 2], of_large: [u64; 2]) -> (Limiter, TenantId) {
    let mut limiter = Limiter::new();
    let id = limiter.set_tenant(&TenantLimits {
        name: "acme".into(),
        quotas: Arc::new(quotas(of_tenant, of_key, of_large)),
    });
    (limiter, id)
}

fn costs(model: &str, cost: u64) -> Demand<'_> {
    Demand {
        tokens: 1,
        model,
        cost: Some(cost),
    }
}

fn spend(limiter: &mut Limiter, tenant: TenantId, key: CredentialId, model: &str, cost: u64, now: u64) {
    let grant = limiter.admit(tenant, key, costs(model, cost), now).unwrap();
    limiter.settle(grant, ActualUsage { tokens: 1, cost }, now);
}

#[test]
fn money_is_set_aside_before_it_is_spent_and_settled_by_what_it_was() {
    let (mut limiter, acme) = limiter([1000, 0], [0; 2], [0; 2]);
    let first = limiter.admit(acme, KEY, costs("large", 600), START).unwrap();
    assert_eq!(first.reserved_cost(), Some(600));
    let refused = limiter.admit(acme, KEY, costs("large", 500), START).unwrap_err();
    assert_eq!(
        refused,
        LimitExceeded {
            limit: Limit::MoneyPerDay,
            scope: Scope::Tenant,
            value: 1000,
            remaining: 400,
            reserved: 600,
            retry_after: Some(Duration::from_secs(2)),
        }
    );
    let told = refused.to_string();
    assert!(
        told.contains("because requests in flight reserve 0.0000006 of it"),
        "{told}"
    );
    assert_eq!(refused.code(), "dollars_per_day_exceeded");
    limiter.settle(first, ActualUsage { tokens: 1, cost: 100 }, START);
    let second = limiter.admit(acme, KEY, costs("large", 900), START).unwrap();
    // Usage beyond the reservation is booked in full.
    limiter.settle(
        second,
        ActualUsage {
            tokens: 1,
            cost: 1000,
        },
        START,
    );
    let refused = limiter.admit(acme, KEY, costs("large", 0), START).unwrap_err();
    assert_eq!(refused.remaining, 0);
}

#[test]
fn what_is_sent_again_reserves_again_or_is_not_sent() {
    let (mut limiter, acme) = limiter([1000, 0], [900, 0], [0, 800]);
    let mut grant = limiter.admit(acme, KEY, costs("large", 300), START).unwrap();
    limiter.mark_recorded(&mut grant);
    assert!(limiter.reserve_retry_cost(&mut grant, 300, START));
    assert_eq!(grant.reserved_cost(), Some(600));
    assert!(
        !limiter.reserve_retry_cost(&mut grant, 300, START),
        "the model has 800 a month"
    );
    let refused = limiter.admit(acme, KEY, costs("small", 301), START).unwrap_err();
    assert_eq!((refused.remaining, refused.reserved), (300, 600));
    limiter.settle(grant, ActualUsage { tokens: 1, cost: 450 }, START);
    spend(&mut limiter, acme, KEY, "small", 450, START);
    let uncounted = TenantLimits {
        name: "acme".into(),
        quotas: Arc::new(quotas([0; 2], [0; 2], [0; 2])),
    };
    limiter.set_tenant(&uncounted);
    let mut grant = limiter.admit(acme, KEY, costs("large", 300), START).unwrap();
    assert!(
        limiter.reserve_retry_cost(&mut grant, u64::MAX, START),
        "no budget counts it"
    );
    limiter.keep_reservation(grant);
}

#[test]
fn a_budget_says_what_it_is_in_dollars() {
    let (mut limiter, acme) = limiter([12_500_000_000, 0], [0; 2], [0, 1]);
    let refused = limiter
        .admit(acme, KEY, costs("other", MAX_COST), START)
        .unwrap_err();
    assert!(refused.is_permanent());
    assert_eq!(
        refused.to_string(),
        "the request alone exceeds this tenant's budget of 12.5 dollars per day: send a smaller request"
    );
    spend(&mut limiter, acme, KEY, "large", 1, START);
    let refused = limiter.admit(acme, KEY, costs("large", 1), START).unwrap_err();
    assert_eq!(refused.code(), "dollars_per_month_exceeded");
    let told = refused.to_string();
    let expected =
        "this tenant's and model's budget of 0.000000001 dollars per month is reached: try again in ";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn a_day_ends_at_midnight_and_a_month_with_its_last_day() {
    let (mut limiter, acme) = limiter([10, 15], [0; 2], [0; 2]);
    spend(&mut limiter, acme, KEY, "large", 10, START);
    let refused = limiter.admit(acme, KEY, costs("large", 1), START).unwrap_err();
    assert_eq!(refused.limit, Limit::MoneyPerDay);
    spend(&mut limiter, acme, KEY, "large", 5, MIDNIGHT);
    let refused = limiter.admit(acme, KEY, costs("large", 1), MIDNIGHT).unwrap_err();
    assert_eq!(refused.limit, Limit::MoneyPerMonth);
    assert_eq!(
        refused.retry_after,
        Some(Duration::from_micros(NEXT_MONTH - MIDNIGHT))
    );
    assert!(
        limiter
            .admit(acme, KEY, costs("large", 1), NEXT_MONTH - 1)
            .is_err()
    );
    spend(&mut limiter, acme, KEY, "large", 10, NEXT_MONTH);
}

#[test]
fn what_is_settled_after_midnight_gives_nothing_back_to_the_new_day() {
    let (mut limiter, acme) = limiter([10, 100], [0; 2], [0; 2]);
    let grant = limiter
        .admit(acme, KEY, costs("large", 10), MIDNIGHT - 1)
        .unwrap();
    spend(&mut limiter, acme, KEY, "large", 4, MIDNIGHT);
    limiter.settle(grant, ActualUsage { tokens: 1, cost: 3 }, MIDNIGHT);
    let refused = limiter.admit(acme, KEY, costs("large", 7), MIDNIGHT).unwrap_err();
    assert_eq!(refused.remaining, 6);
    // The month regains the unused part: 3 and 4 are spent.
    let report = limiter.report(acme, KEY, MIDNIGHT);
    let month = report
        .tenant
        .iter()
        .find(|one| one.limit == Limit::MoneyPerMonth)
        .unwrap();
    assert_eq!((month.used, month.value), (7, Some(100)));
    assert_eq!(month.resets_at, Some(NEXT_MONTH / SECOND));
}

#[test]
fn a_key_and_a_model_have_budgets_of_their_own() {
    let (mut limiter, acme) = limiter([100, 0], [60, 0], [50, 0]);
    spend(&mut limiter, acme, KEY, "large", 50, START);
    let refused = limiter
        .admit(acme, OTHER_KEY, costs("large", 1), START)
        .unwrap_err();
    assert_eq!((refused.scope, refused.value), (Scope::Model, 50));
    spend(&mut limiter, acme, KEY, "small", 10, START);
    let refused = limiter.admit(acme, KEY, costs("small", 1), START).unwrap_err();
    assert_eq!((refused.scope, refused.value), (Scope::Key, 60));
    spend(&mut limiter, acme, OTHER_KEY, "small", 40, START);
    let refused = limiter
        .admit(acme, OTHER_KEY, costs("small", 1), START)
        .unwrap_err();
    assert_eq!((refused.scope, refused.value), (Scope::Tenant, 100));
    let report = limiter.report(acme, KEY, START);
    assert_eq!(
        report
            .key
            .iter()
            .find(|one| one.limit == Limit::MoneyPerDay)
            .unwrap()
            .used,
        60
    );
    assert_eq!((&*report.models[0].0, report.models[0].1[0].used), ("large", 50));
}

#[test]
fn a_budget_admits_nothing_whose_price_is_not_known() {
    let unknown = |model| Demand {
        tokens: 1,
        model,
        cost: None,
    };
    let (mut limiter, acme) = limiter([0; 2], [0; 2], [u64::MAX - 1, 0]);
    assert!(
        limiter
            .admit(acme, KEY, unknown("large"), START)
            .unwrap_err()
            .is_permanent()
    );
    let free = limiter.admit(acme, KEY, unknown("small"), START).unwrap();
    assert_eq!(free.reserved_cost(), None, "nothing counts what it costs");
    limiter.keep_reservation(free);
    let quotas = quotas([0; 2], [0; 2], [1, 0]);
    assert!(quotas.has_budget_for("large") && !quotas.has_budget_for("small"));
    assert!(!quotas.is_unlimited());
}

#[test]
fn a_request_that_is_refused_after_all_costs_nothing() {
    let (mut limiter, acme) = limiter([10, 10], [10, 10], [10, 10]);
    for keep_request in [false, true] {
        let grant = limiter.admit(acme, KEY, costs("large", 10), START).unwrap();
        limiter.refund(grant, keep_request);
    }
    spend(&mut limiter, acme, KEY, "large", 10, START);
}

#[test]
fn what_others_spent_counts_also_of_a_model_and_until_the_month_ends() {
    let (mut other, acme) = limiter([0, 100], [0; 2], [0, 50]);
    spend(&mut other, acme, KEY, "large", 40, START);
    spend(&mut other, acme, KEY, "small", 40, START);
    let mut changes = Changes::default();
    other.take_changes(1, START, &mut changes);
    let mut snapshot = Snapshot::empty(Origin {
        shard: 0,
        incarnation: 1,
    });
    snapshot.apply(&changes);
    snapshot.finished = true;
    let later = NEXT_MONTH - SECOND;
    snapshot.prune(later);
    assert!(!snapshot.is_expired(later));
    assert!(snapshot.is_expired(NEXT_MONTH));
    let mut foreign = RemoteSnapshots::new(Origin {
        shard: 0,
        incarnation: 2,
    });
    foreign.insert(snapshot, later);
    let (mut here, acme) = limiter([0, 100], [0; 2], [0, 50]);
    here.apply_remote(&foreign.take_changes(usize::MAX, later), later);
    assert_eq!(
        here.admit(acme, KEY, costs("large", 11), later)
            .unwrap_err()
            .scope,
        Scope::Model
    );
    assert_eq!(
        here.admit(acme, KEY, costs("small", 21), later)
            .unwrap_err()
            .remaining,
        20
    );
    spend(&mut here, acme, KEY, "large", 10, later);
    spend(&mut here, acme, KEY, "small", 10, later);
}

#[test]
fn subjects_of_models_are_forgotten_when_nothing_of_them_counts() {
    let (mut limiter, acme) = limiter([0; 2], [0; 2], [0, 50]);
    let held = limiter.admit(acme, KEY, costs("large", 0), START).unwrap();
    limiter.take_changes(1, START, &mut Changes::default());
    limiter.sweep(10, START);
    assert_eq!(limiter.subject_count(), 2, "it is in flight");
    limiter.settle(held, ActualUsage { tokens: 0, cost: 7 }, START);
    limiter.take_changes(1, START, &mut Changes::default());
    limiter.sweep(10, NEXT_MONTH - 1);
    assert_eq!(limiter.subject_count(), 2);
    limiter.sweep(10, NEXT_MONTH);
    assert_eq!(limiter.subject_count(), 1);
    spend(&mut limiter, acme, KEY, "large", 50, NEXT_MONTH);
}

#[test]
fn the_headers_tell_money_in_microdollars() {
    let (mut limiter, acme) = limiter([5_000_000, 0], [0, 7_000_000], [1, 1]);
    spend(&mut limiter, acme, KEY, "other", 1, START);
    let mut lines = Vec::new();
    limiter.limit_status(acme, KEY, START).write(&mut lines);
    let lines = String::from_utf8(lines).unwrap();
    let policy = r#"ratelimit-policy: "money-day";q=5000;qu="microdollars";w=86400, "key-money-month";q=7000;qu="microdollars""#;
    assert!(lines.contains(policy), "{lines}");
    assert!(
        lines.contains(r#"ratelimit: "money-day";r=4999;t=6400, "key-money-month";r=6999;t="#),
        "{lines}"
    );
}

#[derive(Clone, Debug)]
struct Step {
    client: usize,
    passed: u64,
    reserve: u64,
    used: u64,
    act: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let passed = prop_oneof![6 => 0..3_000_000u64, 2 => 0..5_000 * SECOND, 1 => 0..3 * 86_400 * SECOND];
    (0..12usize, passed, 0..300u64, 0..400u64, 0..10u8).prop_map(|(client, passed, reserve, used, act)| {
        Step {
            client,
            passed,
            reserve,
            used,
            act,
        }
    })
}

/// The sums that the test computes itself: the amounts booked for a subject on a day or in a month,
/// and the part beyond reservations.
#[derive(Default)]
struct Sum {
    booked: u64,
    beyond: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Compares the limiter with sums by day and month that the test computes itself. A request is
    /// admitted if and only if it fits all of its budgets, and no budget is exceeded by more than
    /// the usage beyond reservations.
    #[test]
    fn no_budget_is_ever_passed_whatever_the_order_of_things(steps in prop::collection::vec(step(), 1..300)) {
        let (day_budget, month_budget) = (2000, 5000);
        let (mut limiter, acme) = limiter([day_budget, month_budget], [900, 2500], [700, 2000]);
        let mut sums: BTreeMap<(String, u64, u64), Sum> = BTreeMap::new();
        let mut held: Vec<Option<(Grant, u64, u64)>> = (0..12).map(|_| None).collect();
        // Two days before a month ends.
        let mut now = NEXT_MONTH - 2 * 86_400 * SECOND;
        for step in steps {
            now += step.passed;
            let client = step.client;
            let key = client % 3;
            let model = ["large", "small"][client % 2];
            let spans = |at: u64| {
                let day = at / SECOND / 86_400;
                // Months of the calendar by days since 1970: 2023-12-01, 2024-01-01, and so on.
                let month = [19_692, 19_723, 19_754, 19_783, 19_814, 19_844, 19_875, 19_905, 19_936, 19_967, 19_997]
                    .partition_point(|first| *first <= day) as u64;
                let mut spans = vec![
                    ("tenant".to_owned(), 0, day, day_budget), ("tenant".to_owned(), 1, month, month_budget),
                    (format!("key {key}"), 0, day, 900), (format!("key {key}"), 1, month, 2500),
                ];
                if model == "large" {
                    spans.push(("large".to_owned(), 0, day, 700));
                    spans.push(("large".to_owned(), 1, month, 2000));
                }
                spans
            };
            match held[client].take() {
                None => {
                    let fits = spans(now).into_iter().all(|(subject, kind, span, limit)| {
                        let booked = sums.get(&(subject, kind, span)).map_or(0, |sum| sum.booked);
                        booked + step.reserve <= limit
                    });
                    let key = CredentialId::ApiKey([key as u8; 4]);
                    let admitted = limiter.admit(acme, key, costs(model, step.reserve), now);
                    prop_assert_eq!(admitted.is_ok(), fits);
                    if let Ok(mut grant) = admitted {
                        limiter.mark_recorded(&mut grant);
                        for (subject, kind, span, _) in spans(now) {
                            sums.entry((subject, kind, span)).or_default().booked += step.reserve;
                        }
                        held[client] = Some((grant, step.reserve, now));
                    }
                }
                Some((grant, _, _)) if step.act == 0 => limiter.keep_reservation(grant),
                Some((grant, reserved, at)) => {
                    let used = if step.act == 1 { 0 } else { step.used };
                    limiter.settle(grant, ActualUsage { tokens: 1, cost: used }, now);
                    for (subject, kind, span, _) in spans(at) {
                        sums.entry((subject, kind, span)).or_default().booked -= reserved.saturating_sub(used);
                    }
                    for (subject, kind, span, _) in spans(now) {
                        let sum = sums.entry((subject, kind, span)).or_default();
                        sum.booked += used.saturating_sub(reserved);
                        sum.beyond += used.saturating_sub(reserved);
                    }
                }
            }
            if step.act == 5 {
                limiter.take_changes(0, now, &mut Changes::default());
                limiter.sweep(7, now);
            }
            for ((subject, kind, _), sum) in &sums {
                let limits = match subject.as_str() {
                    "tenant" => [day_budget, month_budget],
                    "large" => [700, 2000],
                    _ => [900, 2500],
                };
                prop_assert!(sum.booked - sum.beyond <= limits[*kind as usize], "{subject}");
            }
        }
    }
}
