//! Images and speech: large responses, and responses that are not text.

use http::Request;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::client::{Answer, Client, read};
use crate::gateway::{ACME, BODY_BYTES, Gateway, MODEL};
use crate::relayed::{completion, id};
use crate::uploads::{self, LONG, Slow, answer, field, file, form, plain, read_until, records};
use crate::upstream::Exchange;

const IMAGES: &str = "/v1/images/generations";
const EDITS: &str = "/v1/images/edits";
const SPEECH: &str = "/v1/audio/speech";

/// A gateway whose rules redact a word in responses, or without rules.
async fn gateway(with_rules: bool) -> Gateway {
    Gateway::with(|config| {
        if with_rules {
            config["policy"] = json!({"mode": "Enforce", "rules": [
                {"id": "name", "reason": "A name.", "target": "Response", "literals": ["johndoe"], "score": 1, "action": "Redact"}
            ]});
        }
    })
    .await
}

async fn begin(
    gateway: &mut Gateway,
    path: &str,
    document: &Value,
) -> (Client, h2::client::ResponseFuture, Exchange) {
    let body = document.to_string().into_bytes();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("content-length", body.len())
        .body(())
        .unwrap();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request, &body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

fn image(bytes: usize, revised: &str) -> String {
    let data = "iVBORw0KGgoAAAANSUhEUgAA".repeat(bytes / 24);
    format!(
        r#"{{"created":1,"data":[{{"b64_json":"{data}","revised_prompt":"{revised}"}}],"usage":{{"input_tokens":5,"output_tokens":70,"total_tokens":75}}}}"#
    )
}

async fn asked_for_image(gateway: &mut Gateway, body: &str) -> Answer {
    let (_client, answer, exchange) = begin(
        gateway,
        IMAGES,
        &json!({"model": MODEL, "prompt": "a cat", "n": 1}),
    )
    .await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/images/generations HTTP/1.1\r\n")
    );
    // The client reads while the provider writes.
    let body = body.to_owned();
    tokio::spawn(async move { exchange.answer(body.as_bytes()).await });
    read(answer).await.unwrap()
}

#[tokio::test]
async fn an_image_of_several_mebibytes_comes_as_it_was_sent_and_its_usage_is_recorded() {
    for with_rules in [false, true] {
        let mut gateway = gateway(with_rules).await;
        let sent = image(6 << 20, "a tabby");
        let answer = asked_for_image(&mut gateway, &sent).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == sent.as_bytes(), "{with_rules}");
        let record = completion(&gateway, id(&answer)).await;
        assert_eq!(
            record["usage"],
            json!({"prompt_tokens": 5, "completion_tokens": 70})
        );
    }
}

#[tokio::test]
async fn rules_read_the_prompt_that_a_model_has_rewritten_and_no_picture() {
    let mut gateway = gateway(true).await;
    let answer = asked_for_image(&mut gateway, &image(2 << 20, "a cat of johndoe")).await;
    assert_eq!(answer.status, 200, "{}", answer.code());
    let told: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(told["data"][0]["revised_prompt"], "a cat of [redacted:name]");
    assert_eq!(
        told["data"][0]["b64_json"].as_str().map(str::len),
        Some((2 << 20) / 24 * 24)
    );
}

#[tokio::test]
async fn images_that_rules_cannot_hold_are_refused_by_name() {
    let mut gateway = gateway(true).await;
    let answer = asked_for_image(&mut gateway, &image(BODY_BYTES + 24, "a tabby")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (502, "response_too_large")
    );
}

#[tokio::test]
async fn a_stream_of_large_images_is_whole_with_the_last_of_them() {
    for with_rules in [false, true] {
        let mut gateway = gateway(with_rules).await;
        let (_client, answer, mut exchange) = begin(
            &mut gateway,
            IMAGES,
            &json!({"model": MODEL, "prompt": "a cat", "stream": true, "partial_images": 1}),
        )
        .await;
        exchange.begin_events().await;
        let data = "iVBORw0KGgoAAAANSUhEUgAA".repeat(20_000);
        let mut sent = String::new();
        for (kind, more) in [
            ("partial_image", r#","partial_image_index":0"#),
            (
                "completed",
                r#","usage":{"input_tokens":5,"output_tokens":170,"total_tokens":175}"#,
            ),
        ] {
            let event = format!(
                "event: image_generation.{kind}\ndata: {{\"type\":\"image_generation.{kind}\",\"b64_json\":\"{data}\"{more}}}\n\n"
            );
            exchange.send_chunk(&event).await;
            sent.push_str(&event);
        }
        // The provider ends its transfer late; the response is complete before.
        let answer = read(answer).await.unwrap();
        assert!(answer.body == sent.as_bytes());
        let record = completion(&gateway, id(&answer)).await;
        assert_eq!(
            (&record["outcome"], &record["usage"]["completion_tokens"]),
            (&json!("complete"), &json!(170))
        );
    }
}

#[tokio::test]
async fn a_recording_passes_rules_as_it_came_whatever_its_first_bytes_are() {
    // Samples may be any bytes, including bytes that look like the start of an event stream or an
    // object.
    for begin_of_recording in [&b":\x00\x01"[..], b"{\"audio\":", b"data: x\n\n", b"\xff\xfb\x90"] {
        for with_rules in [false, true] {
            let mut gateway = gateway(with_rules).await;
            let (_client, answer, mut exchange) = begin(
                &mut gateway,
                SPEECH,
                &json!({"model": MODEL, "input": "Hi", "voice": "alloy", "response_format": "pcm"}),
            )
            .await;
            assert!(exchange.head.contains("\r\nAccept: */*\r\n"), "{}", exchange.head);
            let mut sent = begin_of_recording.to_vec();
            sent.extend(b"\xff\x00\x80 johndoe ".repeat(20_000));
            exchange
                .send(b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n")
                .await;
            for piece in sent.chunks(50_000) {
                exchange.send(format!("{:x}\r\n", piece.len()).as_bytes()).await;
                exchange.send(piece).await;
                exchange.send(b"\r\n").await;
            }
            exchange.send(b"0\r\n\r\n").await;
            let answer = read(answer).await.unwrap();
            assert_eq!(answer.headers["content-type"], "audio/pcm");
            assert!(answer.body == sent, "{with_rules} {begin_of_recording:?}");
            let record = completion(&gateway, id(&answer)).await;
            let told = (&record["outcome"], &record["usage"]);
            assert_eq!(told, (&json!("complete"), &Value::Null));
        }
    }
}

#[tokio::test]
async fn what_a_provider_calls_no_recording_is_looked_at() {
    let mut gateway = gateway(true).await;
    let (_client, answer, mut exchange) = begin(
        &mut gateway,
        SPEECH,
        &json!({"model": MODEL, "input": "Hi", "voice": "alloy"}),
    )
    .await;
    exchange
        .send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\njohndoe")
        .await;
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (502, "response_malformed")
    );
}

#[tokio::test]
async fn a_recording_that_breaks_off_ends_so_for_the_client() {
    let mut gateway = gateway(false).await;
    let (_client, answer, mut exchange) = begin(
        &mut gateway,
        SPEECH,
        &json!({"model": MODEL, "input": "Hi", "voice": "alloy"}),
    )
    .await;
    exchange
        .send(b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\xff\xfb\x90\r\n")
        .await;
    drop(exchange);
    assert!(read(answer).await.is_err());
}

#[tokio::test]
async fn a_form_has_set_aside_what_as_many_answers_may_cost_as_it_asks_for() {
    let mut gateway =
        plain(|config| config["tenants"][0]["limits"] = json!({"tokensPerDay": 1_000_000})).await;
    let mut reserved = Vec::new();
    for n in ["1", "4"] {
        let body = form(&[field("model", MODEL), field("n", n), file("a.png", 10)]);
        let mut client = uploads::begin(&gateway, EDITS, body.len()).await;
        client.write_all(&body).await.unwrap();
        gateway.upstream.exchange().await.answer(b"{}").await;
        let answer = answer(&mut client).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        reserved.push(
            records(&gateway, &answer.id).await[0].0["reserved"]
                .as_u64()
                .unwrap(),
        );
    }
    // Each response may have a hundred tokens.
    assert_eq!(reserved[1] - reserved[0], 300);
}

#[tokio::test]
async fn a_form_that_asks_for_no_number_of_answers_or_for_several_in_a_stream_is_refused() {
    let gateway = plain(|_| ()).await;
    for (n, stream, code) in [
        ("2", "true", "invalid_value"),
        ("0", "false", "invalid_form"),
        ("", "false", "invalid_form"),
        ("+2", "false", "invalid_form"),
        ("4294967296", "false", "invalid_form"),
    ] {
        let parts = [("model", MODEL), ("n", n), ("stream", stream)].map(|(name, value)| field(name, value));
        let body = form(&[parts.concat(), file("a.png", 10)]);
        let mut client = uploads::begin(&gateway, EDITS, body.len()).await;
        client.write_all(&body).await.unwrap();
        let answer = answer(&mut client).await;
        assert_eq!((answer.status, &*answer.code()), (400, code), "{n} {stream}");
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn what_a_form_says_behind_a_long_file_does_not_make_it_another_request() {
    for (name, value, code) in [
        ("n", "2", Some("invalid_form")),
        ("stream", "true", Some("invalid_form")),
        ("n", "1", None),
        ("stream", "false", None),
    ] {
        let (slow, url) = Slow::start().await;
        let gateway = plain(|config| config["providers"][0]["baseURL"] = url.into()).await;
        let body = form(&[field("model", MODEL), file("a.png", LONG), field(name, value)]);
        let mut client = uploads::begin(&gateway, EDITS, body.len()).await;
        let mut seen = Vec::new();
        let reading = async {
            let mut upstream = slow.accept().await;
            // Reads to the end, or to the point where the request is cut off.
            read_until(&mut upstream, &mut seen, |seen| seen.ends_with(b"--limit--\r\n")).await;
            let answered =
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
            let _ = upstream.write_all(answered).await;
            upstream
        };
        let (sent, _upstream) = tokio::join!(client.write_all(&body), reading);
        sent.unwrap();
        let answer = answer(&mut client).await;
        match code {
            Some(code) => assert_eq!((answer.status, &*answer.code()), (400, code), "{name}"),
            None => assert_eq!(answer.status, 200, "{name}: {}", answer.body),
        }
        assert_eq!(seen.ends_with(b"--limit--\r\n"), code.is_none(), "{name}");
    }
}
