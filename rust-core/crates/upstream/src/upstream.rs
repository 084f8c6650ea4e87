//! Providers, and the connections that lead there.

mod connect;
mod egress;
mod happy_eyeballs;
mod health;
mod http2;
mod names;
mod rate;
mod stream;
mod tls;
mod tunnel;
mod warm;
mod wire;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use proofgate_base::descriptors::{KeepsIdle, Sockets};
use proofgate_config::{Http, RateLimits, StreamUsage};
use proofgate_observe::metrics::Metrics;
use proofgate_providers::{BaseUrl, Dialect, Family, RequestTemplate, SetFields};
use proofgate_translate::UntranslatableFields;

pub use self::connect::ConnectError;
pub use self::egress::Egress;
use self::health::Health;
pub use self::health::{Attending, Verdict};
use self::http2::Sessions;
use self::names::{Names, Resolver};
pub use self::stream::UpstreamStream;
use self::tls::Tls;
pub use self::tls::Trust;
use self::tunnel::Tunnels;
pub use self::tunnel::{Proxy, ProxyFailure};
use self::warm::Warming;

use crate::access_token::AccessToken;
use crate::path_end::PathEnd;
use crate::refusals::{RefusalLog, words};
use crate::signer::Signer;

/// Idle connections kept for each provider, and how long they may idle.
const MAX_IDLE: usize = 1024;
const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// A provider at run time: how to speak to it, and the connections that lead there.
pub struct Upstream {
    pub name: String,
    /// Whose conventions it follows.
    pub family: Family,
    /// The heads of requests in each dialect that it speaks.
    pub(crate) templates: Vec<(Dialect, RequestTemplate)>,
    /// What signs requests to it, where that is done.
    pub signer: Option<Signer>,
    /// What requests to it present in the place of a key, where that is one.
    pub token: Option<Rc<AccessToken>>,
    /// What the paths of requests to it end in.
    pub path_end: PathEnd,
    /// Values of `anthropic-beta` that clients may send to it.
    pub betas: Option<Vec<String>>,
    /// What becomes of fields that its dialect has no counterpart for.
    pub untranslatable: UntranslatableFields,
    /// Nothing may be sent: the key that it wants is not there.
    pub key_missing: bool,
    pub stream_usage: StreamUsage,
    /// Requests that may be under way there at a time.
    pub max_concurrency: Option<u32>,
    /// Idle connections that are to be there.
    pub min_idle: usize,
    /// What may be asked of it in a minute.
    pub rate: RateLimits,
    /// How long an attempt may take as far as the head of its answer, connecting included.
    pub first_byte: Duration,
    /// How long an answer may be silent.
    pub idle: Duration,
    /// The key that requests to it present, and headers that are secret, so that they are never logged.
    pub(crate) secrets: Vec<Box<str>>,
    /// Fields that are set in every JSON body that it is sent.
    pub set_fields: SetFields,
    pub pool: Rc<Pool>,
}

impl Upstream {
    /// Whether nothing may be sent there now: the key, certificate or token that it wants is not there, or has ended.
    pub(crate) fn lacks_key(&self, now: Instant) -> bool {
        self.key_missing
            || self.token.as_ref().is_some_and(|token| !token.is_valid(now))
            || self.signer.as_ref().is_some_and(|signer| !signer.is_valid(now))
    }

    /// Whether as many requests are under way there as may be.
    pub(crate) fn is_full(&self) -> bool {
        self.max_concurrency
            .is_some_and(|most| self.pool.health.in_flight() >= most)
    }

    /// How long no request may be sent there, by what it allows in a minute; `None` when one may be.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.pool.health.wait(self.rate, now)
    }

    /// Counts a request for `model`, as the provider calls it, that may come to `tokens` as under way there, until what is
    /// returned is dropped. `is_whole`: whether all of it is there.
    pub fn begin(
        &self,
        now: Instant,
        model: &str,
        is_whole: bool,
        tokens: impl FnOnce() -> u64,
    ) -> Attending {
        let tokens = if self.rate.counts_tokens() { tokens() } else { 0 };
        self.pool.health.begin(now, model, self.rate, tokens, is_whole)
    }

    /// Counts an answer by which this provider refuses the gateway's key or a model, and logs its words: once a minute for each
    /// model. `kind`: how a field of the answer's head names the error.
    pub fn report_refusal(
        &self,
        metrics: &Metrics,
        model: &str,
        status: u16,
        kind: Option<&str>,
        body: &[u8],
    ) {
        metrics.provider_refused(&self.name, status);
        if self.pool.refusals.is_due(model, Instant::now()) {
            let words = words(kind, body, &self.secrets);
            let name = &self.name;
            eprintln!("proofgate: provider {name:?} refuses model {model:?} with {status}: {words}");
        }
    }

    /// The head of requests in a dialect; `None` when the provider does not speak it.
    pub fn template(&self, dialect: Dialect) -> Option<&RequestTemplate> {
        let mut templates = self.templates.iter();
        templates
            .find(|(spoken, _)| *spoken == dialect)
            .map(|(_, template)| template)
    }
}

/// How a provider is reached.
pub struct Route {
    base: BaseUrl,
    trust: Trust,
    http: Http,
    tls: Option<Tls>,
    connect_timeout: Duration,
    egress: Egress,
    /// `None` where connections are made to the provider itself.
    proxy: Option<Proxy>,
}

impl Route {
    /// Prepares the route to a base URL, through `proxy` where there is one.
    ///
    /// # Errors
    /// What TLS has against `trust`; never with a key.
    pub fn new(
        base: BaseUrl,
        trust: Trust,
        http: Http,
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
        })
    }
}

/// Connections to one place, and those of them that wait for the next request.
pub struct Pool {
    route: Route,
    /// How the provider is; it outlives a configuration, as the connections do.
    pub health: Rc<Health>,
    names: Rc<Names>,
    tunnels: Option<Tunnels>,
    sockets: Rc<Sockets>,
    idle: RefCell<Vec<Idle>>,
    /// Those of HTTP/2, where that may be spoken.
    sessions: Option<Sessions>,
    warming: Warming,
    /// Whether another way has taken its place: no connection is kept any more.
    left: Cell<bool>,
    /// When [`Pool::close_expired`] was called last: near enough to tell how long a connection has idled.
    second: Cell<Instant>,
    reported: Cell<Option<Instant>>,
    /// When it refused a key or a model.
    pub(crate) refusals: RefusalLog,
}

struct Idle {
    stream: UpstreamStream,
    since: Instant,
}

impl Pool {
    pub fn new(route: Route, sockets: &Rc<Sockets>) -> Self {
        // Without TLS nobody chooses.
        let may_be_http2 = match route.http {
            Http::Http1 => false,
            Http::Auto => route.base.tls,
            Http::Http2 => true,
        };
        Pool {
            sessions: may_be_http2.then(|| Sessions::new(http2::MAX_SESSIONS)),
            names: Names::new(&route.base.host, route.base.port, Resolver::of_system()),
            tunnels: route.proxy.clone().map(Tunnels::new),
            route,
            sockets: Rc::clone(sockets),
            health: Rc::default(),
            idle: RefCell::default(),
            warming: Warming::default(),
            left: Cell::default(),
            second: Cell::new(Instant::now()),
            reported: Cell::default(),
            refusals: RefusalLog::default(),
        }
    }

    /// The connections of a provider that is reached over `route` from now on: those that it has, where they lead there,
    /// else new ones, and those that it has end with the requests that they carry. Where only the way has changed, the
    /// provider is as it was.
    pub fn follow(before: Option<&Rc<Self>>, route: Route, sockets: &Rc<Sockets>) -> Rc<Self> {
        let Some(before) = before else {
            return Pool::new(route, sockets).shared();
        };
        if before.leads_as(&route) {
            return Rc::clone(before);
        }
        before.left.set(true);
        before.idle.borrow_mut().clear();
        if let Some(sessions) = &before.sessions {
            sessions.clear();
        }
        let is_same = before.route.base == route.base;
        let mut pool = Pool::new(route, sockets);
        if is_same {
            pool.health = Rc::clone(&before.health);
        }
        pool.shared()
    }

    /// Shares it, also with whoever wants an idle connection closed.
    fn shared(self) -> Rc<Self> {
        let pool = Rc::new(self);
        let keeper: Weak<Self> = Rc::downgrade(&pool);
        pool.sockets.ask(keeper);
        pool
    }

    /// Whether it leads to the place that `route` leads to, whatever the way.
    pub(crate) fn has_base_of(&self, route: &Route) -> bool {
        self.route.base == route.base
    }

    /// Whether its connections lead where those of `route` would, over the same trust.
    pub(crate) fn leads_as(&self, route: &Route) -> bool {
        let Route {
            base,
            trust,
            http,
            connect_timeout,
            egress,
            proxy,
            tls: _,
        } = &self.route;
        *base == route.base
            && *trust == route.trust
            && *http == route.http
            && *connect_timeout == route.connect_timeout
            && *egress == route.egress
            && *proxy == route.proxy
    }

    /// A connection on which others have been answered, if one of them can serve again; of HTTP/2 a stream of one that is
    /// there.
    pub fn idle(&self) -> Option<UpstreamStream> {
        if let Some(sessions) = &self.sessions
            && let Some(stream) = sessions.stream()
        {
            return Some(stream.into());
        }
        loop {
            let mut idle = self.idle.borrow_mut().pop()?;
            if self.second.get() - idle.since < IDLE_LIMIT && idle.stream.can_serve_again() {
                return Some(idle.stream);
            }
        }
    }

    /// Keeps a connection whose last exchange ended cleanly, unless its request had not left whole.
    pub fn put_back(&self, stream: UpstreamStream) {
        let Some(stream) = stream.into_kept() else {
            return;
        };
        let mut idle = self.idle.borrow_mut();
        if idle.len() < MAX_IDLE && !self.left.get() {
            idle.push(Idle {
                stream,
                since: self.second.get(),
            });
        }
    }

    /// Closes connections that have idled too long; to be called once a second.
    pub fn close_expired(&self) {
        let now = Instant::now();
        self.second.set(now);
        self.idle
            .borrow_mut()
            .retain(|idle| now - idle.since < IDLE_LIMIT);
        if let Some(sessions) = &self.sessions {
            sessions.close_expired(now, IDLE_LIMIT);
        }
    }
}

impl KeepsIdle for Pool {
    fn close_one(&self) -> bool {
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
        sessions.is_some_and(Sessions::close_one) && self.sockets.open() < before
    }
}
