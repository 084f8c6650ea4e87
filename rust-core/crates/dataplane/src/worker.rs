//! The interface of a worker.

mod tenants;

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use proofgate_auth::{KeySet, RequestedKeySets};
use proofgate_base::Error;
use proofgate_base::clock::unix_seconds;
use proofgate_base::descriptors::DescriptorShares;
use proofgate_base::lifecycle::Phase;
use proofgate_base::threads::Threads;
use proofgate_config::{AnalysisConfig, AwsKeys, Config, Durability};
use proofgate_exchange::gateway::{BackgroundServices, ConfigChange};
use proofgate_exchange::receipts::ReceiptService;
use proofgate_external_policies::{ActivePolicyMetrics, PolicyQueue};
use proofgate_ledger::VerifyingKey;
use proofgate_observe::analysis::create_analysis;
use proofgate_observe::evidence::{self, Evidence};
use proofgate_observe::held_checkpoint::HeldCheckpoint;
use proofgate_observe::incarnation::{LogFactory, storage};
use proofgate_observe::ledger_delay::LedgerDelay;
use proofgate_observe::ledger_keys::LedgerKeys;
use proofgate_observe::ledger_thread::{LedgerThread, Rotation};
use proofgate_observe::limit_thread::{self, SharedLimitStore, WorkerRun};
use proofgate_observe::limit_usage::LimitUsageReport;
use proofgate_observe::metrics::{Metrics, Signal};
use proofgate_observe::payloads;
use proofgate_observe::rotation::{ActiveLog, CurrentLog, LogHandoff, RotationBounds};
use proofgate_observe::telemetry::{self, AccessLog, ExchangeQueue};
use proofgate_observe::tenant_shards::TenantShards;
use proofgate_policy::Engine;
use proofgate_providers::sigv4::Credentials;
use proofgate_stages::Profiler;
use proofgate_upstream::access_token::ExpiringToken;
use proofgate_upstream::catalog::CompiledConfig;
use proofgate_upstream::signer::SigningCredentials;
use proofgate_wal::{RecoveryResult, UnsyncedFiles};
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use crate::data_plane::DataPlane;
use crate::reload::{self, Command, MAX_QUEUED_COMMANDS, PendingCommand};

/// How long to wait for the last lines of the access log.
const ACCESS_LOG_FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// The data plane of one gateway process: a traffic port, a log, and the three threads behind them.
pub struct Worker {
    /// The active configuration; its ledger and its listener never change.
    config: Mutex<Arc<Config>>,
    /// The compiled configuration; `None` after the start.
    blueprint: Mutex<Option<CompiledConfig>>,
    keys: LedgerKeys,
    profiler: Arc<Profiler>,
    /// The tenants that are not in the configuration; only changed while `config` is locked.
    shards: Mutex<TenantShards>,
    /// The active rules, which a reload keeps if they have not changed.
    engine: Mutex<Arc<Engine>>,
    requested_key_sets: Mutex<RequestedKeySets>,
    /// The external policies, for the metrics.
    policy_metrics: ActivePolicyMetrics,
    running: Mutex<Option<Arc<RunningWorker>>>,
}

/// The externally visible parts of a running worker.
struct RunningWorker {
    address: SocketAddr,
    shard: u32,
    descriptor_shares: DescriptorShares,
    current_log: CurrentLog,
    verifying_key: VerifyingKey,
    metrics: Metrics,
    phase: watch::Sender<Phase>,
    commands: mpsc::Sender<PendingCommand>,
    limits: SharedLimitStore,
    threads: Arc<Threads>,
    /// Telemetry threads, whose failure affects only telemetry.
    telemetry_threads: Arc<Threads>,
    /// The queue of sampled exchanges; `None` after the exporter has taken it.
    exchange_queue: Mutex<Option<ExchangeQueue>>,
}

/// The status of a worker, for people and dashboards.
#[derive(Debug, Serialize)]
pub struct WorkerStatus {
    /// Origin line of its checkpoints.
    pub origin: String,
    /// Its shard.
    pub shard: u32,
    /// ULID of this run of the worker.
    pub incarnation: String,
    /// Traffic address.
    pub address: String,
    /// Why the worker is not ready for traffic; `null` if it is ready.
    pub not_ready: Option<&'static str>,
    /// Whether the worker is retiring, which can still be undone.
    pub retiring: bool,
    /// Admitted exchanges that have not ended.
    pub in_flight: i64,
    /// Open client connections.
    pub connections: i64,
    /// Records written to its log.
    pub written: u64,
    /// Records of its log that are synced to disk.
    pub durable: u64,
    /// Records of its log that the latest checkpoint covers.
    pub checkpointed: u64,
    /// Why the ledger accepts no more records; `null` if it accepts records.
    pub ledger_stopped: Option<String>,
    /// How the file descriptors of the process are divided.
    pub descriptors: DescriptorShares,
}

impl Worker {
    /// Validates a configuration and creates a worker for it; opens nothing yet.
    ///
    /// # Errors
    /// [`Error::Config`] if the configuration is invalid.
    pub fn new(config: Config) -> Result<Self, Error> {
        let blueprint = CompiledConfig::new(&config, None)?;
        config.analysis.iter().try_for_each(AnalysisConfig::check)?;
        let keys = LedgerKeys::new(&config.ledger)?;
        Ok(Worker {
            profiler: Arc::new(Profiler::new(config.profiling.stages)),
            engine: Mutex::new(Arc::clone(&blueprint.settings.engine)),
            requested_key_sets: Mutex::new(blueprint.settings.authenticator.requested_key_sets()),
            policy_metrics: ActivePolicyMetrics::new(&config.policies),
            shards: Mutex::new(TenantShards::new(
                &blueprint.settings.digest,
                config.tenant_shards.is_some(),
            )),
            config: Mutex::new(Arc::new(config)),
            blueprint: Mutex::new(Some(blueprint)),
            keys,
            running: Mutex::default(),
        })
    }

    fn config(&self) -> Arc<Config> {
        Arc::clone(&lock(&self.config))
    }

    /// Applies a new configuration without dropping a connection; later requests use it. Returns once it is in
    /// service.
    ///
    /// # Errors
    /// [`Error::Config`] if the configuration is invalid or changes a field that needs a restart, and
    /// [`Error::CommandTimedOut`]; the old configuration then stays in service. [`Error::NotRunning`].
    pub fn reload(&self, mut config: Config) -> Result<(), Error> {
        let running = self.running()?;
        // Held to the end, so that two configurations cannot overtake each other.
        let mut current = lock(&self.config);
        if let Some(field) = current.field_requiring_restart(&config) {
            return Err(Error::Config(format!("{field} cannot change without a restart")));
        }
        config.policies.reuse_from(&current.policies);
        let shards = lock(&self.shards).clone();
        let in_service = Arc::clone(&lock(&self.engine));
        let blueprint = CompiledConfig::new(&config, Some(&in_service))?;
        let wanted = blueprint.settings.authenticator.requested_key_sets();
        let engine = Arc::clone(&blueprint.settings.engine);
        let next = shards.with_configuration(&blueprint.settings.digest, config.tenant_shards.is_some());
        let change = ConfigChange {
            compiled_config: Some(blueprint),
            shards: next.active_shards().clone(),
            digests: next.digests(),
        };
        reload::send_command(&running.commands, |done| Command::Apply(Box::new(change), done))?;
        *lock(&self.shards) = next;
        *lock(&self.requested_key_sets) = wanted;
        *lock(&self.engine) = engine;
        self.policy_metrics.set(&config.policies);
        *current = Arc::new(config);
        Ok(())
    }

    /// Replaces the signing keys of a JWT issuer; returns how many of them are usable.
    ///
    /// # Errors
    /// [`Error::Config`] if the text is not a key set or the issuer is not configured; [`Error::CommandTimedOut`] if the
    /// data-plane thread is busy; nothing has changed then; [`Error::NotRunning`].
    pub fn set_key_set(&self, issuer: &str, jwks: &str) -> Result<usize, Error> {
        let (keys, _) = KeySet::parse(jwks).map_err(|error| Error::Config(error.to_string()))?;
        let usable = keys.len();
        if let Some(blueprint) = &*lock(&self.blueprint) {
            let set = blueprint.settings.authenticator.set_key_set(issuer, keys);
            return set
                .map(|()| usable)
                .map_err(|error| Error::Config(error.to_string()));
        }
        let known = reload::send_command(&self.running()?.commands, |done| {
            Command::SetKeySet(issuer.to_owned(), Box::new(keys), done)
        })?;
        match known {
            true => Ok(usable),
            false => Err(Error::Config(format!("JWT issuer {issuer:?} is not configured"))),
        }
    }

    /// Replaces the access token that is sent to a provider; it is valid for `lifetime` from now on.
    ///
    /// # Errors
    /// [`Error::Config`] if the text is not a token or the provider uses none; the message never contains the token.
    /// [`Error::CommandTimedOut`] if the data-plane thread is busy; nothing has changed then; [`Error::NotRunning`].
    pub fn set_access_token(&self, provider: &str, token: &str, lifetime: Duration) -> Result<(), Error> {
        let token = ExpiringToken::new(token, lifetime).ok_or_else(|| {
            Error::Config("the access token is empty or contains an invalid character".into())
        })?;
        let wanted = reload::send_command(&self.running()?.commands, |done| {
            Command::SetAccessToken(provider.to_owned(), token, done)
        })?;
        match wanted {
            true => Ok(()),
            false => Err(Error::Config(format!(
                "provider {provider:?} does not use access tokens"
            ))),
        }
    }

    /// Replaces the credentials that sign requests to a provider; they are valid for `lifetime` from now on.
    ///
    /// # Errors
    /// [`Error::Config`] if a part is invalid or the provider accepts none; the message never contains a part.
    /// [`Error::CommandTimedOut`] if the data-plane thread is busy; nothing has changed then; [`Error::NotRunning`].
    pub fn set_aws_credentials(
        &self,
        provider: &str,
        credentials: Credentials<'_>,
        lifetime: Duration,
    ) -> Result<(), Error> {
        let keys = AwsKeys {
            access_key_id: credentials.access_key_id.to_owned(),
            secret_access_key: credentials.secret_access_key.to_owned(),
            session_token: credentials.session_token.map(str::to_owned),
        };
        let fail = |message: &str| Error::Config(format!("provider {provider:?}: {message}"));
        let keys = SigningCredentials::new(&keys).map_err(|message| fail(&message))?;
        let keys = keys.with_lifetime(lifetime);
        let keys = keys.ok_or_else(|| fail("the lifetime of its credentials is out of range"))?;
        let taken = reload::send_command(&self.running()?.commands, |done| {
            Command::SetAwsCredentials(provider.to_owned(), keys, done)
        })?;
        match taken {
            true => Ok(()),
            false => Err(fail("it does not accept temporary credentials")),
        }
    }

    /// Returns the evaluator's end of a policy's queue, once per policy: a reload keeps the queue of an unchanged
    /// policy.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no such policy, or its queue was already taken.
    pub fn policy_queue(&self, policy: &str) -> Result<PolicyQueue, Error> {
        self.config().policies.open_queue(policy)
    }

    /// Returns the queue of exchanges whose traces are sampled, for an exporter; `None` if it was already taken.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn exchange_queue(&self) -> Result<Option<ExchangeQueue>, Error> {
        Ok(lock(&self.running()?.exchange_queue).take())
    }

    /// Returns the traffic of tenants and models as JSON, with a delay of about a second.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn traffic_report(&self) -> Result<String, Error> {
        let report = self.running()?.metrics.report();
        // Strings and numbers always serialize.
        Ok(serde_json::to_string(&report).unwrap_or_default())
    }

    /// Counts telemetry that an exporter could not deliver; `signal` is `traces` or `metrics`.
    ///
    /// # Errors
    /// [`Error::NotRunning`]; [`Error::Config`] if there is no such signal.
    pub fn count_lost_telemetry(&self, signal: &str, count: u64) -> Result<(), Error> {
        let known = Signal::ALL.into_iter().find(|known| known.as_str() == signal);
        let known = known.ok_or_else(|| Error::Config(format!("unknown signal {signal:?}")))?;
        self.running()?.metrics.record_lost_telemetry(known, count);
        Ok(())
    }

    /// Returns the issuers for which a token named an unknown key since the last call.
    pub fn take_requested_key_sets(&self) -> Vec<String> {
        lock(&self.requested_key_sets).take()
    }

    /// Returns the profiler of the stages.
    pub fn profiler(&self) -> &Profiler {
        &self.profiler
    }

    /// Recovers the predecessor, opens this incarnation's log, binds the traffic port and starts the threads.
    ///
    /// # Errors
    /// [`Error::Ledger`], [`Error::Bind`], [`Error::Thread`]; do not call it again after an error.
    pub fn start(&self) -> Result<(), Error> {
        let mut running = lock(&self.running);
        if running.is_some() {
            return Err(Error::Config("the worker has already started".into()));
        }
        let config = &self.config();
        let blueprint = lock(&self.blueprint).take();
        let blueprint = blueprint.ok_or_else(|| Error::Config("the worker has already started".into()))?;
        let listener = bind(&config.listen)?;
        let address = listener
            .local_addr()
            .map_err(|source| bind_error(&config.listen, source))?;
        let ledger = &config.ledger;
        let held = ledger.held_checkpoints.as_ref();
        let held =
            held.map(|held| HeldCheckpoint::new(Path::new(&held.directory), ledger.shard, held.held_by));
        let shards = lock(&self.shards);
        let (in_service, digests) = (shards.active_shards().clone(), shards.digests());
        drop(shards);
        let next = LogFactory::new(ledger, digests, &self.keys);
        let begun = next.start_first(held.as_ref())?;
        let lost = begun.recovery.as_ref().map_or(0, RecoveryResult::lost_records);
        let missing = begun
            .recovery
            .as_ref()
            .is_some_and(|found| found.missing.is_some());
        let mut log = begun.log;
        let (limit_thread, limits) = limit_thread::open(&WorkerRun {
            gateway_dir: Path::new(&config.ledger.directory),
            shard: config.ledger.shard,
            incarnation: log.incarnation,
            keys: &self.keys,
            ledger: &ledger.name,
            sync: config.ledger.durability == Durability::Synced,
            models: &blueprint,
        })?;
        let current = CurrentLog::new(ActiveLog {
            origin: log.origin,
            directory: log.dir,
            incarnation: log.incarnation,
            watermark: log.writer.watermark(),
            records_before: 0,
        });
        let desk = Arc::new(LogHandoff::default());
        let bounds = RotationBounds {
            max_bytes: ledger.rotation.bytes,
            max_age: ledger.rotation.age,
        };
        let (phase, told) = watch::channel(Phase::Serving);
        let metrics = Metrics::new(&self.profiler, &self.policy_metrics);
        let shares = DescriptorShares::for_process(config.limits.connections, config.limits.descriptors);
        metrics.set_descriptor_shares(&shares);
        metrics.records_lost.set(as_gauge(lost));
        // The start of a log is signed before the worker serves.
        metrics.checkpoint_timestamp.set(unix_seconds());
        metrics
            .checkpoint_interval
            .set(ledger.checkpoint_interval.as_secs_f64());
        metrics.predecessor_missing.set(missing.into());
        let (orders, waiting) = mpsc::channel(MAX_QUEUED_COMMANDS);
        let threads = Threads::new(3);
        let finish = Arc::new(AtomicBool::new(false));

        let delay = Arc::new(LedgerDelay::new(Arc::clone(&self.profiler)));
        let unsynced = config.ledger.payloads.map(|_| Arc::new(UnsyncedFiles::default()));
        if let Some(unsynced) = &unsynced {
            log.follower.set_unsynced_files(Arc::clone(unsynced));
        }
        let stored = config.ledger.payloads.zip(unsynced.clone());
        let stored = stored.map(|(payloads, unsynced)| {
            let of = (next.shard_directory(), ledger.name.as_str(), ledger.shard);
            payloads::create_payload_queue(payloads, &storage(), of, unsynced, &metrics.payloads)
        });
        let (desk_of_payloads, payload_thread) = stored.unzip();
        let ledger_thread = LedgerThread {
            follower: log.follower,
            key: self.keys.signing.clone(),
            durability: config.ledger.durability,
            checkpoint_interval: config.ledger.checkpoint_interval,
            finished: Arc::clone(&finish),
            delay: Arc::clone(&delay),
            current_log: current.clone(),
            rotation: Rotation::new(bounds, Arc::clone(&desk), next),
            held_checkpoint: held,
            unsynced_files: unsynced,
            checkpoint_timestamp: metrics.checkpoint_timestamp.clone(),
        };
        let ledger = threads.spawn("ledger", move || ledger_thread.run())?;
        let (outlet, lines, exchanges) = telemetry::telemetry_queues(metrics.clone());
        let analysed = config
            .analysis
            .as_ref()
            .map(|config| create_analysis(config, &metrics));
        let others = [analysed.is_some(), payload_thread.is_some()];
        let tellers = Threads::new(1 + others.into_iter().filter(|is_there| *is_there).count());
        let (tap, analyst, findings) = match analysed {
            Some((tap, analyst, findings)) => (Some(tap), Some(analyst), Some(findings)),
            None => (None, None, None),
        };
        let access_log = AccessLog {
            lines,
            metrics: metrics.clone(),
            out: std::io::stdout(),
        };
        let volume = Path::new(&config.ledger.directory);
        let receipts = ReceiptService::for_ledger(volume, self.keys.signing.verifying_key());
        let data_plane = DataPlane {
            config: Arc::clone(config),
            compiled_config: blueprint,
            shards: in_service,
            digests,
            limit_link: limits,
            delay,
            commands: waiting,
            listener,
            descriptor_shares: shares,
            writer: log.writer,
            handoff: desk,
            current_log: current.clone(),
            metrics: metrics.clone(),
            background_services: BackgroundServices {
                telemetry: outlet,
                receipts,
                tap,
                payloads: desk_of_payloads,
            },
            findings,
            phase: phase.clone(),
            phase_updates: told,
            ledger_thread: ledger,
            finished: finish,
        };
        let limit_store = limit_thread.store();
        threads.spawn("limits", move || limit_thread.run())?;
        threads.spawn("data-plane", move || data_plane.run())?;
        tellers.spawn("access-log", move || {
            access_log.run();
            true
        })?;
        if let Some(payload_thread) = payload_thread {
            tellers.spawn("payloads", move || {
                payload_thread.run();
                true
            })?;
        }
        if let Some(analyst) = analyst {
            tellers.spawn("analysis", move || {
                analyst.run();
                true
            })?;
        }
        *running = Some(Arc::new(RunningWorker {
            address,
            shard: config.ledger.shard,
            descriptor_shares: shares,
            current_log: current,
            verifying_key: self.keys.signing.verifying_key(),
            metrics,
            phase,
            commands: orders,
            limits: limit_store,
            threads,
            telemetry_threads: tellers,
            exchange_queue: Mutex::new(Some(exchanges)),
        }));
        Ok(())
    }

    fn running(&self) -> Result<Arc<RunningWorker>, Error> {
        lock(&self.running).clone().ok_or(Error::NotRunning)
    }

    /// Returns the address of the traffic port.
    ///
    /// # Errors
    /// [`Error::NotRunning`] before the start.
    pub fn address(&self) -> Result<String, Error> {
        Ok(self.running()?.address.to_string())
    }

    /// Returns the origin line of this incarnation's checkpoints.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn origin(&self) -> Result<String, Error> {
        Ok(self.running()?.current_log.get().origin)
    }

    /// Returns why the worker is not ready for traffic; `None` if it is ready.
    pub fn not_ready_reason(&self) -> Option<&'static str> {
        self.running()
            .map_or(Some("not_started"), |running| running.not_ready_reason())
    }

    /// Returns the worker's status.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn status(&self) -> Result<WorkerStatus, Error> {
        let running = self.running()?;
        let log = running.current_log.get();
        Ok(WorkerStatus {
            origin: log.origin,
            shard: running.shard,
            incarnation: log.incarnation.to_string(),
            address: running.address.to_string(),
            not_ready: running.not_ready_reason(),
            retiring: *running.phase.borrow() == Phase::Retiring,
            in_flight: running.metrics.in_flight.get(),
            connections: running.metrics.connections.get(),
            written: log.watermark.written(),
            durable: log.watermark.durable(),
            checkpointed: log.watermark.checkpointed(),
            ledger_stopped: log.watermark.stop_reason().map(str::to_owned),
            descriptors: running.descriptor_shares,
        })
    }

    /// Returns the used limits of each tenant, for the `most` tenants with the highest use. The
    /// figures are about a second old.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn limit_usage(&self, most: usize) -> Result<LimitUsageReport, Error> {
        let totals = self.running()?.limits.totals();
        let shards = lock(&self.shards).clone();
        Ok(LimitUsageReport::new(&self.config(), &shards, &totals, most))
    }

    /// Returns all metrics in the Prometheus text format.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn metrics(&self) -> Result<String, Error> {
        let running = self.running()?;
        let log = running.current_log.get();
        running.metrics.set_record_counts(
            log.records_before + log.watermark.written(),
            log.records_before + log.watermark.durable(),
            log.records_before + log.watermark.checkpointed(),
        );
        lock(&self.shards).record_metrics(&running.metrics);
        running
            .metrics
            .ready
            .set(i64::from(running.not_ready_reason().is_none()));
        Ok(running.metrics.encode())
    }

    /// Returns the latest signed checkpoint.
    ///
    /// # Errors
    /// [`Error::NotRunning`]; [`Error::Ledger`] if there is none yet.
    pub fn checkpoint(&self) -> Result<String, Error> {
        let directory = self.running()?.current_log.get().directory;
        std::fs::read_to_string(directory.join("checkpoint"))
            .map_err(|error| Error::Ledger(format!("no checkpoint yet: {error}")))
    }

    /// Returns the records of one exchange on this shard, each with its proof; empty if there is no such exchange.
    /// Waits at most `timeout` for a checkpoint that covers them.
    ///
    /// # Errors
    /// [`Error::NotRunning`]; [`Error::Ledger`] if no checkpoint covers the records in time.
    pub fn prove(&self, request_id: &str, timeout: Duration) -> Result<Vec<Evidence>, Error> {
        let running = self.running()?;
        use proofgate_evidence::{EvidenceError, FileStorage, SearchMode, ShredKeys};
        let failed = |error: EvidenceError| Error::Ledger(error.to_string());
        let log = running.current_log.get();
        let shard = log.directory.parent().unwrap_or(&log.directory);
        let found = evidence::find_records(shard, request_id, SearchMode::ByTime).map_err(failed)?;
        let own = found.iter().filter(|record| record.dir == log.directory);
        let size = own.map(|record| record.seq + 1).max().unwrap_or(0);
        let deadline = Instant::now() + timeout;
        while log.watermark.checkpointed() < size && Instant::now() < deadline {
            thread::park_timeout(Duration::from_millis(20));
        }
        let shred_keys = self.config().ledger.shred_keys_directory.clone();
        let shred_keys = shred_keys.map(|directory| ShredKeys::read(&FileStorage, Path::new(&directory)));
        let shred_keys = shred_keys.transpose().map_err(failed)?;
        let proven = evidence::prove_readable(found, Some(&running.verifying_key), shred_keys.as_ref());
        let proven = proven.map_err(failed)?;
        match proven.unproven.into_iter().next() {
            Some(why) => Err(Error::Ledger(why)),
            None => Ok(proven.records),
        }
    }

    /// Starts or stops retiring the worker; returns whether it is retiring or draining afterwards.
    ///
    /// A retiring worker is not ready, serves requests that still arrive, and closes its connections between two
    /// requests. A draining worker cannot return to service.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn set_retired(&self, retire: bool) -> Result<bool, Error> {
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

    /// Starts a drain: the worker is not ready from now on. Returns immediately.
    pub fn drain(&self) {
        if let Ok(running) = self.running() {
            running.phase.send_if_modified(|phase| {
                let begins = *phase < Phase::LameDuck;
                *phase = (*phase).max(Phase::LameDuck);
                begins
            });
        }
    }

    /// Waits at most `timeout` for the threads to end; returns `true` if they have ended and the log is sealed.
    pub fn join(&self, timeout: Duration) -> bool {
        let Ok(running) = self.running() else { return true };
        let ended = running.threads.join(timeout) && running.current_log.get().watermark.sealed();
        if ended {
            // A process that does not read standard output must not prevent the worker from ending.
            running
                .telemetry_threads
                .join(timeout.min(ACCESS_LOG_FLUSH_TIMEOUT));
        }
        ended
    }
}

/// Converts a count to a Prometheus gauge value.
fn as_gauge(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl RunningWorker {
    fn not_ready_reason(&self) -> Option<&'static str> {
        if self.threads.any_failed() {
            Some("failed")
        } else if self.current_log.get().watermark.is_poisoned() {
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
