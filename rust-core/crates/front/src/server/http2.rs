//! HTTP/2 (RFC 9113): every stream is served like a separate HTTP/1.1 connection.
//!
//! All requests share one code path. The code that checks, authenticates, limits, evaluates,
//! forwards and records a request reads HTTP/1.1. A stream's request is therefore written as
//! HTTP/1.1 into one end of a pipe, [`connection::serve`](crate::connection::serve) works on the
//! other end, and the response comes back the same way. Only the writing of the request is specific
//! to HTTP/2. It corrects no invalid request: see [`request`].

mod request;
mod response;
mod session;
mod stream;

use std::rc::Rc;
use std::sync::Arc;

use h2::server::Builder;
use proofgate_base::client::linger;
use proofgate_base::lifecycle::Lifecycle;
use proofgate_base::routing::Peer;
use proofgate_exchange::gateway::Gateway;
use proofgate_observe::rejected_request::RejectedRequest;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use self::request::MALFORMED;
use self::session::{MAX_STREAMS, Session, SessionEnd};

/// Receive windows for request bodies, in bytes: of one stream, and of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Maximum bytes of one response that can wait for the client, in addition to the stream's pipe.
const SEND_BUFFER: usize = 16 * 1024;
/// Maximum number of streams that the client opened and reset before they were accepted; one more
/// closes the connection (CVE-2023-44487).
const MAX_EARLY_RESETS: usize = 20;
/// Maximum number of streams that violated the protocol; one more closes the connection
/// (CVE-2025-8671).
const MAX_BROKEN_STREAMS: usize = 100;

/// Serves one client until either side closes the connection; returns whether a stream panicked, which ends only that
/// stream. Each stream takes a permit of `room`, except the only stream of a connection.
pub(super) async fn serve(
    gateway: Rc<Gateway>,
    mut socket: TlsStream<TcpStream>,
    lifecycle: Lifecycle,
    peer: Peer,
    room: Arc<Semaphore>,
) -> bool {
    let catalog = gateway.catalog();
    let timeouts = catalog.settings.timeouts;
    let handshake = settings(catalog.settings.limits.head_bytes).handshake(&mut socket);
    drop(catalog);
    let mut session = Session::new(Rc::clone(&gateway), lifecycle, peer.clone(), room, timeouts);
    let ending = match timeout(timeouts.client_head, handshake).await {
        Ok(Ok(connection)) => session.run(connection).await,
        Ok(Err(error)) => SessionEnd::from_error(&error),
        Err(_) => SessionEnd::Unresponsive,
    };
    let panicked = session.finish().await;
    if ending == SessionEnd::Broken {
        gateway
            .reject(&MALFORMED, RejectedRequest::from_peer(&peer))
            .await;
    }
    if ending != SessionEnd::Unresponsive {
        linger(socket).await;
    }
    panicked
}

/// Returns the settings of a connection. `h2` itself bounds PING, SETTINGS, CONTINUATION, and empty and tiny DATA
/// frames.
fn settings(head_bytes: usize) -> Builder {
    let mut settings = Builder::new();
    settings
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(MAX_EARLY_RESETS)
        .max_local_error_reset_streams(Some(MAX_BROKEN_STREAMS));
    settings
}
