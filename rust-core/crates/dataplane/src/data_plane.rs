//! The data-plane thread: one runtime, one listener and everything that serves traffic, until it is drained.

use std::cell::RefCell;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use proofgate_auth::Shards;
use proofgate_base::Error;
use proofgate_base::clock::unix_micros;
use proofgate_base::descriptors::{DescriptorShares, UpstreamSockets};
use proofgate_base::lifecycle::{Lifecycle, Phase};
use proofgate_config::Config;
use proofgate_exchange::gateway::{BackgroundServices, Gateway};
use proofgate_front::server;
use proofgate_ledger::record::ConfigDigests;
use proofgate_limits::Limiter;
use proofgate_observe::analysis::{FindingReceiver, record_findings};
use proofgate_observe::ledger_delay::LedgerDelay;
use proofgate_observe::limit_thread::LimitThreadHandle;
use proofgate_observe::metrics::Metrics;
use proofgate_observe::recorder::Recorder;
use proofgate_observe::rotation::{CurrentLog, LogHandoff};
use proofgate_upstream::catalog::{Catalog, CompiledConfig};
use proofgate_wal::Writer;
use tokio::runtime::{self, LocalOptions};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::reload::{self, PendingCommand};

/// How long exchanges may take to end after they were cancelled.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// How long the ledger thread may take to sign the rest of the previous log. After that, the last
/// log is sealed without it.
const FORMER_LOG_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of tasks that run before the event loop polls for I/O, which is a system call.
const TASKS_PER_TURN: u32 = 256;

/// Everything that moves into the data-plane thread.
pub(crate) struct DataPlane {
    pub(crate) config: Arc<Config>,
    pub(crate) compiled_config: CompiledConfig,
    pub(crate) shards: Shards,
    /// Digests of the configuration and the shards.
    pub(crate) digests: ConfigDigests,
    pub(crate) limit_link: LimitThreadHandle,
    pub(crate) delay: Arc<LedgerDelay>,
    pub(crate) commands: Receiver<PendingCommand>,
    pub(crate) listener: TcpListener,
    pub(crate) descriptor_shares: DescriptorShares,
    pub(crate) writer: Writer,
    pub(crate) handoff: Arc<LogHandoff>,
    pub(crate) current_log: CurrentLog,
    pub(crate) metrics: Metrics,
    pub(crate) background_services: BackgroundServices,
    /// Receives the findings of response analysis, if it is configured.
    pub(crate) findings: Option<FindingReceiver>,
    pub(crate) phase: watch::Sender<Phase>,
    /// Receives the phases of the worker.
    pub(crate) phase_updates: watch::Receiver<Phase>,
    pub(crate) ledger_thread: Thread,
    pub(crate) finished: Arc<AtomicBool>,
}

impl DataPlane {
    /// Serves until drained, then seals the log and lets the ledger thread finish; returns `false` on failure.
    pub(crate) fn run(self) -> bool {
        let current = self.current_log.clone();
        let (finish, ledger) = (Arc::clone(&self.finished), self.ledger_thread.clone());
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.serve()));
        let ended = matches!(served, Ok(Ok(())));
        match served {
            Ok(Ok(())) => {}
            Ok(Err(error)) => current.get().watermark.poison(error.to_string()),
            Err(_) => current.get().watermark.poison("the data-plane thread panicked"),
        }
        finish.store(true, Ordering::Release);
        ledger.unpark();
        ended
    }

    fn serve(self) -> Result<(), Error> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .event_interval(TASKS_PER_TURN)
            .build_local(LocalOptions::default());
        let runtime = runtime.map_err(|source| Error::Thread {
            thread: "data-plane",
            source,
        })?;
        runtime.block_on(self.serve_locally())
    }

    async fn serve_locally(self) -> Result<(), Error> {
        let config = &self.config;
        let synced = Arc::new(Notify::new());
        let ledger = self.ledger_thread.clone();
        let recorder = Rc::new(Recorder::new(
            self.writer,
            config.ledger.durability,
            self.digests,
            synced,
            Arc::clone(&self.delay),
            self.handoff,
            move || ledger.unpark(),
        ));
        // None of these tasks ends on its own. A task that ends has panicked, and without it no
        // request may be admitted.
        let mut vital = JoinSet::new();
        vital.spawn_local(Rc::clone(&recorder).write_batches());
        vital.spawn_local(Rc::clone(&recorder).follow_syncs());
        let mut limiter = Limiter::new();
        let mut limits = self.limit_link;
        let sockets = Rc::new(UpstreamSockets::new(self.descriptor_shares.providers));
        let catalog = Catalog::new(self.compiled_config, None, &sockets);
        limiter.set_limits(&catalog.settings.all_limits(&self.shards));
        limits.apply_initial_usage(&mut limiter, unix_micros());
        let gateway = Rc::new(Gateway::new(
            catalog,
            self.shards,
            limiter,
            recorder,
            self.metrics,
            Arc::clone(&self.delay.profiler),
            self.background_services,
        ));
        vital.spawn_local(reload::execute_commands(Rc::clone(&gateway), self.commands));
        if let Some(findings) = self.findings {
            let metrics = gateway.observers.metrics.analysis.clone();
            vital.spawn_local(record_findings(
                Rc::clone(&gateway.observers.recorder),
                metrics,
                findings,
            ));
        }
        let limits = Rc::new(RefCell::new(limits));
        let lifecycle = Lifecycle::new(self.phase_updates);
        vital.spawn_local(run_housekeeping(
            Rc::clone(&gateway),
            Rc::clone(&limits),
            lifecycle.clone(),
        ));
        vital.spawn_local(lifecycle.clone().run());
        vital.spawn_local(advance_drain(Rc::clone(&gateway), self.phase, lifecycle.clone()));

        let listener = tokio::net::TcpListener::from_std(self.listener);
        let listener = listener.map_err(|source| Error::Bind {
            address: config.listen.clone(),
            source,
        })?;
        let mut view = lifecycle.clone();
        let served = async {
            let mut open =
                server::accept(&gateway, listener, self.descriptor_shares.clients, lifecycle).await;
            tokio::select! {
                () = server::wait_for_connections(&gateway, &mut open) => {}
                () = view.wait_for(Phase::Cancelled) => {
                    let _ = tokio::time::timeout(CANCEL_GRACE, server::wait_for_connections(&gateway, &mut open)).await;
                }
            }
            open.shutdown().await;
        };
        tokio::select! {
            () = served => {}
            _ = vital.join_next() => {
                return Err(Error::Ledger("a vital task of the data plane has panicked".into()));
            }
        }
        gateway
            .observers
            .recorder
            .wait_for_previous_log_end(FORMER_LOG_TIMEOUT)
            .await;
        gateway
            .observers
            .recorder
            .seal("drained")
            .map_err(|_| Error::Ledger("the log could not be sealed".into()))?;
        vital.shutdown().await;
        if let Ok(limits) = Rc::try_unwrap(limits) {
            let appended = gateway.observers.recorder.appended_count();
            limits
                .into_inner()
                .finish(&mut gateway.limits.limiter.borrow_mut(), appended, unix_micros());
        }
        Ok(())
    }
}

/// Runs periodic maintenance once a second, outside of requests.
async fn run_housekeeping(
    gateway: Rc<Gateway>,
    limits: Rc<RefCell<LimitThreadHandle>>,
    lifecycle: Lifecycle,
) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        second.tick().await;
        gateway
            .observers
            .metrics
            .gap_refusals
            .inc_by(gateway.observers.recorder.start_second());
        gateway.observers.recorder.maintain();
        gateway.observers.traffic.publish();
        if let Some(step) = gateway.clock.sync() {
            gateway.apply_clock_step(step);
        }
        gateway
            .observers
            .metrics
            .set_clock_lead(gateway.clock.limit_time_lead());
        gateway
            .observers
            .metrics
            .set_open_sockets(gateway.catalog().sockets.open());
        gateway.policy.policy_copy_memory.shrink_reservation();
        if let Some(payloads) = &gateway.observers.payloads {
            payloads.request_space_check();
        }
        {
            let mut limits = limits.borrow_mut();
            if gateway.limits.take_changed() {
                limits.notify_limits_changed();
            }
            let (appended, now) = (
                gateway.observers.recorder.appended_count(),
                gateway.clock.limit_time(Instant::now()),
            );
            limits.sync_usage(&mut gateway.limits.limiter.borrow_mut(), appended, now);
        }
        let now = Instant::now();
        for upstream in gateway.catalog().upstreams() {
            upstream.pool.close_expired(now);
            let paused = upstream.pool.health.is_skipped(now);
            let idle = upstream.pool.idle_count();
            gateway
                .observers
                .metrics
                .set_provider_state(&upstream.name, paused, idle);
            for (failure, count) in upstream.pool.take_proxy_failures() {
                gateway
                    .observers
                    .metrics
                    .record_proxy_failures(&upstream.name, failure.as_str(), count);
            }
            if lifecycle.phase() == Phase::Serving {
                upstream.keep_warm(now);
            }
        }
    }
}

/// Advances a drain through its phases when their timeouts expire.
async fn advance_drain(gateway: Rc<Gateway>, phase: watch::Sender<Phase>, mut lifecycle: Lifecycle) {
    lifecycle.wait_for(Phase::LameDuck).await;
    let timeouts = gateway.catalog().settings.timeouts;
    tokio::time::sleep(timeouts.lame_duck).await;
    phase.send_replace(Phase::Draining);
    tokio::time::sleep(timeouts.drain).await;
    phase.send_replace(Phase::Cancelled);
    std::future::pending().await
}
