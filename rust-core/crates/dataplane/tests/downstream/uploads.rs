//! Forms with files: forwarded and buffered parts, records, and errors.

use proofgate_ledger::{SigningKey, TlogProof};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, interval, timeout};

use crate::client::{Client, post, read};
use crate::gateway::{ACME, Gateway, MODEL, PATIENCE};
use crate::upstream::Upstream;

const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
pub const LONG: usize = 2 * 1024 * 1024;

pub fn field(name: &str, value: &str) -> Vec<u8> {
    format!("--limit\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").into_bytes()
}

pub fn file(name: &str, bytes: usize) -> Vec<u8> {
    let head = format!(
        "--limit\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: audio/mpeg\r\n\r\n"
    );
    let content = (0..bytes).map(|at| (at * 31 % 251) as u8);
    let content: Vec<u8> = content.collect();
    [head.as_bytes(), &content, b"\r\n"].concat()
}

pub fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [&parts.concat()[..], b"--limit--\r\n"].concat()
}

/// Starts a worker that speaks HTTP/1.1 without TLS.
pub async fn plain(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        config["tls"] = Value::Null;
        change(config);
    })
    .await
}

pub fn rule(target: &str, action: &str) -> Value {
    // A high score denies whatever the action is.
    let score = if action == "Block" { 100 } else { 1 };
    json!({"mode": "Enforce", "rules": [{
        "id": "word", "reason": "a word", "target": target, "literals": ["johndoe"], "score": score, "action": action,
    }]})
}

fn head(path: &str, framing: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer {ACME}\r\n\
         Content-Type: multipart/form-data; boundary=limit\r\n{framing}\r\n\r\n"
    )
    .into_bytes()
}

pub async fn begin(gateway: &Gateway, path: &str, length: usize) -> TcpStream {
    let mut client = TcpStream::connect(gateway.address).await.unwrap();
    let head = head(path, &format!("Content-Length: {length}"));
    client.write_all(&head).await.unwrap();
    client
}

pub struct Answer {
    pub status: u16,
    pub id: String,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn code(&self) -> String {
        let error: Value = serde_json::from_str(&self.body).unwrap();
        error["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// Reads a response with a Content-Length.
pub async fn answer(client: &mut (impl AsyncRead + Unpin)) -> Answer {
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8(bytes[..end].to_vec())
                    .unwrap()
                    .to_ascii_lowercase();
                let value = |name: &str| {
                    let line = head.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().to_owned()
                };
                let length: usize = value("content-length: ").parse().unwrap();
                if bytes.len() >= end + 4 + length {
                    return Answer {
                        status: head[9..12].parse().unwrap(),
                        id: value("x-request-id: "),
                        body: String::from_utf8(bytes[end + 4..].to_vec()).unwrap(),
                        head,
                    };
                }
            }
            assert_ne!(client.read_buf(&mut bytes).await.unwrap(), 0, "{bytes:?}");
        }
    };
    timeout(PATIENCE, reading).await.unwrap()
}

/// Returns the records of an exchange with their proofs.
pub async fn records(gateway: &Gateway, id: &str) -> Vec<(Value, TlogProof, String)> {
    let (worker, id) = (std::sync::Arc::clone(&gateway.worker), id.to_owned());
    let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, PATIENCE));
    let evidence = evidence.await.unwrap().unwrap();
    let parsed = evidence.into_iter().map(|one| {
        let proof = TlogProof::parse(&one.proof).unwrap();
        (serde_json::from_str(&one.record).unwrap(), proof, one.record)
    });
    parsed.collect()
}

/// Returns the body of the exchange to which a record commits with these bytes; `None` if it does
/// not match.
pub fn revealed((_, proof, record): &(Value, TlogProof, String), body: &[u8]) -> Option<&'static str> {
    let key = SigningKey::generate("gateway.test/ledger", [7; 32]).unwrap();
    proof.reveal(record.as_bytes(), &key.verifying_key(), body).ok()
}

#[tokio::test]
async fn a_short_form_is_taken_whole_wherever_its_model_stands() {
    let mut gateway =
        plain(|config| config["models"][0]["routes"][0]["upstreamModel"] = "whisper-large".into()).await;
    let model = field("model", MODEL);
    for path in [
        TRANSCRIPTIONS,
        "/v1/audio/translations",
        "/v1/images/edits",
        "/v1/images/variations",
    ] {
        for body in [
            form(&[model.clone(), file("a.mp3", 1000)]),
            form(&[file("a.mp3", 1000), model.clone(), field("prompt", "Hello")]),
        ] {
            let mut client = begin(&gateway, path, body.len()).await;
            client.write_all(&body).await.unwrap();
            let exchange = gateway.upstream.exchange().await;
            assert!(
                exchange.head.starts_with(&format!("POST {path} HTTP/1.1\r\n")),
                "{}",
                exchange.head
            );
            let kind = "\r\ncontent-type: multipart/form-data; boundary=limit\r\n";
            assert!(
                exchange.head.to_ascii_lowercase().contains(kind),
                "{}",
                exchange.head
            );
            assert!(!exchange.head.contains("application/json"), "{}", exchange.head);
            let named = String::from_utf8_lossy(&body).replace(MODEL, "whisper-large");
            assert_eq!(String::from_utf8_lossy(&exchange.body), named);
            exchange
                .answer(br#"{"text":"Hi","usage":{"type":"tokens","input_tokens":14,"output_tokens":3,"total_tokens":17}}"#)
                .await;
            let answer = answer(&mut client).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            assert!(!answer.head.contains("connection: close"), "{}", answer.head);
            let records = records(&gateway, &answer.id).await;
            assert_eq!(records[0].0["endpoint"], path);
            assert!(records[0].0.get("coming").is_none() && records[1].0.get("received").is_none());
            assert_eq!(
                records[1].0["usage"],
                json!({"prompt_tokens": 14, "completion_tokens": 3})
            );
            assert_eq!(revealed(&records[0], &body), Some("request"));
        }
    }
}

/// A provider that reads a request as it arrives.
pub struct Slow(TcpListener);

impl Slow {
    pub async fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        (Slow(listener), url)
    }

    pub async fn accept(&self) -> TcpStream {
        timeout(PATIENCE, self.0.accept()).await.unwrap().unwrap().0
    }

    /// Returns all bytes of the next connection.
    pub async fn seen(&self) -> Vec<u8> {
        let (mut upstream, mut seen) = (self.accept().await, Vec::new());
        read_until(&mut upstream, &mut seen, |_| false).await;
        seen
    }
}

/// Reads until `enough` returns true, or to the end.
pub async fn read_until(stream: &mut TcpStream, bytes: &mut Vec<u8>, enough: impl Fn(&[u8]) -> bool) {
    let reading = async { while !enough(bytes) && matches!(stream.read_buf(bytes).await, Ok(1..)) {} };
    timeout(PATIENCE, reading).await.unwrap();
}

pub fn body_of(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    &bytes[end + 4..]
}

/// Sends a body piece by piece, each when all of the one before but `held_back` bytes has come to the upstream; `look` is shown
/// what has come after each. Returns the upstream's connection, which has had the whole body, and the most bytes that were
/// in memory.
pub async fn pass(
    gateway: &Gateway,
    client: &mut TcpStream,
    slow: &Slow,
    body: &[u8],
    piece: usize,
    held_back: usize,
    look: impl Fn(&[u8]),
) -> (TcpStream, u64) {
    let (mut upstream, mut seen) = (None::<TcpStream>, Vec::with_capacity(body.len() + 4096));
    let most = std::cell::Cell::new(0);
    let mut sent = 0;
    for piece in body.chunks(piece) {
        client.write_all(piece).await.unwrap();
        sent += piece.len();
        let stream = match &mut upstream {
            Some(stream) => stream,
            none => none.insert(slow.accept().await),
        };
        read_until(stream, &mut seen, |seen| {
            most.set(most.get().max(gateway.metric("proofgate_buffered_bytes")));
            seen.len() + held_back >= sent
        })
        .await;
        look(&seen);
    }
    let mut upstream = upstream.unwrap();
    read_until(&mut upstream, &mut seen, |seen| body_of(seen).len() == body.len()).await;
    assert!(body_of(&seen) == body);
    (upstream, most.get())
}

#[tokio::test]
async fn a_long_file_passes_as_it_comes_and_little_of_it_is_ever_in_memory() {
    let (slow, url) = Slow::start().await;
    let gateway = plain(|config| config["providers"][0]["baseURL"] = url.into()).await;
    let body = form(&[field("model", MODEL), file("a.mp3", 64 << 20)]);
    let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
    // All bytes except a possible line end have arrived before more are sent.
    let (mut upstream, most) = pass(&gateway, &mut client, &slow, &body, 1 << 20, 16, |_| ()).await;
    assert!(most < 1 << 20, "{most}");
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nHi\n")
        .await
        .unwrap();
    let answer = answer(&mut client).await;
    assert_eq!((answer.status, &*answer.body), (200, "Hi\n"));
    assert!(!answer.head.contains("connection: close"), "{}", answer.head);

    let records = records(&gateway, &answer.id).await;
    let (admission, completion) = (&records[0].0, &records[1].0);
    assert_eq!(admission["coming"], json!({"declared": body.len()}));
    let admitted = admission["bytes"].as_u64().unwrap() as usize;
    assert!(admitted < 1 << 20, "{admitted}");
    assert_eq!(completion["received"]["bytes"], body.len());
    assert_eq!(completion["received"]["whole"], true);
    assert_eq!(completion["outcome"], "complete");
    assert_eq!(revealed(&records[0], &body[..admitted]), Some("request"));
    assert_eq!(revealed(&records[1], &body), Some("received"));
}

#[tokio::test]
async fn a_long_form_in_chunks_leaves_in_chunks_with_its_model_renamed() {
    let (slow, url) = Slow::start().await;
    let gateway = plain(|config| {
        config["providers"][0]["baseURL"] = url.into();
        config["models"][0]["routes"][0]["upstreamModel"] = "whisper-large".into();
    })
    .await;
    let body = form(&[
        field("model", MODEL),
        file("a.mp3", LONG),
        field("prompt", "Hello"),
    ]);
    let mut client = TcpStream::connect(gateway.address).await.unwrap();
    let writing = async {
        client
            .write_all(&head(TRANSCRIPTIONS, "Transfer-Encoding: chunked"))
            .await
            .unwrap();
        for piece in body.chunks(50_000) {
            client
                .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
                .await
                .unwrap();
            client.write_all(&[piece, b"\r\n"].concat()).await.unwrap();
        }
        client.write_all(b"0\r\n\r\n").await.unwrap();
    };
    let mut seen = Vec::new();
    let reading = async {
        let mut upstream = slow.accept().await;
        read_until(&mut upstream, &mut seen, |seen| seen.ends_with(b"\r\n0\r\n\r\n")).await;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"text\":\"Hi\"}";
        upstream.write_all(answer).await.unwrap();
        upstream
    };
    let ((), _upstream) = tokio::join!(writing, reading);
    assert_eq!(answer(&mut client).await.status, 200);
    let (mut rest, mut whole) = (body_of(&seen), Vec::new());
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    let named = form(&[
        field("model", "whisper-large"),
        file("a.mp3", LONG),
        field("prompt", "Hello"),
    ]);
    assert!(whole == named);
}

/// Waits until the counter of an outcome shows the end of an interrupted exchange.
pub async fn ended(gateway: &Gateway, outcome: &str) {
    let series = format!("proofgate_exchanges_total{{outcome=\"{outcome}\"}}");
    gateway.wait_for_metric(&series, 1).await;
}

#[tokio::test]
async fn a_text_behind_a_file_that_a_rule_denies_never_leaves() {
    for (action, code) in [
        ("Block", "policy_blocked"),
        ("Redact", "policy_redaction_impossible"),
    ] {
        let (slow, url) = Slow::start().await;
        let gateway = plain(|config| {
            config["providers"][0]["baseURL"] = url.into();
            config["policy"] = rule("Request", action);
        })
        .await;
        let body = form(&[
            field("model", MODEL),
            file("a.mp3", LONG),
            field("prompt", "It is johndoe."),
        ]);
        let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
        let (sent, seen) = tokio::join!(client.write_all(&body), slow.seen());
        sent.unwrap();
        let answer = answer(&mut client).await;
        assert_eq!((answer.status, &*answer.code()), (403, code), "{action}");
        assert!(answer.head.contains("connection: close"), "{}", answer.head);
        let has = |word: &[u8]| seen.windows(word.len()).any(|window| window == word);
        assert!(has(MODEL.as_bytes()) && !has(b"johndoe") && !has(b"\"prompt\""));
        let records = records(&gateway, &answer.id).await;
        let completion = &records[1].0;
        assert_eq!(completion["outcome"], "policy_blocked");
        assert_eq!(completion["status"], 403);
        assert_eq!(completion["upstream_status"], Value::Null);
        assert_eq!(completion["policy"]["rules"], json!(["word"]));
        assert_eq!(completion["received"]["whole"], false);
    }
}

/// Returns a policy with the standard packs and these actions for personal data.
pub fn packs(actions: &Value) -> Value {
    json!({"mode": "Enforce", "packs": ["pii", "secrets"], "actions": actions, "budgetMilliseconds": 10_000})
}

#[tokio::test]
async fn personal_data_in_a_form_is_flagged_by_default_and_refused_where_a_policy_replaces_it() {
    let secret = "Authorization: Bearer 4f8a1c9d2e7b3a6f5c0d8e1b9a7f2c4d";
    let asks = |prompt: &str| form(&[field("model", MODEL), field("prompt", prompt), file("a.mp3", 10)]);
    for (actions, prompt, refused) in [
        (json!([]), "I am ann@globex-mail.com.", None),
        (
            json!([{"packs": ["pii"], "scopes": ["User"], "action": "Mask"}]),
            "I am ann@globex-mail.com.",
            Some("pii-email"),
        ),
        (json!([]), secret, Some("secret-authorization-header")),
    ] {
        let mut gateway = plain(|config| config["policy"] = packs(&actions)).await;
        let body = asks(prompt);
        let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
        client.write_all(&body).await.unwrap();
        if let Some(rule) = refused {
            let answer = answer(&mut client).await;
            assert_eq!(
                (answer.status, &*answer.code()),
                (403, "policy_redaction_impossible")
            );
            let records = records(&gateway, &answer.id).await;
            let note = &records[0].0["policy"];
            assert!(note["rules"].as_array().unwrap().contains(&json!(rule)), "{note}");
            assert_eq!(note.get("unchanged"), None);
            continue;
        }
        let exchange = gateway.upstream.exchange().await;
        assert!(String::from_utf8_lossy(&exchange.body).contains(prompt));
        exchange.answer(br#"{"text":"Hi"}"#).await;
        let answer = answer(&mut client).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let note = records(&gateway, &answer.id).await[0].0["policy"].clone();
        assert_eq!(note["rules"], json!(["pii-email"]));
        assert_eq!(
            (&note["redacted"], &note["unchanged"]),
            (&json!(false), &json!(true))
        );
    }
}

#[tokio::test]
async fn what_rules_deny_before_the_file_is_not_admitted() {
    let gateway = plain(|config| config["policy"] = rule("Request", "Block")).await;
    for (parts, size) in [
        (
            [
                field("model", MODEL),
                field("prompt", "johndoe"),
                file("a.mp3", LONG),
            ],
            LONG,
        ),
        (
            [
                field("model", MODEL),
                field("prompt", "Hi"),
                file("johndoe.mp3", 10),
            ],
            10,
        ),
        (
            [field("model", MODEL), field("johndoe", "Hi"), file("a.mp3", 10)],
            10,
        ),
    ] {
        let body = form(&parts);
        let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
        client.write_all(&body[..body.len() - size / 2]).await.unwrap();
        if size < LONG {
            client.write_all(&body[body.len() - size / 2..]).await.unwrap();
        }
        let answer = answer(&mut client).await;
        assert_eq!((answer.status, &*answer.code()), (403, "policy_blocked"));
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_amid_its_upload_ends_the_request_upstream() {
    let (slow, url) = Slow::start().await;
    let gateway = plain(|config| config["providers"][0]["baseURL"] = url.into()).await;
    let body = form(&[field("model", MODEL), file("a.mp3", LONG)]);
    let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
    client.write_all(&body[..LONG / 2]).await.unwrap();
    let mut upstream = slow.accept().await;
    let mut seen = Vec::new();
    read_until(&mut upstream, &mut seen, |seen| seen.len() > LONG / 2).await;
    drop(client);
    read_until(&mut upstream, &mut seen, |_| false).await;
    ended(&gateway, "client_disconnect").await;
    assert!(body_of(&seen).len() < body.len());
}

#[tokio::test]
async fn a_provider_that_answers_amid_an_upload_is_heard_and_the_connection_ends() {
    let (slow, url) = Slow::start().await;
    let gateway = plain(|config| config["providers"][0]["baseURL"] = url.into()).await;
    let body = form(&[field("model", MODEL), file("a.mp3", LONG)]);
    let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
    client.write_all(&body[..LONG / 2]).await.unwrap();
    let mut upstream = slow.accept().await;
    upstream
        .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        .await
        .unwrap();
    let answer = answer(&mut client).await;
    assert_eq!((answer.status, &*answer.body), (413, "{}"));
    assert!(answer.head.contains("connection: close"), "{}", answer.head);
    let records = records(&gateway, &answer.id).await;
    assert_eq!(records[1].0["upstream_status"], 413);
    assert_eq!(records[1].0["received"]["whole"], false);
    // Only the rest of the data that was in transit.
    read_until(&mut upstream, &mut Vec::new(), |_| false).await;
}

#[tokio::test]
async fn a_long_form_goes_elsewhere_while_none_of_its_rest_has_passed() {
    let (slow, url) = Slow::start().await;
    let gateway = plain(|config| {
        let mut dead = config["providers"][0].clone();
        dead["name"] = "dead".into();
        // Nobody listens there.
        dead["baseURL"] = "http://127.0.0.1:1/v1".into();
        config["providers"][0]["baseURL"] = url.into();
        config["providers"].as_array_mut().unwrap().push(dead);
        let target =
            |name: &str, weight: u32| json!({"provider": name, "upstreamModel": MODEL, "weight": weight});
        config["models"][0]["routes"] = json!([target("dead", 1), target("stand-in", 0)]);
        config["models"][0]["fallbackOn"] = json!(["Unreachable"]);
    })
    .await;
    let body = form(&[field("model", MODEL), file("a.mp3", LONG)]);
    let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
    let mut seen = Vec::new();
    let reading = async {
        let mut upstream = slow.accept().await;
        read_until(&mut upstream, &mut seen, |seen| seen.ends_with(b"--limit--\r\n")).await;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        upstream.write_all(answer).await.unwrap();
        upstream
    };
    let (sent, _upstream) = tokio::join!(client.write_all(&body), reading);
    sent.unwrap();
    let answer = answer(&mut client).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.head.contains("x-proofgate-attempts: 2"), "{}", answer.head);
    assert!(body_of(&seen) == body);
    let kinds: Vec<Value> = records(&gateway, &answer.id)
        .await
        .into_iter()
        .map(|one| one.0["kind"].clone())
        .collect();
    assert_eq!(kinds, ["admission", "attempt", "completion"]);
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_upload_is_no_failure_of_its_provider() {
    let tired: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    // The provider's response before it disconnects; `None`: it waits until the response timeout.
    for (said, status) in [(None, 504), (Some(tired), 408), (Some(&b""[..]), 502)] {
        let (slow, url) = Slow::start().await;
        let other = Upstream::start().await;
        let gateway = plain(|config| {
            let mut second = config["providers"][0].clone();
            second["name"] = "other".into();
            second["baseURL"] = other.url().into();
            config["providers"][0]["baseURL"] = url.into();
            config["providers"].as_array_mut().unwrap().push(second);
            let target =
                |name: &str, weight: u32| json!({"provider": name, "upstreamModel": MODEL, "weight": weight});
            config["models"][0]["routes"] = json!([target("stand-in", 1), target("other", 0)]);
            config["models"][0]["fallbackOn"] = json!(["Unreachable", "Overloaded"]);
            if said.is_none() {
                config["timeouts"]["answerSeconds"] = 1.5.into();
            }
        })
        .await;
        let body = form(&[field("model", MODEL), file("a.mp3", LONG)]);
        let mut open = Vec::new();
        for _ in 0..5 {
            let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
            client.write_all(&body[..LONG / 2]).await.unwrap();
            let (mut upstream, mut seen) = (slow.accept().await, Vec::new());
            // The incomplete line is held back.
            read_until(&mut upstream, &mut seen, |seen| seen.len() >= LONG / 2).await;
            if let Some(said) = said {
                upstream.write_all(said).await.unwrap();
                upstream.shutdown().await.unwrap();
            }
            open.push((client, upstream));
        }
        for (client, _upstream) in &mut open {
            assert_eq!(answer(client).await.status, status);
        }
        let body = form(&[field("model", MODEL), file("a.mp3", 1000)]);
        let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
        client.write_all(&body).await.unwrap();
        let _asked = slow.accept().await;
        assert_eq!(other.requests(), 0, "{status}");
    }
}

#[tokio::test]
async fn a_form_that_is_never_finished_has_one_deadline_for_all_of_it_as_any_body() {
    let gateway = plain(|config| config["timeouts"]["clientBodySeconds"] = 0.5.into()).await;
    let body = form(&[file("a.mp3", 1000), field("model", MODEL)]);
    let (mut reading, mut writing) = begin(&gateway, TRANSCRIPTIONS, body.len()).await.into_split();
    let trickle = async {
        let mut pause = interval(Duration::from_millis(50));
        for byte in body.chunks(1).take(body.len() - 1) {
            pause.tick().await;
            writing.write_all(byte).await.unwrap();
        }
    };
    let answer = tokio::select! {
        answer = answer(&mut reading) => answer,
        () = trickle => panic!("it is taken for as long as it comes"),
    };
    assert_eq!((answer.status, &*answer.code()), (408, "request_timeout"));
}

#[tokio::test]
async fn a_form_is_served_by_what_is_in_force_when_it_is_admitted() {
    type Change = fn(&mut Value);
    let revoke: Change = |config| config["tenants"][0]["keys"] = json!([]);
    let forbid: Change = |config| config["tenants"][0]["endpoints"] = json!(["ChatCompletions"]);
    let deny: Change = |config| config["policy"] = rule("Request", "Block");
    for (change, status, code) in [
        (revoke, 401, "invalid_api_key"),
        (forbid, 403, "endpoint_not_allowed"),
        (deny, 403, "policy_blocked"),
    ] {
        let gateway = plain(|_| ()).await;
        let body = form(&[file("johndoe.mp3", 1000), field("model", MODEL)]);
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        let framing = format!("Content-Length: {}\r\nExpect: 100-continue", body.len());
        client.write_all(&head(TRANSCRIPTIONS, &framing)).await.unwrap();
        // Its head has been read.
        let mut asked = Vec::new();
        read_until(&mut client, &mut asked, |asked| asked.ends_with(b"\r\n\r\n")).await;
        assert!(asked.starts_with(b"HTTP/1.1 100 "));
        gateway.reload(change);
        client.write_all(&body).await.unwrap();
        let answer = answer(&mut client).await;
        assert_eq!((answer.status, &*answer.code()), (status, code));
        assert_eq!(gateway.upstream.requests(), 0);
    }
}

#[tokio::test]
async fn a_form_that_cannot_be_read_or_routed_is_refused_and_says_why() {
    let mut gateway = plain(|config| config["limits"]["bodyBytes"] = 300_000.into()).await;
    let model = field("model", MODEL);
    for (body, code) in [
        (
            form(&[file("a.mp3", 400_000), model.clone()]),
            "model_behind_file",
        ),
        (form(&[file("a.mp3", 10)]), "invalid_form"),
        (
            form(&[model.clone(), model.clone(), file("a.mp3", 10)]),
            "invalid_form",
        ),
        (
            form(&[field("Model", "x"), model.clone(), file("a.mp3", 10)]),
            "invalid_form",
        ),
        (
            form(&[model.clone(), field("stream", "yes"), file("a.mp3", 10)]),
            "invalid_form",
        ),
        (
            form(&[field("model", "gpt-unknown"), file("a.mp3", 10)]),
            "model_not_found",
        ),
        (b"--limit\r\n\r\n".to_vec(), "invalid_form"),
        (
            form(&[model.clone(), field("prompt", &"x".repeat(1 << 20))]),
            "form_fields_too_large",
        ),
    ] {
        let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
        // A request that is refused early is not read to its end.
        let _ = client.write_all(&body).await;
        assert_eq!(answer(&mut client).await.code(), code);
    }
    assert_eq!(gateway.upstream.requests(), 0);
    // The next request is still served.
    let body = form(&[model, file("a.mp3", 10)]);
    let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
    client.write_all(&body).await.unwrap();
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(answer(&mut client).await.status, 200);
}

#[tokio::test]
async fn a_json_body_at_an_endpoint_of_forms_is_refused() {
    let gateway = plain(|_| ()).await;
    let mut client = TcpStream::connect(gateway.address).await.unwrap();
    let head = format!(
        "POST {TRANSCRIPTIONS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ACME}\r\nContent-Type: application/json\r\n\
         Content-Length: 2\r\n\r\n{{}}"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let answer = answer(&mut client).await;
    assert_eq!((answer.status, &*answer.code()), (400, "invalid_form"));
}

#[tokio::test]
async fn a_transcript_goes_through_the_rules_of_answers_as_json_and_as_text() {
    let mut gateway = plain(|config| config["policy"] = rule("Response", "Redact")).await;
    let body = form(&[field("model", MODEL), file("a.mp3", 10)]);
    for (kind, said, heard) in [
        (
            "application/json",
            r#"{"text":"I am johndoe."}"#,
            r#"{"text":"I am [redacted:word]."}"#,
        ),
        ("text/plain", "I am johndoe.\n", "I am [redacted:word].\n"),
        (
            "application/x-subrip",
            "1\n00:00 --> 00:01\njohndoe\n",
            "1\n00:00 --> 00:01\n[redacted:word]\n",
        ),
    ] {
        let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
        client.write_all(&body).await.unwrap();
        let mut exchange = gateway.upstream.exchange().await;
        let length = said.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{said}");
        exchange.send(head.as_bytes()).await;
        let answer = answer(&mut client).await;
        assert_eq!((answer.status, &*answer.body), (200, heard));
    }
    let body = form(&[field("model", MODEL), field("stream", "true"), file("a.mp3", 10)]);
    let mut client = begin(&gateway, TRANSCRIPTIONS, body.len()).await;
    client.write_all(&body).await.unwrap();
    let answer = answer(&mut client).await;
    assert_eq!((answer.status, &*answer.code()), (400, "stream_not_inspected"));
}

#[tokio::test]
async fn an_upload_over_http_2_reaches_the_provider_as_it_was() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = form(&[
        field("model", MODEL),
        file("a.mp3", 600_000),
        field("language", "en"),
    ]);
    let mut request = post(Some(body.len()));
    *request.uri_mut() = format!("https://gateway.test{TRANSCRIPTIONS}").parse().unwrap();
    let kind = "multipart/form-data; boundary=limit".parse().unwrap();
    request.headers_mut().insert("content-type", kind);
    let answer = client.send(request, &body).await;
    let exchange = gateway.upstream.exchange().await;
    assert!(exchange.body == body);
    exchange.answer(br#"{"text":"Hi"}"#).await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}
