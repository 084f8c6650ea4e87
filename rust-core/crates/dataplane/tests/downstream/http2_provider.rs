//! A provider that speaks HTTP/2, all of whose frames a test determines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{RecvStream, SendStream};
use http::request::Parts;
use http::{Response, StatusCode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::gateway::{Gateway, PATIENCE};

pub const CERTIFICATE: &str = include_str!("certificates/upstream.crt");
const KEY: &str = include_str!("certificates/upstream.key");

/// Returns the provider's TLS acceptor, which selects one of `protocols`.
pub fn acceptor(protocols: &[&[u8]]) -> TlsAcceptor {
    acceptor_for(protocols, None)
}

/// Returns the provider's TLS acceptor, which serves only clients with the certificate `client`, if
/// one is given.
fn acceptor_for(protocols: &[&[u8]], client: Option<&str>) -> TlsAcceptor {
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = client.map(|client| {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(client)).unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        clients.build().unwrap()
    });
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients),
        None => config.with_no_client_auth(),
    };
    let config = config.with_single_cert(
        vec![certificate(CERTIFICATE)],
        PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap(),
    );
    let mut config = config.unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// An order to the provider's side of a session.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// Send GOAWAY; running streams continue.
    Leave,
    /// Close the connection without GOAWAY.
    Vanish,
}

/// A provider whose requests wait until the test answers them.
pub struct Provider {
    url: String,
    sessions: Arc<AtomicUsize>,
    ended: mpsc::UnboundedReceiver<usize>,
    calls: mpsc::UnboundedReceiver<Call>,
}

/// One request, and the stream for its response.
pub struct Call {
    /// The number of its session, from 1.
    pub session: usize,
    pub parts: Parts,
    pub body: RecvStream,
    pub respond: SendResponse<Bytes>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Provider {
    /// Starts a provider with TLS.
    pub async fn start() -> Self {
        Self::with(true, Builder::new()).await
    }

    /// Starts a provider that serves only clients with the certificate `client`.
    pub async fn for_client(client: &str) -> Self {
        Self::behind(Some(acceptor_for(&[b"h2"], Some(client))), Builder::new()).await
    }

    pub async fn with(over_tls: bool, settings: Builder) -> Self {
        Self::behind(over_tls.then(|| acceptor(&[b"h2"])), settings).await
    }

    async fn behind(tls: Option<TlsAcceptor>, settings: Builder) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}/v1", listener.local_addr().unwrap());
        let sessions = Arc::new(AtomicUsize::new(0));
        let (told, calls) = mpsc::unbounded_channel();
        let (end, ended) = mpsc::unbounded_channel();
        let count = Arc::clone(&sessions);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tcp.set_nodelay(true).unwrap();
                let session = count.fetch_add(1, Ordering::SeqCst) + 1;
                let (settings, told, end) = (settings.clone(), told.clone(), end.clone());
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => serve(tcp, session, &settings, told).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(tcp).await {
                                serve(stream, session, &settings, told).await;
                            }
                        }
                    }
                    let _ = end.send(session);
                });
            }
        });
        Provider {
            url,
            sessions,
            ended,
            calls,
        }
    }

    /// Returns the provider's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the number of sessions so far.
    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::SeqCst)
    }

    /// Starts a gateway in front of the provider.
    pub async fn gateway(&self) -> Gateway {
        self.gateway_with("Http2", |_| ()).await
    }

    pub async fn gateway_with(&self, http: &str, change: impl FnOnce(&mut Value)) -> Gateway {
        gateway(&self.url, http, change).await
    }

    /// Returns the next request.
    pub async fn call(&mut self) -> Call {
        let call = timeout(PATIENCE, self.calls.recv()).await;
        call.expect("no request reached the provider").unwrap()
    }

    /// Whether a request has arrived that the test has not taken yet.
    pub fn has_call(&mut self) -> bool {
        !self.calls.is_empty()
    }

    /// Waits for the end of a session and returns its number.
    pub async fn ended(&mut self) -> usize {
        let ended = timeout(PATIENCE, self.ended.recv()).await;
        ended.expect("no session ends").unwrap()
    }
}

/// Starts a gateway in front of a provider at `url`.
pub async fn gateway(url: &str, http: &str, change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|document| {
        let provider = &mut document["providers"][0];
        provider["baseURL"] = json!(url);
        provider["http"] = json!(http);
        provider["caPem"] = json!(CERTIFICATE);
        document["tenants"][0]["limits"] = json!({"tokensPerDay": 1_000_000_000});
        change(document);
    })
    .await
}

async fn serve<T>(stream: T, session: usize, settings: &Builder, told: mpsc::UnboundedSender<Call>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let Ok(mut connection) = settings.handshake::<_, Bytes>(stream).await else {
        return;
    };
    let (orders, mut ordered) = mpsc::unbounded_channel();
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else { return };
                let (parts, body) = request.into_parts();
                let orders = orders.clone();
                let _ = told.send(Call { session, parts, body, respond, orders });
            }
            Some(order) = ordered.recv() => match order {
                Order::Leave => connection.graceful_shutdown(),
                Order::Vanish => return,
            }
        }
    }
}

impl Call {
    /// Reads the rest of the request's body.
    pub async fn rest(&mut self) -> Result<Vec<u8>, h2::Error> {
        let mut body = Vec::new();
        while let Some(piece) = timeout(PATIENCE, self.body.data()).await.expect("no more comes") {
            let piece = piece?;
            self.body.flow_control().release_capacity(piece.len())?;
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Starts a response; `length` is its Content-Length.
    pub fn begin(&mut self, status: u16, kind: &str, length: Option<usize>) -> SendStream<Bytes> {
        let response = Response::builder()
            .status(StatusCode::from_u16(status).unwrap())
            .header("content-type", kind);
        let response = match length {
            Some(length) => response.header("content-length", length),
            None => response,
        };
        let response = response.body(()).unwrap();
        self.respond.send_response(response, false).unwrap()
    }

    /// Answers with a JSON document.
    pub fn answer(&mut self, body: &'static str) {
        let mut stream = self.begin(200, "application/json", Some(body.len()));
        stream
            .send_data(Bytes::from_static(body.as_bytes()), true)
            .unwrap();
    }

    /// Sends GOAWAY on the request's session.
    pub fn leave_session(&self) {
        self.orders.send(Order::Leave).unwrap();
    }

    /// Closes the request's session without GOAWAY.
    pub fn drop_session(&self) {
        self.orders.send(Order::Vanish).unwrap();
    }
}
