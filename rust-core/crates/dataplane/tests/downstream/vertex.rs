//! Google's Vertex AI as a provider: paths by publisher, and access tokens that are set and expire
//! at run time.

use std::time::Duration;

use h2::client::ResponseFuture;
use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, read};
use crate::gateway::{ACME, Gateway};
use crate::relayed::{completion, id};
use crate::upstream::Exchange;

const GEMINI: &str = "gemini";
const CLAUDE: &str = "claude";
const TOKEN: &str = "ya29.one-token";
const HOUR: Duration = Duration::from_secs(3600);

const MESSAGE: &str = r#"{"id":"msg_vrtx_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":2}}"#;
const GENERATED: &str = r#"{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11}}"#;
const EVENTS: [&str; 6] = [
    r#"{"type":"message_start","message":{"id":"msg_vrtx_1","type":"message","role":"assistant","content":[],"model":"claude-sonnet-4-5","stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}"#,
    r#"{"type":"message_stop"}"#,
];

async fn gateway_with(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        let other = config["providers"][0].clone();
        let provider = &mut config["providers"][0];
        provider["type"] = "VertexAI".into();
        provider["project"] = "my-project".into();
        provider["location"] = "europe-west1".into();
        provider["anthropicBetas"] = json!(["interleaved-thinking-2025-05-14"]);
        let mut other = other;
        other["name"] = "other".into();
        config["providers"].as_array_mut().unwrap().push(other);
        let model = |name: &str, upstream: &str| {
            json!({
                "name": name, "maxOutputTokens": 100,
                "routes": [{"provider": "stand-in", "upstreamModel": upstream, "weight": 1}],
            })
        };
        config["models"] = json!([
            model(GEMINI, "gemini-3-pro"),
            model(CLAUDE, "claude-sonnet-4-5@20250929")
        ]);
        change(config);
    })
    .await
}

async fn started() -> Gateway {
    let gateway = gateway_with(|_| ()).await;
    gateway.worker.set_access_token("stand-in", TOKEN, HOUR).unwrap();
    gateway
}

fn request(path: &str, length: usize) -> Request<()> {
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("anthropic-version", "2026-10-21")
        .header(
            "anthropic-beta",
            "interleaved-thinking-2025-05-14, context-1m-2025-08-07",
        )
        .header("content-length", length);
    request.body(()).unwrap()
}

async fn begin(gateway: &mut Gateway, path: &str, document: &Value) -> (Client, ResponseFuture, Exchange) {
    let body = document.to_string().into_bytes();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request(path, body.len()), &body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

/// Returns the status and the code of a refusal.
async fn refused(gateway: &Gateway, path: &str, document: &Value) -> (u16, String) {
    let body = document.to_string().into_bytes();
    let mut client = Client::connect(gateway).await;
    let answer = client.exchange(request(path, body.len()), &body).await;
    (
        answer.status.as_u16(),
        String::from_utf8(answer.body.to_vec()).unwrap(),
    )
}

fn chat(model: &str, stream: bool) -> Value {
    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]})
}

fn message(model: &str, stream: bool) -> Value {
    json!({"model": model, "max_tokens": 10, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]})
}

fn prompt() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]})
}

/// Returns the path and the values of `Authorization` of a request.
fn sent(exchange: &Exchange) -> (&str, Vec<&str>) {
    let head = &exchange.head;
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let bearers = lines.filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    (
        head.split(' ').nth(1).unwrap(),
        bearers.map(|(_, value)| value).collect(),
    )
}

#[tokio::test]
async fn every_path_is_below_the_models_publisher_and_carries_the_token_once() {
    let mut gateway = started().await;
    let publishers = "/v1/projects/my-project/locations/europe-west1/publishers";
    let claude = "anthropic/models/claude-sonnet-4-5%4020250929";
    for (path, document, upstream) in [
        (
            "/v1beta/models/gemini:generateContent",
            prompt(),
            "google/models/gemini-3-pro:generateContent".to_owned(),
        ),
        (
            "/v1beta/models/gemini:streamGenerateContent?alt=sse",
            prompt(),
            "google/models/gemini-3-pro:streamGenerateContent?alt=sse".to_owned(),
        ),
        (
            "/v1beta/models/gemini:countTokens",
            prompt(),
            "google/models/gemini-3-pro:countTokens".to_owned(),
        ),
        (
            "/v1/chat/completions",
            chat(GEMINI, true),
            "google/models/gemini-3-pro:streamGenerateContent?alt=sse".to_owned(),
        ),
        (
            "/v1/messages",
            message(CLAUDE, false),
            format!("{claude}:rawPredict"),
        ),
        (
            "/v1/messages",
            message(CLAUDE, true),
            format!("{claude}:streamRawPredict"),
        ),
        (
            "/v1/chat/completions",
            chat(CLAUDE, true),
            format!("{claude}:streamRawPredict"),
        ),
        (
            "/v1/messages/count_tokens",
            message(CLAUDE, false),
            "anthropic/models/count-tokens:rawPredict".to_owned(),
        ),
    ] {
        let (_client, _answer, exchange) = begin(&mut gateway, path, &document).await;
        let (path, bearers) = sent(&exchange);
        assert_eq!(path, format!("{publishers}/{upstream}"));
        assert_eq!(bearers, ["Bearer ya29.one-token"], "{}", exchange.head);
        assert!(!exchange.head.contains(ACME), "{}", exchange.head);
    }
}

#[tokio::test]
async fn a_request_of_googles_clients_goes_on_byte_for_byte() {
    let mut gateway = started().await;
    let document = prompt();
    let path = "/v1beta/models/gemini:generateContent";
    let (_client, answer, exchange) = begin(&mut gateway, path, &document).await;
    assert_eq!(exchange.body, document.to_string().as_bytes());
    exchange.answer(GENERATED.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.body, GENERATED.as_bytes());
    assert_eq!(
        completion(&gateway, id(&answer)).await["usage"]["prompt_tokens"],
        9
    );
}

#[tokio::test]
async fn a_message_has_its_version_and_betas_in_the_body_and_its_answer_passes_as_it_is() {
    let mut gateway = started().await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages", &message(CLAUDE, false)).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(
        sent,
        json!({
            "anthropic_version": "vertex-2023-10-16", "anthropic_beta": ["interleaved-thinking-2025-05-14"],
            "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}],
        })
    );
    assert!(!exchange.head.to_ascii_lowercase().contains("anthropic-beta"));
    exchange.answer(MESSAGE.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.body, MESSAGE.as_bytes());
    assert_eq!(
        answer.headers["x-proofgate-dropped-betas"],
        "context-1m-2025-08-07"
    );
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(record["usage"]["completion_tokens"], 2);
}

#[tokio::test]
async fn a_stream_of_claude_is_relayed_to_messages_and_translated_for_chat_completions() {
    let mut gateway = started().await;
    for (path, document, end) in [
        (
            "/v1/messages",
            message(CLAUDE, true),
            r#"{"type":"message_stop"}"#,
        ),
        ("/v1/chat/completions", chat(CLAUDE, true), "[DONE]"),
    ] {
        let (_client, answer, mut exchange) = begin(&mut gateway, path, &document).await;
        let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
        assert_eq!(
            (&sent["stream"], &sent["anthropic_version"], sent.get("model")),
            (&json!(true), &json!("vertex-2023-10-16"), None)
        );
        exchange.begin_events().await;
        for event in EVENTS {
            let kind: Value = serde_json::from_str(event).unwrap();
            let kind = kind["type"].as_str().unwrap();
            exchange
                .send_chunk(&format!("event: {kind}\ndata: {event}\n\n"))
                .await;
        }
        exchange.send(b"0\r\n\r\n").await;
        let answer = read(answer).await.unwrap();
        let body = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(
            body.contains("Hello") && body.ends_with(&format!("data: {end}\n\n")),
            "{body}"
        );
        let record = completion(&gateway, id(&answer)).await;
        assert_eq!(
            (&record["outcome"], &record["usage"]["completion_tokens"]),
            (&json!("complete"), &json!(2))
        );
    }
}

#[tokio::test]
async fn a_publishers_models_are_not_reached_by_another_publishers_endpoints() {
    let gateway = started().await;
    for (path, document) in [
        ("/v1beta/models/claude:generateContent", prompt()),
        (
            "/v1beta/models/gemini:embedContent",
            json!({"content": {"parts": [{"text": "Hi"}]}}),
        ),
        ("/v1/embeddings", json!({"model": GEMINI, "input": "Hi"})),
    ] {
        let (status, body) = refused(&gateway, path, &document).await;
        assert_eq!(status, 400, "{path} {body}");
        assert!(body.contains("Vertex AI"), "{path} {body}");
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_and_with_the_next_one_it_is() {
    let mut gateway = gateway_with(|_| ()).await;
    let set = |gateway: &Gateway, token: &str, lifetime| {
        gateway
            .worker
            .set_access_token("stand-in", token, lifetime)
            .unwrap();
    };
    let (status, body) = refused(&gateway, "/v1/messages", &message(CLAUDE, false)).await;
    assert!(status == 503 && body.contains("no usable key"), "{body}");
    // An expired token.
    set(&gateway, TOKEN, Duration::ZERO);
    let (status, body) = refused(&gateway, "/v1/chat/completions", &chat(GEMINI, false)).await;
    assert!(status == 503 && body.contains("provider_key_missing"), "{body}");
    assert_eq!(gateway.upstream.requests(), 0);
    for token in ["first", "second"] {
        set(&gateway, token, HOUR);
        // The token stays when other settings change.
        gateway.reload(|config| config["timeouts"]["answerSeconds"] = json!(400));
        let (_client, _answer, exchange) =
            begin(&mut gateway, "/v1/chat/completions", &chat(GEMINI, false)).await;
        assert_eq!(sent(&exchange).1, [format!("Bearer {token}")]);
    }
}

#[tokio::test]
async fn a_model_without_a_token_at_one_provider_is_answered_by_another() {
    let mut gateway = gateway_with(|config| {
        config["models"][0]["routes"] = json!([
            {"provider": "stand-in", "upstreamModel": "gemini-3-pro", "weight": 1},
            {"provider": "other", "upstreamModel": "gpt", "weight": 0},
        ]);
    })
    .await;
    let (_client, _answer, exchange) =
        begin(&mut gateway, "/v1/chat/completions", &chat(GEMINI, false)).await;
    assert_eq!(sent(&exchange).0, "/v1/chat/completions");
}

#[tokio::test]
async fn a_token_never_goes_to_another_place_than_it_was_made_for() {
    let gateway = started().await;
    gateway.reload(|config| config["providers"][0]["baseURL"] = "http://127.0.0.1:1/v1".into());
    let (status, body) = refused(&gateway, "/v1/chat/completions", &chat(GEMINI, false)).await;
    assert!(status == 503 && body.contains("provider_key_missing"), "{body}");
}

#[tokio::test]
async fn a_provider_that_wants_none_is_given_no_token_and_no_text_is_one_that_would_end_a_line() {
    let gateway = gateway_with(|_| ()).await;
    for (provider, token) in [
        ("other", TOKEN),
        ("nobody", TOKEN),
        ("stand-in", "se\r\ncret"),
        ("stand-in", ""),
    ] {
        let said = gateway
            .worker
            .set_access_token(provider, token, HOUR)
            .unwrap_err();
        assert!(!said.to_string().contains("cret") && !said.to_string().contains(TOKEN));
    }
}

#[tokio::test]
async fn a_provider_of_another_type_takes_a_token_in_the_place_of_its_key_where_that_is_configured() {
    let mut gateway = gateway_with(|config| {
        let provider = &mut config["providers"][1];
        provider["type"] = "AzureOpenAI".into();
        provider["auth"] = json!({"type": "AzureWorkloadIdentity"});
        provider["apiKey"] = Value::Null;
        config["models"][0]["routes"][0]["provider"] = "other".into();
    })
    .await;
    let (status, body) = refused(&gateway, "/v1/chat/completions", &chat(GEMINI, false)).await;
    assert!(status == 503 && body.contains("provider_key_missing"), "{body}");
    gateway.worker.set_access_token("other", TOKEN, HOUR).unwrap();
    let (_client, _answer, exchange) =
        begin(&mut gateway, "/v1/chat/completions", &chat(GEMINI, false)).await;
    assert_eq!(sent(&exchange).1, [format!("Bearer {TOKEN}")]);
    assert!(!exchange.head.to_ascii_lowercase().contains("api-key"));
}
