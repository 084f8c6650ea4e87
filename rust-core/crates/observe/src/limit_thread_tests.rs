use std::sync::Arc;

use proofgate_ledger::record::parse;
use proofgate_limits::{
    Changes, CredentialId, Demand, Limiter, Limits, ModelBudget, Origin, Quotas, Replay, Snapshot,
    SubjectKind, TenantLimits,
};
use serde_json::{Value, json};

use super::{ModelNames, apply_record};

/// Model names with one configured name for all models of a vendor.
struct OfVendor;

impl ModelNames for OfVendor {
    fn configured_name<'n>(&'n self, asked: &'n str) -> &'n str {
        match asked.starts_with("vendor/") {
            true => "vendor/*",
            false => asked,
        }
    }
}

const NOW: u64 = 1_795_608_000_000_000;

/// Returns a record with these members, and the members that every record has.
fn record(kind: &str, seq: u64, about: &Value) -> String {
    let mut record =
        json!({"v": 1, "kind": kind, "seq": seq, "ts": NOW, "id": "r", "bytes": 1, "config": "ab".repeat(8)});
    let fields = about.as_object().unwrap().clone();
    record.as_object_mut().unwrap().extend(fields);
    record.to_string()
}

fn admission(seq: u64, model: &str) -> String {
    let about = json!({"tenant": "t", "tenant_seq": seq + 1, "key": "0123abcd", "model": model, "provider": "p",
        "upstream_model": model, "endpoint": "/v1/chat/completions", "stream": false,
        "request": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "reserved": 10, "reserved_nanodollars": 500});
    record("admission", seq, &about)
}

fn completion(seq: u64, admission: u64, cost: u64) -> String {
    let about = json!({"admission": admission, "status": 200, "outcome": "complete",
        "response": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "charged": 1, "cost_nanodollars": cost, "duration_us": 1});
    record("completion", seq, &about)
}

#[test]
fn a_replay_counts_what_was_asked_for_by_other_names_where_it_was_counted_before_the_crash() {
    let budget = ModelBudget {
        model: "vendor/*".to_owned(),
        nanodollars_per_day: None,
        nanodollars_per_month: Some(10_000.try_into().unwrap()),
    };
    let nothing = Limits::default();
    let limits = TenantLimits {
        name: "t".into(),
        quotas: Arc::new(Quotas::with_budgets(&nothing, &nothing, &[budget])),
    };
    let mut limiter = Limiter::new();
    let tenant = limiter.set_tenant(&limits);
    let demand = Demand {
        tokens: 10,
        model: "vendor/*",
        cost: Some(500),
    };
    let key = CredentialId::ApiKey([0x01, 0x23, 0xab, 0xcd]);
    let mut grant = limiter.admit(tenant, key, demand, NOW).unwrap();
    limiter.mark_recorded(&mut grant);
    let mut changes = Changes::default();
    limiter.take_changes(1, NOW, &mut changes);
    let mut snapshot = Snapshot::empty(Origin {
        shard: 0,
        incarnation: 1,
    });
    snapshot.apply(&changes);

    // The first admission is in the snapshot, but its completion is not. Neither record of the
    // second exchange is.
    let mut replay = Replay::new(snapshot);
    for text in [
        admission(0, "vendor/small"),
        admission(1, "vendor/large"),
        completion(2, 0, 40),
    ] {
        let record = parse(text.as_bytes()).unwrap();
        apply_record(&mut replay, &OfVendor, &record, record.seq(), |admission, _| {
            Some(admission)
        });
    }
    let ended = replay.finish(3, NOW);
    let spent = ended
        .subjects
        .iter()
        .filter_map(|(name, usage)| match &name.kind {
            SubjectKind::Model(model) => Some((&**model, usage.periods.month_counts.cost)),
            _ => None,
        });
    assert_eq!(spent.collect::<Vec<_>>(), [("vendor/*", 540)]);
}

#[test]
fn a_replay_counts_what_namespaces_share_by_the_plans_that_records_name() {
    let mut replay = Replay::new(Snapshot::empty(Origin {
        shard: 0,
        incarnation: 1,
    }));
    let shared = |text: String, tenant: &str| {
        let mut record: Value = serde_json::from_str(&text).unwrap();
        record["tenant"] = tenant.into();
        record["shared_plan"] = "gold".into();
        record.to_string()
    };
    let denied = json!({"tenant": "blue/chat", "counted": "0123abcd", "shared_plan": "gold", "status": 403, "code": "denied",
        "endpoint": null});
    for text in [
        shared(admission(0, "m"), "blue/app"),
        shared(admission(1, "m"), "blue/batch"),
        shared(admission(2, "m"), "red/app"),
        admission(3, "m"),
        completion(4, 1, 40),
        record("rejection", 5, &denied),
    ] {
        let record = parse(text.as_bytes()).unwrap();
        apply_record(&mut replay, &OfVendor, &record, record.seq(), |admission, _| {
            Some(admission)
        });
    }
    let ended = replay.finish(6, NOW);
    let shared = ended
        .subjects
        .iter()
        .filter_map(|(name, usage)| match &name.kind {
            SubjectKind::Shared(plan) => {
                let requests: u32 = usage.seconds.iter().map(|second| second.requests).sum();
                Some((&*name.tenant, &**plan, usage.periods.day_counts.cost, requests))
            }
            _ => None,
        });
    let expected = [("blue", "gold", 540, 3), ("red", "gold", 500, 1)];
    assert_eq!(shared.collect::<Vec<_>>(), expected);
}
