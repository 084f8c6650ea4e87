//! Models with several providers: the selected provider, and the record.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::{Answer, Client, ask, post, read};
use crate::gateway::{Gateway, MODEL, PATIENCE, chat};
use crate::upstream::{Exchange, Upstream};

const ANSWER: &[u8] = br#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// A gateway whose model has these targets. The first provider, `stand-in`, is its own mock
/// upstream, the second is `other`.
async fn gateway(other: &Upstream, targets: Value, change: impl FnOnce(&mut Value)) -> Gateway {
    let url = other.url().to_owned();
    Gateway::with(|document| {
        let mut provider = document["providers"][0].clone();
        provider["name"] = json!("other");
        provider["baseURL"] = json!(url);
        document["providers"].as_array_mut().unwrap().push(provider);
        document["models"][0]["routes"] = targets;
        document["models"][0]["fallbackOn"] = json!(["Unreachable", "RateLimited", "Overloaded"]);
        change(document);
    })
    .await
}

fn target(provider: &str, weight: u32) -> Value {
    json!({"provider": provider, "upstreamModel": format!("{MODEL}-of-{provider}"), "weight": weight})
}

async fn records(gateway: &Gateway, answer: &Answer) -> Vec<Value> {
    let id = answer.headers["x-request-id"].to_str().unwrap().to_owned();
    let worker = Arc::clone(&gateway.worker);
    let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, PATIENCE));
    let evidence = evidence.await.unwrap().unwrap();
    let records = evidence
        .iter()
        .map(|proved| serde_json::from_str(&proved.record).unwrap());
    records.collect()
}

async fn decline(mut exchange: Exchange, status: u16) {
    let head = format!("HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\n{{}}");
    exchange.send(head.as_bytes()).await;
}

/// Sends a request, which the provider that gets it answers.
async fn is_answered_by_either(client: &mut Client, gateway: &mut Gateway, other: &mut Upstream) {
    let sent = client.send_chat(false).await;
    tokio::select! {
        exchange = gateway.upstream.exchange() => exchange.answer(ANSWER).await,
        exchange = other.exchange() => exchange.answer(ANSWER).await,
    }
    assert_eq!(read(sent).await.unwrap().status, 200);
}

#[tokio::test]
async fn requests_are_shared_by_weight_exactly() {
    let mut other = Upstream::start().await;
    let targets = json!([target("stand-in", 3), target("other", 1)]);
    let mut gateway = gateway(&other, targets, |_| ()).await;
    let mut client = Client::connect(&gateway).await;
    for _ in 0..8 {
        is_answered_by_either(&mut client, &mut gateway, &mut other).await;
    }
    assert_eq!((gateway.upstream.requests(), other.requests()), (6, 2));
}

#[tokio::test]
async fn what_is_denied_before_it_is_sent_is_nobodys_share() {
    let mut other = Upstream::start().await;
    let targets = json!([target("stand-in", 3), target("other", 1)]);
    let mut gateway = gateway(&other, targets, |document| {
        document["policy"] =
            json!({"rules": [{"id": "word", "reason": "A word.", "literals": ["xxxxxxxxxxxx"]}]});
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(20, false);
    for _ in 0..8 {
        let denied = client.exchange(post(Some(body.len())), &body).await;
        assert_eq!(denied.status, 403);
        is_answered_by_either(&mut client, &mut gateway, &mut other).await;
    }
    assert_eq!((gateway.upstream.requests(), other.requests()), (6, 2));
}

#[tokio::test]
async fn what_a_provider_has_no_words_for_comes_to_the_next_one_at_the_next_try() {
    let other = Upstream::start().await;
    let targets = json!([target("stand-in", 1), target("other", 1)]);
    let mut gateway = gateway(&other, targets, |document| {
        document["providers"][1]["type"] = json!("Anthropic");
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let mut body: Value = serde_json::from_slice(&chat(20, false)).unwrap();
    body["seed"] = json!(7);
    let body = body.to_string().into_bytes();
    let mut answered = 0;
    for _ in 0..8 {
        let sent = client.send(post(Some(body.len())), &body).await;
        let mut sent = std::pin::pin!(read(sent));
        let answer = tokio::select! {
            biased;
            exchange = gateway.upstream.exchange() => {
                exchange.answer(ANSWER).await;
                sent.await.unwrap()
            }
            answer = &mut sent => answer.unwrap(),
        };
        match answer.status.as_u16() {
            200 => answered += 1,
            status => assert_eq!((status, &*answer.code()), (400, "not_translatable")),
        }
    }
    assert_eq!((answered, other.requests()), (4, 0));
}

#[tokio::test]
async fn what_another_provider_is_sent_is_recorded_before_and_named_as_it_is_there() {
    let mut other = Upstream::start().await;
    let targets = json!([target("stand-in", 1), target("other", 0)]);
    let mut gateway = gateway(&other, targets, |_| ()).await;
    let mut client = Client::connect(&gateway).await;
    let sent = client.send_chat(false).await;
    decline(gateway.upstream.exchange().await, 429).await;
    let exchange = other.exchange().await;
    // The series exists although no provider has responded yet.
    gateway
        .wait_for_metric("proofgate_ledger_records_written_total", 3)
        .await;
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(body["model"], format!("{MODEL}-of-other"));
    exchange.answer(ANSWER).await;
    let answer = read(sent).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, ANSWER));
    let records = records(&gateway, &answer).await;
    let kinds: Vec<_> = records
        .iter()
        .map(|record| record["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["admission", "attempt", "completion"]);
    assert_eq!(records[0]["provider"], "stand-in");
    let attempt = &records[1];
    assert_eq!(
        [&attempt["provider"], &attempt["failure"], &attempt["failed_sent"]],
        ["other", "upstream_declined", "answered"]
    );
    assert_eq!(
        (&attempt["failed_status"], &attempt["attempt"]),
        (&json!(429), &json!(2))
    );
    assert_eq!(
        (&records[2]["upstream_status"], &records[2]["attempts"]),
        (&json!(200), &json!(2))
    );
    let series = "proofgate_requests_total{tenant=\"acme\",model=\"gpt-4o-mini\",provider=\"other\",outcome=\"complete\"}";
    gateway.wait_for_metric(series, 1).await;
}

#[tokio::test]
async fn a_provider_that_keeps_failing_is_not_asked_while_another_one_is_there() {
    let mut other = Upstream::start().await;
    let targets = json!([target("stand-in", 1), target("other", 0)]);
    let mut gateway = gateway(&other, targets, |_| ()).await;
    let mut client = Client::connect(&gateway).await;
    for _ in 0..5 {
        let sent = client.send_chat(false).await;
        decline(gateway.upstream.exchange().await, 503).await;
        other.exchange().await.answer(ANSWER).await;
        assert_eq!(read(sent).await.unwrap().status, 200);
    }
    for _ in 0..5 {
        let sent = client.send_chat(false).await;
        other.exchange().await.answer(ANSWER).await;
        let answer = read(sent).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.headers.get("x-proofgate-attempts")),
            (200, None)
        );
    }
    assert_eq!((gateway.upstream.requests(), other.requests()), (5, 10));
    gateway
        .wait_for_metric("proofgate_provider_paused{provider=\"stand-in\"}", 1)
        .await;
    let failures = "proofgate_provider_failures_total{provider=\"stand-in\",failure=\"upstream_declined\"}";
    assert_eq!(gateway.metric(failures), 5);
}

#[tokio::test]
async fn of_two_providers_at_one_address_each_has_its_own_health_also_after_a_reload() {
    let other = Upstream::start().await;
    let targets = json!([target("stand-in", 1), target("other", 0)]);
    let mut gateway = gateway(&other, targets, |document| {
        document["providers"][1]["baseURL"] = document["providers"][0]["baseURL"].clone();
    })
    .await;
    gateway.reload(|document| document["timeouts"]["answerSeconds"] = json!(500));
    let mut client = Client::connect(&gateway).await;
    for _ in 0..5 {
        let sent = client.send_chat(false).await;
        decline(gateway.upstream.exchange().await, 503).await;
        gateway.upstream.exchange().await.answer(ANSWER).await;
        assert_eq!(read(sent).await.unwrap().status, 200);
    }
    let sent = client.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(
        body["model"],
        format!("{MODEL}-of-other"),
        "the first one is paused, not both"
    );
    exchange.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_provider_without_an_alternative_is_asked_however_often_it_fails() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    for _ in 0..8 {
        let sent = client.send_chat(false).await;
        decline(gateway.upstream.exchange().await, 503).await;
        assert_eq!(read(sent).await.unwrap().status, 503);
    }
    assert_eq!(gateway.upstream.requests(), 8);
}

#[tokio::test]
async fn what_is_over_a_providers_concurrency_goes_elsewhere_or_is_refused() {
    let mut other = Upstream::start().await;
    let targets = json!([target("stand-in", 1), target("other", 0)]);
    let mut gateway = gateway(&other, targets, |document| {
        for provider in 0..2 {
            document["providers"][provider]["maxConcurrentRequests"] = json!(1);
        }
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let first = client.send_chat(false).await;
    let at_first = gateway.upstream.exchange().await;
    let second = client.send_chat(false).await;
    let at_second = other.exchange().await;
    let body = chat(10, false);
    let third = client.exchange(post(Some(body.len())), &body).await;
    assert_eq!((third.status.as_u16(), &*third.code()), (503, "provider_busy"));
    assert_eq!(third.headers["retry-after"], "1");
    at_first.answer(ANSWER).await;
    at_second.answer(ANSWER).await;
    assert_eq!(read(first).await.unwrap().status, 200);
    assert_eq!(read(second).await.unwrap().status, 200);
    let fourth = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(fourth).await.unwrap().status, 200);
}

#[tokio::test]
async fn requests_that_come_at_once_are_no_more_at_a_provider_than_may_be() {
    let mut other = Upstream::start().await;
    let targets = json!([target("stand-in", 1), target("other", 0)]);
    let mut gateway = gateway(&other, targets, |document| {
        document["providers"][0]["maxConcurrentRequests"] = json!(2);
        document["providers"][1]["maxConcurrentRequests"] = json!(1);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let mut sent = Vec::new();
    for _ in 0..10 {
        sent.push(client.send_chat(false).await);
    }
    for _ in 0..2 {
        gateway.upstream.exchange().await.answer(ANSWER).await;
    }
    other.exchange().await.answer(ANSWER).await;
    let mut statuses = Vec::new();
    for answer in sent {
        statuses.push(read(answer).await.unwrap().status.as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 3].as_slice(), &[503; 7]].concat());
    assert_eq!((gateway.upstream.requests(), other.requests()), (2, 1));
}

#[tokio::test]
async fn when_nobody_takes_it_the_client_is_told_what_the_last_one_said() {
    let mut other = Upstream::start().await;
    let targets = json!([target("stand-in", 1), target("other", 0)]);
    let mut gateway = gateway(&other, targets, |_| ()).await;
    let mut client = Client::connect(&gateway).await;
    let sent = client.send_chat(false).await;
    decline(gateway.upstream.exchange().await, 429).await;
    decline(other.exchange().await, 529).await;
    let answer = read(sent).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (529, &b"{}"[..]));
    assert_eq!(answer.headers["x-proofgate-attempts"], "2");
}

#[tokio::test]
async fn a_fallback_that_the_request_cannot_be_said_to_leaves_what_the_first_one_said() {
    let mut other = Upstream::start().await;
    let targets = json!([target("stand-in", 1), target("other", 0)]);
    let mut gateway = gateway(&other, targets, |document| {
        document["providers"][1]["type"] = json!("Anthropic");
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let body =
        json!({"model": MODEL, "logit_bias": {"1": 2}, "messages": [{"role": "user", "content": "hi"}]});
    let body = serde_json::to_vec(&body).unwrap();
    let sent = client.send(post(Some(body.len())), &body).await;
    decline(gateway.upstream.exchange().await, 503).await;
    let answer = read(sent).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (503, &b"{}"[..]));
    assert_eq!(answer.headers.get("x-proofgate-attempts"), None);
    // One that can be said is.
    let sent = client.send_chat(false).await;
    decline(gateway.upstream.exchange().await, 503).await;
    let exchange = other.exchange().await;
    assert!(
        exchange.head.starts_with("POST /v1/messages "),
        "{}",
        exchange.head
    );
    exchange
        .answer(br#"{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#)
        .await;
    let answer = read(sent).await.unwrap();
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(said["choices"][0]["message"]["content"], "yes");
}

#[tokio::test]
async fn a_provider_at_an_address_that_may_not_be_reached_is_not_connected_to() {
    let mut other = Upstream::start().await;
    let targets = json!([target("other", 1)]);
    let gateway = gateway(&other, targets, |document| {
        document["egress"] = json!({"allow": ["10.0.0.0/8"]})
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let refused = client.exchange(post(Some(body.len())), &body).await;
    assert_eq!(
        (refused.status.as_u16(), &*refused.code()),
        (502, "upstream_unreachable")
    );
    assert_eq!(other.requests(), 0);
    // Allowed addresses change without a restart, also for open connections.
    gateway.reload(|document| document["egress"] = json!({"allow": ["127.0.0.0/8"]}));
    let sent = client.send_chat(false).await;
    other.exchange().await.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
    gateway.reload(|document| document["egress"] = json!({"allow": ["10.0.0.0/8"]}));
    let refused = client.exchange(post(Some(body.len())), &body).await;
    assert_eq!(&*refused.code(), "upstream_unreachable");
    assert_eq!(other.requests(), 1);
}

#[tokio::test]
async fn a_wildcard_stands_for_all_names_that_begin_so_and_passes_the_rest_on() {
    let mut gateway = Gateway::with(|document| {
        let model = |name: &str, upstream_model: &str| {
            json!({
                "name": name, "maxOutputTokens": 100,
                "routes": [{"provider": "stand-in", "upstreamModel": upstream_model, "weight": 1}],
            })
        };
        document["models"] = json!([
            model("vendor/*", "*"),
            model("vendor/large-*", "big/*/v2"),
            model("vendor/large-one", "fixed"),
            model("same-*", "same-*"),
        ]);
        document["tenants"][0]["models"] = json!(["vendor/*", "vendor/large-*", "same-*"]);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let call = |model: &str| serde_json::to_vec(&json!({"model": model, "messages": []})).unwrap();
    for (asked, there) in [
        ("vendor/small", "small"),
        ("vendor/large-two", "big/two/v2"),
        ("vendor/a/b", "a/b"),
        ("same-1", "same-1"),
    ] {
        let body = call(asked);
        let sent = client.send(post(Some(body.len())), &body).await;
        let exchange = gateway.upstream.exchange().await;
        let got: Value = serde_json::from_slice(&exchange.body).unwrap();
        assert_eq!(got["model"], there, "{asked}");
        exchange.answer(ANSWER).await;
        let answer = read(sent).await.unwrap();
        let admission = &records(&gateway, &answer).await[0];
        assert_eq!(
            [&admission["model"], &admission["upstream_model"]],
            [asked, there]
        );
    }
    // The model's own name is not allowed for this tenant, and no wildcard matches it; the rest
    // must be a valid name.
    for asked in [
        "vendor/large-one",
        "vendor/",
        "vendor/*",
        "vendor/a b",
        "vendor/\"",
        "vendor/\u{e9}",
        "other",
    ] {
        let body = call(asked);
        let refused = client.exchange(post(Some(body.len())), &body).await;
        assert_eq!(
            (refused.status.as_u16(), &*refused.code()),
            (404, "model_not_found"),
            "{asked}"
        );
    }
    let long = call(&format!("vendor/{}", "x".repeat(122)));
    let refused = client.exchange(post(Some(long.len())), &long).await;
    assert_eq!(&*refused.code(), "model_not_found");
    let series = "proofgate_requests_total{tenant=\"acme\",model=\"vendor/*\",provider=\"stand-in\",outcome=\"complete\"}";
    gateway.wait_for_metric(series, 2).await;
    let listed = client.exchange(ask("GET", "/v1/models"), b"").await;
    let listed: Value = serde_json::from_slice(&listed.body).unwrap();
    assert_eq!(listed["data"], json!([]), "what stands for others is no model");
    let one = client.exchange(ask("GET", "/v1/models/vendor/small"), b"").await;
    let one: Value = serde_json::from_slice(&one.body).unwrap();
    assert_eq!([&one["id"], &one["owned_by"]], ["vendor/small", "stand-in"]);
    let none = client
        .exchange(ask("GET", "/v1/models/vendor/large-one"), b"")
        .await;
    assert_eq!(&*none.code(), "model_not_found");
}

#[tokio::test]
async fn other_routes_are_taken_without_a_restart() {
    let mut other = Upstream::start().await;
    let mut gateway = gateway(&other, json!([target("stand-in", 1)]), |_| ()).await;
    let mut client = Client::connect(&gateway).await;
    let sent = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
    gateway.reload(|document| document["models"][0]["routes"] = json!([target("other", 1)]));
    let sent = client.send_chat(false).await;
    other.exchange().await.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_client_that_is_told_to_wait_for_long_is_told_not_to_try_again_by_itself() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    for (wait, hint) in [
        ("60", None),
        ("61", Some("false")),
        ("Wed, 25 Nov 2026 10:00:00 GMT", Some("false")),
    ] {
        let sent = client.send_chat(false).await;
        let mut exchange = gateway.upstream.exchange().await;
        let head = format!("HTTP/1.1 429 No\r\nRetry-After: {wait}\r\nContent-Length: 2\r\n\r\n{{}}");
        exchange.send(head.as_bytes()).await;
        let answer = read(sent).await.unwrap();
        assert_eq!(answer.headers["retry-after"], wait);
        let told = answer
            .headers
            .get("x-should-retry")
            .map(|hint| hint.to_str().unwrap());
        assert_eq!(told, hint, "{wait}");
    }
}
