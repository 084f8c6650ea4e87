//! The end of idle connections, and of all connections when the worker drains.

use tokio::net::TcpStream;

use crate::client::{Client, ask, read};
use crate::gateway::{ACME, Gateway, chat};
use crate::raw::{Outcome, Raw, data, headers};

#[tokio::test]
async fn a_drain_says_goodbye_and_lets_streams_finish() {
    let mut gateway = Gateway::start().await;
    let mut busy = Client::connect(&gateway).await;
    let idle = Client::connect(&gateway).await;
    let answer = busy.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;
    gateway.worker.drain();
    idle.ended().await.unwrap();
    // The client has read GOAWAY as soon as it refuses to open another stream.
    let refused = loop {
        match busy.send_head(ask("GET", "/v1/models"), true).await {
            Ok((answer, _)) => drop(read(answer).await),
            Err(error) => break error,
        }
    };
    assert!(refused.is_go_away() || refused.is_io() || refused.reason().is_some());
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    busy.ended().await.unwrap();
    assert!(gateway.join().await, "the log is not sealed");
}

#[tokio::test]
async fn a_stream_that_crosses_the_goodbye_is_served() {
    let mut gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let pseudo = |method, path| {
        [
            (":method", method),
            (":scheme", "https"),
            (":authority", "gateway.test"),
            (":path", path),
        ]
    };
    let body = String::from_utf8(chat(10, false)).unwrap();
    let request = |method, path| [&pseudo(method, path)[..], &[("authorization", &*key)]].concat();
    let mut raw = Raw::connect(&gateway).await;
    let post = headers(1, &request("POST", "/v1/chat/completions"), false);
    raw.send(&[post, data(1, &body, true)].concat()).await;
    let exchange = gateway.upstream.exchange().await;
    gateway.worker.drain();
    assert_eq!(raw.outcome(1).await, Outcome::GoAway(0));
    while TcpStream::connect(gateway.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    // The PING after GOAWAY is not acknowledged yet, so streams may still be in transit to the
    // gateway.
    raw.send(&headers(3, &request("GET", "/v1/models"), true)).await;
    assert!(matches!(raw.outcome(3).await, Outcome::Answer(models) if models.contains("gpt-4o-mini")));
    exchange.answer(b"{}").await;
    assert_eq!(raw.outcome(1).await, Outcome::Answer("{}".into()));
    drop(raw);
    assert!(gateway.join().await, "the log is not sealed");
}

#[tokio::test]
async fn while_a_worker_is_lame_a_new_connection_gets_its_first_answer_before_the_goodbye() {
    let gateway = Gateway::with(|config| config["timeouts"]["lameDuckSeconds"] = 60.into()).await;
    gateway.worker.drain();
    let mut client = Client::connect(&gateway).await;
    assert_eq!(client.exchange(ask("GET", "/v1/models"), b"").await.status, 200);
    client.ended().await.unwrap();
}

#[tokio::test]
async fn what_is_still_open_at_the_drains_deadline_is_reset() {
    let mut gateway = Gateway::with(|config| config["timeouts"]["drainSeconds"] = 0.1.into()).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(true).await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange.begin_events().await;
    exchange.send_chunk("data: {}\n\n").await;
    let answer = answer.await.unwrap();
    gateway.worker.drain();
    let mut body = answer.into_body();
    let error = loop {
        match crate::client::next(&mut body).await {
            Ok(piece) => assert!(piece.is_some(), "the answer looks finished"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.reason(), Some(h2::Reason::INTERNAL_ERROR));
    assert!(gateway.join().await, "the log is not sealed");
}

#[tokio::test]
async fn an_idle_connection_is_ended() {
    let gateway = Gateway::with(|config| config["timeouts"]["clientIdleSeconds"] = 1.into()).await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(client.exchange(ask("GET", "/v1/models"), b"").await.status, 200);
    client.ended().await.unwrap();
    gateway.wait_for_metric("proofgate_connections", 0).await;
}
