//! One HTTP/2 connection: accepts its streams, reaps them, and sends GOAWAY.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use proofgate_base::lifecycle::{Lifecycle, Phase};
use proofgate_base::routing::Peer;
use proofgate_config::Timeouts;
use proofgate_exchange::gateway::Gateway;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::stream::{Stream, StreamEnd, StreamPermit};

/// Maximum number of streams that are open or being served on one connection. It includes reset
/// streams that are still being served, so resets do not let a client start more work.
pub(super) const MAX_STREAMS: u32 = 100;
/// Maximum number of streams that the client abandoned before their response started, minus
/// answered streams. One more closes the connection, because a flood of resets can also be slow.
const MAX_ABANDONED: u32 = 100;
/// How long a client may take to acknowledge the GOAWAY of an idle connection.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(2);
/// One year, which replaces a maximum age that overflows the clock.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

type AcceptedStream = (Request<RecvStream>, SendResponse<Bytes>);

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// One side sent GOAWAY, or the client disconnected.
    Closed,
    /// The client violated or abused the protocol.
    Broken,
    /// The client did not respond to GOAWAY.
    Unresponsive,
}

impl SessionEnd {
    pub(super) fn from_error(error: &h2::Error) -> Self {
        match error.is_library() {
            true => SessionEnd::Broken,
            false => SessionEnd::Closed,
        }
    }
}

/// The streams of a connection and their context.
pub(super) struct Session {
    gateway: Rc<Gateway>,
    lifecycle: Lifecycle,
    peer: Peer,
    capacity: Arc<Semaphore>,
    timeouts: Timeouts,
    streams: JoinSet<StreamEnd>,
    abandoned: u32,
    panicked: bool,
}

impl Session {
    pub(super) fn new(
        gateway: Rc<Gateway>,
        lifecycle: Lifecycle,
        peer: Peer,
        room: Arc<Semaphore>,
        timeouts: Timeouts,
    ) -> Self {
        Session {
            gateway,
            lifecycle,
            peer,
            capacity: room,
            timeouts,
            streams: JoinSet::new(),
            abandoned: 0,
            panicked: false,
        }
    }

    /// Serves streams until the connection ends.
    pub(super) async fn run<T>(&mut self, mut connection: Connection<T, Bytes>) -> SessionEnd
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let mut served = false;
        let mut leaving = false;
        let begin = Instant::now();
        let mut deadline = begin + self.timeouts.client_idle;
        let old = begin.checked_add(self.gateway.random.jitter(self.timeouts.connection_age));
        let old = old.unwrap_or_else(|| begin + FOREVER);
        loop {
            let full = self.streams.len() >= MAX_STREAMS as usize;
            // A client that gets GOAWAY before its first request would reconnect immediately and
            // repeatedly during the lame-duck phase.
            let last_call = if served { Phase::Retiring } else { Phase::Draining };
            tokio::select! {
                accepted = next_stream(&mut connection, full) => match accepted {
                    Ok(Some(accepted)) => {
                        served = true;
                        self.open_stream(accepted);
                    }
                    Ok(None) => return SessionEnd::Closed,
                    Err(error) => return SessionEnd::from_error(&error),
                },
                Some(ended) = self.streams.join_next(), if !self.streams.is_empty() => {
                    self.record_end(ended);
                    if self.abandoned > MAX_ABANDONED {
                        connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                        let _ = timeout(GOAWAY_TIMEOUT, wait_closed(&mut connection)).await;
                        return SessionEnd::Broken;
                    }
                    deadline = Instant::now() + if leaving { GOAWAY_TIMEOUT } else { self.timeouts.client_idle };
                }
                () = self.lifecycle.wait_for(last_call), if !leaving => {
                    leaving = true;
                    connection.graceful_shutdown();
                    deadline = Instant::now() + GOAWAY_TIMEOUT;
                }
                () = sleep_until(old), if served && !leaving => {
                    leaving = true;
                    connection.graceful_shutdown();
                    deadline = Instant::now() + GOAWAY_TIMEOUT;
                }
                () = sleep_until(deadline), if self.streams.is_empty() => {
                    if std::mem::replace(&mut leaving, true) {
                        return SessionEnd::Unresponsive;
                    }
                    connection.graceful_shutdown();
                    deadline = Instant::now() + GOAWAY_TIMEOUT;
                }
            }
        }
    }

    fn open_stream(&mut self, (request, respond): AcceptedStream) {
        let room = match Arc::clone(&self.capacity).try_acquire_owned() {
            _ if self.streams.is_empty() => StreamPermit::Exclusive,
            Ok(permit) => StreamPermit::Shared(permit),
            Err(_) => StreamPermit::None,
        };
        let stream = Stream {
            gateway: Rc::clone(&self.gateway),
            lifecycle: self.lifecycle.clone(),
            peer: self.peer.clone(),
            respond,
            write_timeout: self.timeouts.client_idle,
        };
        self.streams.spawn_local(stream.serve(request, room));
    }

    fn record_end(&mut self, ended: Result<StreamEnd, JoinError>) {
        match ended {
            Ok(StreamEnd::Responded) => self.abandoned = self.abandoned.saturating_sub(1),
            Ok(StreamEnd::Abandoned) => self.abandoned = self.abandoned.saturating_add(1),
            Err(error) => self.panicked |= error.is_panic(),
        }
    }

    /// Waits for the streams of a connection that has ended, which detect the end; returns whether one has panicked.
    pub(super) async fn finish(mut self) -> bool {
        while let Some(ended) = self.streams.join_next().await {
            self.record_end(ended);
        }
        self.panicked
    }
}

/// Drives the connection until there is a new stream; `None` at its end. While it is `full`, new streams of the
/// client wait.
async fn next_stream<T>(
    connection: &mut Connection<T, Bytes>,
    full: bool,
) -> Result<Option<AcceptedStream>, h2::Error>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    if full {
        wait_closed(connection).await?;
        return Ok(None);
    }
    connection.accept().await.transpose()
}

/// Drives the connection until it ends.
async fn wait_closed<T>(connection: &mut Connection<T, Bytes>) -> Result<(), h2::Error>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|context| connection.poll_closed(context)).await
}
