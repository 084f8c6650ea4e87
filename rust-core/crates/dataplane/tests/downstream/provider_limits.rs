//! Rate limits of a provider, and requests beyond them.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Answer, Client, post, read};
use crate::gateway::{ACME, Gateway, MODEL, chat};
use crate::upstream::Upstream;

const ANSWER: &[u8] = br#"{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;

/// A gateway in front of a provider with this rate limit.
async fn limited(rate: Value) -> Gateway {
    Gateway::with(|document| document["providers"][0]["limits"] = rate).await
}

async fn refused(client: &mut Client) -> Answer {
    let body = chat(10, false);
    let answer = client.exchange(post(Some(body.len())), &body).await;
    assert_eq!((answer.status.as_u16(), &*answer.code()), (503, "provider_busy"));
    answer
}

fn seconds_to_wait(answer: &Answer) -> u64 {
    answer.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

async fn answered(client: &mut Client, upstream: &mut Upstream) {
    let sent = client.send_chat(false).await;
    upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_provider_at_its_limit_is_passed_over_and_if_all_are_the_client_is_told_when_to_come_back() {
    let mut other = Upstream::start().await;
    let mut gateway = Gateway::with(|document| {
        let mut second = document["providers"][0].clone();
        second["name"] = json!("other");
        second["baseURL"] = json!(other.url());
        second["limits"] = json!({"requestsPerMinute": 2});
        document["providers"][0]["limits"] = json!({"requestsPerMinute": 1});
        document["providers"].as_array_mut().unwrap().push(second);
        let targets = document["models"][0]["routes"].as_array_mut().unwrap();
        targets.push(json!({"provider": "other", "upstreamModel": MODEL, "weight": 0}));
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    answered(&mut client, &mut gateway.upstream).await;
    answered(&mut client, &mut other).await;
    let wait = seconds_to_wait(&refused(&mut client).await);
    assert!(
        (1..=30).contains(&wait),
        "the sooner of 30 and 60 seconds: {wait}"
    );
    assert_eq!((gateway.upstream.requests(), other.requests()), (1, 1));
}

#[tokio::test]
async fn what_was_sent_counts_after_a_change_of_the_configuration_and_under_a_new_limit() {
    let mut gateway = limited(json!({"requestsPerMinute": 1})).await;
    let mut client = Client::connect(&gateway).await;
    answered(&mut client, &mut gateway.upstream).await;
    gateway.reload(|document| document["models"][0]["maxOutputTokens"] = json!(7));
    refused(&mut client).await;
    gateway.reload(|document| document["providers"][0]["limits"] = json!({}));
    answered(&mut client, &mut gateway.upstream).await;
}

#[tokio::test]
async fn of_tokens_the_estimate_counts_until_the_provider_has_counted() {
    // A bucket has 100, and a request reserves the inflow of 50 seconds.
    let mut gateway = Gateway::with(|document| {
        document["providers"][0]["limits"] = json!({"tokensPerMinute": 600});
        document["models"][0]["maxOutputTokens"] = json!(500);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    for _ in 0..3 {
        let sent = client.send_chat(false).await;
        let exchange = gateway.upstream.exchange().await;
        assert!(seconds_to_wait(&refused(&mut client).await) <= 60);
        exchange.answer(ANSWER).await;
        assert_eq!(read(sent).await.unwrap().status, 200);
    }
    assert_eq!(gateway.upstream.requests(), 3);
}

#[tokio::test]
async fn what_is_denied_before_it_is_sent_takes_nothing_of_what_a_provider_allows() {
    let mut gateway = Gateway::with(|document| {
        document["providers"][0]["limits"] = json!({"requestsPerMinute": 1, "tokensPerMinute": 60});
        document["policy"] =
            json!({"rules": [{"id": "word", "reason": "A word.", "literals": ["xxxxxxxxxxxx"]}]});
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(20, false);
    for _ in 0..3 {
        let denied = client.exchange(post(Some(body.len())), &body).await;
        assert_eq!(denied.status, 403);
    }
    answered(&mut client, &mut gateway.upstream).await;
    refused(&mut client).await;
}

#[tokio::test]
async fn a_request_whose_body_comes_long_after_its_head_is_judged_by_what_is_left_when_it_is_whole() {
    const ASKED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    // A bucket has the inflow of ten seconds, and each request uses about that much.
    let mut gateway = Gateway::with(|document| {
        document["tls"] = Value::Null;
        document["providers"][0]["limits"] = json!({"tokensPerMinute": 60_000_000_000_u64});
        document["models"][0]["maxOutputTokens"] = json!(10_000_000_000_u64);
    })
    .await;
    let body = chat(10, false);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer {ACME}\r\n\
         Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (mut clients, mut exchanges) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        client.write_all(head.as_bytes()).await.unwrap();
        let mut asked = [0; ASKED.len()];
        client.read_exact(&mut asked).await.unwrap();
        assert_eq!(asked, ASKED, "its head has been read");
        clients.push(client);
    }
    for client in clients.iter_mut().rev() {
        client.write_all(&body).await.unwrap();
        exchanges.push(gateway.upstream.exchange().await);
    }
    for (client, exchange) in clients.iter_mut().rev().zip(exchanges) {
        exchange.answer(ANSWER).await;
        let mut status = [0; 12];
        client.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    }
}
