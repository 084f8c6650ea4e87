//! Responses that arrive in pieces.

use crate::client::{Client, next};
use crate::gateway::{ACME, Gateway, chat};
use crate::raw::{Raw, data, headers};
use bytes::Bytes;
use h2::{Reason, RecvStream};

const DISCONNECTS: &str = r#"proofgate_exchanges_total{outcome="client_disconnect"}"#;

#[tokio::test]
async fn every_event_arrives_when_it_is_sent() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(true).await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange.begin_events().await;
    let answer = answer.await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert!(!answer.headers().contains_key("transfer-encoding"));
    let mut body = answer.into_body();
    for number in 0..5 {
        let event = format!("data: {{\"number\":{number}}}\n\n");
        exchange.send_chunk(&event).await;
        assert_eq!(next(&mut body).await.unwrap().unwrap(), event);
    }
    exchange.send_chunk("data: [DONE]\n\n").await;
    exchange.send(b"0\r\n\r\n").await;
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "data: [DONE]\n\n");
    assert_eq!(next(&mut body).await.unwrap(), None);
}

/// Returns the first piece that is not a heartbeat.
async fn behind_heartbeats(body: &mut RecvStream) -> Bytes {
    loop {
        let piece = next(body).await.unwrap().unwrap();
        if piece != ": hb\n" {
            return piece;
        }
    }
}

#[tokio::test]
async fn a_silent_stream_has_heartbeats_between_whole_events_until_its_provider_has_been_silent_for_too_long()
{
    let mut gateway = Gateway::with(|document| document["timeouts"]["heartbeatSeconds"] = 0.05.into()).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(true).await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange.begin_events().await;
    let mut body = answer.await.unwrap().into_body();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), ": hb\n");
    // Incomplete events are not sent, so a heartbeat is never inside an event.
    exchange.send_chunk("data: {\"half\":").await;
    assert_eq!(next(&mut body).await.unwrap().unwrap(), ": hb\n");
    exchange.send_chunk("1}\n\n").await;
    assert_eq!(behind_heartbeats(&mut body).await, "data: {\"half\":1}\n\n");
    assert_eq!(next(&mut body).await.unwrap().unwrap(), ": hb\n");

    gateway.change(|document| document["timeouts"]["upstreamResponseSeconds"] = 1.into());
    let answer = client.send_chat(true).await;
    let mut silent = gateway.upstream.exchange().await;
    silent.begin_events().await;
    let mut body = answer.await.unwrap().into_body();
    let error = behind_heartbeats(&mut body).await;
    assert!(error.starts_with(b"data: {\"error\":"), "{error:?}");
    assert!(next(&mut body).await.is_err());
}

#[tokio::test]
async fn an_event_stream_that_the_upstream_breaks_off_says_so_and_never_looks_finished() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(true).await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange.begin_events().await;
    exchange.send_chunk("data: {}\n\n").await;
    let mut body = answer.await.unwrap().into_body();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "data: {}\n\n");
    drop(exchange);
    let error = next(&mut body).await.unwrap().unwrap();
    assert!(error.starts_with(b"data: {\"error\":"));
    let error = next(&mut body).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
}

#[tokio::test]
async fn a_stream_that_its_client_resets_is_recorded_and_given_up_while_the_others_go_on() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let first = client.send_chat(true).await;
    let mut given_up = gateway.upstream.exchange().await;
    let second = client.send_chat(true).await;
    let mut going_on = gateway.upstream.exchange().await;
    for exchange in [&mut given_up, &mut going_on] {
        exchange.begin_events().await;
        exchange.send_chunk("data: {}\n\n").await;
    }
    let mut body = first.await.unwrap().into_body();
    next(&mut body).await.unwrap();
    drop(body);
    given_up.given_up().await;
    gateway.wait_for_metric(DISCONNECTS, 1).await;

    let mut body = second.await.unwrap().into_body();
    next(&mut body).await.unwrap();
    going_on.send_chunk("data: [DONE]\n\n").await;
    going_on.send(b"0\r\n\r\n").await;
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "data: [DONE]\n\n");
    assert_eq!(next(&mut body).await.unwrap(), None);
}

#[tokio::test]
async fn a_stream_that_its_client_resets_before_the_answer_is_recorded() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;
    drop(answer);
    exchange.given_up().await;
    gateway.wait_for_metric(DISCONNECTS, 1).await;
}

#[tokio::test]
async fn a_connection_that_its_client_drops_gives_all_its_streams_up() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let _answers = [client.send_chat(true).await, client.send_chat(false).await];
    let exchanges = [
        gateway.upstream.exchange().await,
        gateway.upstream.exchange().await,
    ];
    client.connection.abort();
    for exchange in exchanges {
        exchange.given_up().await;
    }
    gateway.wait_for_metric(DISCONNECTS, 2).await;
    gateway.wait_for_metric("proofgate_connections", 0).await;
}

#[tokio::test]
async fn a_client_that_makes_no_room_for_its_answer_is_given_up() {
    let mut gateway = Gateway::with(|config| config["timeouts"]["clientIdleSeconds"] = 1.into()).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(true).await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange.begin_events().await;
    // More bytes than fit into the window and the pipe.
    exchange.send_chunk(&"x".repeat(200_000)).await;
    let _body = answer.await.unwrap().into_body();
    exchange.given_up().await;
    gateway.wait_for_metric(DISCONNECTS, 1).await;
}

#[tokio::test]
async fn a_client_that_takes_its_answer_in_drips_is_given_up() {
    let mut gateway = Gateway::with(|config| config["timeouts"]["clientIdleSeconds"] = 1.into()).await;
    let key = format!("Bearer {ACME}");
    let fields = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "gateway.test"),
        (":path", "/v1/chat/completions"),
        ("authorization", &*key),
    ];
    let mut raw = Raw::thirsty(&gateway).await;
    let body = String::from_utf8(chat(10, true)).unwrap();
    raw.send(&[headers(1, &fields, false), data(1, &body, true)].concat())
        .await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange.begin_events().await;
    exchange.send_chunk(&"x".repeat(200_000)).await;
    let cancel = u32::from(Reason::CANCEL);
    assert_eq!(raw.drip(1).await, cancel);
    gateway.wait_for_metric(DISCONNECTS, 1).await;
}
