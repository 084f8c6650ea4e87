//! Whether a client is told to try again: never by itself what may have been paid for.

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

#[tokio::test]
async fn what_a_provider_did_not_begin_to_answer_in_time_is_not_tried_again() {
    let impatient = |document: &mut Value| document["timeouts"]["upstream_first_byte_ms"] = json!(1000);
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
    gateway.reload(|document| document["providers"][0]["base_url"] = json!("http://127.0.0.1:1/v1"));
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
