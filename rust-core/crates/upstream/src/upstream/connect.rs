//! Connections to a provider: TCP or a tunnel through a forward proxy, then TLS and the negotiated
//! HTTP version.

use std::io;
use std::time::{Duration, Instant};

use proofgate_base::descriptors::ResourceShortage;
use proofgate_config::HttpVersion;

use super::http2::{self, Sessions};
use super::maybe_tls_stream::{MaybeTlsStream, Socket};
use super::pool::Pool;
use super::stream::UpstreamStream;
use super::tcp::connect_to;
use super::tunnel::{ProxyFailure, Tunnels};

/// The minimum interval between two log entries about failures of one provider.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The reason why no connection was made.
#[derive(Debug)]
pub enum ConnectError {
    Failed,
    TimedOut,
    /// The provider was not contacted, because the process lacks a resource.
    OutOfResources(ResourceShortage),
}

impl Pool {
    /// Makes a new connection. For HTTP/2, returns a stream of a session, and makes a new session
    /// if no existing one has capacity.
    pub async fn connect(&self, provider: &str) -> Result<UpstreamStream, ConnectError> {
        // The connecting future is boxed because it is large and rarely used, and this future is
        // moved with every request.
        let connecting = Box::pin(self.try_to_connect());
        match tokio::time::timeout(self.route.connect_timeout, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                self.report(provider, &error.to_string());
                Err(ResourceShortage::from_error(&error)
                    .map_or(ConnectError::Failed, ConnectError::OutOfResources))
            }
            Err(_) => {
                self.host_addresses.invalidate();
                match &self.tunnels {
                    None => self.report(provider, "the connection timed out"),
                    Some(tunnels) => self.report(provider, &tunnels.record_timeout()),
                }
                Err(ConnectError::TimedOut)
            }
        }
    }

    /// Returns the failures of the forward proxy since the last call, by kind; empty without a
    /// proxy.
    pub fn take_proxy_failures(&self) -> impl Iterator<Item = (ProxyFailure, u64)> + '_ {
        self.tunnels.iter().flat_map(Tunnels::take_failures)
    }

    /// Logs to standard error why the provider cannot be reached, at most once a second.
    fn report(&self, provider: &str, reason: &str) {
        let now = Instant::now();
        if self
            .last_report
            .get()
            .is_none_or(|last| now.duration_since(last) >= REPORT_INTERVAL)
        {
            self.last_report.set(Some(now));
            proofgate_log::warning!("provider {provider:?}: cannot connect: {reason}");
        }
    }

    async fn try_to_connect(&self) -> io::Result<UpstreamStream> {
        match &self.sessions {
            None => Ok(UpstreamStream::http1(self.connect_wire().await?)),
            Some(sessions) => {
                sessions
                    .acquire_stream_or_connect(async || self.establish(sessions).await)
                    .await
            }
        }
    }

    /// Connects, and uses the protocol that the provider chooses.
    async fn establish(&self, sessions: &Sessions) -> io::Result<UpstreamStream> {
        let wire = self.connect_wire().await?;
        let is_http2 = wire.has_negotiated(http2::ALPN).unwrap_or(true);
        sessions.record_protocol(!is_http2);
        if is_http2 {
            let session = sessions.establish(wire, self.route.base.tls).await?;
            let stream = session.open_stream();
            if !self.is_retired.get() {
                sessions.insert(session);
            }
            return Ok(stream.into());
        }
        match self.route.http {
            HttpVersion::Http2 => Err(io::Error::other(
                "it does not negotiate HTTP/2 in TLS (ALPN); set http to Auto or Http1",
            )),
            HttpVersion::Auto | HttpVersion::Http1 => Ok(UpstreamStream::http1(wire)),
        }
    }

    async fn connect_wire(&self) -> io::Result<MaybeTlsStream> {
        let socket = match &self.tunnels {
            None => self.connect_directly().await?,
            Some(tunnels) => {
                let (route, names) = (&self.route, &self.host_addresses);
                tunnels
                    .open(&route.base, names, &route.egress, &self.sockets)
                    .await?
            }
        };
        match &self.route.tls {
            None => Ok(MaybeTlsStream::Plain(socket)),
            Some(tls) => {
                let stream = tls.connector.connect(tls.server_name.clone(), socket).await?;
                Ok(MaybeTlsStream::Tls(Box::new(stream)))
            }
        }
    }

    async fn connect_directly(&self) -> io::Result<Socket> {
        let addresses = self
            .route
            .egress
            .filter_allowed(&self.host_addresses.addresses().await?);
        if addresses.is_empty() {
            return Err(io::Error::other("egress allows none of its addresses"));
        }
        connect_to(&addresses, &self.host_addresses, &self.sockets).await
    }
}
