//! Amazon Bedrock as a provider: signatures, paths, and streams in frames.

use std::time::Duration;

use h2::client::ResponseFuture;
use http::Request;
use proofgate_providers::sigv4::{BodyHash, Credentials, RequestHead, SigningKey};
use serde_json::{Value, json};

use crate::client::{Client, next, read};
use crate::frames::{carried, event, exception};
use crate::gateway::{ACME, Gateway};
use crate::relayed::{completion, id};
use crate::upstream::Exchange;

pub(crate) const NOVA: &str = "nova";
const CLAUDE: &str = "claude";
const PROFILE: &str = "profile";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "TOKEN/EXAMPLE+token==";
const ARN: &str = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/a1b2c3";

pub(crate) async fn gateway_with(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        let provider = &mut config["providers"][0];
        provider["type"] = "Bedrock".into();
        let url = provider["baseURL"]
            .as_str()
            .unwrap()
            .trim_end_matches("/v1")
            .to_owned();
        provider["baseURL"] = url.into();
        provider["auth"] = json!({"type": "AWSStaticKeys"});
        provider["region"] = "eu-west-1".into();
        provider["awsKeys"] =
            json!({"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET, "sessionToken": TOKEN});
        provider["anthropicBetas"] = json!(["interleaved-thinking-2025-05-14"]);
        let model = |name: &str, upstream: &str| {
            json!({
                "name": name, "maxOutputTokens": 100,
                "routes": [{"provider": "stand-in", "upstreamModel": upstream, "weight": 1}],
            })
        };
        config["models"] = json!([
            model(NOVA, "us.amazon.nova-pro-v1:0"),
            model(CLAUDE, "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
            model(PROFILE, ARN),
        ]);
        change(config);
    })
    .await
}

pub(crate) async fn begin(
    gateway: &mut Gateway,
    path: &str,
    document: &Value,
) -> (Client, ResponseFuture, Exchange) {
    let body = document.to_string().into_bytes();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("anthropic-version", "2026-10-21")
        .header(
            "anthropic-beta",
            "interleaved-thinking-2025-05-14, context-1m-2025-08-07",
        )
        .header("content-length", body.len())
        .body(())
        .unwrap();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request, &body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

fn chat(model: &str, stream: bool) -> Value {
    json!({"model": model, "stream": stream, "messages": [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]})
}

pub(crate) fn message(model: &str, stream: bool) -> Value {
    json!({"model": model, "max_tokens": 10, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]})
}

/// Returns the value of a field in a request's head.
fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (field, value) = line.split_once(": ")?;
        field.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// Asserts that the request's signature matches its bytes.
fn assert_signed(exchange: &Exchange) {
    let head = &exchange.head;
    let path = head.split(' ').nth(1).unwrap();
    let date = field(head, "x-amz-date").unwrap();
    let at = at(date);
    let mut hash = BodyHash::default();
    hash.update(&exchange.body);
    let key = SigningKey::derive(SECRET, at, "eu-west-1", "bedrock");
    let signature = key.sign(
        &RequestHead {
            method: "POST",
            path,
            query: "",
            host: field(head, "host").unwrap(),
            headers: &[("content-type", field(head, "content-type").unwrap())],
            body_sha256: &hash.finish(),
            with_body_hash: false,
        },
        &Credentials {
            access_key_id: "AKIDEXAMPLE",
            secret_access_key: SECRET,
            session_token: Some(TOKEN),
        },
        at,
    );
    assert_eq!(signature.date, date);
    assert_eq!(field(head, "authorization").unwrap(), signature.authorization);
    assert_eq!(field(head, "x-amz-security-token"), Some(TOKEN));
}

/// Returns the Unix seconds of a date such as `20261120T120000Z`, which is today or yesterday.
fn at(date: &str) -> u64 {
    let number = |range: std::ops::Range<usize>| date[range].parse::<u64>().unwrap();
    let second = number(9..11) * 3600 + number(11..13) * 60 + number(13..15);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let midnight = now - now % 86_400;
    let today = midnight + second;
    if today > now + 60 { today - 86_400 } else { today }
}

pub(crate) async fn answer_with(exchange: &mut Exchange, head: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len());
    exchange.send(head.as_bytes()).await;
    exchange.send(body).await;
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Returns what a client reads of a stream in chunks of `size` bytes, and whether the stream ended
/// correctly.
pub(crate) async fn streamed(
    answer: ResponseFuture,
    mut exchange: Exchange,
    frames: &[u8],
    size: usize,
) -> (String, bool, String) {
    let mut sent = STREAM.as_bytes().to_vec();
    for piece in frames.chunks(size) {
        let head = format!("{:x}\r\n", piece.len());
        for part in [head.as_bytes(), piece, b"\r\n"] {
            sent.extend_from_slice(part);
        }
        if size < frames.len() {
            exchange.try_send(&std::mem::take(&mut sent)).await;
        }
    }
    sent.extend_from_slice(b"0\r\n\r\n");
    exchange.try_send(&sent).await;
    let answer = answer.await.unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let kind = answer.headers()["content-type"].clone();
    let status = answer.status().as_u16();
    let (mut stream, mut body) = (answer.into_body(), Vec::new());
    let whole = loop {
        match next(&mut stream).await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    if status == 200 {
        assert_eq!(kind, "text/event-stream");
    }
    (String::from_utf8(body).unwrap(), whole, id)
}

/// Returns the documents in a stream's `data` lines, without `[DONE]`.
pub(crate) fn documents(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let documents = lines.filter(|data| *data != "[DONE]");
    documents
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

pub(crate) fn converse_stream() -> Vec<u8> {
    [
        event("messageStart", r#"{"role":"assistant","p":"ab"}"#),
        event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Hel"},"p":"abcd"}"#),
        event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"lo"},"p":"abcd"}"#),
        event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        event("messageStop", r#"{"stopReason":"end_turn"}"#),
        event(
            "metadata",
            r#"{"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":11,"cacheReadInputTokens":6},"metrics":{"latencyMs":7}}"#,
        ),
    ]
    .concat()
}

const EVENTS: [&str; 6] = [
    r#"{"type":"message_start","message":{"id":"msg_bdrk_1","type":"message","role":"assistant","content":[],"model":"claude-sonnet-4-5","stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}"#,
    r#"{"type":"message_stop"}"#,
];

fn invoke_stream() -> Vec<u8> {
    EVENTS.map(carried).concat()
}

#[tokio::test]
async fn a_chat_completion_is_a_signed_converse_and_its_answer_a_completion() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, mut exchange) =
        begin(&mut gateway, "/v1/chat/completions", &chat(NOVA, false)).await;
    let head = &exchange.head;
    assert!(
        head.starts_with("POST /model/us.amazon.nova-pro-v1%3A0/converse HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        field(head, "authorization")
            .unwrap()
            .contains("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,")
    );
    assert_signed(&exchange);
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["system"][0]["text"], "Be kind.");
    let said = br#"{"output":{"message":{"role":"assistant","content":[{"text":"Hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":2,"totalTokens":11},"metrics":{"latencyMs":1}}"#;
    answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", said).await;
    let answer = read(answer).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (&body["object"], &body["model"]),
        (&json!("chat.completion"), &json!(NOVA))
    );
    assert_eq!(body["choices"][0]["message"]["content"], "Hello");
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(record["usage"]["prompt_tokens"], 9);
    assert_eq!(record["usage"]["completion_tokens"], 2);
}

#[tokio::test]
async fn a_key_of_bedrock_is_sent_as_it_is_and_nothing_is_signed() {
    let mut gateway = gateway_with(|config| {
        config["providers"][0]["auth"] = Value::Null;
        config["providers"][0]["apiKey"] = "bedrock-api-key-abc".into();
    })
    .await;
    let (_client, _answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &chat(NOVA, false)).await;
    assert_eq!(
        field(&exchange.head, "authorization"),
        Some("Bearer bedrock-api-key-abc")
    );
    assert_eq!(field(&exchange.head, "x-amz-date"), None);
}

#[tokio::test]
async fn an_arn_is_one_segment_of_the_path_and_signed_as_it_is_sent() {
    // envoyproxy/ai-gateway PR#1332: an unencoded slash divides the name into two segments.
    let mut gateway = gateway_with(|_| ()).await;
    assert_arn_in_path(&mut gateway, &ARN.replace(':', "%3A").replace('/', "%2F")).await;
}

#[tokio::test]
async fn an_arn_stands_in_the_path_as_it_is_where_that_is_configured() {
    // vercel/ai#14117: application inference profiles that were not found under an encoded name.
    let mut gateway = gateway_with(|config| config["providers"][0]["arnInPath"] = "Literal".into()).await;
    assert_arn_in_path(&mut gateway, ARN).await;
    let (_client, _answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &chat(NOVA, false)).await;
    let head = &exchange.head;
    assert!(
        head.starts_with("POST /model/us.amazon.nova-pro-v1%3A0/converse "),
        "{head}"
    );
}

async fn assert_arn_in_path(gateway: &mut Gateway, written: &str) {
    for (path, document, operation) in [
        ("/v1/chat/completions", chat(PROFILE, false), "converse"),
        ("/v1/chat/completions", chat(PROFILE, true), "converse-stream"),
        ("/v1/messages", message(PROFILE, false), "invoke"),
        (
            "/v1/messages",
            message(PROFILE, true),
            "invoke-with-response-stream",
        ),
    ] {
        let (_client, _answer, exchange) = begin(gateway, path, &document).await;
        let head = &exchange.head;
        assert!(
            head.starts_with(&format!("POST /model/{written}/{operation} HTTP/1.1\r\n")),
            "{head}"
        );
        assert_signed(&exchange);
    }
}

#[tokio::test]
async fn what_is_signed_is_what_the_rules_have_left_of_a_long_body() {
    let mut gateway = gateway_with(|config| {
        config["policy"] = json!({"mode": "Enforce", "rules": [{
            "id": "word", "reason": "a word", "target": "Request", "literals": ["johndoe"], "score": 1, "action": "Redact",
        }]});
    })
    .await;
    let mut document = message(CLAUDE, false);
    document["messages"][0]["content"] = format!("johndoe {}", "x".repeat(600_000)).into();
    let (_client, _answer, exchange) = begin(&mut gateway, "/v1/messages", &document).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert!(
        sent["messages"][0]["content"]
            .as_str()
            .unwrap()
            .starts_with("[redacted:word] ")
    );
    assert_signed(&exchange);
}

#[tokio::test]
async fn a_stream_of_converse_becomes_one_of_a_chat_completion_however_it_is_cut() {
    let mut gateway = gateway_with(|_| ()).await;
    let mut document = chat(NOVA, true);
    document["stream_options"] = json!({"include_usage": true});
    for size in [1, 7, 64, 100_000] {
        let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &document).await;
        assert!(
            exchange
                .head
                .starts_with("POST /model/us.amazon.nova-pro-v1%3A0/converse-stream HTTP/1.1\r\n")
        );
        let (body, whole, id) = streamed(answer, exchange, &converse_stream(), size).await;
        assert!(whole && body.ends_with("data: [DONE]\n\n"), "{body}");
        let chunks = documents(&body);
        let text: String = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
            .collect();
        assert_eq!(text, "Hello");
        let usage = &chunks.last().unwrap()["usage"];
        assert_eq!(
            (
                &usage["prompt_tokens"],
                &usage["prompt_tokens_details"]["cached_tokens"]
            ),
            (&json!(9), &json!(6))
        );
        let record = completion(&gateway, &id).await;
        assert_eq!(
            (&record["outcome"], &record["bytes"]),
            (&json!("complete"), &json!(body.len()))
        );
        assert_eq!(
            record["usage"],
            json!({"prompt_tokens": 9, "completion_tokens": 2, "cached_prompt_tokens": 6})
        );
    }
}

#[tokio::test]
async fn a_message_is_invoked_and_its_answer_passes_as_it_is() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/messages", &message(CLAUDE, false)).await;
    let head = &exchange.head;
    assert!(
        head.starts_with("POST /model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(field(head, "anthropic-version").is_none() && field(head, "anthropic-beta").is_none());
    assert_signed(&exchange);
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(
        sent,
        json!({"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["interleaved-thinking-2025-05-14"],
            "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]})
    );
    let said = br#"{"id":"msg_bdrk_1", "type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"usage":{"input_tokens":9,"output_tokens":2}}"#;
    answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", said).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.body, said);
    assert_eq!(
        answer.headers["x-proofgate-dropped-betas"],
        "context-1m-2025-08-07"
    );
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(
        record["usage"],
        json!({"prompt_tokens": 9, "completion_tokens": 2})
    );
}

#[tokio::test]
async fn a_stream_of_an_invoked_model_is_its_events_as_they_are_however_it_is_cut() {
    let mut gateway = gateway_with(|_| ()).await;
    let expected: String = EVENTS
        .iter()
        .map(|event| {
            let kind = serde_json::from_str::<Value>(event).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned();
            format!("event: {kind}\ndata: {event}\n\n")
        })
        .collect();
    for size in [1, 50, 100_000] {
        let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages", &message(CLAUDE, true)).await;
        let (body, whole, id) = streamed(answer, exchange, &invoke_stream(), size).await;
        assert_eq!((body.as_str(), whole), (expected.as_str(), true));
        let record = completion(&gateway, &id).await;
        assert_eq!(record["outcome"], "complete");
        assert_eq!(
            record["usage"],
            json!({"prompt_tokens": 9, "completion_tokens": 2})
        );
    }
}

#[tokio::test]
async fn what_goes_wrong_in_a_stream_is_one_error_of_the_clients_dialect_and_no_good_end() {
    let mut gateway = gateway_with(|_| ()).await;
    let (converse, invoke) = (converse_stream(), invoke_stream());
    let exception = exception(
        "modelStreamErrorException",
        r#"{"message":"it broke","originalStatusCode":500}"#,
    );
    for (path, document, whole) in [
        ("/v1/chat/completions", chat(NOVA, true), &converse),
        ("/v1/messages", message(CLAUDE, true), &invoke),
    ] {
        let mut flipped = whole.clone();
        let last = flipped.len() - 20;
        flipped[last] ^= 1;
        let cut_short = &whole[..whole.len() - 30];
        let first = u32::from_be_bytes(whole[..4].try_into().unwrap()) as usize;
        let thrown = [&whole[..first], &exception, &whole[first..]].concat();
        let cases = [
            (cut_short, "before the answer was complete"),
            (&flipped, "does not match its API"),
            (&thrown, "it broke"),
        ];
        // In pieces, and in one piece with its end.
        for ((frames, told), size) in cases.iter().flat_map(|case| [(case, 40), (case, usize::MAX)]) {
            let (_client, answer, exchange) = begin(&mut gateway, path, &document).await;
            let (body, ended, id) = streamed(answer, exchange, frames, size).await;
            // An error before the start of the response gets a separate response.
            let errors: Vec<_> = match serde_json::from_str::<Value>(&body) {
                Ok(answer) => vec![answer],
                Err(_) => {
                    assert!(
                        !ended && !body.contains("[DONE]") && !body.contains("message_stop"),
                        "{body}"
                    );
                    let events = documents(&body).into_iter();
                    events.filter(|event| !event["error"].is_null()).collect()
                }
            };
            assert_eq!(errors.len(), 1, "{body}");
            assert!(
                errors[0]["error"]["message"].as_str().unwrap().contains(told),
                "{size}: {told}: {body}"
            );
            assert_eq!(completion(&gateway, &id).await["outcome"], "upstream_error");
        }
    }
}

#[tokio::test]
async fn an_error_of_bedrock_has_the_clients_shape_and_says_whether_to_try_again() {
    let mut gateway = gateway_with(|_| ()).await;
    for (head, body, kinds, retry) in [
        (
            "400 Bad Request\r\nx-amzn-errortype: ValidationException:http://internal.amazon.com/",
            r#"{"message":"too long"}"#,
            ["invalid_request_error", "invalid_request_error"],
            None,
        ),
        (
            "429 Too Many Requests\r\nx-amzn-errortype: ThrottlingException\r\nRetry-After: 7",
            r#"{"message":"too many"}"#,
            ["rate_limit_error", "rate_limit_error"],
            None,
        ),
        (
            "424 Failed Dependency\r\nx-amzn-errortype: ModelErrorException",
            r#"{"message":"it broke"}"#,
            ["api_error", "api_error"],
            Some("true"),
        ),
        (
            "503 Service Unavailable\r\nx-amzn-errortype: ServiceUnavailableException",
            "{}",
            ["api_error", "overloaded_error"],
            None,
        ),
    ] {
        let requests = [
            ("/v1/chat/completions", chat(NOVA, true)),
            ("/v1/messages", message(CLAUDE, true)),
        ];
        for ((path, document), kind) in requests.iter().zip(kinds) {
            let (_client, answer, mut exchange) = begin(&mut gateway, path, document).await;
            answer_with(
                &mut exchange,
                &format!("{head}\r\nContent-Type: application/json"),
                body.as_bytes(),
            )
            .await;
            let answer = read(answer).await.unwrap();
            assert_eq!(answer.status.as_str(), &head[..3]);
            let said: Value = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(said["error"]["type"], kind, "{said}");
            assert_eq!(
                said["type"],
                if *path == "/v1/messages" {
                    json!("error")
                } else {
                    Value::Null
                }
            );
            let field = |name: &str| {
                answer
                    .headers
                    .get(name)
                    .map(|value| value.to_str().unwrap().to_owned())
            };
            assert_eq!(field("x-should-retry").as_deref(), retry);
            if head.contains("Retry-After") {
                assert_eq!(field("retry-after").as_deref(), Some("7"));
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_no_stream_where_one_was_asked_for_is_a_failure_whatever_its_status() {
    let mut gateway = gateway_with(|_| ()).await;
    let unknown =
        br#"{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}"#;
    for (path, document) in [
        ("/v1/chat/completions", chat(NOVA, true)),
        ("/v1/chat/completions", chat(NOVA, false)),
        ("/v1/messages", message(CLAUDE, true)),
        ("/v1/messages", message(CLAUDE, false)),
    ] {
        let (_client, answer, mut exchange) = begin(&mut gateway, path, &document).await;
        answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", unknown).await;
        let answer = read(answer).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (502, "upstream_answer_malformed")
        );
    }
}

#[tokio::test]
async fn a_refusal_of_the_credentials_tells_the_client_nothing_of_them() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/messages", &message(CLAUDE, false)).await;
    let said = br#"{"message":"The request signature we calculated does not match. x-amz-security-token:TOKEN/EXAMPLE"}"#;
    answer_with(
        &mut exchange,
        "403 Forbidden\r\nx-amzn-errortype: InvalidSignatureException",
        said,
    )
    .await;
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (502, "upstream_auth_failed")
    );
    assert!(!String::from_utf8_lossy(&answer.body).contains("TOKEN"));
}

#[tokio::test]
async fn tokens_are_counted_by_bedrock_for_the_foundation_model() {
    let mut gateway = gateway_with(|_| ()).await;
    let counted = json!({"model": CLAUDE, "messages": [{"role": "user", "content": "Hi"}]});
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages/count_tokens", &counted).await;
    let path = "POST /model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/count-tokens HTTP/1.1\r\n";
    assert!(exchange.head.starts_with(path), "{}", exchange.head);
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert!(sent["input"]["invokeModel"]["body"].is_string(), "{sent}");
    exchange.answer(b"{\"inputTokens\":38}").await;
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (200, &b"{\"input_tokens\":38}"[..])
    );
    assert!(!answer.headers.contains_key("x-proofgate-estimated"));
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(
        (&record["status"], &record["upstream_status"]),
        (&json!(200), &json!(200))
    );
}

#[tokio::test]
async fn what_bedrock_does_not_count_is_estimated() {
    let mut gateway = gateway_with(|_| ()).await;
    let counted = json!({"model": CLAUDE, "messages": [{"role": "user", "content": "word ".repeat(40)}]});
    for (status, body) in [
        (
            "400 Bad Request",
            r#"{"message":"The provided model doesn't support counting tokens."}"#,
        ),
        (
            "403 Forbidden",
            r#"{"message":"not authorized to perform: bedrock:CountTokens"}"#,
        ),
        ("404 Not Found", "{}"),
    ] {
        let (_client, answer, mut exchange) =
            begin(&mut gateway, "/v1/messages/count_tokens", &counted).await;
        answer_with(&mut exchange, status, body.as_bytes()).await;
        let answer = read(answer).await.unwrap();
        assert_eq!(answer.status.as_u16(), 200, "{status}");
        assert_eq!(answer.headers["x-proofgate-estimated"], "true");
        let told: Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(
            (50..60).contains(&told["input_tokens"].as_u64().unwrap()),
            "{told}"
        );
        let record = completion(&gateway, id(&answer)).await;
        let status: u64 = status[..3].parse().unwrap();
        assert_eq!(
            (&record["outcome"], &record["upstream_status"]),
            (&json!("complete"), &json!(status))
        );
    }
}

#[tokio::test]
async fn an_endpoint_that_bedrock_lacks_is_refused() {
    let gateway = gateway_with(|_| ()).await;
    for (path, document) in [("/v1/embeddings", json!({"model": NOVA, "input": "Hi"}))] {
        let body = document.to_string().into_bytes();
        let request = Request::post(format!("https://gateway.test{path}"))
            .header("authorization", format!("Bearer {ACME}"))
            .header("content-length", body.len())
            .body(())
            .unwrap();
        let answer = Client::connect(&gateway).await.exchange(request, &body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (400, "endpoint_not_supported_by_model")
        );
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn rules_read_what_a_stream_of_frames_says() {
    let mut gateway = gateway_with(|config| {
        config["policy"] = json!({"mode": "Enforce", "rules": [{
            "id": "word", "reason": "a word", "target": "Response", "literals": ["hello"], "score": 1, "action": "Redact",
        }]});
    })
    .await;
    for (path, document, frames) in [
        ("/v1/chat/completions", chat(NOVA, true), converse_stream()),
        ("/v1/messages", message(CLAUDE, true), invoke_stream()),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, path, &document).await;
        let (body, whole, _) = streamed(answer, exchange, &frames, 33).await;
        assert!(whole && body.contains("[redacted:word]"), "{body}");
        assert!(!body.contains("Hel") && !body.contains("Hello"), "{body}");
    }
}

#[tokio::test]
async fn other_credentials_are_used_without_a_restart() {
    let mut gateway = gateway_with(|_| ()).await;
    gateway.reload(|config| {
        config["providers"][0]["awsKeys"]["accessKeyId"] = "AKIDROTATED".into();
        config["providers"][0]["awsKeys"]["sessionToken"] = Value::Null;
    });
    let (_client, _answer, exchange) = begin(&mut gateway, "/v1/messages", &message(CLAUDE, false)).await;
    let authorization = field(&exchange.head, "authorization").unwrap();
    assert!(
        authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKIDROTATED/"),
        "{authorization}"
    );
    assert_eq!(field(&exchange.head, "x-amz-security-token"), None);
}

#[tokio::test]
async fn without_issued_credentials_nothing_is_sent_and_each_request_is_signed_with_the_newest() {
    const HOUR: Duration = Duration::from_secs(3600);
    let mut gateway = gateway_with(|config| config["providers"][0]["awsKeys"] = Value::Null).await;
    let issue = |gateway: &Gateway, id: &str, token: &str, lifetime| {
        let credentials = Credentials {
            access_key_id: id,
            secret_access_key: SECRET,
            session_token: Some(token),
        };
        gateway
            .worker
            .set_aws_credentials("stand-in", credentials, lifetime)
    };
    // First no credentials, then expired ones.
    for _ in 0..2 {
        let body = chat(NOVA, false).to_string().into_bytes();
        let request = Request::post("https://gateway.test/v1/chat/completions")
            .header("authorization", format!("Bearer {ACME}"))
            .header("content-length", body.len());
        let mut client = Client::connect(&gateway).await;
        let answer = client.exchange(request.body(()).unwrap(), &body).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(
            answer.status == 503 && text.contains("provider_key_missing"),
            "{text}"
        );
        issue(&gateway, "ASIAENDED", "ended", Duration::ZERO).unwrap();
    }
    assert_eq!(gateway.upstream.requests(), 0);
    for (id, token) in [("ASIAFIRST", "first"), ("ASIASECOND", "second")] {
        issue(&gateway, id, token, HOUR).unwrap();
        // The credentials stay when other settings change.
        gateway.reload(|config| config["timeouts"]["answerSeconds"] = json!(400));
        let (_client, _answer, exchange) =
            begin(&mut gateway, "/v1/chat/completions", &chat(NOVA, false)).await;
        let authorization = field(&exchange.head, "authorization").unwrap();
        assert!(
            authorization.contains(&format!("Credential={id}/")),
            "{authorization}"
        );
        assert_eq!(field(&exchange.head, "x-amz-security-token"), Some(token));
    }
    let said = issue(&gateway, "ASIATHIRD", "se\r\ncret", HOUR).unwrap_err();
    assert!(!said.to_string().contains("cret"), "{said}");
}

#[tokio::test]
async fn credentials_of_a_configuration_are_not_replaced_by_issued_ones() {
    let mut gateway = gateway_with(|_| ()).await;
    let credentials = Credentials {
        access_key_id: "ASIAISSUED",
        secret_access_key: "secret",
        session_token: None,
    };
    let lifetime = Duration::from_secs(3600);
    for provider in ["stand-in", "nobody"] {
        assert!(
            gateway
                .worker
                .set_aws_credentials(provider, credentials, lifetime)
                .is_err()
        );
    }
    let (_client, _answer, exchange) = begin(&mut gateway, "/v1/messages", &message(CLAUDE, false)).await;
    assert_signed(&exchange);
}
