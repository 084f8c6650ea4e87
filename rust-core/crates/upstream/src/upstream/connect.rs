//! Connecting to a provider: TCP to it, or a tunnel through a forward proxy, then TLS and the HTTP that it chooses.

use std::io;
use std::time::{Duration, Instant};

use proofgate_base::descriptors::Shortage;
use proofgate_config::Http;

use super::http2::{self, Sessions};
use super::pool::Pool;
use super::stream::UpstreamStream;
use super::tcp::connect_to;
use super::tunnel::{ProxyFailure, Tunnels};
use super::wire::{Socket, Wire};

/// How often one provider's failures are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Why no connection was made.
#[derive(Debug)]
pub enum ConnectError {
    Failed,
    TimedOut,
    /// The provider was not asked: the process has nothing to reach it with.
    Short(Shortage),
}

impl Pool {
    /// A new connection; of HTTP/2 a stream of a session, which is a new one where none has room.
    pub async fn connect(&self, provider: &str) -> Result<UpstreamStream, ConnectError> {
        // In a box: this future is moved with every request, and connecting is rare and large.
        let connecting = Box::pin(self.try_to_connect());
        match tokio::time::timeout(self.route.connect_timeout, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                self.report(provider, &error.to_string());
                Err(Shortage::of(&error).map_or(ConnectError::Failed, ConnectError::Short))
            }
            Err(_) => {
                self.names.distrust();
                match &self.tunnels {
                    None => self.report(provider, "the connection timed out"),
                    Some(tunnels) => self.report(provider, &tunnels.timed_out()),
                }
                Err(ConnectError::TimedOut)
            }
        }
    }

    /// Failures of the forward proxy since the last call, by their kind; none without a proxy.
    pub fn take_proxy_failures(&self) -> impl Iterator<Item = (ProxyFailure, u64)> + '_ {
        self.tunnels.iter().flat_map(Tunnels::take_failures)
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
            proofgate_log::warning!("provider {provider:?}: cannot connect: {reason}");
        }
    }

    async fn try_to_connect(&self) -> io::Result<UpstreamStream> {
        match &self.sessions {
            None => Ok(UpstreamStream::http1(self.reach().await?)),
            Some(sessions) => sessions.stream_or(async || self.begin(sessions).await).await,
        }
    }

    /// Connects, and speaks what the provider chooses.
    async fn begin(&self, sessions: &Sessions) -> io::Result<UpstreamStream> {
        let wire = self.reach().await?;
        let is_http2 = wire.is_chosen(http2::ALPN).unwrap_or(true);
        sessions.chose(!is_http2);
        if is_http2 {
            let session = sessions.begin(wire, self.route.base.tls).await?;
            let stream = session.stream();
            if !self.left.get() {
                sessions.keep(session);
            }
            return Ok(stream.into());
        }
        match self.route.http {
            Http::Http2 => Err(io::Error::other(
                "it does not negotiate HTTP/2 in TLS (ALPN); set http to Auto or Http1",
            )),
            Http::Auto | Http::Http1 => Ok(UpstreamStream::http1(wire)),
        }
    }

    async fn reach(&self) -> io::Result<Wire> {
        let socket = match &self.tunnels {
            None => self.reach_directly().await?,
            Some(tunnels) => {
                let (route, names) = (&self.route, &self.names);
                tunnels
                    .open(&route.base, names, &route.egress, &self.sockets)
                    .await?
            }
        };
        match &self.route.tls {
            None => Ok(Wire::Plain(socket)),
            Some(tls) => {
                let stream = tls.connector.connect(tls.server_name.clone(), socket).await?;
                Ok(Wire::Tls(Box::new(stream)))
            }
        }
    }

    async fn reach_directly(&self) -> io::Result<Socket> {
        let addresses = self.route.egress.admitted(&self.names.addresses().await?);
        if addresses.is_empty() {
            return Err(io::Error::other("egress allows none of its addresses"));
        }
        connect_to(&addresses, &self.names, &self.sockets).await
    }
}
