//! The connections to one provider, and the route to it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use proofgate_base::descriptors::{IdleConnectionPool, UpstreamSockets};
use proofgate_config::HttpVersion;
use proofgate_providers::BaseUrl;

use super::egress::Egress;
use super::health::Health;
use super::http2::{MAX_SESSIONS, Sessions};
use super::resolver::{HostAddresses, Resolver};
use super::stream::UpstreamStream;
use super::tls::{Tls, TlsTrust};
use super::tunnel::{Proxy, Tunnels};
use crate::refusals::RefusalLog;

/// Maximum number of idle connections kept for each provider.
const MAX_IDLE: usize = 1024;
/// The idle timeout of connections if the provider's configuration sets none.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The route to a provider: its base URL, proxy, TLS settings and timeouts.
pub struct Route {
    pub(super) base: BaseUrl,
    trust: TlsTrust,
    pub(super) http: HttpVersion,
    pub(super) tls: Option<Tls>,
    pub(super) connect_timeout: Duration,
    pub(super) egress: Egress,
    /// The forward proxy; `None` if connections are direct.
    proxy: Option<Proxy>,
    /// The maximum idle time of a connection.
    keep_alive: Duration,
}

impl Route {
    /// Prepares the route to a base URL, through `proxy` if there is one.
    ///
    /// # Errors
    /// A description of the mistake in `trust`; it never contains a key.
    pub fn new(
        base: BaseUrl,
        trust: TlsTrust,
        http: HttpVersion,
        connect_timeout: Duration,
        egress: Egress,
        proxy: Option<Proxy>,
    ) -> Result<Self, String> {
        let tls = base.tls.then(|| Tls::new(&base.host, &trust, http)).transpose()?;
        Ok(Route {
            base,
            trust,
            http,
            tls,
            connect_timeout,
            egress,
            proxy,
            keep_alive: KEEP_ALIVE,
        })
    }

    /// Returns the route with this idle timeout, or the default if it is `None`.
    #[must_use]
    pub(crate) fn with_keep_alive(self, keep_alive: Option<Duration>) -> Self {
        let keep_alive = keep_alive.unwrap_or(KEEP_ALIVE);
        Self { keep_alive, ..self }
    }
}

/// The connections over one route, including idle ones.
pub struct Pool {
    pub(super) route: Route,
    /// The health of the provider. It outlives a configuration, like the connections.
    pub health: Rc<Health>,
    pub(super) host_addresses: Rc<HostAddresses>,
    pub(super) tunnels: Option<Tunnels>,
    pub(super) sockets: Rc<UpstreamSockets>,
    pub(super) idle: RefCell<Vec<IdleConnection>>,
    /// The HTTP/2 sessions, if HTTP/2 may be used.
    pub(super) sessions: Option<Sessions>,
    pub(super) warm_up: WarmUp,
    /// The maximum idle time of a connection.
    keep_alive: Cell<Duration>,
    /// Whether another route has replaced this one, so that connections are no longer kept.
    pub(super) is_retired: Cell<bool>,
    /// The time of the last [`Pool::close_expired`] call, from which the idle time of connections
    /// is counted.
    last_sweep: Cell<Instant>,
    /// The time of the last logged connection failure.
    pub(super) last_report: Cell<Option<Instant>>,
    /// The log of the provider's refusals of a key or a model.
    pub(crate) refusal_log: RefusalLog,
}

pub(super) struct IdleConnection {
    pub(super) stream: UpstreamStream,
    idle_since: Instant,
}

/// The state of connections that are made before requests need them.
#[derive(Default)]
pub(super) struct WarmUp {
    /// Number of such connections that are being made.
    pub(super) in_progress: Cell<usize>,
    /// The time before which no connection is made, because one failed; `None` after no failure.
    pub(super) paused_until: Cell<Option<Instant>>,
}

impl Pool {
    pub fn new(route: Route, sockets: &Rc<UpstreamSockets>) -> Self {
        // Without TLS there is no protocol negotiation.
        let may_be_http2 = match route.http {
            HttpVersion::Http1 => false,
            HttpVersion::Auto => route.base.tls,
            HttpVersion::Http2 => true,
        };
        Pool {
            sessions: may_be_http2.then(|| Sessions::new(MAX_SESSIONS)),
            host_addresses: HostAddresses::new(&route.base.host, route.base.port, Resolver::system()),
            tunnels: route.proxy.clone().map(Tunnels::new),
            keep_alive: Cell::new(route.keep_alive),
            route,
            sockets: Rc::clone(sockets),
            health: Rc::default(),
            idle: RefCell::default(),
            warm_up: WarmUp::default(),
            is_retired: Cell::default(),
            last_sweep: Cell::new(Instant::now()),
            last_report: Cell::default(),
            refusal_log: RefusalLog::default(),
        }
    }

    /// Returns the pool for a provider whose route is now `route`: the existing pool if the route
    /// is the same, otherwise a new one. Connections of a replaced pool end when their requests
    /// end. The health is kept if the base URL is the same.
    pub fn reuse_or_new(before: Option<&Rc<Self>>, route: Route, sockets: &Rc<UpstreamSockets>) -> Rc<Self> {
        let Some(before) = before else {
            return Pool::new(route, sockets).into_shared();
        };
        if before.has_same_route(&route) {
            before.keep_alive.set(route.keep_alive);
            return Rc::clone(before);
        }
        before.is_retired.set(true);
        before.idle.borrow_mut().clear();
        if let Some(sessions) = &before.sessions {
            sessions.clear();
        }
        let is_same = before.route.base == route.base;
        let mut pool = Pool::new(route, sockets);
        if is_same {
            pool.health = Rc::clone(&before.health);
        }
        pool.into_shared()
    }

    /// Shares the pool, and registers it so that its idle connections can be closed when sockets
    /// run out.
    fn into_shared(self) -> Rc<Self> {
        let pool = Rc::new(self);
        let weak: Weak<Self> = Rc::downgrade(&pool);
        pool.sockets.register_pool(weak);
        pool
    }

    /// Whether the pool has the same base URL as `route`, regardless of proxy and trust.
    pub(crate) fn has_same_base(&self, route: &Route) -> bool {
        self.route.base == route.base
    }

    /// Whether the pool's connections are equivalent to connections over `route`, with the same
    /// trust.
    pub(crate) fn has_same_route(&self, route: &Route) -> bool {
        let Route {
            base,
            trust,
            http,
            connect_timeout,
            egress,
            proxy,
            tls: _,
            keep_alive: _,
        } = &self.route;
        *base == route.base
            && *trust == route.trust
            && *http == route.http
            && *connect_timeout == route.connect_timeout
            && *egress == route.egress
            && *proxy == route.proxy
    }

    /// Returns an idle connection that can be reused (for HTTP/2, a stream of an existing session);
    /// `None` if there is none.
    pub fn take_idle(&self) -> Option<UpstreamStream> {
        if let Some(sessions) = &self.sessions
            && let Some(stream) = sessions.acquire_stream()
        {
            return Some(stream.into());
        }
        loop {
            let mut idle = self.idle.borrow_mut().pop()?;
            if self.last_sweep.get() - idle.idle_since < self.keep_alive.get() && idle.stream.can_be_reused()
            {
                return Some(idle.stream);
            }
        }
    }

    /// Keeps a connection for reuse. Its last exchange must have ended cleanly; a connection whose
    /// last request was not sent completely is not kept.
    pub fn put_back(&self, stream: UpstreamStream) {
        let Some(stream) = stream.into_reusable() else {
            return;
        };
        let mut idle = self.idle.borrow_mut();
        if idle.len() < MAX_IDLE && !self.is_retired.get() {
            idle.push(IdleConnection {
                stream,
                idle_since: self.last_sweep.get(),
            });
        }
    }

    /// Returns the number of idle connections, including every HTTP/2 session.
    pub fn idle_count(&self) -> usize {
        let sessions = self.sessions.as_ref().map_or(0, Sessions::count);
        self.idle.borrow().len() + sessions
    }

    /// Closes connections that have been idle for too long; called once a second.
    pub fn close_expired(&self, now: Instant) {
        let keep_alive = self.keep_alive.get();
        self.last_sweep.set(now);
        self.idle
            .borrow_mut()
            .retain(|idle| now - idle.idle_since < keep_alive);
        if let Some(sessions) = &self.sessions {
            sessions.close_expired(now, keep_alive);
        }
    }
}

impl IdleConnectionPool for Pool {
    fn close_idle(&self) -> bool {
        let before = self.sockets.open();
        let oldest = {
            let mut idle = self.idle.borrow_mut();
            (!idle.is_empty()).then(|| idle.remove(0))
        };
        drop(oldest);
        if self.sockets.open() < before {
            return true;
        }
        let sessions = self.sessions.as_ref();
        sessions.is_some_and(Sessions::close_idlest) && self.sockets.open() < before
    }
}
