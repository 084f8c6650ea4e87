//! Whether a client is told to try again: never by itself what may have been paid for, and soon what only waits for others; and what
//! it is told to change before.

use h2::client::ResponseFuture;
use http::Request;
use serde_json::{Value, json};

use crate::client::{Answer, Client, read};
use crate::gateway::{ACME, Gateway, MODEL};

async fn ask(client: &mut Client, path: &str, body: &Value) -> ResponseFuture {
    let body = body.to_string();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("anthropic-version", "2023-06-01")
        .header("content-length", body.len())
        .body(())
        .unwrap();
    client.send(request, body.as_bytes()).await
}

fn chat(max_tokens: u64) -> Value {
    json!({"model": MODEL, "max_tokens": max_tokens, "messages": [{"role": "user", "content": "hi"}]})
}

fn hint(answer: &Answer) -> Option<&str> {
    let hint = answer.headers.get("x-should-retry")?;
    Some(hint.to_str().unwrap())
}

fn message(answer: &Answer) -> String {
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    document["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_a_provider_did_not_begin_to_answer_in_time_is_not_tried_again() {
    let impatient = |document: &mut Value| document["timeouts"]["upstreamFirstByteSeconds"] = json!(1);
    let mut gateway = Gateway::with(impatient).await;
    let mut client = Client::connect(&gateway).await;
    let sent = ask(&mut client, "/v1/chat/completions", &chat(5)).await;
    let _silent = gateway.upstream.exchange().await;
    let answer = read(sent).await.unwrap();
    let told = (answer.status.as_u16(), &*answer.code(), hint(&answer));
    assert_eq!(told, (504, "upstream_first_byte_timeout", Some("false")));
}

#[tokio::test]
async fn what_a_provider_took_and_broke_off_is_not_tried_again_and_what_it_never_had_is() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let sent = ask(&mut client, "/v1/chat/completions", &chat(5)).await;
    drop(gateway.upstream.exchange().await);
    let answer = read(sent).await.unwrap();
    let told = (answer.status.as_u16(), &*answer.code(), hint(&answer));
    assert_eq!(told, (502, "upstream_unreachable", Some("false")));
    gateway.reload(|document| document["providers"][0]["baseURL"] = json!("http://127.0.0.1:1/v1"));
    let answer = read(ask(&mut client, "/v1/chat/completions", &chat(5)).await).await;
    let answer = answer.unwrap();
    let told = (answer.status.as_u16(), &*answer.code(), hint(&answer));
    assert_eq!(told, (502, "upstream_unreachable", None));
}

#[tokio::test]
async fn an_answer_that_cannot_be_translated_is_not_tried_again() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let sent = ask(&mut client, "/v1/messages", &chat(5)).await;
    gateway.upstream.exchange().await.answer(b"[]").await;
    let answer = read(sent).await.unwrap();
    let told = (answer.status.as_u16(), &*answer.code(), hint(&answer));
    assert_eq!(told, (502, "upstream_answer_malformed", Some("false")));
}

#[tokio::test]
async fn what_waits_for_reservations_alone_is_told_to_come_back_in_seconds() {
    let mut gateway = Gateway::with(|document| {
        document["tenants"][0]["limits"] = json!({"tokensPerDay": 100_000});
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let first = ask(&mut client, "/v1/chat/completions", &chat(64_000)).await;
    let exchange = gateway.upstream.exchange().await;
    let second = ask(&mut client, "/v1/chat/completions", &chat(64_000)).await;
    let refused = read(second).await.unwrap();
    let told = (refused.status.as_u16(), &*refused.code(), hint(&refused));
    assert_eq!(told, (429, "tokens_per_day_exceeded", Some("true")));
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=5).contains(&wait), "{wait}");
    assert!(
        message(&refused).contains("because requests in flight reserve"),
        "{}",
        message(&refused)
    );
    exchange
        .answer(br#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29}}"#)
        .await;
    assert_eq!(read(first).await.unwrap().status, 200);
    let third = ask(&mut client, "/v1/chat/completions", &chat(64_000)).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(third).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_request_that_is_larger_than_its_limit_is_told_which_field_makes_it_so() {
    let gateway = Gateway::with(|document| {
        document["tenants"][0]["limits"] = json!({"tokensPerMinute": 60_000});
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let old = chat(64_000);
    let responses = json!({"model": MODEL, "max_output_tokens": 64_000, "input": "hi"});
    for (path, body, field) in [
        ("/v1/chat/completions", &old, "max_completion_tokens"),
        ("/v1/messages", &old, "max_tokens"),
        ("/v1/responses", &responses, "max_output_tokens"),
    ] {
        let refused = read(ask(&mut client, path, body).await).await.unwrap();
        assert_eq!((refused.status.as_u16(), hint(&refused)), (429, Some("false")));
        assert_eq!(refused.code(), "request_exceeds_limit");
        let message = message(&refused);
        assert!(message.contains(field) && message.contains("64000"), "{message}");
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_service_tier_is_refused_by_name_where_a_budget_counts_and_no_price_is_known() {
    let mut gateway = Gateway::with(|document| {
        document["prices"] = json!([{"model": "*", "effectiveFrom": "1970-01-01", "input": "1", "output": "1",
            "tiers": {"priority": {"input": "2", "output": "2"}}}]);
        document["tenants"][0]["limits"] = json!({"dollarsPerDay": "1"});
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let tier = |tier: &str| {
        let mut body = chat(5);
        body["service_tier"] = json!(tier);
        body
    };
    for unpriced in ["ultrafast", "scale"] {
        let sent = ask(&mut client, "/v1/chat/completions", &tier(unpriced)).await;
        let refused = read(sent).await.unwrap();
        let told = (refused.status.as_u16(), &*refused.code());
        assert_eq!(told, (400, "service_tier_not_priced"));
        let document: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!(document["error"]["param"], "service_tier");
    }
    for priced in ["auto", "default", "flex", "priority"] {
        let sent = ask(&mut client, "/v1/chat/completions", &tier(priced)).await;
        gateway.upstream.exchange().await.answer(b"{}").await;
        assert_eq!(read(sent).await.unwrap().status, 200);
    }
    gateway.reload(|document| document["tenants"][0]["limits"] = json!({"tokensPerDay": 100_000}));
    let sent = ask(&mut client, "/v1/chat/completions", &tier("ultrafast")).await;
    let exchange = gateway.upstream.exchange().await;
    assert!(String::from_utf8_lossy(&exchange.body).contains("ultrafast"));
    exchange.answer(b"{}").await;
    assert_eq!(read(sent).await.unwrap().status, 200);
}
