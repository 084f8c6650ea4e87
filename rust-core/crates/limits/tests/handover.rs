//! Tests that consumption survives its worker: snapshots, replay, and merging by origin.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{
    ActualUsage, AdmittedReservation, Changes, Counts, CredentialId, Demand, Grant, IN_FLIGHT_FRESH_SECONDS,
    Limit, Limiter, Limits, ModelBudget, Origin, Periods, Quotas, RemoteSnapshots, Replay, Second, Snapshot,
    SubjectKind, SubjectName, TenantLimits, Usage,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use support::{KEY, MIDNIGHT, SECOND, START, consume, consumed, limiter, tenant};

fn origin(number: u128) -> Origin {
    Origin {
        shard: 0,
        incarnation: number,
    }
}

/// Returns the own consumption of a limiter, as its first and only snapshot.
fn snapshot(limiter: &mut Limiter, origin: Origin, through_seq: u64, now: u64) -> Snapshot {
    let mut changes = Changes::default();
    limiter.take_changes(through_seq, now, &mut changes);
    let mut snapshot = Snapshot::empty(origin);
    snapshot.apply(&changes);
    snapshot
}

fn hand_over(foreign: &mut RemoteSnapshots, limiter: &mut Limiter, now: u64) {
    foreign.tick(now);
    limiter.apply_remote(&foreign.take_changes(usize::MAX, now), now);
}

#[test]
fn whoever_inherits_a_tenant_continues_from_its_counters() {
    let limits = ([10, 1000, 5000, 3], [10, 800, 0, 0]);
    let (mut before, acme) = limiter(limits.0, limits.1);
    for second in 0..4 {
        consume(&mut before, acme, KEY, 200, START + second * SECOND);
    }
    let mut held = before.admit(acme, KEY, 0, START + 4 * SECOND).unwrap();
    before.mark_recorded(&mut held);

    let (mut after, acme) = limiter(limits.0, limits.1);
    let mut foreign = RemoteSnapshots::new(origin(2));
    let now = START + 5 * SECOND;
    foreign.insert(snapshot(&mut before, origin(1), 10, now), now);
    hand_over(&mut foreign, &mut after, now);
    let refused = after.admit(acme, KEY, 1, now).unwrap_err();
    assert_eq!((refused.limit, refused.remaining), (Limit::TokensPerMinute, 0));
    assert_eq!(refused.retry_after_seconds(), Some(56));
    let refused = after
        .admit(acme, CredentialId::ApiKey([9; 4]), 201, now)
        .unwrap_err();
    assert_eq!(refused.remaining, 200);
    // One of three slots is taken by the request that the other worker still serves.
    let places: Vec<_> = (0..2).map(|_| after.admit(acme, KEY, 0, now).unwrap()).collect();
    assert_eq!(
        after.admit(acme, KEY, 0, now).unwrap_err().limit,
        Limit::Concurrency
    );

    before.settle(held, 0, now);
    let mut changes = Changes::default();
    before.take_changes(11, now, &mut changes);
    let mut newer = foreign.get(&origin(1)).unwrap().clone();
    newer.apply(&changes);
    assert!(foreign.insert(newer, now));
    hand_over(&mut foreign, &mut after, now);
    consume(&mut after, acme, KEY, 0, now);
    places.into_iter().for_each(|grant| after.keep_reservation(grant));
    assert!(after.admit(acme, KEY, 800, START + 63 * SECOND).is_err());
    consume(&mut after, acme, KEY, 800, START + 64 * SECOND);
}

#[test]
fn a_worker_whose_clock_is_ahead_is_counted_now() {
    let (mut ahead, acme) = limiter([2, 0, 100, 0], [0; 4]);
    consume(&mut ahead, acme, KEY, 60, MIDNIGHT + 3600 * SECOND);
    let (mut here, acme) = limiter([2, 0, 100, 0], [0; 4]);
    let mut foreign = RemoteSnapshots::new(origin(2));
    foreign.insert(snapshot(&mut ahead, origin(1), 1, MIDNIGHT), START);
    hand_over(&mut foreign, &mut here, START);
    consume(&mut here, acme, KEY, 0, START);
    let refused = here.admit(acme, KEY, 0, START).unwrap_err();
    assert_eq!(refused.retry_after_seconds(), Some(61));
    let refused = here.admit(acme, KEY, 41, START + 61 * SECOND).unwrap_err();
    assert_eq!((refused.limit, refused.remaining), (Limit::TokensPerDay, 40));
    // The other worker's day also begins in this limiter.
    hand_over(&mut foreign, &mut here, MIDNIGHT);
    assert_eq!(here.admit(acme, KEY, 41, MIDNIGHT).unwrap_err().remaining, 40);
}

#[test]
fn requests_in_flight_of_a_silent_origin_are_not_believed_for_ever() {
    let (mut gone, acme) = limiter([0, 0, 0, 1], [0; 4]);
    let mut grant = gone.admit(acme, KEY, 0, START).unwrap();
    gone.mark_recorded(&mut grant);
    let (mut here, acme) = limiter([0, 0, 0, 1], [0; 4]);
    let mut foreign = RemoteSnapshots::new(origin(2));
    foreign.insert(snapshot(&mut gone, origin(1), 1, START), START);
    let silent = START + IN_FLIGHT_FRESH_SECONDS * SECOND;
    hand_over(&mut foreign, &mut here, silent);
    assert!(here.admit(acme, KEY, 0, silent).is_err());
    hand_over(&mut foreign, &mut here, silent + 1);
    consume(&mut here, acme, KEY, 0, silent + 1);
    assert_eq!(
        foreign.snapshots().count(),
        1,
        "it is let go of once its change was taken"
    );
    // Its consumption may count until the day is over.
    hand_over(&mut foreign, &mut here, MIDNIGHT);
    foreign.tick(MIDNIGHT + SECOND);
    assert_eq!(foreign.snapshots().count(), 0);
    drop(grant);
}

#[test]
fn what_is_not_recorded_is_in_no_snapshot() {
    let (mut limiter, acme) = limiter([10, 0, 1000, 0], [10, 0, 0, 0]);
    let mut grant = limiter.admit(acme, KEY, 100, START).unwrap();
    let refused = limiter.admit(acme, KEY, 100, START).unwrap();
    let mut own = snapshot(&mut limiter, origin(1), 3, START);
    assert!(own.subjects.is_empty(), "{own:?}");
    limiter.mark_recorded(&mut grant);
    limiter.refund(refused, false);
    let mut changes = Changes::default();
    limiter.take_changes(4, START, &mut changes);
    own.apply(&changes);
    let usage = Usage {
        periods: Periods {
            day: START / SECOND / 86_400,
            month: 53 * 12 + 10,
            ..own.subjects.values().next().unwrap().periods
        },
        in_flight: 1,
        seconds: vec![Second {
            second: START / SECOND,
            requests: 1,
            tokens: 100,
        }],
        clock_history: None,
    };
    assert_eq!(usage.periods.day_counts.tokens, 100);
    assert_eq!(
        (usage.periods.day_counts.cost, usage.periods.month_counts.cost),
        (0, 0)
    );
    assert_eq!(own.subjects.values().collect::<Vec<_>>(), [&usage, &usage]);
    limiter.settle(grant, 0, START);
}

#[test]
fn only_subjects_that_changed_are_written_down() {
    let (mut limiter, acme) = limiter([100, 0, 0, 0], [100, 0, 0, 0]);
    let mut changes = Changes::default();
    for key in 0..10 {
        consume(&mut limiter, acme, CredentialId::ApiKey([key; 4]), 0, START);
    }
    limiter.take_changes(1, START, &mut changes);
    assert_eq!(changes.len(), 11);
    limiter.take_changes(1, START, &mut changes);
    assert!(changes.is_empty());
    consume(&mut limiter, acme, KEY, 0, START);
    limiter.take_changes(1, START, &mut changes);
    assert_eq!(changes.len(), 2);
}

#[test]
fn new_limits_find_what_others_consumed_when_everything_is_sent_again() {
    let (mut other, acme) = limiter([10, 0, 0, 0], [0; 4]);
    consume(&mut other, acme, KEY, 0, START);
    let (mut here, _) = limiter([0; 4], [0; 4]);
    let mut foreign = RemoteSnapshots::new(origin(2));
    foreign.insert(snapshot(&mut other, origin(1), 1, START), START);
    hand_over(&mut foreign, &mut here, START);
    let ids = here.set_limits(&[tenant("acme", [1, 0, 0, 0], [0; 4])]);
    foreign.mark_all_changed();
    hand_over(&mut foreign, &mut here, START);
    assert!(here.admit(ids[0], KEY, 0, START).is_err());
}

#[test]
fn a_replay_ends_what_was_in_flight_and_keeps_its_reservation() {
    let mut replay = Replay::new(Snapshot::empty(origin(1)));
    replay.record_admission(&admitted(1, START, Some(KEY), 500));
    replay.record_admission(&admitted(2, START, None, 300));
    replay.record_completion(3, START + SECOND, 2, Some(100.into()));
    replay.record_completion(4, START + SECOND, 2, Some(100.into()));
    replay.record_counted_rejection(5, START + SECOND, "acme", None, None);
    replay.record_completion(6, START + SECOND, 99, None);
    let ended = replay.finish(9, START + SECOND);
    assert_eq!((ended.through_seq, ended.finished), (9, true));
    let of_tenant = &ended.subjects[&SubjectName {
        tenant: "acme".into(),
        kind: SubjectKind::Tenant,
    }];
    assert_eq!(
        (of_tenant.periods.day_counts.tokens, of_tenant.in_flight),
        (600, 0)
    );
    let requests: Vec<_> = of_tenant.seconds.iter().map(|held| held.requests).collect();
    assert_eq!(requests, [2, 1]);
}

#[test]
fn a_log_whose_clock_stepped_back_is_counted_at_its_latest_time() {
    let mut replay = Replay::new(Snapshot::empty(origin(1)));
    replay.record_admission(&admitted(1, MIDNIGHT, None, 5));
    replay.record_admission(&admitted(2, MIDNIGHT - 3600 * SECOND, None, 5));
    replay.record_completion(3, MIDNIGHT - 3600 * SECOND, 2, Some(7.into()));
    let ended = replay.finish(4, MIDNIGHT);
    let usage = ended.subjects.values().next().unwrap();
    assert_eq!(
        (usage.periods.day_counts.tokens, usage.seconds[0].tokens),
        (12, 12)
    );
}

fn admitted(seq: u64, ts: u64, key: Option<CredentialId>, reserved: u64) -> AdmittedReservation<'static> {
    AdmittedReservation {
        seq,
        ts,
        tenant: "acme",
        key,
        model: "large",
        reserved,
        reserved_cost: None,
        shared_plan: None,
    }
}

/// A ledger record with only the fields that limits need.
#[derive(Clone, Debug)]
enum Fact {
    Admission(u64, String, CredentialId, &'static str, u64, Option<u64>),
    Completion(u64, u64, Option<ActualUsage>),
    Rejection(u64, String, CredentialId),
    Other,
}

fn replay(from: Snapshot, facts: &[Fact], now: u64) -> Snapshot {
    let mut replay = Replay::new(from);
    for (seq, fact) in facts.iter().enumerate() {
        let seq = seq as u64;
        match fact {
            Fact::Admission(ts, tenant, key, model, reserved, reserved_cost) => {
                replay.record_admission(&AdmittedReservation {
                    seq,
                    ts: *ts,
                    tenant,
                    key: Some(*key),
                    model,
                    reserved: *reserved,
                    reserved_cost: *reserved_cost,
                    shared_plan: Some("gold"),
                });
            }
            Fact::Completion(ts, admission, charged) => {
                replay.record_completion(seq, *ts, *admission, *charged)
            }
            Fact::Rejection(ts, tenant, key) => {
                replay.record_counted_rejection(seq, *ts, tenant, Some(*key), Some("gold"));
            }
            Fact::Other => {}
        }
    }
    replay.finish(facts.len() as u64, now)
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
    let passed = prop_oneof![6 => 0..800_000u64, 2 => 0..20_000_000u64, 1 => 0..90_000_000u64];
    (0..16usize, passed, 0..300u64, 0..400u64, 0..10u8).prop_map(|(client, passed, reserve, used, act)| {
        Step {
            client,
            passed,
            reserve,
            used,
            act,
        }
    })
}

enum Held {
    Pending(Grant),
    Recorded(Grant, u64),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Tests that at every moment the snapshot built from changes, and any older snapshot with the
    /// records after it, equal the replay from the first record.
    #[test]
    fn a_restart_at_any_point_gives_the_same_counters(
        steps in prop::collection::vec(step(), 1..250),
        every in 1..40usize,
    ) {
        let mut limiter = Limiter::new();
        let names = ["blue/acme", "blue/beta"];
        let roomy = [1000, 100_000, 1_000_000, 1000];
        let ids = limiter.set_limits(&names.map(|name| TenantLimits {
            name: name.into(),
            quotas: Arc::new(Quotas::with_budgets(
                &Limits { nanodollars_per_day: NonZeroU64::new(if name == names[0] { 100_000 } else { 0 }), ..support::limits(roomy) },
                &support::limits(roomy),
                // For the other tenant the cost of the small model does not count.
                &["large", if name == names[0] { "small" } else { "none" }].map(|model| ModelBudget {
                    model: model.to_owned(),
                    nanodollars_per_day: None,
                    nanodollars_per_month: NonZeroU64::new(200_000),
                }),
            ).with_shared_limits("gold", &support::limits(roomy))),
        }));
        let mut facts: Vec<Fact> = vec![Fact::Other];
        let mut held: Vec<Option<Held>> = (0..16).map(|_| None).collect();
        let mut own = Snapshot::empty(origin(1));
        let mut snapshots = vec![own.clone()];
        let mut changes = Changes::default();
        let mut now = MIDNIGHT - 300 * SECOND;
        for (number, step) in steps.iter().enumerate() {
            now += step.passed;
            let client = step.client;
            let (tenant, key) = (client % 2, CredentialId::ApiKey([(client % 5) as u8; 4]));
            let model = ["large", "small"][client % 3 % 2];
            let demand = Demand { tokens: step.reserve, model, cost: Some(step.reserve * 7) };
            let seq = facts.len() as u64;
            held[client] = match held[client].take() {
                None => limiter.admit(ids[tenant], key, demand, now).ok().map(Held::Pending),
                // An admission and its record are at most a minute apart.
                Some(Held::Pending(mut grant)) => match step.act * u8::from(now - grant.admitted_at() <= 60 * SECOND) {
                    0 => {
                        limiter.refund(grant, false);
                        None
                    }
                    1 => {
                        facts.push(Fact::Rejection(grant.admitted_at(), names[tenant].to_owned(), key));
                        limiter.refund(grant, true);
                        None
                    }
                    _ => {
                        let reserved = grant.reserved().unwrap();
                        let cost = grant.reserved_cost();
                        facts.push(Fact::Admission(grant.admitted_at(), names[tenant].to_owned(), key, model, reserved, cost));
                        limiter.mark_recorded(&mut grant);
                        Some(Held::Recorded(grant, seq))
                    }
                },
                Some(Held::Recorded(grant, admission)) => {
                    let charged = (step.act > 0).then_some(ActualUsage { tokens: step.used, cost: step.used * 6 });
                    facts.push(Fact::Completion(now, admission, charged));
                    match charged {
                        Some(used) => limiter.settle(grant, used, now),
                        None => limiter.keep_reservation(grant),
                    }
                    None
                }
            };
            if step.act == 9 {
                facts.push(Fact::Other);
            }
            if step.act == 5 {
                limiter.sweep(3, now);
            }
            if number % every == 0 {
                limiter.take_changes(facts.len() as u64, now, &mut changes);
                own.apply(&changes);
                snapshots.push(own.clone());
            }
        }
        limiter.take_changes(facts.len() as u64, now, &mut changes);
        own.apply(&changes);
        own.prune(now);
        let expected = consumed(&own).subjects;
        for older in snapshots {
            let seq = older.through_seq;
            let ended = replay(older, &facts, now);
            prop_assert_eq!(&ended.subjects, &expected, "from record {}", seq);
        }
    }

    /// Snapshots that are inserted in any order, some of them twice, lead to the same sums. The
    /// changes that are taken in between add up to all of these sums.
    #[test]
    fn merging_is_idempotent_commutative_and_associative(
        snapshots in prop::collection::vec(arbitrary_snapshot(), 1..20),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        max in 1..10usize,
    ) {
        let mut once = RemoteSnapshots::new(origin(100));
        for snapshot in &snapshots {
            once.insert(snapshot.clone(), START);
        }
        let mut anyhow = RemoteSnapshots::new(origin(100));
        let mut taken = BTreeMap::new();
        let shuffled = order.iter().map(|at| at.get(&snapshots));
        for snapshot in shuffled.chain(snapshots.iter().rev()) {
            anyhow.insert(snapshot.clone(), START);
            prop_assert!(!anyhow.insert(snapshot.clone(), START), "a snapshot is not newer than itself");
            taken.extend(anyhow.take_changes(max, START));
        }
        taken.extend(anyhow.take_changes(usize::MAX, START));
        taken.retain(|_, usage: &mut Usage| !usage.is_empty());
        once.mark_all_changed();
        let mut sums: BTreeMap<_, _> = once.take_changes(usize::MAX, START).into_iter().collect();
        sums.retain(|_, usage| !usage.is_empty());
        prop_assert_eq!(&taken, &sums);

        // A limiter that receives the changes in parts counts the same sum.
        let (mut limiter, acme) = limiter([1 << 40, 0, 0, 0], [0; 4]);
        limiter.apply_remote(&taken.into_iter().collect::<Vec<_>>(), START);
        let of_tenant = sums.iter().find(|(name, _)| &*name.tenant == "acme" && name.kind == SubjectKind::Tenant);
        let requests = of_tenant.map_or(0, |(_, usage)| usage.seconds.iter().map(|held| u64::from(held.requests)).sum());
        let mut lines = Vec::new();
        limiter.limit_status(acme, KEY, START).write(&mut lines);
        let remaining = format!("x-ratelimit-remaining-requests: {}\r\n", (1u64 << 40) - requests);
        prop_assert!(String::from_utf8(lines).unwrap().contains(&remaining));
    }
}

/// Snapshots of four origins, one of them the merger's own; the version determines the content, as in production.
fn arbitrary_snapshot() -> impl Strategy<Value = Snapshot> {
    let incarnation = prop_oneof![4 => 0..3u128, 1 => Just(100u128)];
    (incarnation, 0..6u64, any::<bool>()).prop_map(|(number, through_seq, ended)| {
        let seed = number as u64 * 31 + through_seq * 7 + u64::from(ended);
        let mut snapshot = Snapshot::empty(origin(number));
        (snapshot.through_seq, snapshot.finished) = (through_seq, ended);
        snapshot.taken_at = START - SECOND * (seed % 100);
        for subject in 0..seed % 5 {
            let name = SubjectName {
                tenant: ["acme", "beta"][(subject % 2) as usize].into(),
                kind: match subject {
                    0 | 1 => SubjectKind::Tenant,
                    2 => SubjectKind::Key(CredentialId::ApiKey([2; 4])),
                    _ => SubjectKind::Model("large".into()),
                },
            };
            let second = |age: u64| Second {
                second: START / SECOND - age,
                requests: (seed % 9) as u32 + 1,
                tokens: seed,
            };
            let usage = Usage {
                clock_history: None,
                periods: Periods {
                    day: START / SECOND / 86_400 - seed % 2,
                    day_counts: Counts {
                        requests: seed * 2 + subject,
                        tokens: seed + subject,
                        cost: seed * subject,
                    },
                    month: 53 * 12 + 10 - seed % 2,
                    month_counts: Counts {
                        requests: seed * 5,
                        tokens: seed * 4,
                        cost: seed * 3,
                    },
                },
                in_flight: seed % 3,
                seconds: [70, 60, 30, 3 + seed % 3].map(second).to_vec(),
            };
            snapshot.subjects.insert(name, usage);
        }
        snapshot
    })
}
