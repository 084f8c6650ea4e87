//! Features of Anthropic's API that a plan denies by name.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, read};
use crate::gateway::{ACME, Gateway, MODEL};

const ANSWER: &[u8] = br#"{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
const BETAS: &str = "interleaved-thinking-2025-05-14,context-management-2025-06-27,effort-2025-11-24";

async fn gateway(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|document| {
        document["providers"][0]["type"] = json!("Anthropic");
        document["tenants"][0]["deniedBetas"] = json!(["context-management", "effort-2025-11-24"]);
        change(document);
    })
    .await
}

fn request(length: usize) -> Request<()> {
    Request::post("https://gateway.test/v1/messages?beta=true")
        .header("authorization", format!("Bearer {ACME}"))
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", BETAS)
        .header("content-length", length)
        .body(())
        .unwrap()
}

fn claude_code() -> String {
    format!(
        r#"{{"model":"{MODEL}","max_tokens":64,"context_management":{{"edits":[{{"type":"clear_thinking_20251015","keep":"all"}}]}},"output_config":{{"effort":"max"}},"messages":[{{"role":"user","content":"hi"}}]}}"#
    )
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test]
async fn the_header_value_and_the_fields_of_a_denied_feature_leave_together_and_the_answer_names_both() {
    let mut gateway = gateway(|_| ()).await;
    let mut client = Client::connect(&gateway).await;
    let body = claude_code();
    let sent = client.send(request(body.len()), body.as_bytes()).await;
    let exchange = gateway.upstream.exchange().await;
    assert_eq!(
        field(&exchange.head, "anthropic-beta"),
        Some("interleaved-thinking-2025-05-14")
    );
    assert_eq!(
        String::from_utf8_lossy(&exchange.body),
        format!(r#"{{"model":"{MODEL}","max_tokens":64,"messages":[{{"role":"user","content":"hi"}}]}}"#)
    );
    exchange.answer(ANSWER).await;
    let answer = read(sent).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.headers["x-proofgate-dropped-betas"],
        "context-management-2025-06-27, effort-2025-11-24"
    );
    assert_eq!(
        answer.headers["x-proofgate-dropped-fields"],
        "context_management, output_config.effort"
    );
}

#[tokio::test]
async fn what_is_not_denied_passes_byte_for_byte() {
    let mut gateway = gateway(|document| document["tenants"][0]["deniedBetas"] = json!(["skills"])).await;
    let mut client = Client::connect(&gateway).await;
    let body = claude_code();
    let sent = client.send(request(body.len()), body.as_bytes()).await;
    let exchange = gateway.upstream.exchange().await;
    assert_eq!(
        field(&exchange.head, "anthropic-beta"),
        Some(&*BETAS.replace(',', ", "))
    );
    assert_eq!(String::from_utf8_lossy(&exchange.body), body);
    exchange.answer(ANSWER).await;
    let answer = read(sent).await.unwrap();
    assert!(answer.headers.get("x-proofgate-dropped-betas").is_none());
    assert!(answer.headers.get("x-proofgate-dropped-fields").is_none());
}

#[tokio::test]
async fn a_denied_feature_is_left_out_at_the_provider_that_takes_over_too() {
    let mut gateway = gateway(|document| {
        let mut other = document["providers"][0].clone();
        other["name"] = json!("away");
        other["baseURL"] = json!("http://127.0.0.1:1/v1");
        document["providers"].as_array_mut().unwrap().push(other);
        document["models"][0]["fallbackOn"] = json!(["Unreachable"]);
        document["models"][0]["routes"] = json!([
            {"provider": "away", "upstreamModel": "elsewhere", "weight": 1},
            {"provider": "stand-in", "upstreamModel": MODEL, "weight": 0},
        ]);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let body = claude_code();
    let sent = client.send(request(body.len()), body.as_bytes()).await;
    let exchange = gateway.upstream.exchange().await;
    let there: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert!(there.get("context_management").is_none());
    exchange.answer(ANSWER).await;
    let answer = read(sent).await.unwrap();
    assert_eq!(answer.headers["x-proofgate-attempts"], "2");
    assert_eq!(
        answer.headers["x-proofgate-dropped-fields"],
        "context_management, output_config.effort"
    );
    assert!(answer.headers.get("x-proofgate-dropped-betas").is_some());
}

#[tokio::test]
async fn a_beta_that_a_provider_is_not_sent_takes_its_fields_along() {
    let mut gateway = gateway(|document| {
        document["tenants"][0]["deniedBetas"] = json!([]);
        document["providers"][0]["anthropicBetas"] =
            json!(["interleaved-thinking-2025-05-14", "effort-2025-11-24"]);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let body = claude_code();
    let sent = client.send(request(body.len()), body.as_bytes()).await;
    let exchange = gateway.upstream.exchange().await;
    assert_eq!(
        field(&exchange.head, "anthropic-beta"),
        Some("interleaved-thinking-2025-05-14, effort-2025-11-24")
    );
    assert_eq!(
        String::from_utf8_lossy(&exchange.body),
        format!(
            r#"{{"model":"{MODEL}","max_tokens":64,"output_config":{{"effort":"max"}},"messages":[{{"role":"user","content":"hi"}}]}}"#
        )
    );
    exchange.answer(ANSWER).await;
    let answer = read(sent).await.unwrap();
    assert_eq!(
        answer.headers["x-proofgate-dropped-betas"],
        "context-management-2025-06-27"
    );
    assert_eq!(answer.headers["x-proofgate-dropped-fields"], "context_management");
}
