//! Files and batches: their owners, and the allowed operations.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Client, ask, read};
use crate::gateway::{ACME, GLOBEX, Gateway, MODEL};
use crate::uploads::{Answer, Slow, answer, ended, plain, read_until, records, revealed, rule};

pub const FILES: &str = "/v1/files";

/// A worker whose provider stores acme's objects.
pub async fn with_objects(change: impl FnOnce(&mut Value)) -> Gateway {
    plain(|config| {
        config["providers"][0]["objectsOf"] = "acme".into();
        change(config);
    })
    .await
}

pub async fn send(gateway: &Gateway, key: &str, line: &str, fields: &str, body: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(gateway.address).await.unwrap();
    let head =
        format!("{line} HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer {key}\r\n{fields}\r\n");
    client.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    client
}

/// Sends a request without a body, and reads a response of the gateway itself.
async fn turned_away(gateway: &Gateway, key: &str, line: &str) -> Answer {
    let mut client = send(gateway, key, line, "", b"").await;
    answer(&mut client).await
}

async fn post_json(gateway: &Gateway, path: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let fields = format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    send(gateway, ACME, &format!("POST {path}"), &fields, body.as_bytes()).await
}

fn creation() -> Value {
    json!({"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h"})
}

#[tokio::test]
async fn what_is_asked_goes_to_the_provider_by_its_method_and_is_recorded_with_its_object() {
    let mut gateway = with_objects(|_| ()).await;
    for (asked, sent, recorded) in [
        (
            "GET /v1/files?purpose=batch&limit=2",
            "GET /v1/files?purpose=batch&limit=2",
            "GET /v1/files",
        ),
        (
            "GET /v1/files/file-1",
            "GET /v1/files/file-1",
            "GET /v1/files/file-1",
        ),
        (
            "DELETE /v1/files/file-1",
            "DELETE /v1/files/file-1",
            "DELETE /v1/files/file-1",
        ),
        (
            "GET /openai/v1/batches?after=batch_1",
            "GET /v1/batches?after=batch_1",
            "GET /v1/batches",
        ),
        (
            "GET /v1/batches/batch_1",
            "GET /v1/batches/batch_1",
            "GET /v1/batches/batch_1",
        ),
        (
            "POST /v1/batches/batch_1/cancel",
            "POST /v1/batches/batch_1/cancel",
            "POST /v1/batches/batch_1/cancel",
        ),
    ] {
        let mut client = send(&gateway, ACME, asked, "", b"").await;
        let exchange = gateway.upstream.exchange().await;
        let head = exchange.head.to_ascii_lowercase();
        assert!(
            exchange.head.starts_with(&format!("{sent} HTTP/1.1\r\n")),
            "{head}"
        );
        assert_eq!(
            head.contains("content-length: 0\r\n"),
            asked.starts_with("POST"),
            "{head}"
        );
        assert!(
            !head.contains("content-type") && exchange.body.is_empty(),
            "{head}"
        );
        exchange
            .answer(br#"{"id":"x","usage":{"prompt_tokens":5,"completion_tokens":6}}"#)
            .await;
        let answer = answer(&mut client).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(!answer.head.contains("connection: close"), "{}", answer.head);
        let records = records(&gateway, &answer.id).await;
        assert_eq!(records[0].0["endpoint"], recorded);
        assert_eq!(
            (&records[0].0["model"], &records[0].0["bytes"]),
            (&json!(""), &json!(0))
        );
        assert_eq!(records[1].0["outcome"], "complete");
        // The usage of a batch is not charged to the reader of its status.
        assert_eq!(records[1].0["usage"], Value::Null);
    }
}

#[tokio::test]
async fn a_batch_is_created_as_it_was_asked_for() {
    let mut gateway = with_objects(|config| config["policy"] = rule("Request", "Block")).await;
    let mut asked = creation();
    asked["metadata"] = json!({"for": "reports"});
    let mut client = post_json(&gateway, "/v1/batches", &asked).await;
    let exchange = gateway.upstream.exchange().await;
    assert!(
        exchange.head.starts_with("POST /v1/batches HTTP/1.1\r\n"),
        "{}",
        exchange.head
    );
    assert_eq!(exchange.body, asked.to_string().into_bytes());
    exchange.answer(br#"{"id":"batch_1"}"#).await;
    let answered = answer(&mut client).await;
    assert_eq!(answered.status, 200);
    let records = records(&gateway, &answered.id).await;
    assert_eq!(
        revealed(&records[0], asked.to_string().as_bytes()),
        Some("request")
    );

    asked["metadata"]["for"] = "johndoe".into();
    let mut client = post_json(&gateway, "/v1/batches", &asked).await;
    assert_eq!(answer(&mut client).await.code(), "policy_blocked");
    for (field, value, code) in [
        ("endpoint", json!("/v1/unknown"), "invalid_value"),
        ("endpoint", json!("/v1/audio/transcriptions"), "invalid_value"),
        ("endpoint", json!("/v1/messages"), "invalid_value"),
        ("endpoint", Value::Null, "invalid_value"),
        ("input_file_id", json!("../file-1"), "invalid_value"),
        ("input_file_id", json!(["file-1"]), "invalid_value"),
        ("Endpoint", json!("/v1/embeddings"), "ambiguous_name"),
    ] {
        let mut asked = creation();
        asked[field] = value;
        let mut client = post_json(&gateway, "/v1/batches", &asked).await;
        let answer = answer(&mut client).await;
        assert_eq!((answer.status, &*answer.code()), (400, code), "{asked}");
    }
    assert_eq!(gateway.upstream.requests(), 1);
}

#[tokio::test]
async fn nobody_else_reaches_what_a_provider_keeps_for_a_tenant() {
    let gateway = with_objects(|_| ()).await;
    for line in [
        "GET /v1/files",
        "POST /v1/files",
        "GET /v1/files/file-1",
        "DELETE /v1/files/file-1",
        "GET /v1/files/file-1/content",
        "GET /v1/batches",
        "POST /v1/batches",
        "GET /v1/batches/batch_1",
        "POST /v1/batches/batch_1/cancel",
    ] {
        let answer = turned_away(&gateway, GLOBEX, line).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (403, "objects_not_configured"),
            "{line}"
        );
        let answer = turned_away(&gateway, "nobody", line).await;
        assert_eq!(answer.status, 401, "{line}");
    }
    assert_eq!(gateway.upstream.requests(), 0);
    let without = plain(|_| ()).await;
    let answer = turned_away(&without, ACME, "GET /v1/files").await;
    assert_eq!(answer.code(), "objects_not_configured");
}

#[tokio::test]
async fn each_tenants_objects_are_at_its_own_provider() {
    let (other, url) = Slow::start().await;
    let mut gateway = with_objects(|config| {
        let mut second = config["providers"][0].clone();
        second["name"] = "other".into();
        second["objectsOf"] = "globex".into();
        second["baseURL"] = url.into();
        config["providers"].as_array_mut().unwrap().push(second);
    })
    .await;
    let _globex = send(&gateway, GLOBEX, "GET /v1/files/file-2", "", b"").await;
    let mut stream = other.accept().await;
    let mut seen = Vec::new();
    read_until(&mut stream, &mut seen, |seen| seen.ends_with(b"\r\n\r\n")).await;
    assert!(seen.starts_with(b"GET /v1/files/file-2 HTTP/1.1\r\n"));
    let _acme = send(&gateway, ACME, "GET /v1/files/file-1", "", b"").await;
    let exchange = gateway.upstream.exchange().await;
    assert!(exchange.head.starts_with("GET /v1/files/file-1 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn whose_objects_a_provider_keeps_can_change_while_it_serves() {
    let mut gateway = plain(|_| ()).await;
    gateway.reload(|config| config["providers"][0]["objectsOf"] = "globex".into());
    let answer = turned_away(&gateway, ACME, "GET /v1/files").await;
    assert_eq!(answer.code(), "objects_not_configured");
    let _globex = send(&gateway, GLOBEX, "GET /v1/files", "", b"").await;
    gateway.upstream.exchange().await;
}

#[tokio::test]
async fn azure_keeps_objects_as_openai_does_with_its_own_field_for_the_key() {
    let mut gateway = with_objects(|config| {
        config["providers"][0]["type"] = "AzureOpenAI".into();
        config["providers"][0]["apiKey"] = "azure-key".into();
    })
    .await;
    let _client = send(&gateway, ACME, "GET /openai/v1/files/file-1", "", b"").await;
    let exchange = gateway.upstream.exchange().await;
    assert!(
        exchange.head.starts_with("GET /v1/files/file-1 HTTP/1.1\r\n"),
        "{}",
        exchange.head
    );
    assert!(
        exchange.head.contains("\r\napi-key: azure-key\r\n"),
        "{}",
        exchange.head
    );
}

#[tokio::test]
async fn a_configuration_with_two_object_providers_or_one_of_another_api_is_refused() {
    let gateway = with_objects(|_| ()).await;
    for (change, said) in [
        (
            json!({"name": "second", "objectsOf": "acme"}),
            "another provider already stores",
        ),
        (
            json!({"name": "second", "type": "Anthropic", "objectsOf": "globex"}),
            "only OpenAI-compatible providers",
        ),
        (
            json!({"name": "second", "type": "AzureOpenAI", "objectsOf": "globex", "apiVersion": "2024-10-21"}),
            "only OpenAI-compatible providers",
        ),
    ] {
        let error = gateway.try_reload(|config| {
            let mut second = config["providers"][0].clone();
            for (name, value) in change.as_object().unwrap() {
                second[name] = value.clone();
            }
            config["providers"].as_array_mut().unwrap().push(second);
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("second") && error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn ids_queries_methods_and_bodies_that_are_not_served_never_leave() {
    let gateway = with_objects(|config| {
        config["tenants"][1]["endpoints"] = json!(["Files"]);
    })
    .await;
    for (line, status, code) in [
        ("GET /v1/files/..", 400, "invalid_path"),
        ("GET /v1/files/a%2Fb", 400, "invalid_path"),
        ("DELETE /v1/files/", 400, "invalid_path"),
        ("GET /v1/files?project=x", 400, "unserved_query"),
        ("GET /v1/files/file-1/content?limit=1", 400, "unserved_query"),
        ("DELETE /v1/files", 405, "method_not_allowed"),
        ("DELETE /v1/batches/batch_1", 405, "method_not_allowed"),
        ("DELETE /v1/models/x", 405, "method_not_allowed"),
        ("DELETE /v1/chat/completions", 405, "method_not_allowed"),
        ("GET /v1/files/a/b/c", 404, "unknown_endpoint"),
    ] {
        let answer = turned_away(&gateway, ACME, line).await;
        assert_eq!((answer.status, &*answer.code()), (status, code), "{line}");
    }
    let refused = turned_away(&gateway, ACME, "GET /v1/files?project=x").await;
    assert!(refused.body.contains("project"), "{}", refused.body);
    let refused = turned_away(&gateway, GLOBEX, "GET /v1/batches").await;
    assert_eq!((refused.status, &*refused.code()), (403, "endpoint_not_allowed"));
    let mut client = send(
        &gateway,
        ACME,
        "DELETE /v1/files/file-1",
        "Content-Length: 2\r\n",
        b"{}",
    )
    .await;
    assert_eq!(answer_code(&mut client).await, "unexpected_body");
    let anthropic = "anthropic-version: 2023-06-01\r\n";
    let mut client = send(&gateway, ACME, "GET /v1/files", anthropic, b"").await;
    assert_eq!(answer(&mut client).await.status, 404);
    assert_eq!(gateway.upstream.requests(), 0);
}

async fn answer_code(client: &mut TcpStream) -> String {
    answer(client).await.code()
}

#[tokio::test]
async fn batches_are_refused_where_limits_count_tokens_or_money() {
    for (place, limits) in [
        ("limits", json!({"tokensPerDay": 1000})),
        ("limits", json!({"tokensPerMinute": 1000})),
        ("keyLimits", json!({"tokensPerMinute": 1000})),
        ("limits", json!({"dollarsPerMonth": "0.000001"})),
        ("keyLimits", json!({"dollarsPerDay": "0.000001"})),
        (
            "modelBudgets",
            json!([{"model": MODEL, "dollarsPerDay": "0.000001", "dollarsPerMonth": null}]),
        ),
    ] {
        let gateway = with_objects(|config| config["tenants"][0][place] = limits.clone()).await;
        let mut client = post_json(&gateway, "/v1/batches", &creation()).await;
        let answer = answer(&mut client).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (403, "batches_not_limited"),
            "{limits}"
        );
    }
    let mut gateway =
        with_objects(|config| config["tenants"][0]["limits"] = json!({"requestsPerMinute": 2})).await;
    for _ in 0..2 {
        let mut client = post_json(&gateway, "/v1/batches", &creation()).await;
        gateway.upstream.exchange().await.answer(b"{}").await;
        assert_eq!(answer(&mut client).await.status, 200);
    }
    let answer = turned_away(&gateway, ACME, "GET /v1/batches").await;
    assert_eq!(answer.status, 429);
}

#[tokio::test]
async fn a_file_comes_as_it_is_and_piece_by_piece() {
    let mut gateway = with_objects(|_| ()).await;
    let mut client = send(&gateway, ACME, "GET /v1/files/file-1/content", "", b"").await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange
        .send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 12\r\n\r\n{\"a\":\xff")
        .await;
    let mut seen = Vec::new();
    read_until(&mut client, &mut seen, |seen| {
        seen.windows(6).any(|bytes| bytes == b"{\"a\":\xff")
    })
    .await;
    exchange.send(b"data:\n").await;
    read_until(&mut client, &mut seen, |seen| {
        seen.windows(6).any(|bytes| bytes == b"data:\n")
    })
    .await;
    gateway
        .wait_for_metric("proofgate_exchanges_total{outcome=\"complete\"}", 1)
        .await;
}

#[tokio::test]
async fn a_client_that_leaves_amid_a_file_ends_the_request_upstream() {
    let mut gateway = with_objects(|_| ()).await;
    let mut client = send(&gateway, ACME, "GET /v1/files/file-1/content", "", b"").await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange
        .send(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000000000\r\n\r\n")
        .await;
    exchange.send(&[7; 1000]).await;
    let mut seen = Vec::new();
    read_until(&mut client, &mut seen, |seen| seen.ends_with(&[7; 10])).await;
    drop(client);
    while exchange.try_send(&[7; 65_536]).await {}
    ended(&gateway, "client_disconnect").await;
}

#[tokio::test]
async fn where_rules_have_to_read_answers_neither_files_nor_batches_pass() {
    let gateway = with_objects(|config| config["policy"] = rule("Response", "Block")).await;
    let answered = turned_away(&gateway, ACME, "GET /v1/files/file-1/content").await;
    assert_eq!(
        (answered.status, &*answered.code()),
        (403, "content_not_inspected")
    );
    let mut client = post_json(&gateway, "/v1/batches", &creation()).await;
    assert_eq!(answer_code(&mut client).await, "content_not_inspected");
    assert_eq!(gateway.upstream.requests(), 0);

    let mut gateway = with_objects(|config| {
        config["policy"] = rule("Response", "Block");
        config["policy"]["mode"] = "DryRun".into();
    })
    .await;
    let mut client = send(&gateway, ACME, "GET /v1/files/file-1/content", "", b"").await;
    gateway.upstream.exchange().await.answer(b"johndoe").await;
    assert_eq!(answer(&mut client).await.body, "johndoe");
}

#[tokio::test]
async fn files_are_asked_for_over_http_2_as_well() {
    let mut gateway = Gateway::with(|config| config["providers"][0]["objectsOf"] = "acme".into()).await;
    let mut client = Client::connect(&gateway).await;
    for (method, path) in [
        ("DELETE", "/v1/files/file-1"),
        ("POST", "/v1/batches/batch_1/cancel"),
    ] {
        let asked = client.send(ask(method, path), b"").await;
        let exchange = gateway.upstream.exchange().await;
        assert!(
            exchange
                .head
                .starts_with(&format!("{method} {path} HTTP/1.1\r\n")),
            "{}",
            exchange.head
        );
        exchange.answer(b"{}").await;
        assert_eq!(read(asked).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn what_a_tenants_own_account_keeps_is_referred_to_by_that_tenant_alone() {
    let mut gateway = with_objects(|_| ()).await;
    let body = json!({"model": MODEL, "input": [
        {"role": "user", "content": "Hello"}, {"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "And?"}]});
    let _client = post_json(&gateway, "/v1/responses", &body).await;
    let sent = gateway.upstream.exchange().await;
    let sent: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(sent["input"], body["input"]);

    let text = body.to_string();
    let fields = format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\n",
        text.len()
    );
    let mut other = send(&gateway, GLOBEX, "POST /v1/responses", &fields, text.as_bytes()).await;
    let refused = answer(&mut other).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "unserved_field"));
    let told: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(told["error"]["param"], "item_reference");
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("\"store\": false")
    );
}
