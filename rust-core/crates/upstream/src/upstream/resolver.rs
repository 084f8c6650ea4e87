//! The addresses of one host, from the system's resolver.
//!
//! Names are resolved by the system (`getaddrinfo`), because only it applies `/etc/hosts`, the
//! search domains and `ndots` of a pod as other processes in the pod do. `getaddrinfo` blocks,
//! cannot be cancelled and returns no time to live. So it runs on separate threads, which shutdown
//! does not wait for, and its results are valid for a short time.

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

/// The age after which the next connection that uses the addresses refreshes them in the
/// background.
const REFRESH_AFTER: Duration = Duration::from_secs(5);
/// The maximum age at which addresses are still used.
const MAX_AGE: Duration = Duration::from_secs(30);
/// The time after a failure during which a name is not looked up again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Number of threads for concurrent look-ups in one process. [`MAX_QUEUED`] is the length of their
/// queue. There is at most one look-up for each provider.
const RESOLVER_THREADS: usize = 4;
const MAX_QUEUED: usize = 64;

/// A function that returns all addresses of a host and port, like the system's resolver.
pub(super) type LookupFn = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// A request to a resolver thread.
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
    /// Returns the resolver of this process.
    pub(super) fn system() -> Self {
        static SYSTEM: LazyLock<Resolver> =
            LazyLock::new(|| Resolver::start(|host, port| Ok((host, port).to_socket_addrs()?.collect())));
        SYSTEM.clone()
    }

    /// Starts detached threads, which end when no handle to them is left.
    pub(super) fn start(look_up: LookupFn) -> Self {
        let (questions, asked) = sync_channel(MAX_QUEUED);
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..RESOLVER_THREADS {
            let asked = Arc::clone(&asked);
            let thread = thread::Builder::new().name("names".into());
            // If no thread starts, every look-up fails, because no thread receives it.
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

/// A host, and the known results of its look-ups.
pub(super) struct HostAddresses {
    host: String,
    port: u16,
    resolver: Resolver,
    lookup: RefCell<Lookup>,
    /// Whether a look-up is in progress.
    is_resolving: Cell<bool>,
    resolved: Notify,
}

enum Lookup {
    Unresolved,
    /// The addresses, and the time at which they were found.
    Addresses(Rc<[SocketAddr]>, Instant),
    /// The reason why a look-up failed, and the time of the failure.
    Failure(io::ErrorKind, String, Instant),
    /// The host is an IP address.
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

    /// Returns the host's addresses, immediately if they are known.
    ///
    /// # Errors
    /// The error of the system's resolver.
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

    /// Discards the addresses unless they are new; called when none of them could be connected to.
    pub(super) fn invalidate(&self) {
        let mut known = self.lookup.borrow_mut();
        if matches!(&*known, Lookup::Addresses(_, since) if since.elapsed() >= RETRY_DELAY) {
            *known = Lookup::Unresolved;
        }
    }

    /// Looks the name up, unless a look-up is in progress.
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
            // Known addresses are used until they are too old: a failing name server does not interrupt service.
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
#[path = "resolver_tests.rs"]
mod tests;
