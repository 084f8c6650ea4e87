//! Tenants in shards, which are added and removed while connections are open.

use std::time::Duration;

use proofgate_auth::hash_api_key;
use proofgate_dataplane::{LimitUsageReport, ShardFiles, ShardsReport};
use serde_json::json;

use crate::client::{Client, post, post_as, read};
use crate::gateway::{Gateway, PATIENCE, chat};

const KEY: &str = "team-key-0123456789abcdef";
const TENANT: &str = "team-a/chat";

/// A worker with shards and two plans: gold, with one request per minute, and silver.
async fn start() -> Gateway {
    Gateway::with(|document| {
        let plan = |name: &str, limits| {
            json!({"name": name, "models": null, "endpoints": null, "limits": limits, "keyLimits": {}, "policy": null})
        };
        document["plans"] = json!([plan("gold", json!({"requestsPerMinute": 1})), plan("silver", json!({}))]);
        document["tenantShards"] = json!({});
    })
    .await
}

fn shard_of(text: &str) -> usize {
    usize::from(hash_api_key(text.as_bytes())[0] >> 3)
}

/// Sets the lines of the key and of its tenant in their two shards.
async fn set(gateway: &Gateway, key: bool, plan: Option<&str>) -> ShardsReport {
    let digest = hash_api_key(KEY.as_bytes()).map(|byte| format!("{byte:02x}"));
    let keys = if key {
        format!("{} {TENANT} ci\n", digest.concat())
    } else {
        String::new()
    };
    let tenants = plan.map(|plan| format!("{TENANT} {plan}\n")).unwrap_or_default();
    let worker = std::sync::Arc::clone(&gateway.worker);
    let [of_key, of_tenant] = [shard_of(KEY), shard_of(TENANT)];
    assert_ne!(of_key, of_tenant);
    let set = tokio::task::spawn_blocking(move || {
        worker.set_tenant_shards(&[
            ShardFiles {
                number: of_key,
                keys: keys.as_bytes(),
                tenants: b"",
            },
            ShardFiles {
                number: of_tenant,
                keys: b"",
                tenants: tenants.as_bytes(),
            },
        ])
    });
    set.await.unwrap().unwrap()
}

/// Sends a request with the key in the shard, and answers it as the provider if it arrives. Returns
/// the status.
async fn ask(gateway: &mut Gateway, client: &mut Client) -> u16 {
    let body = chat(10, false);
    let answer = client.send(post_as(KEY, Some(body.len())), &body).await;
    let mut answer = tokio::spawn(read(answer));
    let answered = tokio::select! {
        exchange = gateway.upstream.exchange() => {
            exchange.answer(b"{}").await;
            answer.await
        }
        answered = &mut answer => answered,
    };
    answered.unwrap().unwrap().status.as_u16()
}

#[tokio::test]
async fn a_key_is_served_once_it_is_there_and_refused_at_once_when_it_is_gone_on_a_connection_that_stays_open()
 {
    let mut gateway = start().await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(ask(&mut gateway, &mut client).await, 401);
    let report = set(&gateway, true, Some("silver")).await;
    assert_eq!((report.tenants, report.keys, report.refused.len()), (1, 1, 0));
    assert_eq!(ask(&mut gateway, &mut client).await, 200);
    assert_eq!(gateway.metric("proofgate_tenant_shards_keys"), 1);
    set(&gateway, false, Some("silver")).await;
    assert_eq!(ask(&mut gateway, &mut client).await, 401);
    set(&gateway, true, None).await;
    assert_eq!(
        ask(&mut gateway, &mut client).await,
        401,
        "a key without its tenant"
    );
}

#[tokio::test]
async fn a_tenant_has_the_limits_of_its_plan_and_keeps_what_it_consumed_when_it_changes() {
    let mut gateway = start().await;
    set(&gateway, true, Some("gold")).await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(ask(&mut gateway, &mut client).await, 200);
    assert_eq!(ask(&mut gateway, &mut client).await, 429);
    set(&gateway, true, Some("silver")).await;
    assert_eq!(ask(&mut gateway, &mut client).await, 200);
    set(&gateway, true, Some("gold")).await;
    assert_eq!(ask(&mut gateway, &mut client).await, 429);
    gateway.reload(|document| {
        document["plans"][0]["limits"] = json!({"requestsPerMinute": 2});
    });
    assert_eq!(
        ask(&mut gateway, &mut client).await,
        200,
        "another plan is another configuration"
    );
    assert_eq!(ask(&mut gateway, &mut client).await, 429);
}

#[tokio::test]
async fn a_tenant_that_moves_to_another_shard_keeps_what_it_consumed() {
    let mut gateway = start().await;
    set(&gateway, true, Some("gold")).await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(ask(&mut gateway, &mut client).await, 200);
    let other = (0..).find(|number| ![shard_of(KEY), shard_of(TENANT)].contains(number));
    let text = format!("{TENANT} gold\n");
    for (to, from) in [
        (other.unwrap(), shard_of(TENANT)),
        (shard_of(TENANT), other.unwrap()),
    ] {
        let (worker, text) = (std::sync::Arc::clone(&gateway.worker), text.clone());
        let moved = tokio::task::spawn_blocking(move || {
            let file = |number, tenants| ShardFiles {
                number,
                keys: b"",
                tenants,
            };
            worker.set_tenant_shards(&[file(to, text.as_bytes()), file(from, b"")])
        });
        assert_eq!(moved.await.unwrap().unwrap().tenants, 1);
        assert_eq!(ask(&mut gateway, &mut client).await, 429);
    }
}

#[tokio::test]
async fn a_tenant_whose_plan_is_not_there_is_refused_as_a_whole() {
    let mut gateway = start().await;
    set(&gateway, true, Some("bronze")).await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let answer = client.send(post_as(KEY, Some(body.len())), &body).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.status, 401);
    assert!(String::from_utf8_lossy(&answer.body).contains("plan_unknown"));
    gateway.reload(|document| document["plans"][1]["name"] = json!("bronze"));
    assert_eq!(ask(&mut gateway, &mut client).await, 200);
}

#[tokio::test]
async fn a_shard_that_is_refused_stays_as_it_was_and_tells_where_it_is_bad() {
    let mut gateway = start().await;
    set(&gateway, true, Some("silver")).await;
    let digest = gateway.worker.config_digest();
    let worker = std::sync::Arc::clone(&gateway.worker);
    let report = tokio::task::spawn_blocking(move || {
        worker.set_tenant_shards(&[ShardFiles {
            number: shard_of(KEY),
            keys: b"a secret\n",
            tenants: b"",
        }])
    });
    let report = report.await.unwrap().unwrap();
    assert_eq!(
        (report.refused[0].file.as_str(), report.refused[0].line),
        ("keys", 1)
    );
    assert!(!report.refused[0].problem.contains("secret"));
    assert_eq!(gateway.metric("proofgate_tenant_shards_refused"), 1);
    assert_eq!(gateway.worker.config_digest(), digest);
    let mut client = Client::connect(&gateway).await;
    assert_eq!(ask(&mut gateway, &mut client).await, 200);
    set(&gateway, true, Some("silver")).await;
    assert_eq!(gateway.metric("proofgate_tenant_shards_refused"), 0);
    assert_eq!(
        gateway.worker.config_digest(),
        digest,
        "the same shards are the same configuration"
    );
}

#[tokio::test]
async fn an_answer_under_way_ends_with_what_its_request_began_with() {
    let mut gateway = start().await;
    set(&gateway, true, Some("silver")).await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let answer = client.send(post_as(KEY, Some(body.len())), &body).await;
    let exchange = gateway.upstream.exchange().await;
    set(&gateway, false, None).await;
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    assert_eq!(ask(&mut gateway, &mut client).await, 401);
    let answer = client.send(post(Some(body.len())), &body).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200, "nobody else notices");
}

/// Returns the report of limits after a tenant's use has reached the limits thread.
async fn limits_once(
    gateway: &Gateway,
    most: usize,
    known: impl Fn(&LimitUsageReport) -> bool,
) -> LimitUsageReport {
    let told = async {
        loop {
            let limits = gateway.worker.limit_usage(most).unwrap();
            if known(&limits) {
                return limits;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap()
}

#[tokio::test]
async fn how_much_of_its_limits_a_tenant_has_used_is_told_and_who_has_used_most_comes_first() {
    let mut gateway = Gateway::with(|document| {
        document["plans"] = json!([{
            "name": "gold", "models": null, "endpoints": null, "limits": {"requestsPerMinute": 4, "concurrency": 2},
            "keyLimits": {}, "policy": null,
        }]);
        document["tenantShards"] = json!({});
        document["tenants"][0]["limits"] = json!({"tokensPerDay": 1000});
        document["tenants"][1]["keyLimits"] = json!({"requestsPerMinute": 1});
    })
    .await;
    set(&gateway, true, Some("gold")).await;
    let fresh = serde_json::to_value(gateway.worker.limit_usage(10).unwrap()).unwrap();
    let with = |tenant: &str, used: &[(&str, u64, u64)]| {
        let limits = proofgate_limits::Limit::ALL.map(|limit| (limit.kind().field, json!(null)));
        let mut told: serde_json::Map<_, _> = limits
            .into_iter()
            .map(|(name, none)| (name.to_owned(), none))
            .collect();
        told.insert("tenant".to_owned(), json!(tenant));
        for (name, used, limit) in used {
            told[*name] = json!({"used": used, "limit": limit});
        }
        serde_json::Value::Object(told)
    };
    let acme = with("acme", &[("tokens_per_day", 0, 1000)]);
    let sharded = |requests: u64, in_flight: u64| {
        let used = [
            ("requests_per_minute", requests, 4),
            ("concurrency", in_flight, 2),
        ];
        with(TENANT, &used)
    };
    let expected =
        json!({"tenants": [acme, sharded(0, 0)], "more": 0, "namespaces": [], "more_namespaces": 0});
    assert_eq!(fresh, expected);

    let mut client = Client::connect(&gateway).await;
    assert_eq!(ask(&mut gateway, &mut client).await, 200);
    let body = chat(10, false);
    let answer = client.send(post_as(KEY, Some(body.len())), &body).await;
    let exchange = gateway.upstream.exchange().await;
    let told = limits_once(&gateway, 1, |limits| {
        serde_json::to_value(&limits.tenants[0]).unwrap() == sharded(2, 1)
    });
    assert_eq!(told.await.more, 1, "acme has used less of what it may");
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    let ended = limits_once(&gateway, 10, |limits| {
        serde_json::to_value(&limits.tenants[0]).unwrap() == sharded(2, 0)
    });
    assert_eq!(serde_json::to_value(ended.await).unwrap()["tenants"][1], acme);
}
