//! Clients' statements about their session and end user, as recorded with the exchange.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, read};
use crate::dialects::admission;
use crate::gateway::{ACME, Gateway, MODEL};
use crate::relayed::id;

/// Sends a request. Returns its admission and the request that the provider received.
async fn admitted(
    gateway: &mut Gateway,
    path: &str,
    fields: &[(&str, &str)],
    body: &Value,
) -> (Value, Vec<u8>) {
    let body = body.to_string();
    let mut request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("content-type", "application/json")
        .header("content-length", body.len());
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request.body(()).unwrap(), body.as_bytes()).await;
    let exchange = gateway.upstream.exchange().await;
    let sent = exchange.body.clone();
    exchange.answer(b"{}").await;
    let answer = read(answer).await.unwrap();
    (admission(gateway, id(&answer)).await, sent)
}

#[tokio::test]
async fn a_session_an_agent_and_a_trace_of_the_head_are_recorded_and_an_end_user_by_a_pseudonym() {
    let mut gateway = Gateway::start().await;
    let fields = [
        ("session-id", "5f1d-session"),
        ("thread-id", "77aa-thread"),
        ("x-codex-parent-thread-id", "5f1d-session"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ];
    let body = json!({"model": MODEL, "input": "Hi", "safety_identifier": "alice@example.com",
        "prompt_cache_key": "another"});
    let (record, sent) = admitted(&mut gateway, "/v1/responses", &fields, &body).await;
    let said = &record["attribution"];
    assert_eq!(said["session"], "5f1d-session");
    assert_eq!(said["agent"], "77aa-thread");
    assert_eq!(said["parent_agent"], "5f1d-session");
    assert_eq!(said["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    // Computed with Python's hashlib according to docs/reference/ledger-format.md.
    assert_eq!(said["end_user"], "a7019471b6977193ea1bb172a4b40fae");
    assert!(!record.to_string().contains("alice"), "{record}");
    assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), body);
}

#[tokio::test]
async fn what_names_nobody_is_admitted_without_it() {
    let mut gateway = Gateway::start().await;
    let fields = [("session-id", "bob@example.com"), ("traceparent", "00-1-2-3")];
    let body = json!({"model": MODEL, "messages": [], "user": 7, "metadata": "text"});
    let (record, _) = admitted(&mut gateway, "/v1/chat/completions", &fields, &body).await;
    assert_eq!(record.get("attribution"), None, "{record}");
}
