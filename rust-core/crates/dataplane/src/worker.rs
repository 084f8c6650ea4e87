use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::evidence::{self, Evidence};
use proofgate_auth::{KeySet, WantedKeySets};
use proofgate_ledger::{SigningKey, VerifyingKey};
use proofgate_stages::Profiler;
use proofgate_wal::Watermark;
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use crate::catalog::Blueprint;
use crate::config::Durability;
use crate::data_plane::DataPlane;
use crate::ledger_delay::LedgerDelay;
use crate::ledger_thread::LedgerThread;
use crate::lifecycle::Phase;
use crate::limit_thread::{self, Place};
use crate::metrics::Metrics;
use crate::reload::{MAX_WAITING, Order};
use crate::{Config, Error, incarnation};

/// One gateway process's share of the work: a traffic port, a log, and the three threads behind them.
pub struct Worker {
    /// The configuration in service; of its ledger and its listener nothing ever changes.
    config: Mutex<Arc<Config>>,
    /// What it comes to, until the start takes it.
    blueprint: Mutex<Option<Blueprint>>,
    signing_key: SigningKey,
    profiler: Arc<Profiler>,
    wanted: Mutex<WantedKeySets>,
    running: Mutex<Option<Arc<Running>>>,
}

/// What the outside sees of a running worker.
struct Running {
    address: SocketAddr,
    origin: String,
    directory: PathBuf,
    shard: u32,
    incarnation: String,
    verifying_key: VerifyingKey,
    watermark: Arc<Watermark>,
    metrics: Metrics,
    phase: watch::Sender<Phase>,
    orders: mpsc::Sender<Order>,
    threads: Arc<Threads>,
}

/// Counts the threads that still run.
struct Threads {
    left: Mutex<usize>,
    ended: Condvar,
    failed: AtomicBool,
}

/// A worker's state, for people and dashboards.
#[derive(Debug, Serialize)]
pub struct Status {
    /// Origin line of its checkpoints.
    pub origin: String,
    /// Its shard.
    pub shard: u32,
    /// This life of the worker, a ULID.
    pub incarnation: String,
    /// Traffic address.
    pub address: String,
    /// `null` when it wants traffic, otherwise why not.
    pub not_ready: Option<&'static str>,
    /// Whether it is on its way out and may still be told to stay.
    pub retiring: bool,
    /// Exchanges admitted and not ended.
    pub in_flight: i64,
    /// Open client connections.
    pub connections: i64,
    /// Records written.
    pub written: u64,
    /// Records synced.
    pub durable: u64,
    /// Records covered by the newest checkpoint.
    pub checkpointed: u64,
    /// Why the ledger takes no more records, if it does not.
    pub ledger_stopped: Option<String>,
}

impl Worker {
    /// Checks a configuration; nothing is opened yet.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn new(config: Config) -> Result<Self, Error> {
        let blueprint = Blueprint::new(&config)?;
        let signing_key = SigningKey::from_text(&config.ledger.signing_key)
            .map_err(|error| Error::Config(format!("ledger signing key: {error}")))?;
        if signing_key.name() != config.ledger.name {
            return Err(Error::Config(format!(
                "the ledger is named {:?} and its signing key is for {:?}",
                config.ledger.name,
                signing_key.name()
            )));
        }
        Ok(Worker {
            profiler: Arc::new(Profiler::new(config.profile_stages)),
            wanted: Mutex::new(blueprint.terms.authenticator.wanted_key_sets()),
            config: Mutex::new(Arc::new(config)),
            blueprint: Mutex::new(Some(blueprint)),
            signing_key,
            running: Mutex::default(),
        })
    }

    fn config(&self) -> Arc<Config> {
        Arc::clone(&lock(&self.config))
    }

    /// Takes another configuration into service: requests from then on follow it, no connection is dropped. Returns
    /// when it is in service.
    ///
    /// # Errors
    /// [`Error::Config`] when it is wrong, or changes what needs a restart: the old one stays. [`Error::NotRunning`].
    pub fn reload(&self, config: Config) -> Result<(), Error> {
        let running = self.running()?;
        // Held to the end: two configurations must not overtake each other.
        let mut current = lock(&self.config);
        if let Some(field) = current.needs_restart(&config) {
            return Err(Error::Config(format!("{field} cannot change without a restart")));
        }
        let blueprint = Blueprint::new(&config)?;
        let wanted = blueprint.terms.authenticator.wanted_key_sets();
        running.order(|done| Order::Configure(Box::new(blueprint), done))?;
        *lock(&self.wanted) = wanted;
        *current = Arc::new(config);
        Ok(())
    }

    /// Replaces the signing keys of a JWT issuer; returns how many of them are usable.
    ///
    /// # Errors
    /// [`Error::Config`] when the text is no key set or the issuer is not configured; [`Error::NotRunning`].
    pub fn set_key_set(&self, issuer: &str, jwks: &str) -> Result<usize, Error> {
        let (keys, _) = KeySet::parse(jwks).map_err(|error| Error::Config(error.to_string()))?;
        let usable = keys.len();
        if let Some(blueprint) = &*lock(&self.blueprint) {
            let set = blueprint.terms.authenticator.set_key_set(issuer, keys);
            return set
                .map(|()| usable)
                .map_err(|error| Error::Config(error.to_string()));
        }
        let known = self
            .running()?
            .order(|done| Order::UseKeySet(issuer.to_owned(), Box::new(keys), done))?;
        match known {
            true => Ok(usable),
            false => Err(Error::Config(format!("JWT issuer {issuer:?} is not configured"))),
        }
    }

    /// Issuers for which a token named a key that is not known, since the last call.
    pub fn key_sets_wanted(&self) -> Vec<String> {
        lock(&self.wanted).take()
    }

    /// Where stages are measured, and whether.
    pub fn profiler(&self) -> &Profiler {
        &self.profiler
    }

    /// Recovers the predecessor, opens this incarnation's log, binds the traffic port and starts its threads.
    ///
    /// # Errors
    /// [`Error::Ledger`], [`Error::Bind`], [`Error::Thread`]; the call is not to be repeated after an error.
    pub fn start(&self) -> Result<(), Error> {
        let mut running = lock(&self.running);
        if running.is_some() {
            return Err(Error::Config("the worker was started already".into()));
        }
        let config = &self.config();
        let blueprint = lock(&self.blueprint).take();
        let blueprint = blueprint.ok_or_else(|| Error::Config("the worker was started already".into()))?;
        let listener = bind(&config.listen)?;
        let address = listener
            .local_addr()
            .map_err(|source| bind_error(&config.listen, source))?;
        let log = incarnation::open(&config.ledger, &config.config_digest, &self.signing_key)?;
        let (limit_thread, limits) = limit_thread::open(&Place {
            gateway: Path::new(&config.ledger.directory),
            shard: config.ledger.shard,
            incarnation: log.ulid,
            sync: config.ledger.durability == Durability::Synced,
        })?;
        let watermark = log.writer.watermark();
        let (phase, told) = watch::channel(Phase::Serving);
        let metrics = Metrics::new(&self.profiler);
        let (orders, waiting) = mpsc::channel(MAX_WAITING);
        let threads = Arc::new(Threads {
            left: Mutex::new(3),
            ended: Condvar::new(),
            failed: AtomicBool::new(false),
        });
        let finish = Arc::new(AtomicBool::new(false));

        let delay = Arc::new(LedgerDelay::new(Arc::clone(&self.profiler)));
        let ledger_thread = LedgerThread {
            follower: log.follower,
            watermark: Arc::clone(&watermark),
            key: self.signing_key.clone(),
            durability: config.ledger.durability,
            checkpoint_interval: config.ledger.checkpoint_interval,
            finish: Arc::clone(&finish),
            delay: Arc::clone(&delay),
        };
        let ledger = threads.spawn("ledger", move || ledger_thread.run())?;
        let data_plane = DataPlane {
            config: Arc::clone(config),
            blueprint,
            limits,
            delay,
            orders: waiting,
            listener,
            writer: log.writer,
            metrics: metrics.clone(),
            phase: phase.clone(),
            told,
            ledger,
            finish,
        };
        threads.spawn("limits", move || limit_thread.run())?;
        threads.spawn("data-plane", move || data_plane.run())?;
        *running = Some(Arc::new(Running {
            address,
            origin: log.origin,
            directory: log.directory,
            shard: config.ledger.shard,
            incarnation: log.incarnation,
            verifying_key: self.signing_key.verifying_key(),
            watermark,
            metrics,
            phase,
            orders,
            threads,
        }));
        Ok(())
    }

    fn running(&self) -> Result<Arc<Running>, Error> {
        lock(&self.running).clone().ok_or(Error::NotRunning)
    }

    /// The address of the traffic port.
    ///
    /// # Errors
    /// [`Error::NotRunning`] before the start, here and below.
    pub fn address(&self) -> Result<String, Error> {
        Ok(self.running()?.address.to_string())
    }

    /// The origin line of this incarnation's checkpoints.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn origin(&self) -> Result<String, Error> {
        Ok(self.running()?.origin.clone())
    }

    /// Why the worker wants no traffic; `None` when it does.
    pub fn not_ready(&self) -> Option<&'static str> {
        self.running()
            .map_or(Some("not_started"), |running| running.not_ready())
    }

    /// The worker's state.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn status(&self) -> Result<Status, Error> {
        let running = self.running()?;
        Ok(Status {
            origin: running.origin.clone(),
            shard: running.shard,
            incarnation: running.incarnation.clone(),
            address: running.address.to_string(),
            not_ready: running.not_ready(),
            retiring: *running.phase.borrow() == Phase::Retiring,
            in_flight: running.metrics.in_flight.get(),
            connections: running.metrics.connections.get(),
            written: running.watermark.written(),
            durable: running.watermark.durable(),
            checkpointed: running.watermark.checkpointed(),
            ledger_stopped: running.watermark.stopped().map(str::to_owned),
        })
    }

    /// All metrics in Prometheus' text format.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn metrics(&self) -> Result<String, Error> {
        let running = self.running()?;
        let gauge = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        running
            .metrics
            .records_written
            .set(gauge(running.watermark.written()));
        running
            .metrics
            .records_durable
            .set(gauge(running.watermark.durable()));
        running
            .metrics
            .ready
            .set(i64::from(running.not_ready().is_none()));
        Ok(running.metrics.encode())
    }

    /// The newest signed checkpoint.
    ///
    /// # Errors
    /// [`Error::NotRunning`]; [`Error::Ledger`] while there is none yet.
    pub fn checkpoint(&self) -> Result<String, Error> {
        let directory = self.running()?.directory.clone();
        std::fs::read_to_string(directory.join("checkpoint"))
            .map_err(|error| Error::Ledger(format!("no checkpoint yet: {error}")))
    }

    /// The records of one exchange of this incarnation, each with its proof; waits at most `timeout` for a checkpoint
    /// that covers them. Empty when there is no such exchange.
    ///
    /// # Errors
    /// [`Error::NotRunning`]; [`Error::Ledger`] when no checkpoint covers the records in time.
    pub fn prove(&self, request_id: &str, timeout: Duration) -> Result<Vec<Evidence>, Error> {
        let running = self.running()?;
        let failed = |error: proofgate_wal::WalError| Error::Ledger(error.to_string());
        let found = evidence::find(&running.directory, request_id).map_err(failed)?;
        let size = found.last().map_or(0, |record| record.seq + 1);
        let deadline = Instant::now() + timeout;
        while running.watermark.checkpointed() < size && Instant::now() < deadline {
            thread::park_timeout(Duration::from_millis(20));
        }
        evidence::prove(found, Some(&running.verifying_key)).map_err(failed)
    }

    /// Retires the worker, or takes that back; returns whether it is on its way out then.
    ///
    /// A worker that retires is not ready, serves what comes, and ends its connections between two requests. One that
    /// drains cannot turn back.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn retire(&self, retire: bool) -> Result<bool, Error> {
        let running = self.running()?;
        let (from, to) = match retire {
            true => (Phase::Serving, Phase::Retiring),
            false => (Phase::Retiring, Phase::Serving),
        };
        running.phase.send_if_modified(|phase| {
            let turns = *phase == from;
            if turns {
                *phase = to;
            }
            turns
        });
        Ok(*running.phase.borrow() >= Phase::Retiring)
    }

    /// Begins to drain: not ready from now on; returns at once.
    pub fn drain(&self) {
        if let Ok(running) = self.running() {
            running.phase.send_if_modified(|phase| {
                let begins = *phase < Phase::LameDuck;
                *phase = (*phase).max(Phase::LameDuck);
                begins
            });
        }
    }

    /// Waits until the threads have ended, at most `timeout`; `true` when they have, with the log sealed.
    pub fn join(&self, timeout: Duration) -> bool {
        let Ok(running) = self.running() else { return true };
        let threads = &running.threads;
        let left = threads.left.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = threads.ended.wait_timeout_while(left, timeout, |left| *left != 0);
        let (left, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *left == 0 && !threads.failed.load(Ordering::Acquire) && running.watermark.sealed()
    }
}

/// How long the data-plane thread may take to obey.
const OBEDIENCE: Duration = Duration::from_secs(10);

impl Running {
    /// Gives the data-plane thread an order and waits for its answer.
    fn order<A>(&self, order: impl FnOnce(SyncSender<A>) -> Order) -> Result<A, Error> {
        let (done, answer) = sync_channel(1);
        self.orders.try_send(order(done)).map_err(|_| Error::NotRunning)?;
        answer.recv_timeout(OBEDIENCE).map_err(|_| Error::NotRunning)
    }

    fn not_ready(&self) -> Option<&'static str> {
        if self.threads.failed.load(Ordering::Acquire) {
            Some("failed")
        } else if self.watermark.is_poisoned() {
            Some("ledger_stopped")
        } else if *self.phase.borrow() >= Phase::LameDuck {
            Some("draining")
        } else if *self.phase.borrow() == Phase::Retiring {
            Some("retiring")
        } else {
            None
        }
    }
}

impl Threads {
    fn spawn(
        self: &Arc<Self>,
        name: &'static str,
        body: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<Thread, Error> {
        let threads = Arc::clone(self);
        let run = move || {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            if !ended.unwrap_or(false) {
                threads.failed.store(true, Ordering::Release);
            }
            *threads.left.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            threads.ended.notify_all();
        };
        let handle = thread::Builder::new().name(format!("proofgate-{name}"));
        let handle = handle
            .spawn(run)
            .map_err(|source| Error::Thread { thread: name, source })?;
        Ok(handle.thread().clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bind(listen: &str) -> Result<TcpListener, Error> {
    let error = |source| bind_error(listen, source);
    let address = listen.to_socket_addrs().map_err(error)?.next();
    let address = address.ok_or_else(|| error(std::io::ErrorKind::AddrNotAvailable.into()))?;
    let listener = TcpListener::bind(address).map_err(error)?;
    listener.set_nonblocking(true).map_err(error)?;
    Ok(listener)
}

fn bind_error(address: &str, source: std::io::Error) -> Error {
    Error::Bind {
        address: address.to_owned(),
        source,
    }
}
