//! The addresses of one host.
//!
//! Names are resolved by the system (`getaddrinfo`), because it alone knows `/etc/hosts`, the search domains and `ndots`
//! of a pod as everything else in the pod does. It blocks, cannot be cancelled and tells no time to live. So it runs on
//! threads of its own, which nothing waits for when the worker ends, and what it found is believed for a short while.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use proofgate_base::priority;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// From what age on addresses are looked up anew, ahead of need, by the next connection that uses them.
const REFRESH_AFTER: Duration = Duration::from_secs(5);
/// From what age on addresses are not used any more.
const MAX_AGE: Duration = Duration::from_secs(30);
/// How long a name is not looked up again after that has failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Look-ups under way at a time in one process, and those that may wait. One for each provider is all there ever is.
const RESOLVER_THREADS: usize = 4;
const MAX_QUEUED: usize = 64;

/// What a system's resolver does: all addresses of a host.
pub(super) type LookupFn = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// A look-up that a resolver thread is asked for.
struct LookupRequest {
    host: String,
    port: u16,
    reply: oneshot::Sender<io::Result<Vec<SocketAddr>>>,
}

/// Threads that resolve names.
#[derive(Clone)]
pub(super) struct Resolver {
    requests: SyncSender<LookupRequest>,
}

impl Resolver {
    /// The one of this process.
    pub(super) fn system() -> Self {
        static SYSTEM: LazyLock<Resolver> =
            LazyLock::new(|| Resolver::start(|host, port| Ok((host, port).to_socket_addrs()?.collect())));
        SYSTEM.clone()
    }

    /// Starts threads of which nobody awaits the end: they end when nobody can ask them any more.
    pub(super) fn start(look_up: LookupFn) -> Self {
        let (questions, asked) = sync_channel(MAX_QUEUED);
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..RESOLVER_THREADS {
            let asked = Arc::clone(&asked);
            let thread = thread::Builder::new().name("names".into());
            // Without any thread every question is refused, because nobody listens.
            let _ = thread.spawn(move || serve_lookups(&asked, look_up));
        }
        Resolver { requests: questions }
    }
}

fn serve_lookups(asked: &Mutex<Receiver<LookupRequest>>, look_up: LookupFn) {
    priority::lower_priority();
    loop {
        let question = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(question) = question else { return };
        if !question.reply.is_closed() {
            let _ = question.reply.send(look_up(&question.host, question.port));
        }
    }
}

/// A host, and what is known of its addresses.
pub(super) struct HostAddresses {
    host: String,
    port: u16,
    resolver: Resolver,
    lookup: RefCell<Lookup>,
    /// Whether a look-up is under way.
    is_resolving: Cell<bool>,
    resolved: Notify,
}

enum Lookup {
    Unresolved,
    /// Since when.
    Addresses(Rc<[SocketAddr]>, Instant),
    /// Why there are none, and since when.
    Failure(io::ErrorKind, String, Instant),
    /// It is an address itself.
    Literal(Rc<[SocketAddr]>),
}

impl HostAddresses {
    pub(super) fn new(host: &str, port: u16, resolver: Resolver) -> Rc<Self> {
        let known = match host.parse::<IpAddr>() {
            Ok(address) => Lookup::Literal(Rc::new([SocketAddr::new(address, port)])),
            Err(_) => Lookup::Unresolved,
        };
        Rc::new(HostAddresses {
            host: host.to_owned(),
            port,
            resolver,
            lookup: RefCell::new(known),
            is_resolving: Cell::new(false),
            resolved: Notify::new(),
        })
    }

    /// The host's addresses, at once where they are known.
    ///
    /// # Errors
    /// What the system's resolver says.
    pub(super) async fn addresses(self: &Rc<Self>) -> io::Result<Rc<[SocketAddr]>> {
        loop {
            let answered = self.resolved.notified();
            match &*self.lookup.borrow() {
                Lookup::Literal(addresses) => return Ok(Rc::clone(addresses)),
                Lookup::Addresses(addresses, since) if since.elapsed() < MAX_AGE => {
                    if since.elapsed() >= REFRESH_AFTER {
                        self.resolve();
                    }
                    return Ok(Rc::clone(addresses));
                }
                Lookup::Failure(kind, reason, since) if since.elapsed() < RETRY_DELAY => {
                    return Err(io::Error::new(*kind, reason.clone()));
                }
                _ => self.resolve(),
            }
            answered.await;
        }
    }

    /// No connection could be made to any of the addresses: they are not used again unless they are new.
    pub(super) fn invalidate(&self) {
        let mut known = self.lookup.borrow_mut();
        if matches!(&*known, Lookup::Addresses(_, since) if since.elapsed() >= RETRY_DELAY) {
            *known = Lookup::Unresolved;
        }
    }

    /// Looks the name up, unless that is under way.
    fn resolve(self: &Rc<Self>) {
        if self.is_resolving.replace(true) {
            return;
        }
        let (answer, answered) = oneshot::channel();
        let question = LookupRequest {
            host: self.host.clone(),
            port: self.port,
            reply: answer,
        };
        let asked = self.resolver.requests.try_send(question);
        let names = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let found = match asked {
                Ok(()) => answered.await.unwrap_or_else(|_| Err(resolver_stopped())),
                Err(TrySendError::Full(_)) => Err(io::Error::other("too many names are being resolved")),
                Err(TrySendError::Disconnected(_)) => Err(resolver_stopped()),
            };
            names.record_result(found);
        });
    }

    fn record_result(&self, found: io::Result<Vec<SocketAddr>>) {
        self.is_resolving.set(false);
        let now = Instant::now();
        let mut known = self.lookup.borrow_mut();
        match found {
            Ok(addresses) if !addresses.is_empty() => *known = Lookup::Addresses(addresses.into(), now),
            // What is known may be used until it is too old: a name server that fails does not end what works.
            _ if matches!(&*known, Lookup::Addresses(_, since) if since.elapsed() < MAX_AGE) => {}
            Ok(_) => *known = Lookup::Failure(io::ErrorKind::NotFound, "it has no address".into(), now),
            Err(error) => *known = Lookup::Failure(error.kind(), error.to_string(), now),
        }
        drop(known);
        self.resolved.notify_waiters();
    }
}

fn resolver_stopped() -> io::Error {
    io::Error::other("the thread that resolves names has ended")
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
