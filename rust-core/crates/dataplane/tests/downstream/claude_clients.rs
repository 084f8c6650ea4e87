//! Claude clients that use the APIs of Amazon Bedrock or Vertex AI: they are served like clients of
//! Anthropic's messages.

use h2::client::ResponseFuture;
use http::Request;
use proofgate_providers::{Dialect, FrameDecoder};
use serde_json::{Value, json};

use crate::bedrock::{answer_with, gateway_with as bedrock};
use crate::client::{Client, read};
use crate::dialects::admission;
use crate::frames::carried;
use crate::gateway::{ACME, Gateway, MODEL};
use crate::relayed::{completion, id};
use crate::upstream::Exchange;

const INVOKE: &str = "/model/gpt-4o-mini/invoke";
const STREAMED: &str = "/model/gpt-4o-mini/invoke-with-response-stream";
const VERTEX: &str = "/v1/projects/p/locations/europe-west1/publishers/anthropic/models";
const FRAMES: &str = "application/vnd.amazon.eventstream";
const SAID: &[u8] = br#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":2}}"#;
const EVENTS: [&str; 6] = [
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello johndoe"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
    r#"{"type":"message_stop"}"#,
];

fn event(data: &str) -> String {
    let document: Value = serde_json::from_str(data).unwrap();
    format!("event: {}\ndata: {data}\n\n", document["type"].as_str().unwrap())
}

fn events() -> String {
    EVENTS.map(event).concat()
}

async fn anthropic(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        config["providers"][0]["type"] = "Anthropic".into();
        config["providers"][0]["anthropicBetas"] = json!(["known-2025-01-01"]);
        config["models"][0]["routes"][0]["upstreamModel"] = "claude-upstream".into();
        change(config);
    })
    .await
}

fn message() -> Value {
    json!({"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["known-2025-01-01", "other-2025-01-01"],
        "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]})
}

fn request(path: &str, length: usize) -> Request<()> {
    Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("content-type", "application/json")
        .header("content-length", length)
        .body(())
        .unwrap()
}

async fn begin(gateway: &mut Gateway, path: &str, document: &Value) -> (Client, ResponseFuture, Exchange) {
    let body = document.to_string().into_bytes();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request(path, body.len()), &body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

/// Returns the events in frames.
fn unframed(frames: &[u8]) -> String {
    let mut reader = FrameDecoder::new(Dialect::Invoke, 1 << 20);
    reader.push(frames);
    let mut out = Vec::new();
    while reader.next_event(&mut out).unwrap() {}
    String::from_utf8(out).unwrap()
}

async fn begin_stream(exchange: &mut Exchange, kind: &str) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
    exchange.send(head.as_bytes()).await;
}

async fn send_chunk(exchange: &mut Exchange, piece: &[u8]) {
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
    exchange.try_send(&chunk).await;
}

async fn answer_stream(exchange: &mut Exchange, kind: &str, body: &[u8], size: usize) {
    begin_stream(exchange, kind).await;
    for piece in body.chunks(size) {
        send_chunk(exchange, piece).await;
    }
    exchange.try_send(b"0\r\n\r\n").await;
}

#[tokio::test]
async fn invoke_reaches_anthropic_as_a_message_and_is_recorded_as_it_came() {
    let mut gateway = anthropic(|_| ()).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, INVOKE, &message()).await;
    let head = exchange.head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nanthropic-version: 2023-06-01\r\n"), "{head}");
    assert!(
        head.contains("\r\nanthropic-beta: known-2025-01-01\r\n"),
        "{head}"
    );
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    let expected = json!({"model": "claude-upstream", "max_tokens": 10, "messages": message()["messages"]});
    assert_eq!(sent, expected);
    answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", SAID).await;
    let answer = read(answer).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, SAID));
    assert_eq!(answer.headers["x-proofgate-dropped-betas"], "other-2025-01-01");
    let admitted = admission(&gateway, id(&answer)).await;
    assert_eq!(
        (&admitted["endpoint"], &admitted["model"], &admitted["stream"]),
        (&json!("/model/{model}/invoke"), &json!(MODEL), &json!(false))
    );
    assert_eq!(admitted["bytes"], message().to_string().len());
    assert_eq!(
        completion(&gateway, id(&answer)).await["usage"]["prompt_tokens"],
        9
    );
}

#[tokio::test]
async fn a_stream_of_invoke_comes_in_frames_however_its_events_are_cut() {
    let mut gateway = anthropic(|_| ()).await;
    for size in [1, 50, 10_000] {
        let (_client, answer, mut exchange) = begin(&mut gateway, STREAMED, &message()).await;
        let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
        assert_eq!(sent["stream"], true);
        let ping = ["event: ping\ndata: {\"type\":\"ping\"}\n\n", &events()].concat();
        answer_stream(
            &mut exchange,
            "text/event-stream; charset=utf-8",
            ping.as_bytes(),
            size,
        )
        .await;
        let answer = read(answer).await.unwrap();
        assert_eq!(answer.headers["content-type"], FRAMES);
        assert_eq!(unframed(&answer.body), events());
        let record = completion(&gateway, id(&answer)).await;
        assert_eq!(
            (
                &record["outcome"],
                &record["usage"]["completion_tokens"],
                &record["bytes"]
            ),
            (&json!("complete"), &json!(2), &json!(answer.body.len()))
        );
    }
}

#[tokio::test]
async fn invoke_reaches_bedrock_itself_and_its_frames_come_back() {
    let mut gateway = bedrock(|_| ()).await;
    let (_client, answer, mut exchange) = begin(
        &mut gateway,
        "/model/claude/invoke-with-response-stream",
        &message(),
    )
    .await;
    let path =
        "POST /model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream HTTP/1.1\r\n";
    assert!(exchange.head.starts_with(path), "{}", exchange.head);
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    let expected = json!({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 10, "messages": message()["messages"]});
    assert_eq!(sent, expected);
    let frames: Vec<u8> = EVENTS.iter().flat_map(|event| carried(event)).collect();
    answer_stream(&mut exchange, FRAMES, &frames, 64).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.headers["content-type"], FRAMES);
    assert_eq!(unframed(&answer.body), events());
}

#[tokio::test]
async fn raw_predict_is_served_below_any_project_and_its_stream_as_events() {
    let mut gateway = anthropic(|_| ()).await;
    for base in [VERTEX, &VERTEX[3..]] {
        let path = format!("{base}/{MODEL}:streamRawPredict");
        let mut document = message();
        document["stream"] = true.into();
        let (_client, answer, mut exchange) = begin(&mut gateway, &path, &document).await;
        let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
        assert_eq!(
            sent,
            json!({"model": "claude-upstream", "stream": true, "max_tokens": 10, "messages": message()["messages"]})
        );
        answer_stream(&mut exchange, "text/event-stream", events().as_bytes(), 99).await;
        let answer = read(answer).await.unwrap();
        assert_eq!(answer.headers["content-type"], "text/event-stream");
        assert_eq!(String::from_utf8(answer.body.clone()).unwrap(), events());
        let admitted = admission(&gateway, id(&answer)).await;
        let endpoint = admitted["endpoint"].as_str().unwrap();
        assert!(
            endpoint.ends_with("/publishers/anthropic/models/{model}:rawPredict"),
            "{endpoint}"
        );
    }
    let path = format!("{VERTEX}/count-tokens:rawPredict");
    let document = json!({"anthropic_version": "vertex-2023-10-16", "model": MODEL, "messages": []});
    let (_client, answer, exchange) = begin(&mut gateway, &path, &document).await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/messages/count_tokens HTTP/1.1\r\n")
    );
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent, json!({"model": "claude-upstream", "messages": []}));
    exchange.answer(b"{\"input_tokens\":9}").await;
    assert_eq!(read(answer).await.unwrap().body, b"{\"input_tokens\":9}");
}

#[tokio::test]
async fn they_reach_a_provider_of_another_api_by_translation() {
    let mut gateway = Gateway::start().await;
    let mut document = message();
    document["anthropic_beta"] = json!([]);
    let (_client, answer, mut exchange) = begin(&mut gateway, STREAMED, &document).await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        exchange.head
    );
    let chunks = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":null}]}\n\n\
data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n\
data: [DONE]\n\n";
    answer_stream(&mut exchange, "text/event-stream", chunks.as_bytes(), 64).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.headers["content-type"], FRAMES);
    let told = unframed(&answer.body);
    assert!(
        told.contains("\"Hello\"") && told.contains("event: message_stop"),
        "{told}"
    );
}

#[tokio::test]
async fn rules_read_and_change_what_is_said_in_frames() {
    let rules = |action: &str| {
        json!({"mode": "Enforce", "rules": [{"id": "word", "reason": "a word", "target": "Response",
            "literals": ["johndoe"], "score": 1, "action": action}]})
    };
    let mut gateway = anthropic(|config| config["policy"] = rules("Redact")).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, STREAMED, &message()).await;
    answer_stream(&mut exchange, "text/event-stream", events().as_bytes(), 64).await;
    let told = unframed(&read(answer).await.unwrap().body);
    assert!(
        !told.contains("johndoe") && told.contains("event: message_stop"),
        "{told}"
    );

    let mut gateway = anthropic(|config| config["policy"] = rules("Block")).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, STREAMED, &message()).await;
    begin_stream(&mut exchange, "text/event-stream").await;
    send_chunk(
        &mut exchange,
        EVENTS[..2]
            .iter()
            .map(|data| event(data))
            .collect::<String>()
            .as_bytes(),
    )
    .await;
    // After the start of the response, it can only be cut off.
    let begun = answer.await.unwrap();
    assert_eq!(begun.status(), 200);
    send_chunk(&mut exchange, event(EVENTS[2]).as_bytes()).await;
    exchange.try_send(b"0\r\n\r\n").await;
    let told = unframed(&all_of(begun).await);
    assert!(!told.contains("johndoe") && told.contains("exception"), "{told}");
}

/// Returns the received part of a response, regardless of its end.
async fn all_of(answer: http::Response<h2::RecvStream>) -> Vec<u8> {
    let mut body = Vec::new();
    let mut stream = answer.into_body();
    while let Ok(Some(piece)) = crate::client::next(&mut stream).await {
        body.extend_from_slice(&piece);
    }
    body
}

#[tokio::test]
async fn failures_are_told_in_amazons_words() {
    let mut gateway = anthropic(|_| ()).await;
    let mut client = Client::connect(&gateway).await;
    let body = message().to_string().into_bytes();
    for (path, key, body, status, kind) in [
        (INVOKE, "nobody", &body[..], 401, "AccessDeniedException"),
        (
            "/model/nobodys/invoke",
            ACME,
            &body[..],
            404,
            "ResourceNotFoundException",
        ),
        (INVOKE, ACME, b"[]", 400, "ValidationException"),
        (
            "/model/a/%2e%2e/invoke",
            ACME,
            &body[..],
            400,
            "ValidationException",
        ),
        (
            INVOKE,
            ACME,
            br#"{"model":"other","messages":[]}"#,
            400,
            "ValidationException",
        ),
    ] {
        let mut request = request(path, body.len());
        let key = format!("Bearer {key}").parse().unwrap();
        request.headers_mut().insert("authorization", key);
        let refused = client.exchange(request, body).await;
        assert_eq!(refused.status.as_u16(), status, "{path}");
        assert_eq!(refused.headers["x-amzn-errortype"], kind);
        let told: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!(
            (&told["message"], &told["type"]),
            (&told["error"]["message"], &json!("error"))
        );
        client = Client::connect(&gateway).await;
    }
    // The provider's own message is passed on, with its status.
    let (_client, answer, mut exchange) = begin(&mut gateway, INVOKE, &message()).await;
    let said = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    answer_with(
        &mut exchange,
        "529 Overloaded\r\nContent-Type: application/json",
        said,
    )
    .await;
    let answer = read(answer).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (529, &said[..]));
    assert_eq!(answer.headers["x-amzn-errortype"], "ServiceUnavailableException");
}

#[tokio::test]
async fn a_stream_that_fails_ends_with_an_exception() {
    let mut gateway = anthropic(|_| ()).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, STREAMED, &message()).await;
    let failing = [
        &event(EVENTS[0]),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    ]
    .concat();
    answer_stream(&mut exchange, "text/event-stream", failing.as_bytes(), 30).await;
    let told = unframed(&all_of(answer.await.unwrap()).await);
    assert!(told.starts_with(&event(EVENTS[0])), "{told}");
    assert!(
        told.contains("throttlingException") && told.contains("Overloaded"),
        "{told}"
    );
}

#[tokio::test]
async fn other_methods_and_paths_are_told_so() {
    let gateway = anthropic(|_| ()).await;
    let mut client = Client::connect(&gateway).await;
    let wrong = client.exchange(crate::client::ask("GET", INVOKE), b"").await;
    assert_eq!(wrong.status, 405);
    let options = client.exchange(crate::client::ask("OPTIONS", INVOKE), b"").await;
    assert_eq!(
        (options.status.as_u16(), &options.headers["allow"]),
        (204, &"POST, OPTIONS".parse().unwrap())
    );
    let nowhere = client
        .exchange(crate::client::ask("POST", "/model/gpt-4o-mini/converse"), b"")
        .await;
    assert_eq!(nowhere.status, 404);
}
