//! The relay of an upstream's response, including missing and invalid parts.

use std::time::Duration;

use h2::client::ResponseFuture;
use serde_json::{Value, json};

use crate::client::{Answer, Client, next, post, read};
use crate::gateway::{Gateway, MODEL, PATIENCE, chat};
use crate::upstream::Exchange;

const COMPLETE: &str = r#"proofgate_exchanges_total{outcome="complete"}"#;
const TIMEOUTS: &str = r#"proofgate_exchanges_total{outcome="upstream_timeout"}"#;
const EVENT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const USAGE: &str = r#""usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}"#;

/// Adds a rule that redacts a word in responses.
fn enforce(config: &mut Value) {
    config["policy"] = json!({"mode": "Enforce", "rules": [{
        "id": "word", "reason": "a word", "target": "Response", "literals": ["johndoe"],
        "score": 1, "action": "Redact",
    }]});
}

async fn begin(gateway: &mut Gateway, body: &[u8]) -> (Client, ResponseFuture, Exchange) {
    let mut client = Client::connect(gateway).await;
    let answer = client.send(post(Some(body.len())), body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

/// Reads the received part of a response's body. Returns it, and whether the body ended correctly.
async fn body(answer: ResponseFuture) -> (String, bool) {
    let mut stream = answer.await.unwrap().into_body();
    let mut body = Vec::new();
    let whole = loop {
        match next(&mut stream).await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    (String::from_utf8(body).unwrap(), whole)
}

/// Returns the completion record of an exchange. Waits for it, because it may be written after the
/// client has disconnected.
pub async fn completion(gateway: &Gateway, id: &str) -> Value {
    let written = async {
        loop {
            let (worker, id) = (std::sync::Arc::clone(&gateway.worker), id.to_owned());
            let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, PATIENCE));
            let evidence = evidence.await.unwrap().unwrap();
            if let Some(record) = evidence.iter().find(|record| record.kind == "completion") {
                return serde_json::from_str(&record.record).unwrap();
            }
        }
    };
    tokio::time::timeout(PATIENCE, written)
        .await
        .expect("no completion")
}

pub fn id(answer: &Answer) -> &str {
    answer.headers["x-request-id"].to_str().unwrap()
}

async fn with_rules(rules: bool) -> Gateway {
    Gateway::with(|config| {
        if rules {
            enforce(config)
        }
    })
    .await
}

#[tokio::test]
async fn an_error_event_never_stands_behind_half_an_event() {
    let mut gateway = Gateway::start().await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    exchange.begin_events().await;
    exchange.send_chunk(EVENT).await;
    exchange
        .send_chunk("data: {\"choices\":[{\"delta\":{\"content\":\"Hel")
        .await;
    drop(exchange);
    let (body, whole) = body(answer).await;
    let rest = body.strip_prefix(EVENT).unwrap();
    let error: Value = serde_json::from_str(rest.strip_prefix("data: ").unwrap().trim_end()).unwrap();
    assert_eq!(error["error"]["code"], "upstream_unreachable");
    assert!(!whole);
}

#[tokio::test]
async fn behind_a_part_of_a_huge_event_nothing_is_said() {
    let mut gateway = Gateway::start().await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    exchange.begin_events().await;
    let part = format!("data: {}", "x".repeat(100_000));
    exchange.send_chunk(&part).await;
    let mut stream = answer.await.unwrap().into_body();
    let mut body = Vec::new();
    while body.len() < part.len() {
        body.extend_from_slice(&next(&mut stream).await.unwrap().unwrap());
    }
    drop(exchange);
    assert!(next(&mut stream).await.is_err());
    assert_eq!(body, part.as_bytes());
}

#[tokio::test]
async fn a_failure_that_is_told_in_a_huge_event_is_one_as_any_other() {
    for rules in [false, true] {
        let mut gateway = with_rules(rules).await;
        let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
        exchange.begin_events().await;
        let message = "x".repeat(100_000);
        let failed =
            format!("data: {{\"error\":{{\"message\":\"{message}\",\"code\":\"server_error\"}}}}\n\n");
        exchange.send_chunk(&format!("{EVENT}{failed}{DONE}")).await;
        exchange.send(b"0\r\n\r\n").await;
        assert_eq!(body(answer).await, (format!("{EVENT}{failed}"), false), "{rules}");
        let failures = r#"proofgate_exchanges_total{outcome="upstream_error"}"#;
        gateway.wait_for_metric(failures, 1).await;
    }
}

#[tokio::test]
async fn a_byte_order_mark_before_a_stream_arrives_and_hides_nothing_of_its_first_event() {
    let failed = "data: {\"error\":{\"message\":\"busy\",\"code\":\"server_error\"}}\n\n";
    let usage = format!("data: {{\"choices\":[],{USAGE}}}\n\n");
    for (first, left, outcome) in [
        (failed, [failed, ""], "upstream_error"),
        (&usage[..], ["", DONE], "complete"),
        (DONE, [DONE, ""], "complete"),
    ] {
        for rules in [false, true] {
            let mut gateway = with_rules(rules).await;
            let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
            exchange.begin_events().await;
            exchange.send_chunk(&format!("\u{feff}{first}")).await;
            if first != DONE {
                exchange.send_chunk(DONE).await;
            }
            exchange.send(b"0\r\n\r\n").await;
            let expected = format!("\u{feff}{}", left.concat());
            assert_eq!(body(answer).await, (expected, outcome == "complete"), "{rules}");
            let outcome = format!("proofgate_exchanges_total{{outcome=\"{outcome}\"}}");
            gateway.wait_for_metric(&outcome, 1).await;
        }
    }
}

#[tokio::test]
async fn a_large_event_that_comes_byte_by_byte_costs_no_more_than_its_bytes() {
    let mut gateway = Gateway::start().await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    exchange.begin_events().await;
    // The text is searched for an error regardless of where it is inspected.
    let text = "x".repeat(60_000);
    let event =
        format!("data: {{\"error\":null,\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let chunks = event.bytes().map(|byte| format!("1\r\n{}\r\n", char::from(byte)));
    let sent = format!(
        "{}{:x}\r\n{DONE}\r\n0\r\n\r\n",
        chunks.collect::<String>(),
        DONE.len()
    );
    tokio::spawn(async move { exchange.send(sent.as_bytes()).await });
    assert_eq!(body(answer).await, (format!("{event}{DONE}"), true));
}

#[tokio::test]
async fn what_the_rules_cannot_hold_of_a_huge_event_is_said_behind_the_event_before() {
    let mut gateway = Gateway::with(|config| {
        enforce(config);
        config["limits"]["bodyBytes"] = 100_000.into();
    })
    .await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    exchange.begin_events().await;
    exchange.send_chunk(EVENT).await;
    // Until its choice has finished, the text may continue to a word that a rule searches for.
    exchange
        .send_chunk("data: {\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}]}\n\n")
        .await;
    exchange
        .send_chunk(&format!("data: {}", "x".repeat(110_000)))
        .await;
    let (body, whole) = body(answer).await;
    assert!(
        body.starts_with(EVENT) && body.contains("\n\ndata: {\"error\":"),
        "{body}"
    );
    assert!(body.contains("response_too_large") && !whole);
}

#[tokio::test]
async fn events_that_come_in_parts_arrive_as_they_were() {
    for rules in [false, true] {
        let mut gateway = with_rules(rules).await;
        let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
        exchange.begin_events().await;
        let stream = format!(": hello\r\n\r\n{EVENT}{EVENT}{DONE}");
        for part in stream.as_bytes().chunks(7) {
            exchange.send_chunk(std::str::from_utf8(part).unwrap()).await;
        }
        exchange.send(b"0\r\n\r\n").await;
        assert_eq!(body(answer).await, (stream, true));
    }
}

#[tokio::test]
async fn a_stream_is_whole_with_its_end_marker_whatever_its_provider_does_then() {
    for (end, closes) in [
        (DONE, true),
        (DONE, false),
        ("data: [DONE]\n", true),
        ("data: [DONE]", false),
    ] {
        let mut gateway = Gateway::start().await;
        let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
        exchange.begin_events().await;
        exchange.send_chunk(&format!("{EVENT}{end}")).await;
        let kept = (!closes).then_some(exchange);
        assert_eq!(body(answer).await, (format!("{EVENT}{end}"), true));
        gateway.wait_for_metric(COMPLETE, 1).await;
        drop(kept);
    }
}

/// Sends comments of `length` bytes until the connection is closed.
pub async fn go_on(mut exchange: Exchange, length: usize, pause: Duration) {
    let comment = format!("{length:x}\r\n:{}\n\n\r\n", "x".repeat(length - 3));
    let mut pause = tokio::time::interval(pause);
    while exchange.try_send(comment.as_bytes()).await {
        pause.tick().await;
    }
}

#[tokio::test]
async fn a_provider_that_goes_on_behind_its_end_marker_loses_its_connection_and_nothing_else() {
    for (length, pause) in [(6, 20), (10_000, 1)] {
        for rules in [false, true] {
            let mut gateway = with_rules(rules).await;
            let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
            exchange.begin_events().await;
            exchange.send_chunk(&format!("{EVENT}{DONE}")).await;
            let going_on = tokio::spawn(go_on(exchange, length, Duration::from_millis(pause)));
            let (body, whole) = body(answer).await;
            assert!(whole && body.starts_with(&format!("{EVENT}{DONE}")), "{body}");
            gateway.wait_for_metric(COMPLETE, 1).await;
            going_on.await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_behind_its_end_marker_has_no_length_whatever_its_provider_said() {
    let mut gateway = Gateway::start().await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n";
    exchange.send(format!("{head}{EVENT}{DONE}").as_bytes()).await;
    let going_on = tokio::spawn(go_on(exchange, 10_000, Duration::from_millis(1)));
    let answer = read(answer).await.unwrap();
    assert!(answer.body.starts_with(format!("{EVENT}{DONE}").as_bytes()));
    assert!(!answer.headers.contains_key("content-length"));
    assert_eq!(completion(&gateway, id(&answer)).await["outcome"], "complete");
    going_on.await.unwrap();
}

#[tokio::test]
async fn an_end_marker_whose_last_byte_comes_alone_and_without_an_empty_line_is_one_while_its_provider_stays()
{
    for heartbeat in [None, Some(0.05)] {
        let mut gateway = Gateway::with(|config| {
            if let Some(heartbeat) = heartbeat {
                config["timeouts"]["heartbeatSeconds"] = heartbeat.into();
            }
        })
        .await;
        let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
        exchange.begin_events().await;
        let end = format!(": {}\ndata: [DONE", "x".repeat(60));
        exchange.send_chunk(&format!("{EVENT}{end}")).await;
        exchange.send_chunk("]").await;
        let (body, whole) = body(answer).await;
        // Before slow events, there may be a heartbeat.
        assert_eq!(body.replace(": hb\n", ""), format!("{EVENT}{end}]"));
        assert!(whole);
        gateway.wait_for_metric(COMPLETE, 1).await;
        drop(exchange);
    }
}

#[tokio::test]
async fn a_connection_serves_again_when_its_stream_has_ended_as_it_should() {
    let mut gateway = Gateway::start().await;
    let (mut client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    exchange.begin_events().await;
    exchange.send_chunk(DONE).await;
    exchange.send(b"0\r\n\r\n").await;
    assert_eq!(body(answer).await, (DONE.to_owned(), true));
    let answer = client.send_chat(false).await;
    exchange.next_request().await;
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_streams_usage_is_asked_for_recorded_and_kept_from_a_client_that_did_not_ask() {
    for rules in [false, true] {
        let mut gateway = Gateway::with(|config| {
            config["tenants"][0]["limits"] = json!({"tokensPerMinute": 1000});
            if rules {
                enforce(config);
            }
        })
        .await;
        let sent = chat(10, true);
        let (_client, answer, mut exchange) = begin(&mut gateway, &sent).await;
        let received: Value = serde_json::from_slice(&exchange.body).unwrap();
        assert_eq!(received["stream_options"], json!({"include_usage": true}));
        exchange.begin_events().await;
        let usage = format!("data: {{\"choices\":[],{USAGE}}}\n\n");
        exchange.send_chunk(&format!("{EVENT}{usage}{EVENT}{DONE}")).await;
        exchange.send(b"0\r\n\r\n").await;
        let answer = read(answer).await.unwrap();
        assert_eq!(answer.body, format!("{EVENT}{EVENT}{DONE}").as_bytes());
        let completion = completion(&gateway, id(&answer)).await;
        assert_eq!(
            completion["usage"],
            json!({"prompt_tokens": 7, "completion_tokens": 9})
        );
        assert_eq!(completion["charged"], 16);
        assert_eq!(completion["bytes"], answer.body.len());
    }
}

#[tokio::test]
async fn a_client_that_asks_for_usage_gets_it() {
    let mut gateway = Gateway::start().await;
    let sent =
        json!({"model": MODEL, "messages": [], "stream": true, "stream_options": {"include_usage": true}});
    let sent = serde_json::to_vec(&sent).unwrap();
    let (_client, answer, mut exchange) = begin(&mut gateway, &sent).await;
    assert_eq!(exchange.body, sent);
    exchange.begin_events().await;
    let stream = format!("{EVENT}data: {{\"choices\":[],{USAGE}}}\n\n{DONE}");
    exchange.send_chunk(&stream).await;
    exchange.send(b"0\r\n\r\n").await;
    assert_eq!(body(answer).await, (stream, true));
}

#[tokio::test]
async fn a_provider_that_knows_no_stream_options_is_not_asked_for_usage() {
    let mut gateway = Gateway::with(|config| config["providers"][0]["streamUsage"] = "Leave".into()).await;
    let sent = chat(10, true);
    let (_client, answer, mut exchange) = begin(&mut gateway, &sent).await;
    assert_eq!(exchange.body, sent);
    exchange.begin_events().await;
    let stream = format!("data: {{\"choices\":[],{USAGE}}}\n\n{DONE}");
    exchange.send_chunk(&stream).await;
    exchange.send(b"0\r\n\r\n").await;
    assert_eq!(body(answer).await, (stream, true));
}

#[tokio::test]
async fn a_redacted_request_asks_for_usage_too() {
    for options in [json!(null), json!({"include_usage": false, "x": 1})] {
        let mut gateway = Gateway::with(|config| {
            enforce(config);
            config["policy"]["rules"][0]["target"] = "Request".into();
        })
        .await;
        let message = json!({"role": "user", "content": "I am johndoe"});
        let mut sent =
            json!({"messages": [message], "model": MODEL, "stream": true, "stream_options": options});
        if options.is_null() {
            sent.as_object_mut().unwrap().remove("stream_options");
        }
        let (_client, _answer, exchange) = begin(&mut gateway, &serde_json::to_vec(&sent).unwrap()).await;
        let received: Value = serde_json::from_slice(&exchange.body).unwrap();
        assert_eq!(received["stream_options"]["include_usage"], true);
        assert!(!received.to_string().contains("johndoe"));
    }
}

#[tokio::test]
async fn usage_is_read_wherever_it_stands_in_an_answer() {
    let mut gateway = Gateway::start().await;
    let (_client, answer, exchange) = begin(&mut gateway, &chat(10, false)).await;
    let text = "x".repeat(50_000);
    let document = format!("{{{USAGE},\"choices\":[{{\"message\":{{\"content\":\"{text}\"}}}}]}}");
    exchange.answer(document.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    let completion = completion(&gateway, id(&answer)).await;
    assert_eq!(
        completion["usage"],
        json!({"prompt_tokens": 7, "completion_tokens": 9})
    );
}

/// Sends a response with this `Content-Type` line, or without one, as one body.
async fn send(exchange: &mut Exchange, kind: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{kind}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange.send(head.as_bytes()).await;
}

#[tokio::test]
async fn a_stream_of_events_is_judged_as_one_whatever_its_content_type_and_whether_it_was_asked_for() {
    let part = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let stream = format!("{}{}{DONE}", part("john"), part("doe"));
    for kind in [
        "Content-Type: text/plain\r\n",
        "Content-Type: application/octet-stream\r\n",
        "Content-Type: application/json\r\n",
        "",
    ] {
        for asked in [true, false] {
            let mut gateway = Gateway::with(enforce).await;
            let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, asked)).await;
            send(&mut exchange, kind, &stream).await;
            let (body, whole) = body(answer).await;
            assert!(whole && body.contains(DONE), "{kind:?} {body}");
            assert!(!body.contains("john") && !body.contains("doe"), "{kind:?} {body}");
        }
    }
}

#[tokio::test]
async fn what_is_neither_a_stream_nor_an_object_is_no_answer_to_rules_that_must_clear_it() {
    for (kind, text) in [
        ("Content-Type: text/plain\r\n", "johndoe"),
        ("Content-Type: application/json\r\n", "[\"johndoe\"]"),
        ("", " data: {}\n\n"),
        ("", "\n\n"),
    ] {
        for asked in [true, false] {
            let mut gateway = Gateway::with(enforce).await;
            let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, asked)).await;
            send(&mut exchange, kind, text).await;
            let answer = read(answer).await.unwrap();
            assert_eq!(
                (answer.status.as_u16(), answer.code().as_str()),
                (502, "response_malformed")
            );
        }
    }
}

#[tokio::test]
async fn an_object_that_calls_itself_a_stream_is_judged_as_the_object_that_it_is() {
    let mut gateway = Gateway::with(enforce).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    let document = "{\n\"choices\":[{\"message\":{\"content\":\"jo\\u0068ndoe\"}}]}";
    send(&mut exchange, "Content-Type: text/event-stream\r\n", document).await;
    let (body, whole) = body(answer).await;
    let document: Value = serde_json::from_str(&body).unwrap();
    assert!(whole);
    assert_ne!(document["choices"][0]["message"]["content"], "johndoe");
}

#[tokio::test]
async fn an_error_page_of_a_provider_still_arrives_under_rules() {
    let mut gateway = Gateway::with(enforce).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    exchange
        .send(b"HTTP/1.1 500 No\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n<p>No</p>")
        .await;
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (500, &b"<p>No</p>"[..])
    );
}

#[tokio::test]
async fn without_rules_an_answer_of_any_kind_arrives_as_it_came() {
    for text in ["johndoe", "data: {}\n\ndata: [DONE]\n\n", " ", "{"] {
        let mut gateway = Gateway::start().await;
        let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, false)).await;
        send(&mut exchange, "Content-Type: text/plain\r\n", text).await;
        let answer = read(answer).await.unwrap();
        assert_eq!(answer.body, text.as_bytes());
        assert_eq!(answer.headers["content-type"], "text/plain");
    }
}

#[tokio::test]
async fn an_answer_that_goes_on_for_ever_ends_when_its_time_is_over() {
    let mut gateway = Gateway::with(|config| config["timeouts"]["answerSeconds"] = 1.into()).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    exchange.begin_events().await;
    let dripping = tokio::spawn(async move {
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        while exchange.try_send(b"4\r\n: x\n\r\n").await {
            pause.tick().await;
        }
    });
    let (body, whole) = body(answer).await;
    assert!(body.contains("upstream_answer_timeout") && !whole, "{body}");
    gateway.wait_for_metric(TIMEOUTS, 1).await;
    dripping.await.unwrap();
}

#[tokio::test]
async fn endless_interim_answers_end_when_the_time_of_the_answer_is_over() {
    let mut gateway = Gateway::with(|config| config["timeouts"]["answerSeconds"] = 1.into()).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, true)).await;
    let dripping = tokio::spawn(async move {
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        while exchange.try_send(b"HTTP/1.1 102 Processing\r\n\r\n").await {
            pause.tick().await;
        }
    });
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (504, "upstream_answer_timeout")
    );
    gateway.wait_for_metric(TIMEOUTS, 1).await;
    dripping.await.unwrap();
}

#[tokio::test]
async fn what_a_provider_says_of_the_gateways_key_is_not_the_clients_to_read() {
    for status in [401, 403] {
        let mut gateway = Gateway::start().await;
        let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, false)).await;
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-abc***xyz"}}"#;
        let head = format!(
            "HTTP/1.1 {status} No\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        exchange.send(head.as_bytes()).await;
        let answer = read(answer).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (502, "upstream_auth_failed")
        );
        assert_eq!(answer.headers["x-should-retry"], "false");
        assert!(!String::from_utf8_lossy(&answer.body).contains("sk-"));
        let completion = completion(&gateway, id(&answer)).await;
        assert_eq!(completion["upstream_status"], status);
        assert_eq!(completion["outcome"], "upstream_error");
    }
}

#[tokio::test]
async fn fields_that_speak_of_the_gateways_host_or_account_or_steer_a_proxy_before_it_are_withheld() {
    let mut gateway = Gateway::start().await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, false)).await;
    let withheld = [
        "strict-transport-security",
        "clear-site-data",
        "nel",
        "report-to",
        "location",
        "openai-organization",
        "openai-project",
        "www-authenticate",
        "refresh",
        "set-cookie",
        "x-accel-redirect",
        "x-accel-buffering",
        "x-sendfile",
        "surrogate-control",
        "cdn-cache-control",
    ];
    let fields = withheld.map(|name| format!("{name}: x\r\n")).concat();
    exchange
        .send(
            format!("HTTP/1.1 200 OK\r\n{fields}openai-version: 1\r\nContent-Length: 2\r\n\r\n{{}}")
                .as_bytes(),
        )
        .await;
    let answer = read(answer).await.unwrap();
    for name in withheld {
        assert!(!answer.headers.contains_key(name), "{name}");
    }
    assert_eq!(answer.headers["openai-version"], "1");
}

#[tokio::test]
async fn an_answer_with_as_many_fields_as_a_provider_may_send_arrives_over_http_2() {
    let mut gateway = Gateway::start().await;
    let (_client, answer, mut exchange) = begin(&mut gateway, &chat(10, false)).await;
    let fields: String = (0..63).map(|number| format!("x-field-{number}: x\r\n")).collect();
    exchange
        .send(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\n{{}}").as_bytes())
        .await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.headers["x-field-62"], "x");
}

#[tokio::test]
async fn comments_of_a_provider_stay_comments_and_become_no_events() {
    // mnfst/llm-gateway#2053: OpenRouter and DeepSeek send them to keep a connection alive.
    const COMMENT: &str = ": OPENROUTER PROCESSING\n\n";
    let stream = format!("{COMMENT}{EVENT}: keep-alive\n{EVENT}{COMMENT}{DONE}");
    let ask = chat(10, true);
    for scrutinised in [false, true] {
        let mut gateway = Gateway::with(|config| {
            if scrutinised {
                enforce(config);
            }
        })
        .await;
        let (_client, answer, mut exchange) = begin(&mut gateway, &ask).await;
        send(&mut exchange, "Content-Type: text/event-stream\r\n", &stream).await;
        assert_eq!(body(answer).await, (stream.clone(), true));
    }
    // A client of messages does not get these comments as events.
    let mut gateway = Gateway::start().await;
    let message = json!({"model": MODEL, "max_tokens": 5, "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let message = message.to_string().into_bytes();
    let mut request = post(Some(message.len()));
    *request.uri_mut() = "https://gateway.test/v1/messages".parse().unwrap();
    let mut client = Client::connect(&gateway).await;
    let answer = client.send(request, &message).await;
    let mut exchange = gateway.upstream.exchange().await;
    let last = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    send(
        &mut exchange,
        "Content-Type: text/event-stream\r\n",
        &format!("{COMMENT}{EVENT}{COMMENT}{last}{DONE}"),
    )
    .await;
    let (said, whole) = body(answer).await;
    assert!(whole && said.starts_with("event: message_start\n"), "{said}");
    assert!(
        !said.contains("PROCESSING") && !said.contains("keep-alive"),
        "{said}"
    );
}
