//! Clients that offer to switch to another protocol (RFC 9110 section 7.8).

use serde_json::json;

use crate::gateway::{ACME, MODEL};
use crate::objects::send;
use crate::uploads::{answer, plain};

/// Codex requests a WebSocket first, and continues with POST immediately after a 426
/// (openai/codex#19821).
#[tokio::test]
async fn a_websocket_for_responses_is_a_426_that_says_how_to_go_on() {
    let gateway = plain(|_| ()).await;
    let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOpenAI-Beta: responses_websockets=2026-02-06\r\n";
    let mut client = send(&gateway, ACME, "GET /v1/responses", fields, b"").await;
    let answer = answer(&mut client).await;
    assert_eq!((answer.status, &*answer.code()), (426, "websocket_requested"));
    assert!(answer.body.contains("by POST"), "{}", answer.body);
    assert_eq!(gateway.upstream.requests(), 0);
}

/// The request of the JDK's client over plain HTTP.
#[tokio::test]
async fn an_offer_of_h2c_is_ignored_and_goes_no_further() {
    let mut gateway = plain(|_| ()).await;
    let body = json!({"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}).to_string();
    let fields = format!(
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n\
         User-Agent: Java-http-client/21\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    let mut client = send(
        &gateway,
        ACME,
        "POST /v1/chat/completions",
        &fields,
        body.as_bytes(),
    )
    .await;
    let exchange = gateway.upstream.exchange().await;
    let head = exchange.head.to_ascii_lowercase();
    assert!(
        !head.contains("upgrade") && !head.contains("http2-settings"),
        "{head}"
    );
    exchange.answer(b"{}").await;
    assert_eq!(answer(&mut client).await.status, 200);
}
