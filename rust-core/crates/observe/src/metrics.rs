mod admission_times;
mod analysis;
mod payloads;
mod scan_cache;
mod signal;
mod traffic;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use proofgate_base::descriptors::DescriptorShares;
use proofgate_external_policies::ActivePolicyMetrics;
use proofgate_ledger::record::{GuardVerdict, Outcome};
use proofgate_policy::{Direction, Judgement, Scope};
use proofgate_stages::Profiler;

use admission_times::AdmissionTimes;
pub use analysis::{AnalysisLoss, AnalysisMetrics};
pub use payloads::PayloadMetrics;
use scan_cache::ScanCacheMetrics;
pub use signal::Signal;
use traffic::PublishedSeries;
pub use traffic::report::TrafficReport;
pub use traffic::{RequestOutcome, Series, Timing, Traffic};

/// The metrics of one worker. Fixed series are resolved once at start, so counting is one atomic addition.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    outcomes: Vec<(Outcome, Counter<u64, AtomicU64>)>,
    rejections: Family<RejectionLabel, Counter>,
    pub in_flight: Gauge,
    pub connections: Gauge,
    pub buffered_bytes: Gauge,
    pub request_bytes: Counter,
    pub response_bytes: Counter,
    connections_accepted: Counter,
    connection_panics: Counter,
    accept_failures: Counter,
    provider_connections: Gauge,
    descriptors: Family<UsageLabel, Gauge>,
    pub ledger_refusals: Counter,
    pub gap_refusals: Counter,
    clock_lead: Gauge,
    /// Steps backward and steps forward.
    clock_steps: [Counter; 2],
    policy_blocks: Counter,
    policy_faults: Counter,
    /// Indexed by [`Scope`].
    policy_flags: [Counter; Scope::ALL.len()],
    /// Indexed by [`GuardVerdict`].
    guarded_calls: [Counter; 4],
    limit_refusals: Counter,
    pub requests_waiting_for_limits: Gauge,
    records_written: Counter,
    records_durable: Counter,
    records_checkpointed: Counter,
    pub records_lost: Gauge,
    /// Time of signing the newest checkpoint, in Unix seconds.
    pub checkpoint_timestamp: Gauge,
    pub checkpoint_interval: Gauge<f64, AtomicU64>,
    pub predecessor_missing: Gauge,
    pub ready: Gauge,
    provider_failures: Family<ProviderFailure, Counter>,
    provider_refusals: Family<ProviderRefusal, Counter>,
    proxy_failures: Family<ProviderFailure, Counter>,
    providers_paused: Family<ProviderLabel, Gauge>,
    idle_connections: Family<ProviderLabel, Gauge>,
    traffic: Arc<PublishedSeries>,
    pub admission_times: Arc<AdmissionTimes>,
    pub analysis: AnalysisMetrics,
    pub payloads: PayloadMetrics,
    pub scan_cache: ScanCacheMetrics,
    /// Indexed by [`Signal`].
    telemetry_dropped: [Counter; Signal::ALL.len()],
    pub(crate) shard_tenants: Gauge,
    pub(crate) shard_keys: Gauge,
    pub(crate) shard_keys_well_known: Gauge,
    pub(crate) shards_refused: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScopeLabel {
    scope: &'static str,
    direction: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabel {
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabel {
    direction: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UsageLabel {
    r#use: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectionLabel {
    status: u16,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SignalLabel {
    signal: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderFailure {
    provider: String,
    failure: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderRefusal {
    provider: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabel {
    provider: String,
}

impl ScopeLabel {
    fn from_scope(scope: Scope) -> Self {
        ScopeLabel {
            scope: scope.as_str(),
            direction: match scope.direction() {
                Direction::Request => "request",
                Direction::Response => "response",
            },
        }
    }
}

impl Metrics {
    pub fn new(profiler: &Arc<Profiler>, hooks: &ActivePolicyMetrics) -> Self {
        let mut registry = Registry::with_prefix("proofgate");
        let outcome_family = Family::<OutcomeLabel, Counter>::default();
        let outcome = |outcome: Outcome| {
            (
                outcome,
                outcome_family.get_or_create_owned(&OutcomeLabel {
                    outcome: outcome.as_str(),
                }),
            )
        };
        let steps_family = Family::<DirectionLabel, Counter>::default();
        let flags_family = Family::<ScopeLabel, Counter>::default();
        let guarded_family = Family::<VerdictLabel, Counter>::default();
        let dropped_family = Family::<SignalLabel, Counter>::default();
        let dropped = |signal: Signal| {
            dropped_family.get_or_create_owned(&SignalLabel {
                signal: signal.as_str(),
            })
        };
        let metrics = Metrics {
            outcomes: Outcome::ALL.map(outcome).into(),
            rejections: Family::default(),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            buffered_bytes: Gauge::default(),
            request_bytes: Counter::default(),
            response_bytes: Counter::default(),
            connections_accepted: Counter::default(),
            connection_panics: Counter::default(),
            accept_failures: Counter::default(),
            provider_connections: Gauge::default(),
            descriptors: Family::default(),
            ledger_refusals: Counter::default(),
            gap_refusals: Counter::default(),
            clock_lead: Gauge::default(),
            clock_steps: ["back", "ahead"]
                .map(|direction| steps_family.get_or_create_owned(&DirectionLabel { direction })),
            policy_blocks: Counter::default(),
            policy_faults: Counter::default(),
            policy_flags: Scope::ALL
                .map(|scope| flags_family.get_or_create_owned(&ScopeLabel::from_scope(scope))),
            guarded_calls: ["refused", "approval_required", "approved", "observed"]
                .map(|verdict| guarded_family.get_or_create_owned(&VerdictLabel { verdict })),
            limit_refusals: Counter::default(),
            requests_waiting_for_limits: Gauge::default(),
            records_written: Counter::default(),
            records_durable: Counter::default(),
            records_checkpointed: Counter::default(),
            records_lost: Gauge::default(),
            checkpoint_timestamp: Gauge::default(),
            checkpoint_interval: Gauge::default(),
            predecessor_missing: Gauge::default(),
            ready: Gauge::default(),
            provider_failures: Family::default(),
            provider_refusals: Family::default(),
            proxy_failures: Family::default(),
            providers_paused: Family::default(),
            idle_connections: Family::default(),
            traffic: Arc::default(),
            admission_times: Arc::default(),
            analysis: AnalysisMetrics::new(&mut registry),
            payloads: PayloadMetrics::new(&mut registry),
            scan_cache: ScanCacheMetrics::new(&mut registry),
            telemetry_dropped: Signal::ALL.map(dropped),
            shard_tenants: Gauge::default(),
            shard_keys: Gauge::default(),
            shard_keys_well_known: Gauge::default(),
            shards_refused: Gauge::default(),
            registry: Arc::default(),
        };
        let m = &metrics;
        registry.register(
            "exchanges",
            "Exchanges that were admitted and have ended, by outcome",
            outcome_family,
        );
        registry.register(
            "rejections",
            "Requests that were refused, by HTTP status and machine code",
            m.rejections.clone(),
        );
        registry.register(
            "exchanges_in_flight",
            "Admitted exchanges that have not ended",
            m.in_flight.clone(),
        );
        registry.register(
            "tenant_shards_tenants",
            "Tenants in tenant shards",
            m.shard_tenants.clone(),
        );
        registry.register(
            "tenant_shards_keys",
            "API keys in tenant shards",
            m.shard_keys.clone(),
        );
        registry.register(
            "tenant_shards_keys_well_known",
            "API keys in tenant shards that are not accepted because everybody can guess them",
            m.shard_keys_well_known.clone(),
        );
        registry.register(
            "tenant_shards_refused",
            "Tenant shards with a refused newest file: the previous content of these shards stays in force",
            m.shards_refused.clone(),
        );
        registry.register("connections", "Open client connections", m.connections.clone());
        registry.register(
            "buffered_bytes",
            "Bytes of limits.bufferedBytes that bodies and held answers use",
            m.buffered_bytes.clone(),
        );
        registry.register(
            "connections_accepted",
            "Client connections accepted",
            m.connections_accepted.clone(),
        );
        registry.register(
            "connection_panics",
            "Connections that ended with a panic; no other connection is affected",
            m.connection_panics.clone(),
        );
        registry.register(
            "accept_failures",
            "Client connections that the system could not accept, mostly for lack of file descriptors",
            m.accept_failures.clone(),
        );
        registry.register(
            "provider_connections",
            "Connections to providers, in use or idle",
            m.provider_connections.clone(),
        );
        registry.register(
            "descriptors",
            "File descriptors of the process: the limit, the reserve, and the number that connections may use",
            m.descriptors.clone(),
        );
        registry.register(
            "request_body_bytes",
            "Body bytes of admitted requests",
            m.request_bytes.clone(),
        );
        registry.register(
            "response_body_bytes",
            "Body bytes of relayed responses",
            m.response_bytes.clone(),
        );
        registry.register(
            "ledger_refusals",
            "Requests refused because the ledger could not record them",
            m.ledger_refusals.clone(),
        );
        registry.register(
            "ledger_gap_refusals",
            "Refusals recorded as a count in a gap record instead of one by one",
            m.gap_refusals.clone(),
        );
        registry.register(
            "clock_lead_seconds",
            "How far the time of records and limits is ahead of the system's clock after that clock was set back",
            m.clock_lead.clone(),
        );
        registry.register(
            "clock_steps",
            "Jumps of the system's clock by a second or more while the worker ran",
            steps_family,
        );
        registry.register(
            "policy_blocks",
            "Requests and responses that the policy denied",
            m.policy_blocks.clone(),
        );
        registry.register(
            "policy_faults",
            "Requests and responses that the policy could not evaluate: a rule failed or the budget was exceeded",
            m.policy_faults.clone(),
        );
        registry.register(
            "policy_flags",
            "Requests and responses with messages that the policy flags because of their score, counted once for each kind of message",
            flags_family,
        );
        registry.register(
            "guarded_tool_calls",
            "Answers that call a guarded tool after a flagged tool text, by verdict",
            guarded_family,
        );
        registry.register(
            "requests_waiting_for_limits",
            "Requests that wait for reservations of other requests of their tenant to end",
            m.requests_waiting_for_limits.clone(),
        );
        registry.register(
            "limit_refusals",
            "Requests that a limit refused",
            m.limit_refusals.clone(),
        );
        registry.register(
            "ledger_records_written",
            "Records written in this incarnation",
            m.records_written.clone(),
        );
        registry.register(
            "ledger_records_durable",
            "Records synced in this incarnation",
            m.records_durable.clone(),
        );
        registry.register(
            "ledger_records_checkpointed",
            "Records of this incarnation that a signed checkpoint covers",
            m.records_checkpointed.clone(),
        );
        registry.register(
            "ledger_records_lost",
            "Records of the predecessor that were missing when this worker started",
            m.records_lost.clone(),
        );
        registry.register_with_unit(
            "ledger_checkpoint_timestamp",
            "Time at which the newest checkpoint was signed",
            Unit::Seconds,
            m.checkpoint_timestamp.clone(),
        );
        registry.register_with_unit(
            "ledger_checkpoint_interval",
            "Time between two checkpoints while records are written",
            Unit::Seconds,
            m.checkpoint_interval.clone(),
        );
        registry.register(
            "ledger_predecessor_missing",
            "Whether the log that this worker continued at its start had a missing predecessor",
            m.predecessor_missing.clone(),
        );
        registry.register(
            "provider_failures",
            "Attempts at a provider without an answer, with a partial answer, or with an answer that was not used, by failure",
            m.provider_failures.clone(),
        );
        registry.register(
            "provider_refusals",
            "Answers in which a provider refused the gateway's key or a model, by HTTP status; the log has their text",
            m.provider_refusals.clone(),
        );
        registry.register(
            "egress_proxy_failures",
            "Connections to a provider that failed at the egress proxy, by failure",
            m.proxy_failures.clone(),
        );
        registry.register(
            "provider_paused",
            "Whether the gateway skips a provider, or one of its models, because the provider failed or asked for a \
             pause; models without another target still use the provider",
            m.providers_paused.clone(),
        );
        registry.register(
            "provider_idle_connections",
            "Idle connections to a provider",
            m.idle_connections.clone(),
        );
        registry.register(
            "telemetry_dropped",
            "Access-log lines, traces of exchanges, and exports of metrics that were lost",
            dropped_family,
        );
        registry.register(
            "ready",
            "Whether the worker is ready for traffic",
            m.ready.clone(),
        );
        registry.register_collector(Box::new(Arc::clone(&m.traffic)));
        registry.register_collector(Box::new(Arc::clone(&m.admission_times)));
        registry.register_collector(Box::new(hooks.clone()));
        registry.register_collector(Box::new(Arc::clone(profiler)));
        Metrics {
            registry: Arc::new(registry),
            ..metrics
        }
    }

    /// Returns the data-plane thread's table of traffic series, with capacity for `most` label sets.
    pub fn traffic(&self, most: usize) -> Traffic {
        Traffic::new(most, Arc::clone(&self.traffic))
    }

    /// Returns the traffic of tenants and models, about a second late.
    pub fn report(&self) -> TrafficReport {
        self.traffic.report()
    }

    /// Encodes the metrics in Prometheus' text format.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }

    /// Counts a failed attempt at a provider.
    pub fn record_provider_failure(&self, provider: &str, failure: &'static str) {
        let labels = ProviderFailure {
            provider: provider.to_owned(),
            failure,
        };
        self.provider_failures.get_or_create(&labels).inc();
    }

    /// Counts a provider's refusal of the gateway's key, or of a model for this key.
    pub fn record_provider_refusal(&self, provider: &str, status: u16) {
        let labels = ProviderRefusal {
            provider: provider.to_owned(),
            status,
        };
        self.provider_refusals.get_or_create(&labels).inc();
    }

    /// Counts connections to a provider that the egress proxy did not make.
    pub fn record_proxy_failures(&self, provider: &str, failure: &'static str, count: u64) {
        let labels = ProviderFailure {
            provider: provider.to_owned(),
            failure,
        };
        self.proxy_failures.get_or_create(&labels).inc_by(count);
    }

    /// Sets whether a provider is skipped, and the number of its idle connections.
    pub fn set_provider_state(&self, provider: &str, paused: bool, idle: usize) {
        let labels = ProviderLabel {
            provider: provider.to_owned(),
        };
        self.providers_paused.get_or_create(&labels).set(paused.into());
        let idle = i64::try_from(idle).unwrap_or(i64::MAX);
        self.idle_connections.get_or_create(&labels).set(idle);
    }

    /// Counts lost telemetry.
    pub fn record_lost_telemetry(&self, signal: Signal, count: u64) {
        self.telemetry_dropped[signal as usize].inc_by(count);
    }

    pub fn record_policy_block(&self) {
        self.policy_blocks.inc();
    }

    /// Counts a request or a response once for each scope of its flagged messages.
    pub fn record_policy_flags(&self, judgement: &Judgement) {
        for scope in judgement.flagged_scopes() {
            self.policy_flags[scope as usize].inc();
        }
    }

    /// Counts a response that calls a guarded tool.
    pub fn record_guarded_call(&self, verdict: GuardVerdict) {
        self.guarded_calls[verdict as usize].inc();
    }

    /// Counts a request or response that the policy could not evaluate.
    pub fn record_policy_fault(&self) {
        self.policy_faults.inc();
    }

    pub fn record_limit_refusal(&self) {
        self.limit_refusals.inc();
    }

    pub fn record_outcome(&self, outcome: Outcome) {
        if let Some((_, counter)) = self.outcomes.iter().find(|(known, _)| *known == outcome) {
            counter.inc();
        }
    }

    /// Counts a refused request. Codes are constants in the source, so there are few series.
    pub fn record_rejection(&self, status: u16, code: &'static str) {
        let labels = RejectionLabel { status, code };
        self.rejections.get_or_create(&labels).inc();
    }

    /// Sets the numbers of records of this incarnation that are written, synced, and covered by a
    /// signed checkpoint. The numbers only grow.
    pub fn set_record_counts(&self, written: u64, durable: u64, checkpointed: u64) {
        self.records_written.inner().store(written, Ordering::Relaxed);
        self.records_durable.inner().store(durable, Ordering::Relaxed);
        self.records_checkpointed
            .inner()
            .store(checkpointed, Ordering::Relaxed);
    }

    /// Sets the clock lead: the number of microseconds by which the time of records and limits is
    /// ahead of the system's clock.
    pub fn set_clock_lead(&self, micros: u64) {
        let seconds = micros.div_ceil(1_000_000);
        self.clock_lead.set(i64::try_from(seconds).unwrap_or(i64::MAX));
    }

    /// Counts a step of the system's clock.
    pub fn record_clock_step(&self, is_back: bool) {
        let [back, ahead] = &self.clock_steps;
        if is_back { back } else { ahead }.inc();
    }

    /// Counts a client connection that could not be accepted.
    pub fn record_accept_failure(&self) {
        self.accept_failures.inc();
    }

    /// Sets the number of connections to providers.
    pub fn set_open_sockets(&self, count: usize) {
        self.provider_connections
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the division of the process's file descriptors.
    pub fn set_descriptor_shares(&self, shares: &DescriptorShares) {
        let all = [
            ("limit", shares.limit),
            ("reserved", Some(shares.reserved)),
            ("clients", Some(shares.clients as u64)),
            ("providers", Some(shares.providers as u64)),
        ];
        for (r#use, count) in all {
            let Some(count) = count else { continue };
            let gauge = self.descriptors.get_or_create_owned(&UsageLabel { r#use });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub fn record_connection_opened(&self) {
        self.connections_accepted.inc();
        self.connections.inc();
    }

    /// Counts the end of a client connection, and whether its task panicked.
    pub fn record_connection_closed(&self, panicked: bool) {
        self.connections.dec();
        if panicked {
            self.connection_panics.inc();
        }
    }
}
