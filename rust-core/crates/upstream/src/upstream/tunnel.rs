//! Tunnels through a forward proxy (CONNECT, RFC 9110 section 9.3.6).
//!
//! TLS to the provider is inside the tunnel, so the proxy sees only the provider's host name and
//! port. With an `http://` base URL, the proxy and anyone else on the path can read everything.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use proofgate_base::descriptors::{ResourceShortage, UpstreamSockets};
use proofgate_config::EgressProxy;
use proofgate_providers::BaseUrl;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use super::egress::{self, Egress};
use super::maybe_tls_stream::Socket;
use super::resolver::{HostAddresses, Resolver};
use super::tcp::connect_to;

/// Maximum bytes of a response head.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The time limit of resolving a provider's name if no ranges are configured. After it, the proxy
/// is used without the provider's addresses.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
/// The time during which a name that the gateway could not resolve is not looked up again.
const UNRESOLVED_TTL: Duration = Duration::from_secs(300);

/// A forward proxy and its credentials, because of which it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
    /// The value of `Proxy-Authorization`; `None` without credentials.
    authorization: Option<String>,
}

impl Proxy {
    /// Checks the settings of a proxy.
    ///
    /// # Errors
    /// A description of the mistake; it never contains the credentials.
    pub fn new(settings: &EgressProxy) -> Result<Self, String> {
        let EgressProxy { url, authorization } = settings;
        let base = BaseUrl::parse(url)
            .ok()
            .filter(|base| !base.tls && base.path.is_empty());
        let is_value = |text: &String| text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let Some(base) = base.filter(|_| authorization.iter().all(is_value)) else {
            return Err(
                "egress: the URL of the proxy is not http://HOST:PORT, or its credentials contain a character \
                        that is not allowed in a header"
                    .into(),
            );
        };
        Ok(Proxy {
            host: base.host.to_ascii_lowercase(),
            port: base.port,
            authorization: authorization.clone(),
        })
    }

    /// Returns the request for a tunnel to `base`.
    fn connect_request(&self, base: &BaseUrl) -> String {
        let authority = authority(&base.host, base.port);
        let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        if let Some(authorization) = &self.authorization {
            request.push_str("Proxy-Authorization: ");
            request.push_str(authorization);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        request
    }
}

/// Formats host and port as CONNECT requires (RFC 9112 section 3.2.3).
fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// The reason why a forward proxy opened no tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyFailure {
    /// The connection to the proxy failed, or the proxy closed it without a response.
    Unreachable,
    /// The connection to the provider through the proxy was not made in time.
    TimedOut,
    /// The proxy's response is not HTTP/1.
    BadResponse,
    /// Status 407: the proxy does not accept the credentials, or requires credentials.
    BadCredentials,
    /// Status 403 or another 4xx: the proxy does not allow the provider.
    Forbidden,
    /// Status 5xx: the proxy cannot reach the provider.
    ProviderUnreachable,
    /// Any other status.
    Refused,
}

impl ProxyFailure {
    const ALL: [ProxyFailure; 7] = [
        ProxyFailure::Unreachable,
        ProxyFailure::TimedOut,
        ProxyFailure::BadResponse,
        ProxyFailure::BadCredentials,
        ProxyFailure::Forbidden,
        ProxyFailure::ProviderUnreachable,
        ProxyFailure::Refused,
    ];

    /// Returns the name of the failure in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            ProxyFailure::Unreachable => "unreachable",
            ProxyFailure::TimedOut => "timeout",
            ProxyFailure::BadResponse => "bad_answer",
            ProxyFailure::BadCredentials => "credentials",
            ProxyFailure::Forbidden => "forbidden",
            ProxyFailure::ProviderUnreachable => "provider_unreachable",
            ProxyFailure::Refused => "refused",
        }
    }

    fn from_status(status: u16) -> Self {
        match status {
            407 => ProxyFailure::BadCredentials,
            400..=499 => ProxyFailure::Forbidden,
            500..=599 => ProxyFailure::ProviderUnreachable,
            _ => ProxyFailure::Refused,
        }
    }

    /// Returns a description of the failure. The proxy's own message is not repeated, because it
    /// may quote the request.
    fn description(self) -> &'static str {
        match self {
            ProxyFailure::BadCredentials => "it rejects the credentials, or requires credentials",
            ProxyFailure::Forbidden => "it does not allow this provider",
            ProxyFailure::ProviderUnreachable => "it cannot reach the provider",
            _ => "it does not open a tunnel",
        }
    }
}

/// Tunnels to one provider.
pub(super) struct Tunnels {
    proxy: Proxy,
    host_addresses: Rc<HostAddresses>,
    failures: [Cell<u64>; ProxyFailure::ALL.len()],
    /// The time until which the provider's name counts as unresolvable by the gateway; `None` if it
    /// does not.
    unresolved_until: Cell<Option<Instant>>,
}

impl Tunnels {
    pub(super) fn new(proxy: Proxy) -> Self {
        Tunnels {
            host_addresses: HostAddresses::new(&proxy.host, proxy.port, Resolver::system()),
            proxy,
            failures: Default::default(),
            unresolved_until: Cell::default(),
        }
    }

    /// Opens a tunnel to `base`, whose addresses are `provider`, if `egress` allows it. A future
    /// that is dropped early leaves nothing open.
    pub(super) async fn open(
        &self,
        base: &BaseUrl,
        provider: &Rc<HostAddresses>,
        egress: &Egress,
        sockets: &Rc<UpstreamSockets>,
    ) -> io::Result<Socket> {
        let mut tcp =
            self.connect_to_proxy(sockets).await.map_err(|error| {
                match ResourceShortage::from_error(&error) {
                    Some(shortage) => shortage.into(),
                    None => self.failed(ProxyFailure::Unreachable, &format!("cannot be reached: {error}")),
                }
            })?;
        self.check(base, provider, egress).await?;
        let (failure, words) = match self.request_tunnel(&mut tcp, base).await {
            Ok(200..=299) => return Ok(tcp),
            Ok(status) => {
                let failure = ProxyFailure::from_status(status);
                (failure, format!("answers {status}: {}", failure.description()))
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => (
                ProxyFailure::BadResponse,
                "sends an answer that is not HTTP/1".into(),
            ),
            Err(error) => (
                ProxyFailure::Unreachable,
                format!("closes the connection without an answer: {error}"),
            ),
        };
        Err(self.failed(failure, &words))
    }

    async fn connect_to_proxy(&self, sockets: &Rc<UpstreamSockets>) -> io::Result<Socket> {
        // The configuration names the proxy, so it need not be in the ranges; metadata services are still excluded.
        let addresses = Egress::default().filter_allowed(&self.host_addresses.addresses().await?);
        if addresses.is_empty() {
            return Err(io::Error::other("its address is not allowed for a proxy"));
        }
        connect_to(&addresses, &self.host_addresses, sockets).await
    }

    /// Checks the addresses that the gateway resolves for the provider's name. The proxy resolves
    /// the name separately and may use any of its addresses, so all must be allowed.
    async fn check(&self, base: &BaseUrl, provider: &Rc<HostAddresses>, egress: &Egress) -> io::Result<()> {
        let addresses = match egress.has_ranges() {
            true => provider.addresses().await.map_err(|error| {
                io::Error::other(format!(
                    "egress.allow has addresses, but the provider's name cannot be resolved here: {error}"
                ))
            })?,
            false if egress::is_metadata_name(&base.host) => Rc::default(),
            false => match self.resolve_with_timeout(provider).await {
                Some(addresses) => addresses,
                None => return Ok(()),
            },
        };
        match addresses.is_empty() || egress.filter_allowed(&addresses).len() < addresses.len() {
            true => Err(io::Error::other("egress does not allow one of its addresses")),
            false => Ok(()),
        }
    }

    /// Returns the addresses of a provider; `None` if the gateway cannot resolve its name, which is
    /// common behind proxies.
    async fn resolve_with_timeout(&self, provider: &Rc<HostAddresses>) -> Option<Rc<[SocketAddr]>> {
        let now = Instant::now();
        if self.unresolved_until.get().is_some_and(|until| now < until) {
            return None;
        }
        if let Ok(Ok(addresses)) = timeout(LOOKUP_TIMEOUT, provider.addresses()).await {
            return Some(addresses);
        }
        self.unresolved_until.set(now.checked_add(UNRESOLVED_TTL));
        None
    }

    /// Requests the tunnel and returns the status of the response.
    async fn request_tunnel(&self, tcp: &mut Socket, base: &BaseUrl) -> io::Result<u16> {
        tcp.write_all(self.proxy.connect_request(base).as_bytes()).await?;
        loop {
            let head = read_head(tcp).await?;
            match parse_status(&head).ok_or(io::ErrorKind::InvalidData)? {
                // Another response follows an interim response (RFC 9110 section 15.2).
                100 | 102..=199 => {}
                status => return Ok(status),
            }
        }
    }

    fn failed(&self, failure: ProxyFailure, words: &str) -> io::Error {
        self.count_failure(failure);
        let authority = authority(&self.proxy.host, self.proxy.port);
        io::Error::other(format!("the egress proxy {authority} {words}"))
    }

    fn count_failure(&self, failure: ProxyFailure) {
        let count = &self.failures[failure as usize];
        count.set(count.get().saturating_add(1));
    }

    /// Counts a connection that was not made in time; returns the error message.
    pub(super) fn record_timeout(&self) -> String {
        self.count_failure(ProxyFailure::TimedOut);
        let authority = authority(&self.proxy.host, self.proxy.port);
        format!("the connection through the egress proxy {authority} timed out")
    }

    /// Returns the failures since the last call, by kind.
    pub(super) fn take_failures(&self) -> impl Iterator<Item = (ProxyFailure, u64)> + '_ {
        let failures = ProxyFailure::ALL.into_iter().zip(&self.failures);
        let counts = failures.map(|(failure, count)| (failure, count.take()));
        counts.filter(|(_, count)| *count > 0)
    }
}

/// Reads the head of a response and no further byte, because the bytes after it are from the
/// provider.
async fn read_head(tcp: &mut Socket) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        if head.len() == MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(tcp.read_u8().await?);
    }
    Ok(head)
}

/// Returns the status of an HTTP/1 response; `None` if `head` is not the head of one.
fn parse_status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    let (&[minor, space, first, second, third], rest) = rest.split_first_chunk()?;
    let digits = [first, second, third];
    let is_status = minor.is_ascii_digit() && space == b' ' && digits.iter().all(u8::is_ascii_digit);
    let is_over = matches!(rest.first(), Some(b' ' | b'\r' | b'\n'));
    let number: u16 = std::str::from_utf8(&digits).ok()?.parse().ok()?;
    (is_status && is_over && number >= 100).then_some(number)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_is_asked_for_by_name_and_port() {
        let proxy = Proxy::new(&EgressProxy {
            url: "http://proxy.example.com:3128".into(),
            authorization: Some("Basic dTpw".into()),
        });
        let request = |url: &str| {
            proxy
                .as_ref()
                .ok()
                .unwrap()
                .connect_request(&BaseUrl::parse(url).unwrap())
        };
        assert_eq!(
            request("https://api.example.com/v1"),
            "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\nProxy-Authorization: Basic dTpw\r\n\r\n"
        );
        assert!(request("http://[2001:db8::1]:8000").starts_with("CONNECT [2001:db8::1]:8000 HTTP/1.1\r\n"));
    }

    #[test]
    fn a_status_is_read_of_http_1_alone() {
        for (head, expected) in [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Some(200)),
            ("HTTP/1.0 407\r\n\r\n", Some(407)),
            ("HTTP/1.1 204 \n\n", Some(204)),
            ("HTTP/2 200\r\n\r\n", None),
            ("HTTP/1.1 2000\r\n\r\n", None),
            ("HTTP/1.1 099\r\n\r\n", None),
            ("HTTP/1.1  200\r\n\r\n", None),
            ("SSH-2.0-x\r\n\r\n", None),
            ("\n\n", None),
        ] {
            assert_eq!(parse_status(head.as_bytes()), expected, "{head:?}");
        }
    }

    #[test]
    fn credentials_that_would_end_a_line_are_refused_without_being_quoted() {
        let settings = EgressProxy {
            url: "http://proxy:1".into(),
            authorization: Some("Basic secret\r\nX: y".into()),
        };
        let message = Proxy::new(&settings).err().unwrap();
        assert!(!message.contains("secret"), "{message}");
    }
}
