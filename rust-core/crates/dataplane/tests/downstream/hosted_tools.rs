//! Tools that the provider runs itself: left out, refused or allowed by the tenant's plan.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, read};
use crate::dialects::{admission, begin};
use crate::gateway::{ACME, Gateway, MODEL};
use crate::relayed::id;

/// The first request of Codex with its defaults.
fn of_codex() -> Value {
    json!({
        "model": MODEL, "stream": false, "store": false, "input": [{"role": "user", "content": "list the files"}],
        "tools": [
            {"type": "function", "name": "run", "parameters": {"type": "object", "properties": {}}},
            {"type": "namespace", "name": "helpers", "tools": [{"type": "function", "name": "spawn"}]},
            {"type": "web_search", "external_web_access": false},
        ],
        "include": ["reasoning.encrypted_content"],
    })
}

fn kinds(exchange: &[u8]) -> Vec<String> {
    let sent: Value = serde_json::from_slice(exchange).unwrap();
    let tools = sent["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["type"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_hosted_tool_beside_others_is_left_out_and_named() {
    let mut gateway = Gateway::with(|_| ()).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/responses", &of_codex()).await;
    assert_eq!(kinds(&exchange.body), ["function", "namespace"]);
    exchange.answer(b"{}").await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["x-proofgate-dropped-tools"], "web_search");
    let record = admission(&gateway, id(&answer)).await;
    assert_eq!(record["dropped"], json!(["tools"]));
}

#[tokio::test]
async fn a_hosted_tool_that_the_tenant_may_use_passes_with_every_byte() {
    let mut gateway = Gateway::with(|config| {
        config["tenants"][0]["hosted_tools"] = json!(["web_search"]);
    })
    .await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/responses", &of_codex()).await;
    assert_eq!(kinds(&exchange.body), ["function", "namespace", "web_search"]);
    exchange.answer(b"{}").await;
    let answer = read(answer).await.unwrap();
    assert!(!answer.headers.contains_key("x-proofgate-dropped-tools"));
}

#[tokio::test]
async fn a_compressed_body_is_a_415_that_says_what_is_read() {
    let gateway = Gateway::with(|_| ()).await;
    let mut client = Client::connect(&gateway).await;
    for (coding, status) in [("gzip", 415), ("identity, ZSTD", 415)] {
        let body = b"\x1f\x8b\x08 no JSON";
        let request = Request::post("https://gateway.test/v1/chat/completions")
            .header("authorization", format!("Bearer {ACME}"))
            .header("content-encoding", coding)
            .header("content-length", body.len())
            .body(())
            .unwrap();
        let answer = client.exchange(request, body).await;
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status.as_u16(), status, "{coding}");
        assert_eq!(error["error"]["code"], "content_coding_not_supported");
        assert_eq!(answer.headers["accept-encoding"], "identity");
    }
}
