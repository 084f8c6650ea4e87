use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofgate_base::client::{ClientStream, linger};
use proofgate_base::lifecycle::{Lifecycle, Phase};
use proofgate_base::routing::{Peer, RoutingKey, TenantRoute};
use proofgate_exchange::gateway::Gateway;
use proofgate_stages::Interval;
use proofgate_upstream::client_tls::{ALPN_HTTP2, ClientTls};
use proofgate_wire::{ProxyHeader, parse_proxy_header};
use rustls::ServerConfig;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::http2;
use crate::connection;

/// Delay before the next accept after a failed one.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Minimum time between two reports of failed accepts.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Bytes of a PROXY header before its addresses; the last two are the length of the rest.
const PROXY_FIXED_BYTES: usize = 16;
/// Maximum bytes of a PROXY header after its fixed part: addresses, and a few short fields of a
/// load balancer.
const PROXY_REST_BYTES: usize = 2048;

/// The first byte of TLS: the record type of a handshake (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;

/// Accepts connections until the worker drains. Returns the connections that are still open.
///
/// At `limit` connections, accepting pauses, and further connections wait in the kernel's queue.
/// All HTTP/2 connections together can have `limit` streams, in addition to one for each
/// connection.
pub async fn accept(
    gateway: &Rc<Gateway>,
    listener: TcpListener,
    limit: usize,
    mut lifecycle: Lifecycle,
) -> JoinSet<bool> {
    let mut connections = JoinSet::new();
    let view = lifecycle.clone();
    let mut reported = None;
    let streams = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < limit => match accepted {
                Ok((stream, address)) => {
                    let _ = stream.set_nodelay(true);
                    gateway.observers.metrics.record_connection_opened();
                    let streams = Arc::clone(&streams);
                    let peer = Peer::new(TenantRoute::AnyTenant, address);
                    connections.spawn_local(serve_connection(Rc::clone(gateway), stream, peer, view.clone(), streams));
                }
                Err(error) => {
                    gateway.observers.metrics.record_accept_failure();
                    report(&error, &mut reported);
                    // Out of file descriptors or memory: wait until some are released.
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(ended) = connections.join_next(), if !connections.is_empty() => record_end(gateway, ended),
            () = lifecycle.wait_for(Phase::Draining) => return connections,
        }
    }
}

/// Logs that connections cannot be accepted, at most once per [`REPORT_INTERVAL`].
fn report(error: &io::Error, reported: &mut Option<Instant>) {
    let now = Instant::now();
    if reported.is_none_or(|last| now.duration_since(last) >= REPORT_INTERVAL) {
        *reported = Some(now);
        proofgate_log::warning!("cannot accept a connection, retrying: {error}");
    }
}

/// Reads the PROXY header and the TLS handshake of a connection, then serves it. Returns whether a
/// part of it panicked.
async fn serve_connection(
    gateway: Rc<Gateway>,
    mut tcp: TcpStream,
    mut peer: Peer,
    lifecycle: Lifecycle,
    streams: Arc<Semaphore>,
) -> bool {
    let ready = gateway.observers.profiler.timer();
    let catalog = gateway.catalog();
    let within = catalog.settings.timeouts.client_head;
    if let Some(key) = &catalog.settings.routing_key {
        let Ok(Some(told)) = timeout(within, read_proxy_header(&mut tcp, key, peer)).await else {
            return false;
        };
        peer = told;
    }
    let tls = catalog.settings.tls.clone();
    drop(catalog);
    let Ok(tls) = timeout(within, select_tls(tls, &tcp)).await else {
        return false;
    };
    let stream = match tls {
        None => ClientStream::Plain(tcp),
        Some(config) => match timeout(within, TlsAcceptor::from(config).accept(tcp).into_fallible()).await {
            Ok(Ok(tls)) if tls.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2) => {
                ready.stop(&gateway.observers.profiler, Interval::Accept);
                return http2::serve(gateway, tls, lifecycle, peer, streams).await;
            }
            Ok(Ok(tls)) => ClientStream::Tls(Box::new(tls)),
            Ok(Err((_, tcp))) => {
                // The TLS alert with the reason must reach the client.
                linger(tcp).await;
                return false;
            }
            Err(_) => return false,
        },
    };
    ready.stop(&gateway.observers.profiler, Interval::Accept);
    connection::serve(gateway, stream, lifecycle, peer).await;
    false
}

/// Returns the TLS configuration for a connection; `None` for plain text.
///
/// If both TLS and plain text are served, the first byte distinguishes them: the first byte of TLS
/// cannot start an HTTP request.
async fn select_tls(tls: Option<ClientTls>, tcp: &TcpStream) -> Option<Arc<ServerConfig>> {
    let tls = tls?;
    if tls.accept_plain {
        let mut first = [0];
        let seen = tcp.peek(&mut first).await;
        if seen.is_ok_and(|count| count > 0) && first[0] != HANDSHAKE {
            return None;
        }
    }
    Some(tls.config)
}

/// Reads the PROXY header of a connection that `balancer` opened; `None` if it does not start with one.
async fn read_proxy_header(stream: &mut TcpStream, key: &RoutingKey, balancer: Peer) -> Option<Peer> {
    let mut header = vec![0; PROXY_FIXED_BYTES];
    stream.read_exact(&mut header).await.ok()?;
    if let Some(parsed) = parse_proxy_header(&header).ok()? {
        return Some(peer_from_header(&parsed, key, balancer));
    }
    let rest = usize::from(u16::from_be_bytes([header[14], header[15]]));
    if rest > PROXY_REST_BYTES {
        return None;
    }
    header.resize(PROXY_FIXED_BYTES + rest, 0);
    stream.read_exact(&mut header[PROXY_FIXED_BYTES..]).await.ok()?;
    let parsed = parse_proxy_header(&header).ok()??;
    Some(peer_from_header(&parsed, key, balancer))
}

/// Returns the peer that a PROXY header names. A sender that does not know the key is not trusted and is itself the
/// peer.
fn peer_from_header(header: &ProxyHeader<'_>, key: &RoutingKey, balancer: Peer) -> Peer {
    let routed = key.parse_unique_id(header.unique_id);
    match header.client.filter(|_| routed != TenantRoute::NoTenant) {
        Some(client) => Peer::new(routed, client),
        None => Peer {
            tenant_route: routed,
            ..balancer
        },
    }
}

/// Waits until all `connections` have ended.
pub async fn wait_for_connections(gateway: &Rc<Gateway>, connections: &mut JoinSet<bool>) {
    while let Some(ended) = connections.join_next().await {
        record_end(gateway, ended);
    }
}

/// Records the end of a connection's or a stream's task. The task is the panic boundary: a panic ends only that task
/// and is counted.
fn record_end(gateway: &Gateway, ended: Result<bool, JoinError>) {
    let panicked = ended.unwrap_or_else(|error| error.is_panic());
    gateway.observers.metrics.record_connection_closed(panicked);
}
