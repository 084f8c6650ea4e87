//! Requests that wait for reservations of other requests.

use h2::client::ResponseFuture;
use serde_json::{Value, json};

use crate::client::{Client, post, read};
use crate::gateway::{Gateway, MODEL};
use crate::upstream::Exchange;

const WAITING: &str = "proofgate_requests_waiting_for_limits";
const ANSWER: &[u8] =
    br#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29}}"#;

/// Returns a request that reserves most of the limit: two reservations do not fit, but the usage of
/// two does.
fn chat(user: &str) -> Value {
    json!({
        "model": MODEL, "max_tokens": 64_000, "user": user,
        "messages": [{"role": "user", "content": "hi"}],
    })
}

async fn ask(client: &mut Client, user: &str) -> ResponseFuture {
    let body = chat(user).to_string();
    client.send(post(Some(body.len())), body.as_bytes()).await
}

async fn gateway(wait_seconds: f64) -> Gateway {
    Gateway::with(|document| {
        document["tenants"][0]["limits"] = json!({"tokensPerDay": 100_000});
        document["tenants"][0]["waitSeconds"] = json!(wait_seconds);
    })
    .await
}

/// Answers and closes the connection, because the next request comes immediately.
async fn answer(mut exchange: Exchange) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        ANSWER.len()
    );
    exchange.send(head.as_bytes()).await;
    exchange.send(ANSWER).await;
}

/// Answers the next request that reaches the provider. Returns its sender.
async fn answered(gateway: &mut Gateway) -> String {
    let exchange = gateway.upstream.exchange().await;
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    answer(exchange).await;
    body["user"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_fits_when_reservations_settle_waits_for_that_in_the_order_in_which_it_came() {
    let mut gateway = gateway(600.0).await;
    let mut client = Client::connect(&gateway).await;
    let first = ask(&mut client, "first").await;
    let exchange = gateway.upstream.exchange().await;
    let mut waiting = Vec::new();
    for (place, user) in ["second", "third", "fourth"].into_iter().enumerate() {
        waiting.push(ask(&mut client, user).await);
        gateway.wait_for_metric(WAITING, place as u64 + 1).await;
    }
    assert_eq!(gateway.upstream.requests(), 1);
    answer(exchange).await;
    assert_eq!(read(first).await.unwrap().status, 200);
    for user in ["second", "third", "fourth"] {
        assert_eq!(answered(&mut gateway).await, user);
    }
    for sent in waiting {
        let answer = read(sent).await.unwrap();
        assert_eq!(answer.status, 200);
        let limits = answer.headers.get_all("ratelimit").iter().count();
        assert!(limits <= 1, "the limits are told {limits} times");
    }
    gateway.wait_for_metric(WAITING, 0).await;
    assert_eq!(gateway.metric("proofgate_limit_refusals_total"), 0);
}

#[tokio::test]
async fn one_that_has_waited_as_long_as_it_may_is_told_to_come_back_in_seconds() {
    let mut gateway = gateway(0.02).await;
    let mut client = Client::connect(&gateway).await;
    let first = ask(&mut client, "first").await;
    let exchange = gateway.upstream.exchange().await;
    let refused = read(ask(&mut client, "second").await).await.unwrap();
    assert_eq!(
        (refused.status.as_u16(), &*refused.code()),
        (429, "tokens_per_day_exceeded")
    );
    assert_eq!(refused.headers["retry-after"], "2");
    assert_eq!(gateway.metric("proofgate_limit_refusals_total"), 1);
    answer(exchange).await;
    assert_eq!(read(first).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_client_that_leaves_waits_no_longer_and_is_sent_nowhere() {
    let mut gateway = gateway(600.0).await;
    let mut client = Client::connect(&gateway).await;
    let first = ask(&mut client, "first").await;
    let exchange = gateway.upstream.exchange().await;
    let mut other = Client::connect(&gateway).await;
    let gone = ask(&mut other, "second").await;
    gateway.wait_for_metric(WAITING, 1).await;
    drop((gone, other));
    gateway.wait_for_metric(WAITING, 0).await;
    answer(exchange).await;
    assert_eq!(read(first).await.unwrap().status, 200);
    let third = ask(&mut client, "third").await;
    assert_eq!(answered(&mut gateway).await, "third");
    assert_eq!(read(third).await.unwrap().status, 200);
    assert_eq!(gateway.upstream.requests(), 2);
}

#[tokio::test]
async fn what_no_settlement_makes_fit_does_not_wait() {
    let gateway = Gateway::with(|document| {
        document["tenants"][0]["limits"] = json!({"tokensPerMinute": 60_000});
        document["tenants"][0]["waitSeconds"] = json!(600);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let refused = read(ask(&mut client, "one").await).await.unwrap();
    assert_eq!(refused.code(), "request_exceeds_limit");
}
