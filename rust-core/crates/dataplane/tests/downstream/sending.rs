//! Providers that respond or disconnect before they have the whole request, and the charge for the
//! tenant.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::client::{Answer, Client, post, read};
use crate::gateway::{BODY_BYTES, Gateway, PATIENCE, chat};

const CERTIFICATE: &str = include_str!("certificates/upstream.crt");
const KEY: &str = include_str!("certificates/upstream.key");

const TOO_LARGE: &[u8] =
    b"HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{\"e\":1}";
const FINE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// One end of a connection, plain or over TLS.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A provider whose connections a test serves directly.
struct Provider {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Provider {
    fn start(over_tls: bool) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // A long request does not fit into this buffer.
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap(),
            );
        Provider {
            listener: socket.listen(16).unwrap(),
            tls: over_tls.then(|| TlsAcceptor::from(Arc::new(config.unwrap()))),
        }
    }

    /// Configures the gateway to use this provider.
    fn configure(&self, document: &mut Value) {
        let address = self.listener.local_addr().unwrap();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let provider = &mut document["providers"][0];
        provider["baseURL"] = json!(format!("{scheme}://{address}/v1"));
        provider["caPem"] = json!(CERTIFICATE);
        document["tenants"][0]["limits"] = json!({"tokensPerDay": 1_000_000_000});
    }

    async fn accept(&self) -> Box<dyn Stream> {
        let accepted = timeout(PATIENCE, self.listener.accept()).await;
        let (tcp, _) = accepted.expect("nobody connects").unwrap();
        // Otherwise a short response waits for the acknowledgement of the handshake, and a close
        // discards it.
        tcp.set_nodelay(true).unwrap();
        match &self.tls {
            None => Box::new(tcp),
            Some(tls) => Box::new(tls.accept(tcp).await.unwrap()),
        }
    }
}

/// Reads to the end of a head.
async fn read_head(stream: &mut Box<dyn Stream>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
}

async fn read_body(stream: &mut Box<dyn Stream>, length: usize) {
    let mut body = stream.take(length as u64);
    tokio::io::copy(&mut body, &mut tokio::io::sink()).await.unwrap();
}

/// A gateway in front of a provider, with a request in progress.
struct Sent {
    gateway: Gateway,
    answer: h2::client::ResponseFuture,
    _client: Client,
}

impl Sent {
    async fn to(provider: &Provider, body: &[u8], change: impl FnOnce(&mut Value)) -> Self {
        let gateway = Gateway::with(|document| {
            provider.configure(document);
            change(document);
        })
        .await;
        let mut client = Client::connect(&gateway).await;
        let answer = client.send(post(Some(body.len())), body).await;
        Sent {
            gateway,
            answer,
            _client: client,
        }
    }

    /// Returns the response and its completion record.
    async fn end(self) -> (Answer, Value) {
        let answer = read(self.answer).await.unwrap();
        let id = answer.headers["x-request-id"].to_str().unwrap().to_owned();
        let worker = Arc::clone(&self.gateway.worker);
        let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, PATIENCE));
        let evidence = evidence.await.unwrap().unwrap();
        (answer, serde_json::from_str(&evidence[1].record).unwrap())
    }
}

fn long_chat() -> Vec<u8> {
    chat(BODY_BYTES - 1000, false)
}

#[tokio::test]
async fn an_answer_that_comes_before_the_request_has_left_is_passed_on_and_costs_nothing() {
    for over_tls in [false, true] {
        for stays in [false, true] {
            let provider = Provider::start(over_tls);
            let sent = Sent::to(&provider, &long_chat(), |_| ()).await;
            let mut stream = provider.accept().await;
            read_head(&mut stream).await;
            stream.write_all(TOO_LARGE).await.unwrap();
            stream.flush().await.unwrap();
            // A provider that disconnects resets the connection, because it has not read all data.
            let kept = stays.then_some(stream);
            let (answer, completion) = sent.end().await;
            assert_eq!(
                (answer.status.as_u16(), &answer.body[..]),
                (413, &b"{\"e\":1}"[..])
            );
            assert_eq!(completion["upstream_status"], 413);
            assert_eq!(completion["charged"], 0);
            drop(kept);
        }
    }
}

#[tokio::test]
async fn a_provider_that_goes_away_before_it_has_the_request_costs_nothing() {
    for over_tls in [false, true] {
        let provider = Provider::start(over_tls);
        let sent = Sent::to(&provider, &long_chat(), |_| ()).await;
        let mut stream = provider.accept().await;
        read_head(&mut stream).await;
        drop(stream);
        let (answer, completion) = sent.end().await;
        assert_eq!(
            (answer.status.as_u16(), &*answer.code()),
            (502, "upstream_unreachable")
        );
        assert_eq!(
            (&completion["upstream_status"], &completion["charged"]),
            (&Value::Null, &json!(0))
        );
    }
}

#[tokio::test]
async fn a_provider_that_goes_away_with_the_whole_request_costs_its_reservation() {
    for over_tls in [false, true] {
        let provider = Provider::start(over_tls);
        let body = chat(10, false);
        let sent = Sent::to(&provider, &body, |_| ()).await;
        let mut stream = provider.accept().await;
        read_head(&mut stream).await;
        read_body(&mut stream, body.len()).await;
        drop(stream);
        let (answer, completion) = sent.end().await;
        assert_eq!(
            (answer.status.as_u16(), &*answer.code()),
            (502, "upstream_unreachable")
        );
        assert_eq!(
            (&completion["upstream_status"], &completion["charged"]),
            (&Value::Null, &Value::Null)
        );
    }
}

#[tokio::test]
async fn a_provider_that_neither_reads_nor_closes_ends_with_the_patience_for_it_and_costs_nothing() {
    for over_tls in [false, true] {
        let provider = Provider::start(over_tls);
        let impatient = |document: &mut Value| document["timeouts"]["upstreamFirstByteSeconds"] = json!(1);
        let sent = Sent::to(&provider, &long_chat(), impatient).await;
        let _stream = provider.accept().await;
        let (answer, completion) = sent.end().await;
        assert_eq!(
            (answer.status.as_u16(), &*answer.code()),
            (504, "upstream_first_byte_timeout")
        );
        assert_eq!(completion["charged"], 0);
    }
}

#[tokio::test]
async fn an_answer_that_all_is_well_does_not_end_the_sending() {
    for over_tls in [false, true] {
        let body = long_chat();
        let provider = Provider::start(over_tls);
        let sent = Sent::to(&provider, &body, |_| ()).await;
        let mut stream = provider.accept().await;
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        let (head, rest) = FINE.split_at(FINE.len() - 2);
        stream.write_all(head).await.unwrap();
        stream.flush().await.unwrap();
        read_body(&mut stream, body.len()).await;
        stream.write_all(rest).await.unwrap();
        stream.flush().await.unwrap();
        let (answer, completion) = sent.end().await;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"{}"[..]));
        assert_eq!(completion["upstream_status"], 200);
    }
}
