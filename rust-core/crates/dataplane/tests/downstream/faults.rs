//! Faults of a provider, and their effects on the client, in the records, and at every provider
//! that got the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::client::{Client, next, post};
use crate::gateway::{FIRST, Gateway, MODEL, PATIENCE, SECOND, chat};

/// Maximum silence of a provider within its response.
const SILENCE: Duration = Duration::from_millis(300);
/// Timeout for the start of a response. It is long enough for the provider to get the whole
/// request, even on a busy machine.
const FIRST_BYTE: Duration = Duration::from_secs(1);
/// Delay between two bytes of a slow but correct provider.
const DRIP: Duration = Duration::from_millis(5);
/// Tokens that a request uses: its prompt, approximately, and the response.
const USED: u64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The connection is refused.
    Refuses,
    /// The provider does not speak TLS.
    SpeaksNoTls,
    /// The provider has another certificate than the trusted one.
    ChangedItsCertificate,
    EndsBeforeTheHead,
    EndsInTheHead,
    EndsInTheBody,
    EndsInAnEvent,
    StallsBeforeTheHead,
    StallsInTheHead,
    StallsInTheBody,
    SpeaksNonsense,
    SaysTooLittle,
    RefusesEarly,
    LimitsTheRate,
    Fails,
    IsOverloaded,
    DoesNotKnowTheKey,
    FindsThePromptTooLong,
    /// The response has status 200 and is, or starts with, an error.
    BeginsWithAnError,
    /// The response has status 200 and reports a failure in the middle.
    FailsInTheMiddle,
    /// No fault: the provider is slow.
    Drips,
    /// No fault: the time before the response is longer than the allowed silence within it.
    ThinksForLong,
}

/// The model's fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fallback {
    None,
    /// A working provider, only for requests that cannot have been executed.
    Safe,
    /// A working provider, for all requests.
    Always,
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
struct Cell {
    status: u16,
    /// The code of an error, in a complete response or an event; empty without one.
    code: String,
    /// Whether the response looks complete.
    whole: bool,
    outcome: String,
    attempts: u64,
    charged: Charged,
    /// Number of complete requests at each provider.
    asked: [usize; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charged {
    Nothing,
    /// The usage that the provider reported.
    Usage,
    /// The reservation, because the usage is unknown.
    Reservation,
    /// The usage, plus the reservation of the previous attempt.
    UsageAndReservation,
    /// An unexpected number.
    Other(u64),
}

fn answer(stream: bool) -> String {
    let usage = r#""usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}"#;
    if stream {
        let chunk =
            |rest: &str| format!("data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",{rest}}}\n\n");
        let text = chunk(r#""choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}]"#);
        let last = chunk(&format!(r#""choices":[],{usage}"#));
        return format!("{text}{text}{last}data: [DONE]\n\n");
    }
    format!(
        r#"{{"id":"c","object":"chat.completion","choices":[{{"index":0,"message":{{"role":"assistant","content":"word"}},"finish_reason":"stop"}}],{usage}}}"#
    )
}

fn head(status: u16, stream: bool, framing: &str) -> String {
    let kind = if stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    format!("HTTP/1.1 {status} S\r\nContent-Type: {kind}\r\n{framing}\r\n\r\n")
}

fn error(status: u16, code: &str, field: &str) -> String {
    let body = json!({"error": {"message": "No.", "type": "t", "param": null, "code": code}}).to_string();
    let framing = format!("{field}Content-Length: {}", body.len());
    format!("{}{body}", head(status, false, &framing))
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// A provider with a fault, or without.
struct Provider {
    url: String,
    /// Number of requests that arrived completely.
    asked: Arc<AtomicUsize>,
    /// The bound socket of a provider that does not listen, which reserves its port.
    _unheard: Option<TcpSocket>,
}

impl Provider {
    async fn start(fault: Option<Fault>, stream: bool) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let scheme = match fault {
            Some(Fault::SpeaksNoTls | Fault::ChangedItsCertificate) => "https",
            _ => "http",
        };
        let (listener, unheard) = match fault {
            Some(Fault::Refuses) => (None, Some(socket)),
            _ => (Some(socket.listen(1024).unwrap()), None),
        };
        let provider = Provider {
            url: format!("{scheme}://{address}/v1"),
            asked: Arc::clone(&asked),
            _unheard: unheard,
        };
        if let Some(listener) = listener {
            tokio::spawn(async move {
                while let Ok((tcp, _)) = listener.accept().await {
                    tcp.set_nodelay(true).unwrap();
                    tokio::spawn(meet(tcp, fault, stream, Arc::clone(&asked)));
                }
            });
        }
        provider
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn meet(tcp: TcpStream, fault: Option<Fault>, stream: bool, asked: Arc<AtomicUsize>) {
    if fault != Some(Fault::ChangedItsCertificate) {
        // An error from the other side is ignored.
        let _ = serve(tcp, fault, stream, &asked).await;
        return;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(SECOND[0].as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(SECOND[1].as_bytes()).unwrap(),
        );
    let accepted = TlsAcceptor::from(Arc::new(config.unwrap())).accept(tcp).await;
    if let Ok(stream_of_bytes) = accepted {
        let _ = serve(stream_of_bytes, fault, stream, &asked).await;
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut tcp: S,
    fault: Option<Fault>,
    stream: bool,
    asked: &AtomicUsize,
) -> std::io::Result<()> {
    if fault == Some(Fault::SpeaksNoTls) {
        tcp.read_u8().await?;
        return tcp
            .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            .await;
    }
    let mut request = Vec::new();
    let body_at = loop {
        if tcp.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
        if let Some(at) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
    };
    if fault == Some(Fault::RefusesEarly) {
        tcp.write_all(error(413, "too_large", "Connection: close\r\n").as_bytes())
            .await?;
        tcp.shutdown().await?;
        // The remaining input is read, because otherwise a reset would discard the response.
        tokio::io::copy(&mut tcp, &mut tokio::io::sink()).await?;
        return Ok(());
    }
    let text = String::from_utf8_lossy(&request[..body_at]).to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.unwrap().trim().parse().unwrap();
    while request.len() < body_at + length {
        if tcp.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    asked.fetch_add(1, Ordering::SeqCst);
    let whole = answer(stream);
    let (framing, whole) = match stream {
        true => (
            "Transfer-Encoding: chunked".to_owned(),
            format!("{}0\r\n\r\n", chunk(&whole)),
        ),
        false => (format!("Content-Length: {}", whole.len()), whole),
    };
    let all = format!("{}{whole}", head(200, stream, &framing));
    let begin = all.len() - whole.len();
    let middle = begin + whole.len() / 2;
    let (said, stalls) = match fault {
        None => (all, false),
        Some(Fault::EndsBeforeTheHead) => (String::new(), false),
        Some(Fault::EndsInTheHead) => (all[..20].to_owned(), false),
        Some(Fault::EndsInTheBody) => (all[..middle].to_owned(), false),
        Some(Fault::EndsInAnEvent) => {
            let part = answer(stream);
            let part = &part[..part.len() * 3 / 4];
            let framing = if stream {
                "Transfer-Encoding: chunked"
            } else {
                "Connection: close"
            };
            let part = if stream {
                format!("{}0\r\n\r\n", chunk(part))
            } else {
                part.to_owned()
            };
            (format!("{}{part}", head(200, stream, framing)), false)
        }
        Some(Fault::StallsBeforeTheHead) => (String::new(), true),
        Some(Fault::StallsInTheHead) => (all[..20].to_owned(), true),
        Some(Fault::StallsInTheBody) => (all[..middle].to_owned(), true),
        Some(Fault::SpeaksNonsense) => ("SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned(), false),
        Some(Fault::SaysTooLittle) => (all.replacen("Content-Length: ", "Content-Length: 1", 1), false),
        Some(Fault::LimitsTheRate) => (error(429, "slow_down", "Retry-After: 7\r\n"), false),
        Some(Fault::Fails) => (error(500, "broken", ""), false),
        Some(Fault::IsOverloaded) => (error(529, "overloaded", ""), false),
        Some(Fault::DoesNotKnowTheKey) => (error(401, "sk-secret-of-the-gateway", ""), false),
        Some(Fault::FindsThePromptTooLong) => (error(400, "context_length_exceeded", ""), false),
        Some(Fault::ThinksForLong) => {
            tokio::time::sleep(SILENCE * 2).await;
            (all, false)
        }
        Some(Fault::BeginsWithAnError | Fault::FailsInTheMiddle) => {
            let error = r#"{"error":{"message":"No.","type":"t","param":null,"code":"rate_limit_exceeded"}}"#;
            let body = match (fault, stream) {
                (Some(Fault::FailsInTheMiddle), true) => {
                    let first = answer(true);
                    let first = first.split_inclusive("\n\n").next().unwrap();
                    chunk(&format!("{first}data: {error}\n\n"))
                }
                (_, true) => chunk(&format!(": PROCESSING\n\ndata: {error}\n\n")),
                (Some(Fault::FailsInTheMiddle), false) => whole,
                (_, false) => error.to_owned(),
            };
            let framing = match stream {
                true => framing,
                false => format!("Content-Length: {}", body.len()),
            };
            (format!("{}{body}", head(200, stream, &framing)), false)
        }
        Some(Fault::Drips) => {
            for piece in all.as_bytes().chunks(16) {
                tcp.write_all(piece).await?;
                tcp.flush().await?;
                tokio::time::sleep(DRIP).await;
            }
            (String::new(), false)
        }
        Some(Fault::Refuses | Fault::SpeaksNoTls | Fault::ChangedItsCertificate | Fault::RefusesEarly) => {
            unreachable!("{fault:?} has no answer")
        }
    };
    tcp.write_all(said.as_bytes()).await?;
    tcp.flush().await?;
    if stalls {
        tcp.read_u8().await?;
    }
    Ok(())
}

/// Configures the gateway for the providers.
fn configure(document: &mut Value, fault: Fault, urls: [&str; 2], fallback: Fallback) {
    let mut well = document["providers"][0].clone();
    let faulty = &mut document["providers"][0];
    faulty["baseURL"] = json!(urls[0]);
    faulty["caPem"] = json!(FIRST[0]);
    let seconds = |duration: Duration| duration.as_secs_f64();
    match fault {
        Fault::StallsBeforeTheHead | Fault::StallsInTheHead => {
            faulty["timeouts"] = json!({"firstByteSeconds": seconds(FIRST_BYTE)});
        }
        Fault::StallsInTheBody | Fault::ThinksForLong => {
            faulty["timeouts"] = json!({"idleSeconds": seconds(SILENCE)})
        }
        _ => {}
    }
    well["name"] = json!("well");
    well["baseURL"] = json!(urls[1]);
    document["providers"].as_array_mut().unwrap().push(well);
    let model = &mut document["models"][0];
    let safe = json!(["Unreachable", "RateLimited", "Overloaded"]);
    let all = json!([
        "Unreachable",
        "RateLimited",
        "Overloaded",
        "Timeout",
        "ServerError",
        "Unauthorized",
        "ContextLength"
    ]);
    model["fallbackOn"] = if fallback == Fallback::Always { all } else { safe };
    if fallback != Fallback::None {
        let second = json!({"provider": "well", "upstreamModel": MODEL, "weight": 0});
        model["routes"].as_array_mut().unwrap().push(second);
    }
    // Other timeouts are long, so that only the fault matters, and not the speed of the machine.
    for time in ["upstreamFirstByteSeconds", "upstreamResponseSeconds"] {
        document["timeouts"][time] = json!(seconds(PATIENCE));
    }
    document["tenants"][0]["limits"] = json!({"tokensPerDay": 1_000_000_000, "concurrency": 10});
}

/// Sends a request through a gateway in front of a faulty provider. Returns the result.
async fn outcome(fault: Fault, stream: bool, fallback: Fallback) -> Cell {
    let faulty = Provider::start(Some(fault), stream).await;
    let well = Provider::start(None, stream).await;
    let urls = [&*faulty.url, &*well.url];
    let gateway = Gateway::with(|document| configure(document, fault, urls, fallback)).await;
    let mut client = Client::connect(&gateway).await;
    // The body is so long that it is not sent completely before an early refusal arrives.
    let body = chat(if fault == Fault::RefusesEarly { 6 << 20 } else { 10 }, stream);
    let sent = client.send(post(Some(body.len())), &body).await;
    let answer = timeout(PATIENCE, sent).await.expect("no answer").unwrap();
    let (parts, mut pieces) = answer.into_parts();
    let mut said = Vec::new();
    let whole = loop {
        match next(&mut pieces).await {
            Ok(Some(piece)) => said.extend_from_slice(&piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let id = parts.headers["x-request-id"].to_str().unwrap().to_owned();
    let worker = Arc::clone(&gateway.worker);
    let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, PATIENCE));
    let evidence = evidence.await.unwrap().unwrap();
    let records: Vec<Value> = evidence
        .iter()
        .map(|proved| serde_json::from_str(&proved.record).unwrap())
        .collect();
    let (admission, completion) = (&records[0], records.last().unwrap());
    // Nothing of the exchange is left.
    gateway.wait_for_metric("proofgate_exchanges_in_flight", 0).await;
    gateway.wait_for_metric("proofgate_buffered_bytes", 0).await;
    let said = String::from_utf8(said).unwrap();
    assert!(!said.contains("sk-secret"), "{said}");
    let reserved = admission["reserved"].as_u64().unwrap();
    let charged = match completion["charged"].as_u64() {
        None => Charged::Reservation,
        Some(0) => Charged::Nothing,
        Some(USED) => Charged::Usage,
        Some(charged) if charged == USED + reserved => Charged::UsageAndReservation,
        Some(other) => Charged::Other(other),
    };
    let attempts = completion["attempts"].as_u64().unwrap_or(1);
    let header = parts.headers.get("x-proofgate-attempts");
    let told = header.map_or(1, |value| value.to_str().unwrap().parse().unwrap());
    assert_eq!(told, attempts, "the client is told how often it was sent");
    let further = records.iter().filter(|record| record["kind"] == "attempt");
    let numbers: Vec<u64> = further
        .map(|record| record["attempt"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (2..=attempts).collect::<Vec<_>>(),
        "each attempt is recorded"
    );
    Cell {
        status: parts.status.as_u16(),
        code: code(&said),
        whole,
        outcome: completion["outcome"].as_str().unwrap().to_owned(),
        attempts,
        charged,
        asked: [faulty.asked(), well.asked()],
    }
}

/// Returns the code of the error that a response consists of or ends with.
fn code(said: &str) -> String {
    let last = said.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let document: Option<Value> = serde_json::from_str(last.trim_start_matches("data: ")).ok();
    let code = document.and_then(|document| Some(document["error"]["code"].as_str()?.to_owned()));
    code.unwrap_or_default()
}

/// Expects a response of the working provider.
fn answered_elsewhere(faulty: usize, charged: Charged) -> Cell {
    Cell {
        attempts: 2,
        charged,
        asked: [faulty, 1],
        ..answered()
    }
}

/// Expects an immediate response.
fn answered() -> Cell {
    Cell {
        status: 200,
        code: String::new(),
        whole: true,
        outcome: "complete".to_owned(),
        attempts: 1,
        charged: Charged::Usage,
        asked: [1, 0],
    }
}

/// Expects the gateway's own error response.
fn failed(status: u16, code: &str, charged: Charged) -> Cell {
    let timed_out = status == 504;
    Cell {
        status,
        code: code.to_owned(),
        outcome: if timed_out {
            "upstream_timeout"
        } else {
            "upstream_error"
        }
        .to_owned(),
        charged,
        ..answered()
    }
}

/// Expects the provider's own error.
fn told(status: u16, code: &str) -> Cell {
    Cell {
        status,
        code: code.to_owned(),
        charged: Charged::Nothing,
        ..answered()
    }
}

/// Expects a response that is cut off in the middle: a stream has an error event, and no response
/// looks complete.
fn broken_off(code: &str, stream: bool) -> Cell {
    Cell {
        code: if stream { code } else { "" }.to_owned(),
        whole: false,
        charged: Charged::Reservation,
        outcome: if code.ends_with("_timeout") {
            "upstream_timeout"
        } else {
            "upstream_error"
        }
        .to_owned(),
        ..answered()
    }
}

async fn check(fault: Fault, expected: impl Fn(bool, Fallback) -> Cell) {
    // The cases run concurrently, because some of them wait.
    let mut cells = JoinSet::new();
    for stream in [false, true] {
        for fallback in [Fallback::None, Fallback::Safe, Fallback::Always] {
            cells.spawn(async move { (stream, fallback, outcome(fault, stream, fallback).await) });
        }
    }
    for (stream, fallback, found) in cells.join_all().await {
        let place = format!("{fault:?}, stream: {stream}, fallback: {fallback:?}");
        assert_eq!(found, expected(stream, fallback), "{place}");
    }
}

/// Checks that a provider that accepts no request is tried at most twice, and that another provider
/// then gets the request.
async fn check_unconnected(fault: Fault) {
    check(fault, |_, fallback| match fallback {
        Fallback::None => Cell {
            attempts: 2,
            asked: [0, 0],
            ..failed(502, "upstream_unreachable", Charged::Nothing)
        },
        _ => answered_elsewhere(0, Charged::Usage),
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_refuses_connections() {
    check_unconnected(Fault::Refuses).await;
}

#[tokio::test]
async fn a_provider_that_speaks_no_tls() {
    check_unconnected(Fault::SpeaksNoTls).await;
}

#[tokio::test]
async fn a_provider_whose_certificate_is_not_trusted_any_more() {
    check_unconnected(Fault::ChangedItsCertificate).await;
}

/// Checks that a request that may have been executed is retried elsewhere only if configured, and
/// is charged.
async fn check_unanswered(fault: Fault, status: u16, code: &'static str) {
    check(fault, |_, fallback| match fallback {
        Fallback::Always => answered_elsewhere(1, Charged::UsageAndReservation),
        _ => failed(status, code, Charged::Reservation),
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_ends_before_its_head() {
    check_unanswered(Fault::EndsBeforeTheHead, 502, "upstream_unreachable").await;
}

#[tokio::test]
async fn a_provider_that_ends_in_its_head() {
    check_unanswered(Fault::EndsInTheHead, 502, "upstream_unreachable").await;
}

#[tokio::test]
async fn a_provider_that_speaks_nonsense() {
    check_unanswered(Fault::SpeaksNonsense, 502, "upstream_unreachable").await;
}

#[tokio::test]
async fn a_provider_that_stalls_before_its_head() {
    check_unanswered(Fault::StallsBeforeTheHead, 504, "upstream_first_byte_timeout").await;
}

#[tokio::test]
async fn a_provider_that_stalls_in_its_head() {
    check_unanswered(Fault::StallsInTheHead, 504, "upstream_first_byte_timeout").await;
}

#[tokio::test]
async fn a_provider_that_ends_in_its_body() {
    check(Fault::EndsInTheBody, |stream, _| {
        broken_off("upstream_unreachable", stream)
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_stalls_in_its_body() {
    check(Fault::StallsInTheBody, |stream, _| {
        broken_off("upstream_idle_timeout", stream)
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_ends_in_an_event_and_says_that_this_is_the_end() {
    check(Fault::EndsInAnEvent, |stream, _| match stream {
        // The end arrived together with the data, so nothing has been sent yet.
        true => failed(502, "upstream_stream_unfinished", Charged::Reservation),
        // A body that ends with its connection cannot be distinguished from a part of it.
        false => Cell {
            charged: Charged::Reservation,
            ..answered()
        },
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_says_less_than_it_announced() {
    check(Fault::SaysTooLittle, |stream, _| match stream {
        true => answered(),
        // The cost is known, because the whole response arrived.
        false => Cell {
            charged: Charged::Usage,
            ..broken_off("upstream_unreachable", false)
        },
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_refuses_before_it_has_the_request() {
    check(Fault::RefusesEarly, |_, _| Cell {
        asked: [0, 0],
        ..told(413, "too_large")
    })
    .await;
}

/// Checks that a request that the provider rejects is retried elsewhere if configured, and that
/// otherwise the client gets the provider's error.
async fn check_turned_away(fault: Fault, status: u16, code: &'static str, is_safe: bool) {
    check(fault, |_, fallback| match fallback {
        Fallback::Always => answered_elsewhere(1, Charged::Usage),
        Fallback::Safe if is_safe => answered_elsewhere(1, Charged::Usage),
        _ => told(status, code),
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_limits_the_rate() {
    check_turned_away(Fault::LimitsTheRate, 429, "slow_down", true).await;
}

#[tokio::test]
async fn a_provider_that_is_overloaded() {
    check_turned_away(Fault::IsOverloaded, 529, "overloaded", true).await;
}

#[tokio::test]
async fn a_provider_that_fails() {
    check_turned_away(Fault::Fails, 500, "broken", false).await;
}

#[tokio::test]
async fn a_provider_for_which_the_prompt_is_too_long() {
    check_turned_away(
        Fault::FindsThePromptTooLong,
        400,
        "context_length_exceeded",
        false,
    )
    .await;
}

/// Expects the provider's unchanged response if there is no fallback.
fn passed_on(stream: bool, code: &str) -> Cell {
    Cell {
        code: code.to_owned(),
        charged: Charged::Reservation,
        whole: !stream,
        outcome: if stream { "upstream_error" } else { "complete" }.to_owned(),
        ..answered()
    }
}

#[tokio::test]
async fn a_provider_whose_answer_begins_with_an_error() {
    check(Fault::BeginsWithAnError, |stream, fallback| match fallback {
        Fallback::None => passed_on(stream, "rate_limit_exceeded"),
        _ => answered_elsewhere(1, Charged::Usage),
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_fails_behind_a_part_of_its_answer() {
    check(Fault::FailsInTheMiddle, |stream, _| match stream {
        true => passed_on(true, "rate_limit_exceeded"),
        false => answered(),
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_does_not_accept_the_gateways_key() {
    check(Fault::DoesNotKnowTheKey, |_, fallback| match fallback {
        Fallback::Always => answered_elsewhere(1, Charged::Usage),
        _ => failed(502, "upstream_auth_failed", Charged::Nothing),
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_is_slow_and_well() {
    check(Fault::Drips, |_, _| answered()).await;
}

#[tokio::test]
async fn a_provider_that_thinks_for_longer_than_it_may_be_silent_in_its_answer() {
    check(Fault::ThinksForLong, |_, _| answered()).await;
}
