//! The endpoints other than chat completions: the requests that reach the provider, and the ends of
//! responses.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, ask, read};
use crate::gateway::{ACME, Gateway, MODEL};
use crate::relayed::{completion, id};
use crate::upstream::Exchange;

const CLAUDE: &str = "claude";

/// A gateway in front of a provider of each family.
async fn gateway() -> Gateway {
    gateway_with(|_| ()).await
}

async fn gateway_with(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        let mut anthropic = config["providers"][0].clone();
        anthropic["name"] = "anthropic".into();
        anthropic["type"] = "Anthropic".into();
        anthropic["apiKey"] = "provider-key".into();
        anthropic["anthropicBetas"] = json!(["known-2025-01-01"]);
        config["providers"].as_array_mut().unwrap().push(anthropic);
        let model = json!({
            "name": CLAUDE, "routes": [{"provider": "anthropic", "upstreamModel": "claude-upstream", "weight": 1}],
            "maxOutputTokens": 100,
        });
        config["models"].as_array_mut().unwrap().push(model);
        change(config);
    })
    .await
}

pub fn post(path: &str, body: &Value) -> (Request<()>, Vec<u8>) {
    let body = body.to_string().into_bytes();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("content-type", "application/json")
        .header("content-length", body.len())
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", "known-2025-01-01,unknown-2025-01-01")
        .body(())
        .unwrap();
    (request, body)
}

fn message(stream: bool) -> Value {
    json!({"model": CLAUDE, "max_tokens": 10, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]})
}

/// Sends a request. Returns the request that the upstream received, with the future of the
/// response.
pub async fn begin(
    gateway: &mut Gateway,
    path: &str,
    document: &Value,
) -> (Client, h2::client::ResponseFuture, Exchange) {
    let (request, body) = post(path, document);
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request, &body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

pub async fn admission(gateway: &Gateway, id: &str) -> Value {
    let (worker, id) = (std::sync::Arc::clone(&gateway.worker), id.to_owned());
    let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, crate::gateway::PATIENCE));
    let evidence = evidence.await.unwrap().unwrap();
    let record = evidence.iter().find(|record| record.kind == "admission");
    serde_json::from_str(&record.unwrap().record).unwrap()
}

#[tokio::test]
async fn each_prompt_of_a_completion_reserves_the_answers_of_its_own() {
    let mut gateway = Gateway::with(|config| {
        config["tenants"][0]["limits"] = json!({"tokensPerMinute": 1000});
    })
    .await;
    for (prompt, reserved) in [
        (json!("abcd"), 1 + 20),
        (json!(["abcd", "efgh", "ijkl"]), 4 + 60),
        (json!([[1, 2], [3]]), 3 + 40),
        (json!([1, 2, 3]), 3 + 20),
    ] {
        let body = json!({"model": MODEL, "prompt": prompt, "max_tokens": 10, "n": 2});
        let (_client, answer, exchange) = begin(&mut gateway, "/v1/completions", &body).await;
        exchange.answer(b"{}").await;
        let answer = read(answer).await.unwrap();
        let record = admission(&gateway, id(&answer)).await;
        assert_eq!(record["reserved"], reserved, "{prompt}");
    }
}

#[tokio::test]
async fn each_endpoint_reaches_its_path_at_the_provider_and_is_recorded_by_its_own() {
    let mut gateway = gateway().await;
    for (path, document) in [
        (
            "/v1/completions",
            json!({"model": MODEL, "prompt": "Hi", "max_tokens": 5}),
        ),
        ("/v1/responses", json!({"model": MODEL, "input": "Hi"})),
        (
            "/v1/embeddings",
            json!({"model": MODEL, "input": ["Hi", "there"]}),
        ),
        ("/v1/moderations", json!({"model": MODEL, "input": "Hi"})),
        ("/v1/messages", message(false)),
        (
            "/v1/messages/count_tokens",
            json!({"model": CLAUDE, "messages": []}),
        ),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, path, &document).await;
        assert!(
            exchange.head.starts_with(&format!("POST {path} HTTP/1.1\r\n")),
            "{}",
            exchange.head
        );
        exchange.answer(b"{\"answer\":1}").await;
        let answer = read(answer).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (200, &b"{\"answer\":1}"[..])
        );
        let record = admission(&gateway, id(&answer)).await;
        assert_eq!(record["endpoint"], path);
    }
}

#[tokio::test]
async fn without_a_list_every_beta_passes() {
    let mut gateway = gateway_with(|config| {
        config["providers"][1]
            .as_object_mut()
            .unwrap()
            .remove("anthropicBetas");
    })
    .await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages", &message(false)).await;
    let head = exchange.head.to_ascii_lowercase();
    let betas = "anthropic-beta: known-2025-01-01, unknown-2025-01-01";
    assert!(head.lines().any(|line| line == betas), "{head}");
    exchange.answer(b"{}").await;
    assert!(
        !read(answer)
            .await
            .unwrap()
            .headers
            .contains_key("x-proofgate-dropped-betas")
    );
}

#[tokio::test]
async fn a_beta_and_the_body_field_that_needs_it_leave_together() {
    let mut gateway = gateway_with(|config| {
        config["providers"][1]
            .as_object_mut()
            .unwrap()
            .remove("anthropicBetas");
    })
    .await;
    let mut body = message(false);
    let edits = json!({"edits": [{"type": "clear_tool_uses_20250919"}]});
    body["context_management"] = edits.clone();
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages?beta=true", &body).await;
    let head = exchange.head.to_ascii_lowercase();
    assert!(
        head.contains("anthropic-beta: known-2025-01-01, unknown-2025-01-01"),
        "{head}"
    );
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["context_management"], edits);
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_message_goes_to_anthropic_with_its_version_its_key_and_the_betas_that_are_allowed() {
    let mut gateway = gateway().await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages", &message(false)).await;
    let head = exchange.head.to_ascii_lowercase();
    for line in [
        "x-api-key: provider-key",
        "anthropic-version: 2023-06-01",
        "anthropic-beta: known-2025-01-01",
    ] {
        assert!(head.lines().any(|seen| seen == line), "{line}: {head}");
    }
    assert!(!head.contains("unknown-2025") && !head.contains(ACME) && !head.contains("authorization"));
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["model"], "claude-upstream");
    exchange
        .answer(br#"{"type":"message","content":[],"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":5}}"#)
        .await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.headers["x-proofgate-dropped-betas"], "unknown-2025-01-01");
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(
        (
            &record["usage"]["prompt_tokens"],
            &record["usage"]["completion_tokens"]
        ),
        (&json!(7), &json!(5))
    );
}

#[tokio::test]
async fn errors_have_the_shape_that_the_client_of_the_path_reads() {
    let gateway = gateway().await;
    let mut client = Client::connect(&gateway).await;
    for (path, document, status, kind, code) in [
        (
            "/v1/messages",
            json!({"model": "nobody's", "messages": []}),
            404,
            "not_found_error",
            "model_not_found",
        ),
        (
            "/v1/messages/count_tokens",
            json!({"model": "nobody's", "messages": []}),
            404,
            "not_found_error",
            "model_not_found",
        ),
        (
            "/v1/messages",
            json!({"model": CLAUDE, "messages": [], "tools": [{"type": "web_search_20250305", "name": "w"}]}),
            403,
            "permission_error",
            "hosted_tool_not_allowed",
        ),
    ] {
        let (request, body) = post(path, &document);
        let answer = client.exchange(request, &body).await;
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(
            (answer.status.as_u16(), &error["type"]),
            (status, &json!("error"))
        );
        assert_eq!(
            (&error["error"]["type"], &error["error"]["code"]),
            (&json!(kind), &json!(code))
        );
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_request_without_a_key_is_refused_in_the_words_of_its_path() {
    let gateway = gateway().await;
    let mut client = Client::connect(&gateway).await;
    let (mut request, body) = post("/v1/messages", &message(false));
    request.headers_mut().remove("authorization");
    let answer = client.exchange(request, &body).await;
    let error: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (answer.status.as_u16(), &error["error"]["type"]),
        (401, &json!("authentication_error"))
    );
}

#[tokio::test]
async fn the_list_of_models_has_the_shape_of_whoever_asks() {
    let gateway = gateway().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.exchange(ask("GET", "/v1/models"), b"").await;
    let list: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(list["object"], "list");
    let mut request = ask("GET", "/v1/models");
    let version = "2023-06-01".parse().unwrap();
    request.headers_mut().insert("anthropic-version", version);
    let answer = client.exchange(request, b"").await;
    let list: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (&list["has_more"], &list["first_id"]),
        (&json!(false), &json!(CLAUDE))
    );
    assert_eq!(list["data"][1]["type"], "model");
}

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n";
const DELTA: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":8}}\n\n";
const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// Returns the client's stream of a message whose upstream sends these events and then ends the
/// transfer correctly.
async fn streamed(
    gateway: &mut Gateway,
    path: &str,
    document: &Value,
    events: &[&str],
) -> (String, bool, Value) {
    let (_client, answer, mut exchange) = begin(gateway, path, document).await;
    exchange.begin_events().await;
    for event in events {
        exchange.send_chunk(event).await;
    }
    let answer = answer.await.unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let (mut stream, mut body) = (answer.into_body(), Vec::new());
    let mut over = false;
    let whole = loop {
        // The transfer ends after the head was sent.
        if !body.is_empty() && !std::mem::replace(&mut over, true) {
            exchange.try_send(b"0\r\n\r\n").await;
        }
        match crate::client::next(&mut stream).await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let record = completion(gateway, &id).await;
    (String::from_utf8(body).unwrap(), whole, record)
}

#[tokio::test]
async fn a_stream_of_a_message_is_whole_with_its_own_end_and_counts_what_its_last_delta_says() {
    let mut gateway = gateway().await;
    let (body, whole, record) = streamed(
        &mut gateway,
        "/v1/messages",
        &message(true),
        &[START, DELTA, STOP],
    )
    .await;
    assert_eq!((body, whole), ([START, DELTA, STOP].concat(), true));
    assert_eq!(record["outcome"], "complete");
    assert_eq!(record["usage"]["prompt_tokens"], 3);
    assert_eq!(record["usage"]["completion_tokens"], 8);
}

#[tokio::test]
async fn a_stream_that_ends_before_its_good_end_is_a_failure_that_the_client_is_told() {
    let mut gateway = gateway().await;
    let chunk =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n";
    let delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n";
    for (path, document, events, begin) in [
        (
            "/v1/chat/completions",
            json!({"model": MODEL, "stream": true, "messages": []}),
            vec![chunk],
            "data: {\"error\":{",
        ),
        (
            "/v1/messages",
            message(true),
            vec![START],
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"",
        ),
        (
            "/v1/responses",
            json!({"model": MODEL, "stream": true, "input": "Hi"}),
            vec![delta, "data: [DONE]\n\n"],
            "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"code\":\"upstream_stream_unfinished\"",
        ),
    ] {
        let (body, whole, record) = streamed(&mut gateway, path, &document, &events).await;
        let rest = body.strip_prefix(&events.concat()).unwrap();
        assert!(rest.starts_with(begin) && !whole, "{path}: {rest}");
        assert_eq!(record["outcome"], "upstream_error", "{path}");
    }
}

#[tokio::test]
async fn a_failure_that_the_provider_reports_is_one_error_event_and_no_good_end() {
    let mut gateway = gateway().await;
    let chat_error = "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n";
    let failed = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\"}}\n\n";
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    for (path, document, events) in [
        (
            "/v1/chat/completions",
            json!({"model": MODEL, "stream": true, "messages": []}),
            [chat_error, "data: [DONE]\n\n"],
        ),
        (
            "/v1/responses",
            json!({"model": MODEL, "stream": true, "input": "Hi"}),
            [failed, "data: [DONE]\n\n"],
        ),
        ("/v1/messages", message(true), [overloaded, STOP]),
    ] {
        let (body, whole, record) = streamed(&mut gateway, path, &document, &events).await;
        assert_eq!((body.as_str(), whole), (events[0], false), "{path}");
        assert_eq!(record["outcome"], "upstream_error", "{path}");
    }
}

#[tokio::test]
async fn the_last_event_of_a_response_is_known_however_large_it_is() {
    let mut gateway = gateway().await;
    let echo = "x".repeat(200_000);
    let last = format!(
        "event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{{\"instructions\":\"{echo}\",\"usage\":{{\"input_tokens\":5,\"output_tokens\":6}}}}}}\n\n"
    );
    let document = json!({"model": MODEL, "stream": true, "input": "Hi"});
    let (body, whole, record) = streamed(&mut gateway, "/v1/responses", &document, &[&last]).await;
    assert!(whole && body == last);
    assert_eq!(record["outcome"], "complete");
    assert_eq!(record["usage"]["completion_tokens"], 6);
}

#[tokio::test]
async fn the_last_event_of_a_response_may_have_any_size_and_come_in_pieces() {
    let mut gateway = gateway().await;
    let delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n";
    let document = json!({"model": MODEL, "stream": true, "input": "Hi"});
    for size in [65_000, 65_536, 65_537, 66_000, 70_000, 80_000, 90_000] {
        let last = |echo: &str| {
            format!(
                "event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{{\"instructions\":\"{echo}\",\"usage\":{{\"input_tokens\":5,\"output_tokens\":6}}}}}}\n\n"
            )
        };
        let last = last(&"x".repeat(size - last("").len()));
        let (begin, rest) = last.split_at(60_000);
        let events = [delta, begin, rest];
        let (body, whole, record) = streamed(&mut gateway, "/v1/responses", &document, &events).await;
        assert!(whole && body == events.concat(), "{size}: {}", body.len());
        assert_eq!(record["outcome"], "complete", "{size}");
        assert_eq!(record["usage"]["completion_tokens"], 6, "{size}");
    }
}

#[tokio::test]
async fn a_provider_that_sends_errors_before_any_text_is_told_so_with_its_status() {
    let mut gateway = gateway().await;
    let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/messages", &message(true)).await;
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let head = format!(
        "HTTP/1.1 529 Overloaded\r\nContent-Type: application/json\r\nRetry-After: 2\r\n\
         Anthropic-RateLimit-Requests-Limit: 5\r\nAnthropic-Organization-Id: o\r\nContent-Length: {}\r\n\r\n",
        error.len()
    );
    exchange.send(head.as_bytes()).await;
    exchange.send(error.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (529, error.as_bytes())
    );
    assert_eq!(answer.headers["retry-after"], "2");
    for of_the_gateways_account in ["anthropic-ratelimit-requests-limit", "anthropic-organization-id"] {
        assert!(!answer.headers.contains_key(of_the_gateways_account));
    }
}

#[tokio::test]
async fn counting_tokens_and_moderation_take_nothing_of_the_tenants_tokens() {
    let mut gateway = gateway_with(|config| {
        config["tenants"][0]["limits"] = json!({"tokensPerDay": 1});
    })
    .await;
    for (path, document) in [
        (
            "/v1/messages/count_tokens",
            json!({"model": CLAUDE, "messages": [{"role": "user", "content": "some words of a prompt"}]}),
        ),
        (
            "/v1/moderations",
            json!({"model": MODEL, "input": "some words of a prompt"}),
        ),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, path, &document).await;
        exchange.answer(b"{\"input_tokens\":9}").await;
        assert_eq!(read(answer).await.unwrap().status.as_u16(), 200, "{path}");
    }
}

#[tokio::test]
async fn numbers_of_tokens_are_refused_where_rules_have_to_read_the_text() {
    let document = json!({"model": MODEL, "input": [[1, 2, 3]]});
    let mut without = gateway().await;
    let (_client, answer, exchange) = begin(&mut without, "/v1/embeddings", &document).await;
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status.as_u16(), 200);

    let with = gateway_with(|config| {
        config["policy"] = json!({"mode": "Enforce", "rules": [{
            "id": "word", "reason": "a word", "target": "Request", "literals": ["johndoe"], "action": "Block",
        }]});
    })
    .await;
    let (request, sent) = post("/v1/embeddings", &document);
    let answer = Client::connect(&with).await.exchange(request, &sent).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (400, "token_ids_not_readable")
    );
}
