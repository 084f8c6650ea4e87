//! Well-behaved clients: TLS, and HTTP/2 with the `h2` crate.

use std::sync::Arc;

use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, StatusCode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::gateway::{ACME, FIRST, Gateway, PATIENCE, chat};

/// A request for a chat completion as the tenant acme. `length` is its Content-Length.
pub fn post(length: Option<usize>) -> Request<()> {
    post_as(ACME, length)
}

pub fn post_as(key: &str, length: Option<usize>) -> Request<()> {
    let request = Request::post("https://gateway.test/v1/chat/completions")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json");
    match length {
        Some(length) => request.header("content-length", length),
        None => request,
    }
    .body(())
    .unwrap()
}

/// A request without a body.
pub fn ask(method: &str, path: &str) -> Request<()> {
    Request::builder()
        .method(method)
        .uri(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .body(())
        .unwrap()
}

/// Performs a TLS handshake that trusts one certificate and offers `protocols`.
pub async fn tls(
    tcp: TcpStream,
    certificate: &str,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    tls_of(rustls::ALL_VERSIONS, tcp, certificate, protocols).await
}

/// Performs the same handshake with only these versions of TLS.
pub async fn tls_of(
    versions: &[&'static SupportedProtocolVersion],
    tcp: TcpStream,
    certificate: &str,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from("gateway.test").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await
}

pub async fn tcp(gateway: &Gateway) -> TcpStream {
    let tcp = TcpStream::connect(gateway.address).await.unwrap();
    // Small frames are sent without waiting for an acknowledgement of the previous one.
    tcp.set_nodelay(true).unwrap();
    tcp
}

/// An HTTP/2 connection.
pub struct Client {
    requests: SendRequest<Bytes>,
    /// The connection's task, which ends with the connection and returns h2's result.
    pub connection: JoinHandle<Result<(), h2::Error>>,
}

/// A complete response.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    /// The machine code of an error.
    pub fn code(&self) -> String {
        let document: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        document["error"]["code"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub async fn connect(gateway: &Gateway) -> Self {
        Self::on(tcp(gateway).await, client::Builder::new()).await
    }

    pub async fn on(tcp: TcpStream, settings: client::Builder) -> Self {
        let stream = tls(tcp, FIRST[0], &[b"h2"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (requests, connection) = settings.handshake(stream).await.unwrap();
        Client {
            requests,
            connection: tokio::spawn(connection),
        }
    }

    /// Sends a head; `ended` means that no body follows.
    pub async fn send_head(
        &mut self,
        request: Request<()>,
        ended: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        self.requests.clone().ready().await?.send_request(request, ended)
    }

    /// Sends a whole request as fast as flow control permits.
    pub async fn send(&mut self, request: Request<()>, body: &[u8]) -> ResponseFuture {
        let (answer, mut stream) = self.send_head(request, body.is_empty()).await.unwrap();
        if !body.is_empty() {
            // After its response, the gateway reads no more of the body, which some tests expect.
            let _ = stream.send_data(Bytes::copy_from_slice(body), true);
        }
        answer
    }

    /// Sends a small request for a chat completion.
    pub async fn send_chat(&mut self, stream: bool) -> ResponseFuture {
        let body = chat(10, stream);
        self.send(post(Some(body.len())), &body).await
    }

    /// Sends a whole request and reads the whole response.
    pub async fn exchange(&mut self, request: Request<()>, body: &[u8]) -> Answer {
        let answer = self.send(request, body).await;
        read(answer).await.unwrap()
    }

    /// Waits for the connection's end.
    pub async fn ended(self) -> Result<(), h2::Error> {
        let ended = timeout(PATIENCE, self.connection).await;
        ended.expect("the connection is still open").unwrap()
    }
}

/// Reads a whole response.
pub async fn read(answer: ResponseFuture) -> Result<Answer, h2::Error> {
    let answer = timeout(PATIENCE, answer).await.expect("no answer")?;
    let (parts, mut stream) = answer.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = next(&mut stream).await? {
        body.extend_from_slice(&piece);
    }
    Ok(Answer {
        status: parts.status,
        headers: parts.headers,
        body,
    })
}

/// Returns the next piece of a response's body.
pub async fn next(stream: &mut RecvStream) -> Result<Option<Bytes>, h2::Error> {
    let piece = timeout(PATIENCE, stream.data())
        .await
        .expect("no piece of the answer");
    let Some(piece) = piece.transpose()? else {
        return Ok(None);
    };
    stream.flow_control().release_capacity(piece.len())?;
    Ok(Some(piece))
}
