//! Sessions with one provider: selection, keep-alive and closing.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, Semaphore};
use tokio::task::coop::unconstrained;
use tokio::task::spawn_local;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::limits::{
    MAX_BROKEN_STREAMS, MAX_HEADER_LIST_BYTES, MAX_SMALL_FRAME_BYTES, MAX_STREAMS, SEND_BUFFER,
    SESSION_WINDOW, STREAM_WINDOW,
};
use super::load::{SessionLoad, StreamSlot};
use super::stream::Http2Stream;

/// The interval of pings in a session with requests in flight, and the time limit of a reply. Pings
/// detect a lost connection that the network does not report.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// The sessions with a provider.
pub(crate) struct Sessions {
    open: RefCell<Vec<Session>>,
    /// Maximum number of sessions.
    max_sessions: usize,
    /// The lock that is held while a request waits for a stream or makes a session, so that
    /// concurrent requests share one session.
    establish_lock: Semaphore,
    /// The notification that there may be capacity for one more stream.
    capacity: Rc<Notify>,
    /// Whether the provider chose HTTP/1.1 at the last connection.
    chose_http1: Cell<bool>,
}

/// A session that accepts requests.
pub(crate) struct Session {
    requests: SendRequest<Bytes>,
    over_tls: bool,
    load: Rc<SessionLoad>,
    idle_since: Instant,
    connection: Rc<dyn Close>,
}

/// A connection that is driven by a task.
trait Close {
    /// Sends GOAWAY if that is possible without waiting, and closes the connection.
    fn close(&self);
}

/// The connection of a session; `None` once it is closed.
struct DrivenConnection<T>(RefCell<Option<Connection<T, Bytes>>>)
where
    T: AsyncRead + AsyncWrite + Unpin;

impl Sessions {
    pub(crate) fn new(most: usize) -> Self {
        Sessions {
            max_sessions: most,
            open: RefCell::default(),
            establish_lock: Semaphore::new(1),
            capacity: Rc::default(),
            chose_http1: Cell::default(),
        }
    }

    /// Returns a stream of a session that has capacity; `None` if no session has any.
    pub(crate) fn acquire_stream(&self) -> Option<Http2Stream> {
        let mut open = self.open.borrow_mut();
        let mut at = 0;
        while let Some(session) = open.get_mut(at) {
            if !session.is_open() {
                open.remove(at);
                continue;
            }
            if session.has_capacity() {
                return Some(session.open_stream());
            }
            at += 1;
        }
        None
    }

    /// Returns a stream of a session that has capacity. If there is none, `make` makes a session;
    /// sessions are made one at a time. If the maximum number of sessions exists, this waits for
    /// capacity. Connections to a provider that chooses HTTP/1.1 are made in parallel.
    ///
    /// # Errors
    /// The errors of `make`.
    pub(crate) async fn acquire_stream_or_connect<T>(
        &self,
        make: impl AsyncFn() -> io::Result<T>,
    ) -> io::Result<T>
    where
        T: From<Http2Stream>,
    {
        if self.chose_http1.get() {
            return make().await;
        }
        let turn = self.establish_lock.acquire().await.map_err(io::Error::other)?;
        loop {
            if let Some(stream) = self.acquire_stream() {
                return Ok(stream.into());
            }
            if self.chose_http1.get() {
                drop(turn);
                return make().await;
            }
            if self.open.borrow().len() < self.max_sessions {
                return make().await;
            }
            self.capacity.notified().await;
        }
    }

    /// Records which protocol the provider chose.
    pub(crate) fn record_protocol(&self, http1: bool) {
        self.chose_http1.set(http1);
    }

    /// Starts a session on a new connection, and waits for the provider's stream limit. The limit
    /// proves that the provider speaks HTTP/2, and the first requests do not exceed it.
    ///
    /// # Errors
    /// The provider does not speak HTTP/2, or closes the connection.
    pub(crate) async fn establish<T>(&self, connection: T, over_tls: bool) -> io::Result<Session>
    where
        T: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let failed = |error: h2::Error| io::Error::other(format!("HTTP/2: {error}"));
        let (requests, mut connection) = settings().handshake(connection).await.map_err(failed)?;
        poll_fn(|context| {
            if let Poll::Ready(ended) = pin!(&mut connection).poll(context) {
                let gone = io::Error::other("HTTP/2: the provider closed the session immediately");
                return Poll::Ready(Err(ended.map_or_else(failed, |()| gone)));
            }
            match connection.max_concurrent_send_streams() {
                0 => Poll::Pending,
                _ => Poll::Ready(Ok(())),
            }
        })
        .await?;
        let load = Rc::new(SessionLoad {
            streams: Cell::default(),
            recently_used: Cell::default(),
            capacity_freed: Rc::clone(&self.capacity),
        });
        let life = connection.ping_pong().map(KeepAlive::new);
        let carried = Rc::new(DrivenConnection(RefCell::new(Some(connection))));
        spawn_local(drive(Rc::clone(&carried), life, Rc::clone(&load)));
        Ok(Session {
            requests,
            over_tls,
            load,
            idle_since: Instant::now(),
            connection: carried,
        })
    }

    /// Adds a session for the next requests.
    pub(crate) fn insert(&self, session: Session) {
        self.open.borrow_mut().push(session);
        self.capacity.notify_one();
    }

    /// Returns the number of sessions that accept requests.
    pub(crate) fn count(&self) -> usize {
        let mut open = self.open.borrow_mut();
        open.retain_mut(Session::is_open);
        open.len()
    }

    /// Closes sessions that have been idle for `limit`; called once a second.
    pub(crate) fn close_expired(&self, now: Instant, limit: Duration) {
        self.open.borrow_mut().retain_mut(|session| {
            if session.load.recently_used.take() || session.load.streams.get() > 0 {
                session.idle_since = now;
            }
            session.is_open() && now.saturating_duration_since(session.idle_since) < limit
        });
    }

    /// Immediately closes the session that has been idle for longest; returns false if none is
    /// idle.
    pub(crate) fn close_idlest(&self) -> bool {
        let mut open = self.open.borrow_mut();
        let idle = open.iter().enumerate();
        let idle = idle.filter(|(_, session)| session.load.streams.get() == 0);
        let oldest = idle.min_by_key(|(_, session)| (session.load.recently_used.get(), session.idle_since));
        let Some(oldest) = oldest.map(|(at, _)| at) else {
            return false;
        };
        let Session {
            requests,
            connection: carried,
            ..
        } = open.remove(oldest);
        // Once no request sender is left, the session sends GOAWAY.
        drop(requests);
        carried.close();
        self.capacity.notify_one();
        true
    }

    /// Removes all sessions: no more streams are opened on them, and each session ends when its
    /// requests end.
    pub(crate) fn clear(&self) {
        self.open.borrow_mut().clear();
        self.capacity.notify_one();
    }
}

impl Session {
    /// Whether the session accepts requests: it has not ended, and the provider has not sent
    /// GOAWAY.
    fn is_open(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        !matches!(self.requests.poll_ready(&mut context), Poll::Ready(Err(_)))
    }

    fn has_capacity(&self) -> bool {
        let most = self.requests.current_max_send_streams().min(MAX_STREAMS);
        self.load.streams.get() < most
    }

    pub(crate) fn open_stream(&self) -> Http2Stream {
        let load = &self.load;
        load.streams.set(load.streams.get().saturating_add(1));
        load.recently_used.set(true);
        let place = StreamSlot(Rc::clone(load));
        Http2Stream::new(self.requests.clone(), self.over_tls, place)
    }
}

/// Returns the settings of a session. PING, SETTINGS, CONTINUATION and empty DATA frames are bounded by `h2` itself.
fn settings() -> Builder {
    let mut settings = Builder::new();
    settings
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(SESSION_WINDOW)
        .data_frame_budget(MAX_SMALL_FRAME_BYTES)
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .max_send_buffer_size(SEND_BUFFER)
        .max_local_error_reset_streams(Some(MAX_BROKEN_STREAMS))
        // No stream may be opened before the provider has sent its limit.
        .initial_max_send_streams(0);
    settings
}

impl<T> Close for DrivenConnection<T>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    fn close(&self) {
        let Some(mut connection) = self.0.borrow_mut().take() else {
            return;
        };
        let mut context = Context::from_waker(Waker::noop());
        // One poll sends GOAWAY, and does not wait for a peer that does not read.
        let _ = pin!(unconstrained(&mut connection)).poll(&mut context);
    }
}

/// Drives a session until no handle to it is left and its streams have ended.
async fn drive<T>(carried: Rc<DrivenConnection<T>>, mut life: Option<KeepAlive>, load: Rc<SessionLoad>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut most = usize::MAX;
    poll_fn(|context| {
        let mut carried = carried.0.borrow_mut();
        let Some(connection) = carried.as_mut() else {
            return Poll::Ready(());
        };
        if pin!(&mut *connection).poll(context).is_ready() {
            return Poll::Ready(());
        }
        let now = connection.max_concurrent_send_streams();
        if now > std::mem::replace(&mut most, now) {
            load.capacity_freed.notify_one();
        }
        match &mut life {
            Some(life) => life.poll_timeout(context, load.streams.get() > 0),
            None => Poll::Pending,
        }
    })
    .await;
    // Drops the connection first, so that its streams see the end before a waiting request
    // continues.
    drop(carried.0.borrow_mut().take());
    load.capacity_freed.notify_one();
}

/// Pings a session.
struct KeepAlive {
    pings: PingPong,
    tick: Interval,
    ping_pending: bool,
}

impl KeepAlive {
    fn new(pings: PingPong) -> Self {
        let mut tick = interval_at(tokio::time::Instant::now() + PING_INTERVAL, PING_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        KeepAlive {
            pings,
            tick,
            ping_pending: false,
        }
    }

    /// Polls the pings; ready when the peer has not replied in time.
    fn poll_timeout(&mut self, context: &mut Context<'_>, is_busy: bool) -> Poll<()> {
        loop {
            if self.ping_pending && self.pings.poll_pong(context).is_ready() {
                self.ping_pending = false;
            }
            if self.tick.poll_tick(context).is_pending() {
                return Poll::Pending;
            }
            if self.ping_pending {
                return Poll::Ready(());
            }
            self.ping_pending = is_busy && self.pings.send_ping(Ping::opaque()).is_ok();
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
