//! Masking and redaction by rules: the provider's request, the client's response, and the records.

use h2::client::ResponseFuture;
use serde_json::{Value, json};

use crate::client::{Client, next, post, read};
use crate::gateway::{Gateway, MODEL};
use crate::upstream::Exchange;

const TEXT: &str = "I am ann@acme.test, my password: x9Kq2LmZ7vR4";

fn rules(config: &mut Value) {
    config["policy"] = json!({"mode": "Enforce", "rules": [
        {"id": "email", "reason": "an address", "regex": r"\b[a-z]{1,9}@[a-z]{1,9}\.test\b", "score": 1, "action": "Mask"},
        {"id": "password", "reason": "a password", "regex": "password: ?(?<value>[^ ,]{6,40})", "score": 1, "action": "Redact"},
    ]});
}

async fn begin(gateway: &mut Gateway, stream: bool) -> (Client, ResponseFuture, Exchange) {
    let body = json!({"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": TEXT}]});
    let body = serde_json::to_vec(&body).unwrap();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(post(Some(body.len())), &body).await;
    let exchange = gateway.upstream.exchange().await;
    let received: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(
        received["messages"][0]["content"],
        "I am [email-1], my password: [redacted:password]"
    );
    (client, answer, exchange)
}

#[tokio::test]
async fn what_is_masked_comes_back_in_a_whole_answer_and_header_lines_say_what_was_replaced() {
    let mut gateway = Gateway::with(rules).await;
    let (_client, answer, exchange) = begin(&mut gateway, false).await;
    let arguments = r#"{"to":"[email-1]","subject":"x"}"#;
    let call = json!({"id": "c", "type": "function", "function": {"name": "send", "arguments": arguments}});
    let message = json!({"content": "Hello [email-1], password: hunter22", "tool_calls": [call]});
    exchange
        .answer(
            json!({"choices": [{"index": 0, "message": message}]})
                .to_string()
                .as_bytes(),
        )
        .await;
    let answer = read(answer).await.unwrap();
    let field = |name: &str| answer.headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(field("x-proofgate-masked"), Some("email=1"));
    assert_eq!(field("x-proofgate-redacted"), Some("password=1"));
    assert_eq!(field("x-proofgate-redacted-answer"), Some("password=1"));
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    let message = &document["choices"][0]["message"];
    assert_eq!(
        message["content"],
        "Hello ann@acme.test, password: [redacted:password]"
    );
    let called = &message["tool_calls"][0]["function"]["arguments"];
    assert_eq!(called, r#"{"to":"ann@acme.test","subject":"x"}"#);
}

#[tokio::test]
async fn what_is_masked_comes_back_in_a_stream_and_a_comment_says_what_was_redacted_in_it() {
    let mut gateway = Gateway::with(rules).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, true).await;
    exchange.begin_events().await;
    for piece in ["Hello [ema", "il-1], pass", "word: hunt", "er22 "] {
        let event = json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
        exchange.send_chunk(&format!("data: {event}\n\n")).await;
    }
    exchange.send_chunk("data: [DONE]\n\n").await;
    exchange.send(b"0\r\n\r\n").await;
    let answer = answer.await.unwrap();
    assert_eq!(answer.headers()["x-proofgate-masked"], "email=1");
    assert_eq!(answer.headers()["x-proofgate-redacted"], "password=1");
    let (mut stream, mut body) = (answer.into_body(), Vec::new());
    while let Some(piece) = next(&mut stream).await.unwrap() {
        body.extend_from_slice(&piece);
    }
    let body = String::from_utf8(body).unwrap();
    let events = body.lines().filter_map(|line| line.strip_prefix("data: {"));
    let contents: String = events
        .map(|event| {
            let event: Value = serde_json::from_str(&format!("{{{event}")).unwrap();
            event["choices"][0]["delta"]["content"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(contents, "Hello ann@acme.test, password: [redacted:password] ");
    // No choice reported its end, so the last word was evaluated after the last event.
    assert!(
        body.ends_with("data: [DONE]\n\n: proofgate redacted password=1\n\n"),
        "{body}"
    );
}
