//! TLS to providers: trusted certificates, the gateway's own certificate, and changes at run time.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::client::{Answer, Client, post};
use crate::gateway::{Gateway, PATIENCE, SECOND, chat};

/// The mock provider's self-signed certificate.
const OWN: [&str; 2] = [
    include_str!("certificates/upstream.crt"),
    include_str!("certificates/upstream.key"),
];
/// The gateway's client certificate.
pub const CLIENT: [&str; 2] = [
    include_str!("certificates/client.crt"),
    include_str!("certificates/client.key"),
];
const NEXT: [&str; 2] = [
    include_str!("certificates/next-client.crt"),
    include_str!("certificates/next-client.key"),
];
const ANSWER: &str = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// An event at a provider.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// A request was answered whose client presented this certificate.
    Answered(Option<CertificateDer<'static>>),
    /// A connection ended.
    Ended,
}

/// A TLS provider that requests a client certificate, which must be `CLIENT` or `NEXT`.
pub struct Provider {
    url: String,
    events: mpsc::UnboundedReceiver<Event>,
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

impl Provider {
    pub async fn start() -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        for pem in [CLIENT[0], NEXT[0]] {
            roots.add(certificate(pem)).unwrap();
        }
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(
                vec![certificate(OWN[0])],
                PrivateKeyDer::from_pem_slice(OWN[1].as_bytes()).unwrap(),
            );
        let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/v1", listener.local_addr().unwrap());
        let (told, events) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, told) = (acceptor.clone(), told.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(tcp).await {
                        serve(stream, &told).await;
                        let _ = told.send(Event::Ended);
                    }
                });
            }
        });
        Provider { url, events }
    }

    /// Returns the next event.
    async fn event(&mut self) -> Event {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        event.expect("nothing happens").unwrap()
    }

    pub async fn gateway(&self, change: impl FnOnce(&mut Value)) -> Gateway {
        Gateway::with(|document| {
            document["providers"][0]["baseURL"] = json!(self.url);
            document["providers"][0]["caPem"] = json!(OWN[0]);
            change(&mut document["providers"][0]);
        })
        .await
    }
}

/// Answers requests until the connection ends.
async fn serve(mut stream: TlsStream<TcpStream>, told: &mpsc::UnboundedSender<Event>) {
    let shown = stream.get_ref().1.peer_certificates();
    let shown = shown.map(|chain| chain[0].clone().into_owned());
    let mut request = Vec::new();
    while stream.read_buf(&mut request).await.is_ok_and(|read| read != 0) {
        if !request.ends_with(b"}") {
            continue;
        }
        request.clear();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}",
            ANSWER.len()
        );
        let answer = format!("{head}\r\n\r\n{ANSWER}");
        if stream.write_all(answer.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        let _ = told.send(Event::Answered(shown.clone()));
    }
}

pub fn show(provider: &mut Value, [certificate, key]: [&str; 2]) {
    provider["clientCertificatePem"] = json!(certificate);
    provider["clientKeyPem"] = json!(key);
}

async fn ask(client: &mut Client) -> Answer {
    let body = chat(10, false);
    client.exchange(post(Some(body.len())), &body).await
}

#[tokio::test]
async fn a_provider_that_asks_for_a_certificate_is_shown_it_and_nothing_is_answered_without() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway(|entry| show(entry, CLIENT)).await;
    let answer = ask(&mut Client::connect(&gateway).await).await;
    assert_eq!(answer.status, 200, "{}", answer.code());
    assert_eq!(
        provider.event().await,
        Event::Answered(Some(certificate(CLIENT[0])))
    );
    let without = provider.gateway(|_| ()).await;
    let answer = ask(&mut Client::connect(&without).await).await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.code()),
        (502, "upstream_unreachable")
    );
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_shown_from_then_on_and_connections_made_with_the_old_one_end() {
    let mut provider = Provider::start().await;
    let mut gateway = provider.gateway(|entry| show(entry, CLIENT)).await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(ask(&mut client).await.status, 200);
    assert_eq!(
        provider.event().await,
        Event::Answered(Some(certificate(CLIENT[0])))
    );
    gateway.change(|document| show(&mut document["providers"][0], NEXT));
    assert_eq!(provider.event().await, Event::Ended, "it was idle");
    assert_eq!(ask(&mut client).await.status, 200);
    assert_eq!(
        provider.event().await,
        Event::Answered(Some(certificate(NEXT[0])))
    );
    // A change that does not concern the provider does not affect its connections.
    gateway.change(|document| document["models"][0]["maxOutputTokens"] = json!(7));
    assert_eq!(ask(&mut client).await.status, 200);
    assert_eq!(
        provider.event().await,
        Event::Answered(Some(certificate(NEXT[0])))
    );
}

#[tokio::test]
async fn a_provider_whose_authority_is_not_trusted_is_sent_nothing_until_another_one_is_configured() {
    let mut provider = Provider::start().await;
    let mut gateway = provider
        .gateway(|entry| {
            show(entry, CLIENT);
            entry["caPem"] = json!(SECOND[0]);
        })
        .await;
    let mut client = Client::connect(&gateway).await;
    let answer = ask(&mut client).await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.code()),
        (502, "upstream_unreachable")
    );
    gateway.change(|document| document["providers"][0]["caPem"] = json!(OWN[0]));
    assert_eq!(ask(&mut client).await.status, 200);
    assert_eq!(
        provider.event().await,
        Event::Answered(Some(certificate(CLIENT[0])))
    );
}

#[tokio::test]
async fn what_a_provider_was_asked_counts_when_only_the_certificate_changes() {
    let provider = Provider::start().await;
    let mut gateway = provider
        .gateway(|entry| {
            show(entry, CLIENT);
            entry["limits"] = json!({"requestsPerMinute": 1});
        })
        .await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(ask(&mut client).await.status, 200);
    gateway.change(|document| show(&mut document["providers"][0], NEXT));
    assert_eq!(ask(&mut client).await.code(), "provider_busy");
}
