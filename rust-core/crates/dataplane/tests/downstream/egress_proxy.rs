//! Providers behind a forward proxy: the proxy's requests, and the results if it opens no tunnel.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::client::{Answer, Client, post, read};
use crate::gateway::{Gateway, MODEL, PATIENCE, chat};
use crate::upstream::Upstream;
use crate::upstream_tls::{CLIENT, Provider, show};

const ANSWER: &[u8] = br#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
const CREDENTIALS: &str = "Basic dXNlcjpwYXNz";

/// The proxy's reaction to a request for a tunnel.
#[derive(Clone, Copy)]
enum Behaviour {
    /// Opens the tunnel, and sends its response in pieces of one byte.
    Tunnel,
    /// Sends this response and closes the connection.
    Answer(&'static str),
    /// Sends no response.
    Silent,
    /// Opens the tunnel, and closes it at the first byte of the provider's response.
    Break,
}

/// A forward proxy, and the heads of its requests.
struct Proxy {
    port: u16,
    asked: mpsc::UnboundedReceiver<String>,
}

impl Proxy {
    async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (told, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, behaviour, told.clone()));
            }
        });
        Proxy { port, asked }
    }

    /// Configures the first provider to be reached through the proxy.
    fn is_used_by(&self, document: &mut Value) {
        let url = format!("http://127.0.0.1:{}", self.port);
        document["egress"] = json!({"proxy": {"url": url, "authorization": CREDENTIALS}});
        document["providers"][0]["proxied"] = json!(true);
    }

    /// Returns the head of the next request for a tunnel.
    async fn asked(&mut self) -> String {
        let asked = timeout(PATIENCE, self.asked.recv()).await;
        asked.expect("no tunnel is asked for").unwrap()
    }
}

async fn serve(mut client: TcpStream, behaviour: Behaviour, told: mpsc::UnboundedSender<String>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if client.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = String::from_utf8(head).unwrap();
    let authority = head.split(' ').nth(1).unwrap().to_owned();
    let _ = told.send(head);
    match behaviour {
        Behaviour::Answer(answer) => {
            let _ = client.write_all(answer.as_bytes()).await;
        }
        Behaviour::Silent => {
            let _ = client.read_u8().await;
        }
        Behaviour::Tunnel | Behaviour::Break => {
            let mut provider = TcpStream::connect(authority).await.unwrap();
            client.set_nodelay(true).unwrap();
            for byte in b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n" {
                client.write_u8(*byte).await.unwrap();
            }
            if let Behaviour::Tunnel = behaviour {
                let _ = copy_bidirectional(&mut client, &mut provider).await;
                return;
            }
            let (mut from_client, _to_client) = client.split();
            let (mut answer, mut to_provider) = provider.split();
            tokio::select! {
                _ = tokio::io::copy(&mut from_client, &mut to_provider) => {}
                _ = answer.read_u8() => {}
            }
        }
    }
}

async fn ask(client: &mut Client) -> Answer {
    let body = chat(10, false);
    client.exchange(post(Some(body.len())), &body).await
}

fn verdict(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.code())
}

#[tokio::test]
async fn requests_go_through_a_tunnel_and_the_credentials_stay_with_the_proxy() {
    let mut proxy = Proxy::start(Behaviour::Tunnel).await;
    let mut gateway = Gateway::with(|document| proxy.is_used_by(document)).await;
    let mut client = Client::connect(&gateway).await;
    let sent = client.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n")
    );
    assert!(
        !exchange.head.to_lowercase().contains("proxy-"),
        "{}",
        exchange.head
    );
    exchange.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
    let authority = gateway.upstream.url().strip_prefix("http://").unwrap();
    let authority = authority.strip_suffix("/v1").unwrap();
    assert_eq!(
        proxy.asked().await,
        format!(
            "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nProxy-Authorization: {CREDENTIALS}\r\n\r\n"
        )
    );
    // New credentials are used from the next connection on.
    gateway.change(|document| document["egress"]["proxy"]["authorization"] = json!("Basic bmV3"));
    let sent = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
    assert!(
        proxy
            .asked()
            .await
            .contains("\r\nProxy-Authorization: Basic bmV3\r\n")
    );
    // No credentials are sent if the provider is reached directly.
    gateway.change(|document| document["providers"][0]["proxied"] = json!(false));
    let sent = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
    assert!(proxy.asked.try_recv().is_err());
}

#[tokio::test]
async fn tls_to_the_provider_is_inside_the_tunnel() {
    let provider = Provider::start().await;
    let mut proxy = Proxy::start(Behaviour::Tunnel).await;
    let mut gateway = provider.gateway(|entry| show(entry, CLIENT)).await;
    gateway.change(|document| proxy.is_used_by(document));
    let answer = ask(&mut Client::connect(&gateway).await).await;
    assert_eq!(answer.status, 200, "{}", answer.code());
    assert!(proxy.asked().await.starts_with("CONNECT 127.0.0.1:"));
}

#[tokio::test]
async fn a_proxy_that_refuses_leaves_the_provider_unreachable_and_is_counted() {
    for (answer, failure) in [
        (
            "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n",
            "credentials",
        ),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "forbidden"),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", "provider_unreachable"),
        ("HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n", "refused"),
        ("HTTP/1.1 200 OK\r\nX: ", "unreachable"),
        ("", "unreachable"),
        ("SSH-2.0-OpenSSH_9.9\r\n\r\n", "bad_answer"),
    ] {
        let mut proxy = Proxy::start(Behaviour::Answer(answer)).await;
        let gateway = Gateway::with(|document| proxy.is_used_by(document)).await;
        let refused = ask(&mut Client::connect(&gateway).await).await;
        assert_eq!(
            verdict(&refused),
            (502, "upstream_unreachable".into()),
            "{answer:?}"
        );
        assert!(proxy.asked().await.starts_with("CONNECT "));
        assert_eq!(gateway.upstream.requests(), 0);
        let series =
            format!("proofgate_egress_proxy_failures_total{{provider=\"stand-in\",failure=\"{failure}\"}}");
        gateway.wait_for_metric_in(&series, 1..).await;
    }
}

#[tokio::test]
async fn what_no_proxy_lets_through_goes_to_the_next_provider() {
    let proxy = Proxy::start(Behaviour::Answer("HTTP/1.1 403 Forbidden\r\n\r\n")).await;
    let mut other = Upstream::start().await;
    let gateway = Gateway::with(|document| {
        proxy.is_used_by(document);
        let mut provider = document["providers"][0].clone();
        provider["name"] = json!("other");
        provider["baseURL"] = json!(other.url());
        provider["proxied"] = json!(false);
        document["providers"].as_array_mut().unwrap().push(provider);
        document["models"][0]["fallbackOn"] = json!(["Unreachable"]);
        document["models"][0]["routes"] = json!([
            {"provider": "stand-in", "upstreamModel": MODEL, "weight": 1},
            {"provider": "other", "upstreamModel": MODEL, "weight": 0},
        ]);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let sent = client.send_chat(false).await;
    other.exchange().await.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_proxy_that_says_nothing_is_given_the_time_that_a_connection_has() {
    let proxy = Proxy::start(Behaviour::Silent).await;
    let gateway = Gateway::with(|document| {
        proxy.is_used_by(document);
        document["timeouts"]["upstreamConnectSeconds"] = json!(0.05);
    })
    .await;
    let refused = ask(&mut Client::connect(&gateway).await).await;
    assert_eq!(verdict(&refused), (504, "upstream_connect_timeout".into()));
    let series = "proofgate_egress_proxy_failures_total{provider=\"stand-in\",failure=\"timeout\"}";
    gateway.wait_for_metric_in(series, 1..).await;
}

#[tokio::test]
async fn a_tunnel_that_breaks_under_an_answer_is_a_connection_that_breaks() {
    let proxy = Proxy::start(Behaviour::Break).await;
    let mut gateway = Gateway::with(|document| proxy.is_used_by(document)).await;
    let mut client = Client::connect(&gateway).await;
    let sent = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    let answer = read(sent).await.unwrap();
    assert_eq!(verdict(&answer), (502, "upstream_unreachable".into()));
}

#[tokio::test]
async fn no_tunnel_is_asked_for_to_an_address_that_may_not_be_reached() {
    let mut proxy = Proxy::start(Behaviour::Tunnel).await;
    let mut gateway = Gateway::with(|document| {
        proxy.is_used_by(document);
        document["egress"]["allow"] = json!(["10.0.0.0/8"]);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(
        verdict(&ask(&mut client).await),
        (502, "upstream_unreachable".into())
    );
    // Without a configured range, metadata services are still refused, by address and by name.
    for host in ["169.254.169.254", "Metadata.Google.Internal."] {
        gateway.change(|document| {
            document["egress"]["allow"] = Value::Null;
            document["providers"][0]["baseURL"] = json!(format!("http://{host}/v1"));
        });
        assert_eq!(
            verdict(&ask(&mut client).await),
            (502, "upstream_unreachable".into())
        );
    }
    assert!(proxy.asked.try_recv().is_err(), "a tunnel was asked for");
}
