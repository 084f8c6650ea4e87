//! A process with a low limit of open files: connections have a share of it, and requests without a
//! free descriptor get an error.

use h2::server::Builder;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{Client, post, read, tcp};
use crate::gateway::{Gateway, MODEL, PATIENCE};
use crate::http2_provider::{CERTIFICATE, Provider};

/// The limit of descriptors: 32 are reserved, clients have 22 and providers 10.
const DESCRIPTORS: u64 = 64;
const CLIENTS: usize = 22;
const PROVIDERS: usize = 10;
const ANSWER: &[u8] = br#"{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}"#;

async fn gateway() -> Gateway {
    Gateway::with(|document| document["limits"]["descriptors"] = json!(DESCRIPTORS)).await
}

fn part(of: &str) -> String {
    format!("proofgate_descriptors{{use=\"{of}\"}}")
}

#[tokio::test]
async fn what_connections_may_take_of_the_descriptors_is_told() {
    let gateway = gateway().await;
    let status = gateway.worker.status().unwrap().descriptors;
    let told = (status.limit, status.reserved, status.clients, status.providers);
    assert_eq!(told, (Some(DESCRIPTORS), 32, CLIENTS, PROVIDERS));
    for (of, count) in [
        ("limit", 64),
        ("reserved", 32),
        ("clients", 22),
        ("providers", 10),
    ] {
        assert_eq!(gateway.metric(&part(of)), count);
    }
}

#[tokio::test]
async fn requests_that_find_no_connection_to_their_provider_are_refused_by_name_and_the_others_are_served() {
    let mut gateway = gateway().await;
    let mut client = Client::connect(&gateway).await;
    let (mut sent, mut served) = (Vec::new(), Vec::new());
    for _ in 0..PROVIDERS {
        sent.push(client.send_chat(false).await);
        served.push(gateway.upstream.exchange().await);
    }
    for _ in 0..5 {
        let refused = read(client.send_chat(false).await).await.unwrap();
        assert_eq!(
            (refused.status.as_u16(), refused.code().as_str()),
            (503, "descriptors_exhausted")
        );
        assert_eq!(refused.headers["retry-after"], "1");
    }
    gateway
        .wait_for_metric("proofgate_provider_connections", PROVIDERS as u64)
        .await;
    let failed = "proofgate_provider_failures_total{provider=\"stand-in\",failure=\"descriptors_exhausted\"}";
    assert_eq!(gateway.metric(failed), 5);
    assert_eq!(
        gateway.metric("proofgate_exchanges_total{outcome=\"internal_error\"}"),
        5
    );
    // This is not the provider's fault, so the provider is used as before.
    assert_eq!(
        gateway.metric("proofgate_provider_paused{provider=\"stand-in\"}"),
        0
    );
    for (answer, exchange) in sent.into_iter().zip(served) {
        exchange.answer(ANSWER).await;
        assert_eq!(read(answer).await.unwrap().status, 200);
    }
    let answer = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    assert_eq!(gateway.worker.not_ready_reason(), None);
}

#[tokio::test]
async fn connections_of_strangers_beyond_their_part_wait_and_keep_no_descriptor() {
    let mut gateway = gateway().await;
    let mut silent: Vec<TcpStream> = Vec::new();
    for _ in 0..3 * CLIENTS {
        silent.push(tcp(&gateway).await);
    }
    gateway
        .wait_for_metric("proofgate_connections", CLIENTS as u64)
        .await;
    // The accepted connections close, in any order; then the others are accepted.
    for mut stranger in silent {
        let _ = stranger.shutdown().await;
    }
    let mut client = timeout(PATIENCE, Client::connect(&gateway))
        .await
        .expect("not accepted");
    let answer = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn an_idle_connection_to_one_provider_makes_room_for_another_provider() {
    let idle = "proofgate_provider_idle_connections{provider=\"stand-in\"}";
    let warm = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", warm.local_addr().unwrap());
    let mut gateway = Gateway::with(|document| {
        document["limits"]["descriptors"] = json!(DESCRIPTORS);
        document["providers"][0]["minIdleConnections"] = json!(PROVIDERS);
        let other = document["providers"][0]["baseURL"].clone();
        document["providers"][0]["baseURL"] = json!(url);
        let mut provider = document["providers"][0].clone();
        provider["name"] = json!("other");
        provider["baseURL"] = other;
        provider["minIdleConnections"] = json!(0);
        document["providers"].as_array_mut().unwrap().push(provider);
        document["models"][0]["routes"][0]["provider"] = json!("other");
    })
    .await;
    let mut kept = Vec::new();
    for _ in 0..PROVIDERS {
        kept.push(
            timeout(PATIENCE, warm.accept())
                .await
                .expect("none is made")
                .unwrap(),
        );
    }
    gateway.wait_for_metric(idle, PROVIDERS as u64).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn an_idle_session_of_http_2_makes_room_for_another_provider_and_takes_leave() {
    let mut settings = Builder::new();
    settings.max_concurrent_streams(1);
    let mut provider = Provider::with(true, settings).await;
    let mut gateway = Gateway::with(|document| {
        document["limits"]["descriptors"] = json!(DESCRIPTORS);
        let mut over_http2 = document["providers"][0].clone();
        over_http2["name"] = json!("over-http2");
        over_http2["baseURL"] = json!(provider.url());
        over_http2["http"] = json!("Http2");
        over_http2["caPem"] = json!(CERTIFICATE);
        document["providers"].as_array_mut().unwrap().push(over_http2);
        let mut model = document["models"][0].clone();
        model["name"] = json!("other");
        document["models"].as_array_mut().unwrap().push(model);
        document["models"][0]["routes"][0]["provider"] = json!("over-http2");
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let (mut answers, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..PROVIDERS {
        answers.push(client.send_chat(false).await);
        calls.push(provider.call().await);
    }
    let other = json!({"model": "other", "messages": [{"role": "user", "content": MODEL}]}).to_string();
    let refused = client.exchange(post(Some(other.len())), other.as_bytes()).await;
    assert_eq!(
        refused.code(),
        "descriptors_exhausted",
        "each of them carries a request"
    );
    for call in &mut calls {
        call.answer("{}");
    }
    drop(calls);
    for answer in answers {
        assert_eq!(read(answer).await.unwrap().status, 200);
    }
    gateway.wait_for_metric("proofgate_exchanges_in_flight", 0).await;
    let answer = client.send(post(Some(other.len())), other.as_bytes()).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    assert!(provider.ended().await <= PROVIDERS);
    assert_eq!(gateway.worker.not_ready_reason(), None);
}
