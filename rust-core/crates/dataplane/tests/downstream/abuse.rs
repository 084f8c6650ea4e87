//! Clients that obey the protocol, or nearly so, and only try to consume CPU and memory.

use h2::Reason;

use crate::client::{Client, ask};
use crate::gateway::{ACME, Gateway};
use crate::raw::{Field, Outcome, Raw, begun_headers, continuation, data, headers, reset, window_update};
use crate::smuggling::{GOOD, request, the_good_request_is_served};

const ENHANCE_YOUR_CALM: Outcome = Outcome::GoAway(11);
const REFUSED_STREAM: Outcome = Outcome::Reset(7);
/// A stream number that no stream has.
const NONE: u32 = 999;

async fn attack(gateway: &Gateway, frames: impl IntoIterator<Item = Vec<u8>>) -> Outcome {
    let mut raw = Raw::connect(gateway).await;
    let frames: Vec<_> = frames.into_iter().collect();
    raw.send(&frames.concat()).await;
    let outcome = raw.outcome(NONE).await;
    raw.end().await;
    outcome
}

#[tokio::test]
async fn streams_that_are_reset_at_once_end_the_connection() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let fields = request(&GOOD, &[], &key);
    let streams = (0..100).flat_map(|index| [headers(2 * index + 1, &fields, false), reset(2 * index + 1)]);
    assert_eq!(attack(&gateway, streams).await, ENHANCE_YOUR_CALM);
    gateway
        .wait_for_metric(r#"proofgate_rejections_total{status="400"}"#, 1)
        .await;
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn streams_that_are_reset_one_by_one_before_they_are_answered_end_the_connection() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let fields = request(&GOOD, &[], &key);
    let mut raw = Raw::connect(&gateway).await;
    let mut given_up = 0;
    while raw.settle().await {
        assert!(given_up < 200, "the gateway never has enough");
        let stream = 2 * given_up + 1;
        raw.send(&headers(stream, &fields, false)).await;
        if raw.settle().await {
            raw.send(&reset(stream)).await;
        }
        given_up += 1;
    }
    assert!(given_up > 100);
    gateway
        .wait_for_metric(r#"proofgate_rejections_total{status="400"}"#, 1)
        .await;
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn a_client_that_gives_up_every_other_request_is_served() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    for _ in 0..150 {
        let (_answer, mut stream) = client.send_head(crate::client::post(None), false).await.unwrap();
        stream.send_reset(Reason::CANCEL);
        assert_eq!(client.exchange(ask("GET", "/v1/models"), b"").await.status, 200);
    }
}

#[tokio::test]
async fn more_streams_than_may_be_open_are_refused() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let fields = request(&GOOD, &[], &key);
    let mut raw = Raw::connect(&gateway).await;
    let streams = (0..101).map(|index| headers(2 * index + 1, &fields, false));
    raw.send(&streams.collect::<Vec<_>>().concat()).await;
    assert_eq!(raw.outcome(201).await, REFUSED_STREAM);
    drop(raw);
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn streams_that_break_the_protocol_again_and_again_end_the_connection() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let fields = request(&GOOD, &[], &key);
    // An increment of 0 makes the gateway reset the stream (RFC 9113 section 6.9).
    let streams = (0..150).flat_map(|index| {
        let stream = 2 * index + 1;
        [headers(stream, &fields, false), window_update(stream, 0)]
    });
    let outcome = attack(&gateway, streams).await;
    assert!(matches!(outcome, Outcome::GoAway(1 | 11)), "{outcome:?}");
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn a_head_that_never_ends_ends_the_connection() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let fields = request(&GOOD, &[], &key);
    let empty = std::iter::once(begun_headers(1, &fields)).chain((0..20).map(|_| continuation(1, &[])));
    assert_eq!(attack(&gateway, empty).await, ENHANCE_YOUR_CALM);
    let large = "x".repeat(16_000);
    let field: [Field<'_>; 1] = [("x-large", &large)];
    let full = std::iter::once(begun_headers(1, &fields)).chain((0..20).map(|_| continuation(1, &field)));
    assert_eq!(attack(&gateway, full).await, ENHANCE_YOUR_CALM);
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn a_body_of_empty_pieces_ends_the_connection() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let head = headers(1, &request(&GOOD, &[], &key), false);
    let pieces = std::iter::once(head).chain((0..200).map(|_| data(1, "", false)));
    assert_eq!(attack(&gateway, pieces).await, ENHANCE_YOUR_CALM);
    the_good_request_is_served(gateway).await;
}
