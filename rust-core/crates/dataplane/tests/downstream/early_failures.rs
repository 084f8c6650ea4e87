//! Responses with status 200 that start with a provider's failure, and the fallbacks of their
//! requests.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, next, read};
use crate::frames::{carried, exception};
use crate::gateway::{ACME, Gateway, PATIENCE, word};
use crate::upstream::Exchange;

const EVENTS: &str = "text/event-stream";
const FRAMES: &str = "application/vnd.amazon.eventstream";
const JSON: &str = "application/json";

/// A gateway whose models, one of each kind of provider, fall back on a second provider of the same kind.
async fn gateway_with(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        let first = config["providers"][0].clone();
        let url = first["baseURL"].as_str().unwrap().trim_end_matches("/v1").to_owned();
        for family in ["openai", "anthropic", "gemini", "bedrock"] {
            for number in ["1", "2"] {
                let mut provider = first.clone();
                provider["name"] = format!("{family}-{number}").into();
                provider["type"] = word(family).into();
                if family == "bedrock" {
                    provider["baseURL"] = url.as_str().into();
                }
                provider["apiKey"] = "provider-key".into();
                config["providers"].as_array_mut().unwrap().push(provider);
            }
            let target = |number: &str, weight| json!({"provider": format!("{family}-{number}"), "upstreamModel": "anthropic.claude", "weight": weight});
            let model = json!({"name": family, "maxOutputTokens": 100, "routes": [target("1", 1), target("2", 0)],
                "fallbackOn": ["RateLimited", "Overloaded", "ServerError", "ContextLength"]});
            config["models"].as_array_mut().unwrap().push(model);
        }
        change(config);
    })
    .await
}

fn chat(model: &str, stream: bool) -> (String, Value) {
    let body = json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]});
    ("/v1/chat/completions".to_owned(), body)
}

fn message(model: &str, stream: bool) -> (String, Value) {
    let (_, mut body) = chat(model, stream);
    body["max_tokens"] = 10.into();
    ("/v1/messages".to_owned(), body)
}

fn gemini(stream: bool) -> (String, Value) {
    let method = if stream {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    };
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
    (format!("/v1beta/models/gemini:{method}"), body)
}

async fn ask(gateway: &Gateway, (path, document): (String, Value)) -> (Client, h2::client::ResponseFuture) {
    let body = document.to_string().into_bytes();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("anthropic-version", "2023-06-01")
        .header("content-length", body.len())
        .body(())
        .unwrap();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request, &body).await;
    (client, answer)
}

/// Sends a complete response with status 200 and these bytes in one chunk.
async fn answer(exchange: &mut Exchange, kind: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    exchange.send(head.as_bytes()).await;
    exchange.send(&chunk).await;
}

/// Returns the attempt record of an exchange that was sent twice.
pub async fn attempt(gateway: &Gateway, id: &str) -> Value {
    let (worker, id) = (std::sync::Arc::clone(&gateway.worker), id.to_owned());
    let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, PATIENCE));
    let evidence = evidence.await.unwrap().unwrap();
    let record = evidence.iter().find(|record| record.kind == "attempt");
    serde_json::from_str(&record.unwrap().record).unwrap()
}

#[tokio::test]
async fn an_answer_that_begins_with_a_failure_is_asked_for_elsewhere_in_every_dialect() {
    const OVERLOADED: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let start =
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}"#;
    let overloaded = format!("event: error\ndata: {OVERLOADED}\n\n").into_bytes();
    let begun = format!(
        "event: message_start\ndata: {start}\n\nevent: ping\ndata: {{\"type\":\"ping\"}}\n\nevent: error\ndata: {OVERLOADED}\n\n"
    )
    .into_bytes();
    let created = b"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\nevent: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"m\"}\n\n".to_vec();
    let raw = b"{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n".to_vec();
    let too_long =
        b"data: {\"error\":{\"code\":400,\"message\":\"This model's maximum context length is 10 tokens\"}}\n\n"
            .to_vec();
    let responses = (
        "/v1/responses".to_owned(),
        json!({"model": "openai", "stream": true, "input": "Hi"}),
    );
    let other: &[u8] = br#"{"error":{"code":502,"message":"m"},"user_id":"u"}"#;
    for (number, (asked, kind, begin)) in [
        (message("anthropic", true), EVENTS, overloaded.clone()),
        (message("anthropic", true), EVENTS, begun),
        (message("anthropic", false), JSON, OVERLOADED.as_bytes().to_vec()),
        (chat("anthropic", true), EVENTS, overloaded),
        (chat("openai", true), EVENTS, too_long),
        (chat("openai", false), JSON, other.to_vec()),
        (
            message("openai", true),
            EVENTS,
            b"data: {\"error\":{\"type\":\"server_error\"}}\n\n".to_vec(),
        ),
        (responses, EVENTS, created),
        (gemini(true), EVENTS, raw.clone()),
        (gemini(false), JSON, raw.clone()),
        (chat("gemini", true), EVENTS, raw),
        (
            chat("bedrock", true),
            FRAMES,
            exception("throttlingException", r#"{"message":"m"}"#),
        ),
        (
            message("bedrock", true),
            FRAMES,
            [carried(start), exception("internalServerException", "{}")].concat(),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let case = format!("{number}: {} {}", asked.0, String::from_utf8_lossy(&begin));
        // Each case has providers that have not failed yet.
        let mut gateway = gateway_with(|_| ()).await;
        let (_client, response) = ask(&gateway, asked).await;
        let mut first = gateway.upstream.exchange().await;
        answer(&mut first, kind, &begin).await;
        let mut second = gateway.upstream.exchange().await;
        second
            .send(b"HTTP/1.1 418 S\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            .await;
        let response = read(response).await.unwrap();
        assert_eq!(response.status, 418, "{case}");
        assert_eq!(response.headers["x-proofgate-attempts"], "2", "{case}");
        let record = attempt(&gateway, response.headers["x-request-id"].to_str().unwrap()).await;
        let found = (
            &record["failure"],
            &record["failed_status"],
            &record["failed_sent"],
        );
        assert_eq!(
            found,
            (&json!("upstream_declined"), &json!(200), &json!("answered")),
            "{case}"
        );
    }
}

#[tokio::test]
async fn a_provider_whose_answers_begin_with_its_rate_limit_is_left_alone_for_a_while() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, response) = ask(&gateway, chat("openai", true)).await;
    let limited = b"data: {\"error\":{\"code\":429,\"message\":\"m\"}}\n\n";
    answer(&mut gateway.upstream.exchange().await, EVENTS, limited).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(response).await.unwrap().headers["x-proofgate-attempts"], "2");
    let failures = r#"proofgate_provider_failures_total{provider="openai-1",failure="upstream_declined"}"#;
    assert_eq!(
        gateway.metric(failures),
        1,
        "{}",
        gateway.worker.metrics().unwrap()
    );
    // The next request goes directly to the other provider.
    let (_client, response) = ask(&gateway, chat("openai", true)).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert!(
        !read(response)
            .await
            .unwrap()
            .headers
            .contains_key("x-proofgate-attempts")
    );
}

#[tokio::test]
async fn what_the_model_does_not_fall_back_on_reaches_the_client_as_it_came() {
    let mut gateway = gateway_with(|document| {
        let models = document["models"].as_array_mut().unwrap();
        models
            .iter_mut()
            .for_each(|model| model["fallbackOn"] = json!(["Overloaded"]));
    })
    .await;
    let (_client, response) = ask(&gateway, chat("openai", true)).await;
    let limited = b"data: {\"error\":{\"code\":429,\"message\":\"m\"}}\n\n";
    answer(&mut gateway.upstream.exchange().await, EVENTS, limited).await;
    let mut body = response.await.unwrap().into_body();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), &limited[..]);
    assert!(next(&mut body).await.is_err());
}

#[tokio::test]
async fn a_stream_whose_first_event_takes_long_lets_its_head_go_after_a_heartbeats_time() {
    let mut gateway = gateway_with(|document| document["timeouts"]["heartbeatSeconds"] = json!(0.05)).await;
    let (_client, response) = ask(&gateway, chat("openai", true)).await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange.begin_events().await;
    let mut body = response.await.unwrap().into_body();
    // From here on the response is relayed like any other.
    assert_eq!(next(&mut body).await.unwrap().unwrap(), ": hb\n");
    exchange
        .send_chunk("data: {\"choices\":[]}\n\ndata: [DONE]\n\n")
        .await;
    exchange.send(b"0\r\n\r\n").await;
    let mut said = Vec::new();
    while let Some(piece) = next(&mut body).await.unwrap() {
        said.extend_from_slice(&piece);
    }
    assert!(said.ends_with(b"data: {\"choices\":[]}\n\ndata: [DONE]\n\n"));
}
