use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use proofgate_providers::{BaseUrl, RequestTemplate};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Idle connections kept for each provider, and how long they may idle.
const MAX_IDLE: usize = 1024;
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// How often one provider's failures are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// A provider at run time: how to speak to it, and the connections that lead there.
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) template: RequestTemplate,
    pub(crate) pool: Rc<Pool>,
}

/// How a provider is reached.
pub(crate) struct Route {
    base: BaseUrl,
    ca_pem: Option<String>,
    tls: Option<Tls>,
    connect_timeout: Duration,
}

impl Route {
    /// Prepares the way to a base URL, trusting the system's roots or those of `ca_pem` alone.
    pub(crate) fn new(
        base: BaseUrl,
        ca_pem: Option<String>,
        connect_timeout: Duration,
    ) -> Result<Self, String> {
        let tls = base.tls.then(|| tls(&base.host, ca_pem.as_deref())).transpose()?;
        Ok(Route {
            base,
            ca_pem,
            tls,
            connect_timeout,
        })
    }
}

/// Connections to one place, and those of them that wait for the next request.
pub(crate) struct Pool {
    route: Route,
    idle: RefCell<Vec<Idle>>,
    /// When [`Pool::close_expired`] was called last: near enough to tell how long a connection has idled.
    second: Cell<Instant>,
    reported: Cell<Option<Instant>>,
}

struct Idle {
    stream: UpstreamStream,
    since: Instant,
}

struct Tls {
    connector: TlsConnector,
    server_name: ServerName<'static>,
}

/// Why no connection was made.
#[derive(Debug)]
pub(crate) enum ConnectError {
    Failed,
    TimedOut,
}

/// Prepares TLS to `host`, trusting the system's roots or those of `ca_pem` alone.
fn tls(host: &str, ca_pem: Option<&str>) -> Result<Tls, String> {
    let mut roots = RootCertStore::empty();
    match ca_pem {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|error| format!("caFile: {error}"))?;
                roots
                    .add(certificate)
                    .map_err(|error| format!("caFile: {error}"))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("no certificate authority is trusted: install ca-certificates or set caFile".into());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let server_name =
        ServerName::try_from(host.to_owned()).map_err(|_| format!("{host:?} is no host name for TLS"))?;
    Ok(Tls {
        connector: TlsConnector::from(Arc::new(config)),
        server_name,
    })
}

impl Pool {
    pub(crate) fn new(route: Route) -> Self {
        Pool {
            route,
            idle: RefCell::default(),
            second: Cell::new(Instant::now()),
            reported: Cell::default(),
        }
    }

    /// Whether its connections lead where those of `route` would, over the same trust.
    pub(crate) fn leads_as(&self, route: &Route) -> bool {
        let Route {
            base,
            ca_pem,
            connect_timeout,
            ..
        } = &self.route;
        *base == route.base && *ca_pem == route.ca_pem && *connect_timeout == route.connect_timeout
    }

    /// An idle connection that is still alive, or a new one.
    pub(crate) async fn connection(&self, provider: &str) -> Result<UpstreamStream, ConnectError> {
        loop {
            let Some(mut idle) = self.idle.borrow_mut().pop() else {
                break;
            };
            if self.second.get() - idle.since < IDLE_LIMIT && idle.stream.is_quiet() {
                return Ok(idle.stream);
            }
        }
        // In a box: this future is moved with every request, and connecting is rare and large.
        let connecting = Box::pin(self.connect());
        match tokio::time::timeout(self.route.connect_timeout, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                self.report(provider, &error.to_string());
                Err(ConnectError::Failed)
            }
            Err(_) => {
                self.report(provider, "no connection in time");
                Err(ConnectError::TimedOut)
            }
        }
    }

    /// Says on standard error why the provider cannot be reached, at most once a second.
    fn report(&self, provider: &str, reason: &str) {
        let now = Instant::now();
        if self
            .reported
            .get()
            .is_none_or(|last| now.duration_since(last) >= REPORT_INTERVAL)
        {
            self.reported.set(Some(now));
            eprintln!("proofgate: provider {provider:?}: cannot connect: {reason}");
        }
    }

    async fn connect(&self) -> io::Result<UpstreamStream> {
        let tcp = TcpStream::connect((self.route.base.host.as_str(), self.route.base.port)).await?;
        tcp.set_nodelay(true)?;
        match &self.route.tls {
            None => Ok(UpstreamStream::Plain(tcp)),
            Some(tls) => {
                let stream = tls.connector.connect(tls.server_name.clone(), tcp).await?;
                Ok(UpstreamStream::Tls(Box::new(stream)))
            }
        }
    }

    /// Keeps a connection whose last exchange ended cleanly.
    pub(crate) fn put_back(&self, stream: UpstreamStream) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < MAX_IDLE {
            idle.push(Idle {
                stream,
                since: self.second.get(),
            });
        }
    }

    /// Closes connections that have idled too long; to be called once a second.
    pub(crate) fn close_expired(&self) {
        let now = Instant::now();
        self.second.set(now);
        self.idle
            .borrow_mut()
            .retain(|idle| now - idle.since < IDLE_LIMIT);
    }
}

/// A connection to a provider.
pub(crate) enum UpstreamStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl UpstreamStream {
    /// Whether an idle connection has nothing to read: bytes or an end that nobody asked for make it unusable.
    fn is_quiet(&mut self) -> bool {
        let tcp = match self {
            UpstreamStream::Plain(tcp) => tcp,
            UpstreamStream::Tls(tls) => tls.get_mut().0,
        };
        let mut byte = [0];
        tcp.poll_peek(
            &mut Context::from_waker(Waker::noop()),
            &mut ReadBuf::new(&mut byte),
        )
        .is_pending()
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            UpstreamStream::Plain(inner) => {
                let $stream = Pin::new(inner);
                $call
            }
            UpstreamStream::Tls(inner) => {
                let $stream = Pin::new(inner.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for UpstreamStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(cx))
    }
}
