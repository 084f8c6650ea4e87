//! Clients and providers with different dialects.

use std::time::Duration;

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, next, read};
use crate::dialects::admission;
use crate::early_failures::attempt;
use crate::gateway::{ACME, Gateway, MODEL};
use crate::relayed::{completion, go_on, id};
use crate::upstream::Exchange;

const CLAUDE: &str = "claude";
const GEMINI: &str = "gemini";

async fn gateway_with(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        let mut anthropic = config["providers"][0].clone();
        anthropic["name"] = "anthropic".into();
        anthropic["type"] = "Anthropic".into();
        anthropic["apiKey"] = "provider-key".into();
        let mut gemini = anthropic.clone();
        gemini["name"] = "gemini".into();
        gemini["type"] = "Gemini".into();
        let providers = config["providers"].as_array_mut().unwrap();
        providers.extend([anthropic, gemini]);
        let model = json!({
            "name": CLAUDE, "routes": [{"provider": "anthropic", "upstreamModel": "claude-upstream", "weight": 1}],
            "maxOutputTokens": 100,
        });
        let gemini = json!({
            "name": GEMINI, "routes": [{"provider": "gemini", "upstreamModel": "gemini/3:x", "weight": 1}],
            "maxOutputTokens": 100,
        });
        config["models"].as_array_mut().unwrap().extend([model, gemini]);
        change(config);
    })
    .await
}

fn post(path: &str, body: &[u8]) -> Request<()> {
    Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("content-length", body.len())
        .body(())
        .unwrap()
}

async fn begin(
    gateway: &mut Gateway,
    path: &str,
    document: &Value,
) -> (Client, h2::client::ResponseFuture, Exchange) {
    let body = document.to_string().into_bytes();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(post(path, &body), &body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

fn chat(stream: bool) -> Value {
    json!({"model": CLAUDE, "stream": stream, "messages": [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]})
}

fn message(stream: bool) -> Value {
    json!({"model": MODEL, "max_tokens": 10, "stream": stream, "system": "Be kind.",
        "messages": [{"role": "user", "content": "Hi"}]})
}

const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-upstream","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":2}}"#;
const COMPLETION: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-upstream","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#;

#[tokio::test]
async fn a_chat_completion_is_a_message_at_anthropic_and_its_answer_a_completion() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &chat(false)).await;
    let head = exchange.head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    for line in ["x-api-key: provider-key", "anthropic-version: 2023-06-01"] {
        assert!(head.lines().any(|seen| seen == line), "{line}: {head}");
    }
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["model"], "claude-upstream");
    assert_eq!(sent["max_tokens"], 100);
    assert_eq!(sent["messages"].as_array().unwrap().len(), 1);
    exchange.answer(MESSAGE.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(
        answer.headers["content-length"],
        answer.body.len().to_string().as_str()
    );
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["model"], CLAUDE);
    assert_eq!(body["choices"][0]["message"]["content"], "Hello");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["total_tokens"], 11);
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(record["usage"]["prompt_tokens"], 9);
    assert_eq!(record["usage"]["completion_tokens"], 2);
    assert_eq!(record["bytes"], answer.body.len());
}

#[tokio::test]
async fn a_message_is_a_chat_completion_at_openai_and_its_answer_a_message() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages", &message(false)).await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n")
    );
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["messages"][0]["role"], "system");
    exchange.answer(COMPLETION.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (&body["type"], &body["model"]),
        (&json!("message"), &json!(MODEL))
    );
    assert_eq!(body["content"][0]["text"], "Hello");
    assert_eq!(body["stop_reason"], "end_turn");
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(record["usage"]["completion_tokens"], 2);
}

/// Reads a stream, and sends `rest` after its start has arrived. Returns the data, and whether the
/// stream ended correctly.
async fn streamed(
    answer: h2::client::ResponseFuture,
    mut exchange: Exchange,
    first: &str,
    rest: &[&str],
) -> (String, bool, String) {
    exchange.begin_events().await;
    exchange.send_chunk(first).await;
    let answer = answer.await.unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let (mut stream, mut body, mut sent) = (answer.into_body(), Vec::new(), false);
    let whole = loop {
        match next(&mut stream).await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
        if !std::mem::replace(&mut sent, true) {
            for event in rest {
                exchange.send_chunk(event).await;
            }
            exchange.try_send(b"0\r\n\r\n").await;
        }
    };
    (String::from_utf8(body).unwrap(), whole, id)
}

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"m\",\"stop_reason\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n";
const BLOCK: &str = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
const DELTA: &str = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n";
const BLOCK_STOP: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
const MESSAGE_DELTA: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2}}\n\n";
const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// Returns the documents in a stream's `data` lines, without `[DONE]`.
fn documents(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let documents = lines.filter(|data| *data != "[DONE]");
    documents
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[tokio::test]
async fn a_stream_of_a_message_becomes_one_of_a_chat_completion() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &chat(true)).await;
    let first = [START, BLOCK, DELTA].concat();
    let rest = [BLOCK_STOP, MESSAGE_DELTA, STOP];
    let (body, whole, id) = streamed(answer, exchange, &first, &rest).await;
    assert!(whole && body.ends_with("data: [DONE]\n\n"), "{body}");
    let texts = documents(&body);
    let text: String = texts
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "Hello");
    let record = completion(&gateway, &id).await;
    assert_eq!(
        (&record["outcome"], &record["bytes"]),
        (&json!("complete"), &json!(body.len()))
    );
    assert_eq!(record["usage"]["completion_tokens"], 2);
}

fn chunk(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

#[tokio::test]
async fn a_stream_of_a_chat_completion_becomes_one_of_a_message() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages", &message(true)).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["stream_options"]["include_usage"], true);
    let first = chunk("{\"role\":\"assistant\",\"content\":\"Hello\"}", "null");
    let end = chunk("{}", "\"stop\"");
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11}}\n\n";
    let (body, whole, id) = streamed(answer, exchange, &first, &[&end, usage, "data: [DONE]\n\n"]).await;
    assert!(
        whole && body.ends_with("data: {\"type\":\"message_stop\"}\n\n"),
        "{body}"
    );
    let kinds: Vec<_> = documents(&body)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    let record = completion(&gateway, &id).await;
    assert_eq!(record["outcome"], "complete");
    assert_eq!(record["usage"]["prompt_tokens"], 9);
}

#[tokio::test]
async fn all_that_waits_for_the_end_of_a_chat_completion_leaves_with_it_however_much_it_is() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages", &message(true)).await;
    let call = |index: u64, id: &str, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        chunk(&json!({"tool_calls": [call]}).to_string(), "null")
    };
    // Empty arguments are never complete, so later data waits.
    let first = call(0, "a", "now", "");
    let arguments = format!("{{\"text\":\"{}\"}}", "x".repeat(70_000));
    let second = call(1, "b", "write_file", &arguments);
    let end = chunk("{}", "\"tool_calls\"");
    let (body, whole, id) = streamed(answer, exchange, &first, &[&second, &end, "data: [DONE]\n\n"]).await;
    assert!(
        whole && body.ends_with("data: {\"type\":\"message_stop\"}\n\n"),
        "{}",
        body.len()
    );
    let written: String = documents(&body)
        .iter()
        .filter(|event| event["index"] == 1)
        .filter_map(|event| event["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(written, arguments);
    assert_eq!(completion(&gateway, &id).await["outcome"], "complete");
}

#[tokio::test]
async fn a_provider_that_goes_on_behind_a_translated_end_loses_its_connection_and_nothing_else() {
    for (length, pause) in [(6, 20), (10_000, 1)] {
        let mut gateway = gateway_with(|_| ()).await;
        let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/messages", &message(true)).await;
        exchange.begin_events().await;
        let said = chunk("{\"role\":\"assistant\",\"content\":\"Hello\"}", "null");
        let end = chunk("{}", "\"stop\"");
        exchange
            .send_chunk(&[&said, &end, "data: [DONE]\n\n"].concat())
            .await;
        let going_on = tokio::spawn(go_on(exchange, length, Duration::from_millis(pause)));
        let answer = read(answer).await.unwrap();
        let body = String::from_utf8_lossy(&answer.body);
        assert!(body.ends_with("data: {\"type\":\"message_stop\"}\n\n"), "{body}");
        assert_eq!(completion(&gateway, id(&answer)).await["outcome"], "complete");
        going_on.await.unwrap();
    }
}

#[tokio::test]
async fn a_failure_in_a_translated_stream_is_one_error_of_the_clients_dialect_and_no_good_end() {
    let mut gateway = gateway_with(|_| ()).await;
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    let first = [START, BLOCK, DELTA].concat();
    for (rest, told) in [
        (vec![overloaded, STOP], "busy"),
        (vec![BLOCK_STOP], "before the answer was complete"),
        (vec!["data: {broken\n\n"], "does not match its API"),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &chat(true)).await;
        let (body, whole, id) = streamed(answer, exchange, &first, &rest).await;
        assert!(!whole && !body.contains("[DONE]"), "{body}");
        let errors: Vec<_> = documents(&body)
            .into_iter()
            .filter(|event| !event["error"].is_null())
            .collect();
        assert_eq!(errors.len(), 1, "{body}");
        assert!(
            errors[0]["error"]["message"].as_str().unwrap().contains(told),
            "{body}"
        );
        assert_eq!(completion(&gateway, &id).await["outcome"], "upstream_error");
    }
}

#[tokio::test]
async fn an_error_of_the_provider_has_the_shape_that_the_client_reads() {
    let mut gateway = gateway_with(|_| ()).await;
    let error =
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too large"}}"#;
    let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/chat/completions", &chat(true)).await;
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        error.len()
    );
    exchange.send(head.as_bytes()).await;
    exchange.send(error.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status.as_u16(), 400);
    assert_eq!(body["error"]["message"], "max_tokens: too large");
    assert!(body["error"].as_object().unwrap().contains_key("param"));
}

#[tokio::test]
async fn what_cannot_be_said_in_the_providers_dialect_is_refused_or_left_out_and_named() {
    let mut document = chat(false);
    document["seed"] = 7.into();
    let gateway = gateway_with(|_| ()).await;
    let body = document.to_string().into_bytes();
    let request = post("/v1/chat/completions", &body);
    let answer = Client::connect(&gateway).await.exchange(request, &body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (400, "not_translatable")
    );
    let error: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(error["error"]["param"], "seed");
    assert_eq!(gateway.upstream.requests(), 0);

    let mut gateway =
        gateway_with(|config| config["providers"][1]["untranslatableFields"] = "Drop".into()).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &document).await;
    exchange.answer(MESSAGE.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.headers["x-proofgate-dropped-fields"], "seed");
    assert_eq!(admission(&gateway, id(&answer)).await["dropped"], json!(["seed"]));
}

#[tokio::test]
async fn what_is_refused_for_its_translation_counts_as_a_request() {
    let gateway = gateway_with(|config| {
        config["tenants"][0]["limits"] = json!({"requestsPerMinute": 1});
    })
    .await;
    let mut document = chat(false);
    document["seed"] = 7.into();
    let body = document.to_string().into_bytes();
    let mut client = Client::connect(&gateway).await;
    let mut codes = Vec::new();
    for _ in 0..2 {
        let answer = client.exchange(post("/v1/chat/completions", &body), &body).await;
        codes.push(answer.code());
    }
    assert_eq!(codes, ["not_translatable", "requests_per_minute_exceeded"]);
}

#[tokio::test]
async fn rules_read_the_clients_words_on_both_ways() {
    let mut gateway = gateway_with(|config| {
        config["policy"] = json!({"mode": "Enforce", "rules": [{
            "id": "word", "reason": "a word", "target": "Both", "literals": ["johndoe"],
            "score": 1, "action": "Redact",
        }]});
    })
    .await;
    let mut document = chat(false);
    document["messages"][1]["content"] = "Ask johndoe".into();
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &document).await;
    let sent = String::from_utf8(exchange.body.clone()).unwrap();
    assert!(
        sent.contains("Ask [redacted:word]") && !sent.contains("johndoe"),
        "{sent}"
    );
    exchange
        .answer(MESSAGE.replace("Hello", "I am johndoe").as_bytes())
        .await;
    let answer = read(answer).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "I am [redacted:word]");

    let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &chat(true)).await;
    let first = [START, BLOCK, &DELTA.replace("Hello", "I am john")].concat();
    let second = DELTA.replace("Hello", "doe.");
    let rest = [&second[..], BLOCK_STOP, MESSAGE_DELTA, STOP];
    let (body, whole, _) = streamed(answer, exchange, &first, &rest).await;
    assert!(
        whole && body.contains("[redacted:word]") && !body.contains("doe."),
        "{body}"
    );
}

fn generated(text: &str, finish: &str) -> String {
    format!(
        "{{\"responseId\":\"r1\",\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{{\"text\":\"{text}\"}}]}}{finish},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":9,\"candidatesTokenCount\":2,\"totalTokenCount\":11}}}}"
    )
}

#[tokio::test]
async fn a_chat_completion_is_generated_by_gemini_whose_model_stands_in_the_path() {
    let mut gateway = gateway_with(|_| ()).await;
    let mut document = chat(false);
    document["model"] = GEMINI.into();
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &document).await;
    let head = &exchange.head;
    assert!(
        head.starts_with("POST /v1/models/gemini%2F3%3Ax:generateContent HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.to_ascii_lowercase()
            .contains("\r\nx-goog-api-key: provider-key\r\n")
    );
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["contents"][0]["parts"][0]["text"], "Hi");
    exchange
        .answer(generated("Hello", ",\"finishReason\":\"STOP\"").as_bytes())
        .await;
    let answer = read(answer).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "Hello");
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(record["usage"]["prompt_tokens"], 9);
    assert_eq!(record["usage"]["completion_tokens"], 2);
}

#[tokio::test]
async fn a_stream_of_gemini_is_whole_where_its_reason_to_finish_is_followed_by_its_end() {
    let mut gateway = gateway_with(|_| ()).await;
    let mut document = chat(true);
    document["model"] = GEMINI.into();
    for (last, outcome) in [(",\"finishReason\":\"STOP\"", "complete"), ("", "upstream_error")] {
        let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &document).await;
        assert!(
            exchange
                .head
                .starts_with("POST /v1/models/gemini%2F3%3Ax:streamGenerateContent?alt=sse HTTP/1.1\r\n")
        );
        let first = format!("data: {}\r\n\r\n", generated("Hel", ""));
        let second = format!("data: {}\r\n\r\n", generated("lo", last));
        let (body, whole, id) = streamed(answer, exchange, &first, &[&second]).await;
        let text: String = documents(&body)
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
            .collect();
        assert_eq!(text, "Hello");
        assert_eq!(whole, outcome == "complete", "{body}");
        assert_eq!(body.ends_with("data: [DONE]\n\n"), whole, "{body}");
        let record = completion(&gateway, &id).await;
        assert_eq!(record["outcome"], outcome);
        assert_eq!(record["usage"]["completion_tokens"], 2);
    }
}

#[tokio::test]
async fn the_first_event_behind_a_byte_order_mark_is_translated_as_any_other() {
    let mut gateway = gateway_with(|_| ()).await;
    let mut document = chat(true);
    document["model"] = GEMINI.into();
    let events = [
        generated("Not ", ""),
        generated("allowed", ",\"finishReason\":\"STOP\""),
    ];
    let stream = format!(
        "\u{feff}{}",
        events.map(|event| format!("data: {event}\n\n")).concat()
    );
    let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/chat/completions", &document).await;
    exchange.begin_events().await;
    exchange.send_chunk(&stream).await;
    exchange.send(b"0\r\n\r\n").await;
    let answer = read(answer).await.unwrap();
    let body = String::from_utf8(answer.body).unwrap();
    let text: String = documents(&body)
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "Not allowed");
    assert!(body.starts_with("data: "), "{body}");
}

#[tokio::test]
async fn how_long_to_wait_is_said_where_clients_of_openai_look_for_it() {
    let mut gateway = gateway_with(|_| ()).await;
    let mut document = chat(false);
    document["model"] = GEMINI.into();
    let error = r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"16.5s"}]}}"#;
    for (field, expected) in [("", "17"), ("Retry-After: 3\r\n", "3")] {
        let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/chat/completions", &document).await;
        let head = format!(
            "HTTP/1.1 429 Too Many Requests\r\n{field}Content-Length: {}\r\n\r\n",
            error.len()
        );
        exchange.send(head.as_bytes()).await;
        exchange.send(error.as_bytes()).await;
        let answer = read(answer).await.unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(
            (answer.status.as_u16(), &body["error"]["message"]),
            (429, &json!("slow down"))
        );
        let waits: Vec<_> = answer.headers.get_all("retry-after").iter().collect();
        assert_eq!(waits, [expected]);
    }
}

#[tokio::test]
async fn an_attempt_elsewhere_records_what_its_own_translation_has_left_out() {
    let mut gateway = gateway_with(|config| {
        config["providers"][1]["untranslatableFields"] = "Drop".into();
        let targets = config["models"][0]["routes"].as_array_mut().unwrap();
        targets.push(json!({"provider": "anthropic", "upstreamModel": "claude-upstream", "weight": 0}));
        config["models"][0]["fallbackOn"] = json!(["RateLimited"]);
    })
    .await;
    let mut document = chat(false);
    document["model"] = MODEL.into();
    document["seed"] = 7.into();
    let (_client, answer, mut first) = begin(&mut gateway, "/v1/chat/completions", &document).await;
    first.send(b"HTTP/1.1 429 S\r\nContent-Length: 2\r\n\r\n{}").await;
    gateway.upstream.exchange().await.answer(MESSAGE.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.headers["x-proofgate-dropped-fields"], "seed");
    assert_eq!(attempt(&gateway, id(&answer)).await["dropped"], json!(["seed"]));
    assert!(
        admission(&gateway, id(&answer)).await.get("dropped").is_none(),
        "there it was said"
    );
}
