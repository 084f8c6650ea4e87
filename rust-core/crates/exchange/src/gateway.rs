//! The state that the exchanges of a data-plane thread share: the active configuration, and one
//! component for each kind of work.
//!
//! A function that needs only one component takes that component, not the [`Gateway`].

pub mod buffers;
pub mod limit_state;
pub mod observers;
pub mod policy_state;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_auth::{ApiKeyHeaders, AuthError, Authenticator, Identity, Shards};
use proofgate_base::clock::{Clock, ClockStep};
use proofgate_base::memory::MemoryBudget;
use proofgate_base::random::Random;
use proofgate_base::rejection::Rejection;
use proofgate_base::request_id::RequestId;
use proofgate_ledger::record::ConfigDigests;
use proofgate_limits::Limiter;
use proofgate_observe::analysis::Tap;
use proofgate_observe::metrics::Metrics;
use proofgate_observe::payloads::PayloadQueue;
use proofgate_observe::recorder::Recorder;
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_observe::telemetry::TelemetrySender;
use proofgate_stages::Profiler;
use proofgate_upstream::catalog::{Catalog, CompiledConfig};

use self::buffers::ThreadBuffers;
use self::limit_state::LimitState;
use self::observers::Observers;
use self::policy_state::PolicyState;
use crate::limit_wait::TenantQueues;
use crate::receipts::ReceiptService;

/// The state that every connection of the data-plane thread shares.
pub struct Gateway {
    catalog: RefCell<Rc<Catalog>>,
    /// Tenants that are not in the catalog.
    shards: RefCell<Shards>,
    pub clock: Clock,
    pub random: Random,
    pub buffers: ThreadBuffers,
    pub limits: LimitState,
    pub policy: PolicyState,
    pub observers: Observers,
    /// The service that answers receipt requests from the evidence on the volume.
    pub receipts: ReceiptService,
}

/// A new configuration, applied as one change.
pub struct ConfigChange {
    /// The new catalog; `None` if only tenants have changed.
    pub compiled_config: Option<CompiledConfig>,
    /// The tenants that are not in the catalog. Unchanged shards are shared with the shards in
    /// service.
    pub shards: Shards,
    /// Digests of the configuration and the shards.
    pub digests: ConfigDigests,
}

/// The interfaces to threads for work that may be slow.
pub struct BackgroundServices {
    /// Telemetry.
    pub telemetry: TelemetrySender,
    /// Proofs for tenants.
    pub receipts: ReceiptService,
    /// Analysis of responses; `None` if responses are not analysed.
    pub tap: Option<Tap>,
    /// Storage of bodies; `None` if bodies are not stored.
    pub payloads: Option<PayloadQueue>,
}

impl Gateway {
    pub fn new(
        catalog: Catalog,
        shards: Shards,
        limiter: Limiter,
        recorder: Rc<Recorder>,
        metrics: Metrics,
        profiler: Arc<Profiler>,
        slow_paths: BackgroundServices,
    ) -> Self {
        let budget = Rc::new(MemoryBudget::new(
            catalog.settings.body_memory_bytes(),
            metrics.buffered_bytes.clone(),
        ));
        Gateway {
            clock: Clock::new(),
            random: Random::new(),
            limits: LimitState::new(
                limiter,
                TenantQueues::new(metrics.requests_waiting_for_limits.clone()),
            ),
            policy: PolicyState::new(&catalog, &budget),
            buffers: ThreadBuffers::new(budget),
            receipts: slow_paths.receipts,
            observers: Observers {
                traffic: metrics.traffic(catalog.settings.max_label_sets),
                recorder,
                metrics,
                telemetry: slow_paths.telemetry,
                tap: slow_paths.tap,
                payloads: slow_paths.payloads,
                profiler,
            },
            catalog: RefCell::new(Rc::new(catalog)),
            shards: RefCell::new(shards),
        }
    }

    /// Returns the active configuration. A request gets it once and uses it to its end.
    pub fn catalog(&self) -> Rc<Catalog> {
        Rc::clone(&self.catalog.borrow())
    }

    /// Authenticates the sender of a request; see [`Authenticator::authenticate`].
    pub fn authenticate(
        &self,
        authenticator: &Authenticator,
        keys: &ApiKeyHeaders<'_>,
        now_unix_seconds: u64,
    ) -> Result<Identity, AuthError> {
        authenticator.authenticate(&self.shards.borrow(), keys, now_unix_seconds)
    }

    /// Applies a change to later requests, but not to requests in flight. Returns the replaced
    /// shards, so that another thread can free them.
    pub fn apply(&self, change: ConfigChange) -> Shards {
        self.observers.recorder.set_config(change.digests);
        let shards = self.shards.replace(change.shards);
        match change.compiled_config {
            Some(blueprint) => {
                let before = self.catalog();
                self.replace_catalog(Catalog::new(blueprint, Some(&before), &before.sockets));
            }
            None => {
                let after = self.shards.borrow();
                self.limits.apply_changed_shards(&self.catalog(), &shards, &after);
            }
        }
        self.observers
            .apply_catalog(&self.catalog(), &self.limits.limiter.borrow());
        shards
    }

    fn replace_catalog(&self, catalog: Catalog) {
        self.limits.apply_all(&catalog, &self.shards.borrow());
        self.buffers
            .budget
            .set_limit(catalog.settings.body_memory_bytes());
        self.policy
            .apply_catalog(&self.catalog(), &catalog, &self.observers.metrics);
        *self.catalog.borrow_mut() = Rc::new(catalog);
    }

    /// Logs, counts and records a step of the system clock, and adjusts the limits to it.
    pub fn apply_clock_step(&self, step: ClockStep) {
        proofgate_log::warning!("{step}");
        self.observers.metrics.record_clock_step(step.is_backward());
        self.observers.recorder.record_clock_step(step);
        self.limits.apply_clock_step(step);
    }

    /// Returns a new id for an exchange or a rejection at `now` (Unix microseconds).
    pub fn request_id(&self, now: u64) -> RequestId {
        self.random.with_rng(|random| RequestId::new(now, random))
    }

    /// Records a rejection and waits until the record is written; returns the id for the response.
    ///
    /// A rejection is sent even if the ledger cannot store its record. It is then counted, and the count is recorded
    /// as soon as the ledger has capacity.
    pub async fn reject(&self, rejection: &Rejection, mut refused: RejectedRequest<'_>) -> RequestId {
        let now = self.clock.limit_time(Instant::now());
        let id = self.request_id(now);
        if !self.catalog().settings.personal_data.client_address {
            refused.client_address = None;
        }
        self.observers.record_rejection(now, id, rejection, refused).await;
        id
    }
}
