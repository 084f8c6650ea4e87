//! Faults of a provider over HTTP/2, and their effects on the client, in the records, and at the
//! provider.

use bytes::Bytes;
use h2::Reason;
use http::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use crate::client::{Answer, Client, read};
use crate::gateway::{Gateway, MODEL, PATIENCE, SECOND};
use crate::http2_provider::{Provider, acceptor, gateway};

const ANSWER: &str = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// Returns the completion record of a response.
async fn completion(gateway: &Gateway, answer: &Answer) -> Value {
    let id = answer.headers["x-request-id"].to_str().unwrap().to_owned();
    completion_of(gateway, id).await
}

async fn completion_of(gateway: &Gateway, id: String) -> Value {
    let worker = std::sync::Arc::clone(&gateway.worker);
    let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, PATIENCE));
    let evidence = evidence.await.unwrap().unwrap();
    serde_json::from_str(&evidence.last().unwrap().record).unwrap()
}

fn told(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.code())
}

fn unreachable() -> (u16, String) {
    (502, "upstream_unreachable".to_owned())
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_at_once() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    provider.call().await.respond.send_reset(Reason::REFUSED_STREAM);
    provider.call().await.answer(ANSWER);
    assert_eq!(read(answer).await.unwrap().body, ANSWER.as_bytes());
}

#[tokio::test]
async fn a_request_that_is_refused_again_and_again_costs_nothing() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    let refusing = async {
        loop {
            provider.call().await.respond.send_reset(Reason::REFUSED_STREAM);
        }
    };
    let answer = tokio::select! {
        answer = read(answer) => answer.unwrap(),
        () = refusing => unreachable!(),
    };
    assert_eq!(told(&answer), unreachable());
    let completion = completion(&gateway, &answer).await;
    assert_eq!(completion["outcome"], "upstream_error");
    assert_eq!(completion["charged"], 0);
}

#[tokio::test]
async fn a_request_that_is_refused_is_answered_elsewhere() {
    let mut provider = Provider::start().await;
    let mut gateway = provider
        .gateway_with("Http2", |document| {
            let mut second = document["providers"][0].clone();
            second["name"] = json!("second");
            second["http"] = json!("Http1");
            // A placeholder, which the URL of the gateway's mock upstream replaces below.
            second["baseURL"] = json!("http://127.0.0.1:1/v1");
            document["providers"].as_array_mut().unwrap().push(second);
            document["models"][0]["routes"] = json!([
                {"provider": "stand-in", "upstreamModel": MODEL, "weight": 1},
                {"provider": "second", "upstreamModel": MODEL, "weight": 0},
            ]);
            document["models"][0]["fallbackOn"] = json!(["Unreachable"]);
        })
        .await;
    let url = gateway.upstream.url().to_owned();
    gateway.change(|document| document["providers"][1]["baseURL"] = json!(url));
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    for _ in 0..2 {
        provider.call().await.respond.send_reset(Reason::REFUSED_STREAM);
    }
    gateway.upstream.exchange().await.answer(ANSWER.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.body, ANSWER.as_bytes());
    assert_eq!(answer.headers["x-proofgate-attempts"], "2");
}

#[tokio::test]
async fn a_request_that_is_reset_otherwise_may_have_been_acted_on_and_is_not_sent_again() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL, Reason::NO_ERROR] {
        let answer = client.send_chat(false).await;
        let mut call = provider.call().await;
        call.rest().await.unwrap();
        call.respond.send_reset(reason);
        let answer = read(answer).await.unwrap();
        assert_eq!(told(&answer), unreachable());
        let completion = completion(&gateway, &answer).await;
        assert_ne!(completion["charged"], 0, "the reservation stands");
        assert!(!provider.has_call());
    }
}

#[tokio::test]
async fn a_session_that_breaks_off_takes_its_requests_with_it_and_none_is_sent_again() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let (one, two) = (client.send_chat(false).await, client.send_chat(false).await);
    for _ in 0..2 {
        provider.call().await.rest().await.unwrap();
    }
    let three = client.send_chat(false).await;
    provider.call().await.drop_session();
    for answer in [one, two, three] {
        let answer = read(answer).await.unwrap();
        assert_eq!(told(&answer), unreachable());
    }
    assert!(!provider.has_call());
    let answer = client.send_chat(false).await;
    let mut call = provider.call().await;
    assert_eq!(call.session, 2);
    call.answer(ANSWER);
    assert_eq!(read(answer).await.unwrap().status, 200);
}

/// Starts a streamed or unary response and lets it fail. Returns the client's response and the
/// record.
async fn broken(
    stream: bool,
    length: Option<usize>,
    goes_wrong: impl FnOnce(h2::SendStream<Bytes>),
) -> (Result<Answer, h2::Error>, Value) {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(stream).await;
    let mut call = provider.call().await;
    call.rest().await.unwrap();
    let kind = if stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let mut sending = call.begin(200, kind, length);
    let begin = match stream {
        true => "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n",
        false => "{\"choices\"",
    };
    sending.send_data(begin.into(), false).unwrap();
    let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let (parts, mut body) = answer.into_parts();
    // A part of the response was sent.
    let first = crate::client::next(&mut body).await.unwrap().unwrap();
    goes_wrong(sending);
    let mut bytes = first.to_vec();
    let ended = loop {
        match crate::client::next(&mut body).await {
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let answer = ended.map(|()| Answer {
        status: parts.status,
        headers: parts.headers,
        body: bytes,
    });
    (answer, completion_of(&gateway, id).await)
}

#[tokio::test]
async fn an_answer_that_is_reset_in_the_middle_never_looks_whole() {
    for (stream, length) in [(true, None), (false, None), (false, Some(100))] {
        for reason in [Reason::INTERNAL_ERROR, Reason::NO_ERROR, Reason::REFUSED_STREAM] {
            let (answer, completion) = broken(stream, length, |mut sending| sending.send_reset(reason)).await;
            assert!(answer.is_err(), "{stream} {length:?} {reason:?}");
            assert_eq!(completion["outcome"], "upstream_error");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_as_long_as_it_says_never_looks_whole() {
    for rest in ["", ":[]}", ":[]} and more than it said"] {
        let wrong = |mut sending: h2::SendStream<Bytes>| sending.send_data(rest.into(), true).unwrap();
        let (answer, completion) = broken(false, Some(20), wrong).await;
        assert!(answer.is_err(), "{rest}");
        assert_eq!(completion["outcome"], "upstream_error");
    }
}

#[tokio::test]
async fn heads_that_are_too_large_are_no_answers() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    for (fields, bytes) in [(10, 10_000), (200, 1)] {
        let answer = client.send_chat(false).await;
        let mut call = provider.call().await;
        call.rest().await.unwrap();
        let mut response = Response::builder().status(200);
        for field in 0..fields {
            response = response.header(format!("x-{field}"), "x".repeat(bytes));
        }
        call.respond
            .send_response(response.body(()).unwrap(), true)
            .unwrap();
        assert_eq!(told(&read(answer).await.unwrap()), unreachable());
    }
}

/// Returns the status, the code and the outcome of a request to which the provider does not
/// respond.
async fn waits(gateway: &Gateway, begin: impl AsyncFnOnce()) -> (u16, String, Value) {
    let mut client = Client::connect(gateway).await;
    let answer = client.send_chat(false).await;
    begin().await;
    let answer = read(answer).await.unwrap();
    let completion = completion(gateway, &answer).await;
    let (status, code) = told(&answer);
    (status, code, completion)
}

#[tokio::test]
async fn a_provider_that_is_silent_ends_with_the_patience_for_it_wherever_it_is() {
    let short = |name: &'static str, seconds: f64| {
        move |document: &mut Value| document["providers"][0]["timeouts"] = json!({name: seconds})
    };
    // The provider completes the TLS handshake and sends no HTTP/2 frames.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let mute = gateway(&url, "Http2", short("connectSeconds", 1.0)).await;
    let accepted = async || accept(&listener).await;
    let mut held = None;
    let (status, code, completion) = waits(&mute, async || held = Some(accepted().await)).await;
    assert_eq!((status, &*code), (504, "upstream_connect_timeout"));
    assert_eq!(completion["charged"], 0);

    let mut provider = Provider::start().await;
    let patient = provider
        .gateway_with("Http2", short("firstByteSeconds", 1.0))
        .await;
    let mut held = None;
    let (status, code, completion) = waits(&patient, async || held = Some(provider.call().await)).await;
    assert_eq!((status, &*code), (504, "upstream_first_byte_timeout"));
    assert_ne!(completion["charged"], 0, "it has the whole request");

    let mut provider = Provider::start().await;
    let patient = provider.gateway_with("Http2", short("idleSeconds", 0.2)).await;
    let mut held = None;
    let (status, code, _) = waits(&patient, async || {
        let mut call = provider.call().await;
        held = Some(call.begin(200, "application/json", Some(100)));
    })
    .await;
    assert_eq!((status, &*code), (504, "upstream_idle_timeout"));
}

#[tokio::test]
async fn a_provider_that_takes_nothing_of_a_request_costs_nothing() {
    let mut settings = h2::server::Builder::new();
    settings.initial_window_size(10);
    let mut provider = Provider::with(true, settings).await;
    let gateway = provider
        .gateway_with("Http2", |document| {
            document["providers"][0]["timeouts"] = json!({"firstByteSeconds": 1});
        })
        .await;
    let mut held = None;
    let (status, code, completion) = waits(&gateway, async || held = Some(provider.call().await)).await;
    assert_eq!((status, &*code), (504, "upstream_first_byte_timeout"));
    assert_eq!(completion["charged"], 0);
}

#[tokio::test]
async fn a_provider_that_is_not_trusted_or_may_not_be_reached_is_sent_nothing() {
    let changes: [fn(&mut Value); 2] = [
        |document| document["providers"][0]["caPem"] = json!(SECOND[0]),
        |document| document["egress"] = json!({"allow": ["10.0.0.0/8"]}),
    ];
    for change in changes {
        let mut provider = Provider::start().await;
        let gateway = provider.gateway_with("Http2", change).await;
        let mut client = Client::connect(&gateway).await;
        let answer = read(client.send_chat(false).await).await.unwrap();
        assert_eq!(told(&answer), unreachable());
        assert!(!provider.has_call());
    }
}

#[tokio::test]
async fn a_provider_that_asks_for_a_certificate_is_shown_it() {
    let certificate = include_str!("certificates/client.crt");
    let mut provider = Provider::for_client(certificate).await;
    let show = |document: &mut Value| {
        document["providers"][0]["clientCertificatePem"] = json!(certificate);
        document["providers"][0]["clientKeyPem"] = json!(include_str!("certificates/client.key"));
    };
    let gateway = provider.gateway_with("Http2", show).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    provider.call().await.answer(ANSWER);
    assert_eq!(read(answer).await.unwrap().status, 200);
    let without = provider.gateway().await;
    let answer = Client::connect(&without).await.send_chat(false).await;
    assert_eq!(told(&read(answer).await.unwrap()), unreachable());
}

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

async fn accept(listener: &TcpListener) -> TlsStream<TcpStream> {
    let (tcp, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    acceptor(&[b"h2"]).accept(tcp).await.unwrap()
}

fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, 0], &stream.to_be_bytes(), payload].concat()
}

/// Reads frames until one of this type arrives.
async fn read_until(stream: &mut TlsStream<TcpStream>, wanted: u8) {
    let reading = async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            stream.read_exact(&mut vec![0; length as usize]).await.unwrap();
            if head[3] == wanted {
                return;
            }
        }
    };
    timeout(PATIENCE, reading).await.unwrap();
}

/// Returns a session whose provider sends `frames` after the start of a request.
async fn session(listener: &TcpListener, frames: &[u8]) -> TlsStream<TcpStream> {
    let mut stream = accept(listener).await;
    stream.write_all(&frame(SETTINGS, 0, b"")).await.unwrap();
    stream.read_exact(&mut [0; 24]).await.unwrap();
    read_until(&mut stream, HEADERS).await;
    stream.write_all(frames).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

#[tokio::test]
async fn a_request_behind_the_last_one_that_a_provider_takes_is_sent_again_on_another_session() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let gateway = gateway(&url, "Http2", |_| ()).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    // The last stream id is 0: the provider has processed no stream.
    let _left = session(&listener, &frame(GOAWAY, 0, &[0; 8])).await;
    // HPACK: index 8 of the static table is `:status: 200`.
    let head = [&[0, 0, 1, HEADERS, 4, 0, 0, 0, 1][..], &[0x88]].concat();
    let data = [&[0, 0, 2, 0, 1, 0, 0, 0, 1][..], b"{}"].concat();
    let _answered = session(&listener, &[head, data].concat()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"{}"[..]));
}

#[tokio::test]
async fn a_request_that_a_provider_takes_leave_with_may_have_been_acted_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let gateway = gateway(&url, "Http2", |_| ()).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    // The last stream id is 1, the gateway's stream; then the session ends with INTERNAL_ERROR.
    let mut stream = session(&listener, &frame(GOAWAY, 0, &[0, 0, 0, 1, 0, 0, 0, 2])).await;
    stream.shutdown().await.unwrap();
    drop(stream);
    let answer = read(answer).await.unwrap();
    assert_eq!(told(&answer), unreachable());
    let completion = completion(&gateway, &answer).await;
    assert_eq!(completion["upstream_status"], Value::Null);
}

#[tokio::test]
async fn what_no_provider_may_send_ends_the_session_and_its_requests() {
    let mut promise = frame(5, 1, &[0, 0, 0, 2, 0x82]);
    // END_HEADERS
    promise[4] = 4;
    let endless = [&[0, 0, 0, HEADERS, 0, 0, 0, 0, 1][..]]
        .into_iter()
        .chain(std::iter::repeat_n(&[0, 0, 0, 9, 0, 0, 0, 0, 1][..], 5000))
        .collect::<Vec<_>>()
        .concat();
    for frames in [promise, endless] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/v1", listener.local_addr().unwrap());
        let gateway = gateway(&url, "Http2", |_| ()).await;
        let mut client = Client::connect(&gateway).await;
        let answer = client.send_chat(false).await;
        let mut stream = session(&listener, &frames).await;
        assert_eq!(told(&read(answer).await.unwrap()), unreachable());
        read_until(&mut stream, GOAWAY).await;
    }
}
