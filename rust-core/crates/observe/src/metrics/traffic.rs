//! The traffic of each tenant, and the latency of each model.
//!
//! The data-plane thread owns the table ([`Traffic`]) and adds to its series. A request looks up
//! its series once, by name. Only the first request of a label set allocates memory. Once a second,
//! new series are published to the readers of metrics ([`PublishedSeries`]). Neither side ever
//! waits for the other.
//!
//! The number of tenant label sets is limited by the configuration. Requests beyond the limit count under the tenant
//! [`OTHER`], with their model and provider, so that sums over a model are complete.

mod exposition;
pub(super) mod report;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, TryLockError};

use proofgate_base::single_writer::{Counter, FINE_BUCKETS, Histogram};
use proofgate_ledger::record::{Outcome, Usage};
use proofgate_limits::MAX_TOKENS;

/// Label of all tenants without their own series. Tenant names contain no parentheses.
const OTHER: &str = "(other)";

/// The outcome of a request, for the label `outcome`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The whole response was relayed.
    Complete,
    /// The request was not admitted because of a limit, an invalid request, an unknown model, or
    /// lack of capacity.
    #[default]
    Refused,
    /// The policy denied the request or its response.
    Denied,
    /// The client disconnected.
    ClientDisconnect,
    /// The request was admitted, but the provider or the gateway failed.
    Failed,
}

impl RequestOutcome {
    pub const ALL: [Self; 5] = [
        Self::Complete,
        Self::Refused,
        Self::Denied,
        Self::ClientDisconnect,
        Self::Failed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Refused => "refused",
            Self::Denied => "denied",
            Self::ClientDisconnect => "client_disconnect",
            Self::Failed => "failed",
        }
    }
}

impl From<Outcome> for RequestOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete => Self::Complete,
            Outcome::PolicyBlocked => Self::Denied,
            Outcome::ClientDisconnect => Self::ClientDisconnect,
            Outcome::UpstreamError
            | Outcome::UpstreamTimeout
            | Outcome::LedgerStopped
            | Outcome::Drained
            | Outcome::InternalError => Self::Failed,
        }
    }
}

/// The series of one tenant, model and provider.
#[derive(Debug)]
pub struct Series {
    tenant: Box<str>,
    model: Box<str>,
    provider: Box<str>,
    requests: [Counter; RequestOutcome::ALL.len()],
    prompt_tokens: Counter,
    completion_tokens: Counter,
    /// Cost in nanodollars.
    cost: Counter,
    /// Latency of the model; `None` if the model is not known.
    latency: Option<Arc<Latency>>,
}

/// A counter of nanodollars that is exposed in dollars.
struct Dollars<'c>(&'c Counter);

/// The series of one model and provider.
#[derive(Debug)]
struct Latency {
    model: Box<str>,
    provider: Box<str>,
    /// Indexed by whether a stream was requested.
    kinds: [Durations; 2],
}

#[derive(Debug, Default)]
struct Durations {
    request: Histogram<FINE_BUCKETS>,
    first_byte: Histogram<FINE_BUCKETS>,
}

/// The duration of an exchange, or the time until its response started.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Whether a stream was requested.
    pub is_stream: bool,
    pub microseconds: u64,
}

impl Latency {
    fn kind(&self, stream: bool) -> &Durations {
        &self.kinds[usize::from(stream)]
    }
}

impl Series {
    /// Counts a request that was not admitted.
    pub fn record_rejection(&self, outcome: RequestOutcome) {
        self.requests[outcome as usize].add(1);
    }

    /// Counts an exchange that has ended, the usage that its provider reports, and its cost in nanodollars.
    pub fn record_finished(&self, outcome: Outcome, usage: Option<Usage>, cost: Option<u64>, took: Timing) {
        self.requests[RequestOutcome::from(outcome) as usize].add(1);
        if let Some(usage) = usage {
            self.prompt_tokens.add(usage.prompt_tokens.min(MAX_TOKENS));
            self.completion_tokens
                .add(usage.completion_tokens.min(MAX_TOKENS));
        }
        self.cost.add(cost.unwrap_or(0));
        if let Some(latency) = &self.latency {
            latency.kind(took.is_stream).request.observe(took.microseconds);
        }
    }

    /// Records the time until a provider's response started.
    pub fn record_first_byte(&self, took: Timing) {
        if let Some(latency) = &self.latency {
            latency.kind(took.is_stream).first_byte.observe(took.microseconds);
        }
    }
}

/// The data-plane thread's table of all series.
#[derive(Debug)]
pub struct Traffic {
    /// Maximum number of tenant label sets.
    max_tenant_series: Cell<usize>,
    table: RefCell<Table>,
    published: Arc<PublishedSeries>,
    /// Whether the table has changed since it was published.
    changed: Cell<bool>,
}

#[derive(Debug, Default)]
struct Table {
    tenants: HashMap<Box<str>, ByModel<Series>>,
    /// Number of series in `tenants`.
    count: usize,
    /// Series of requests beyond the maximum.
    overflow: ByModel<Series>,
    latencies: ByModel<Latency>,
}

/// A map from a model to its providers' values. Few models have had more than one provider.
type ByModel<T> = HashMap<Box<str>, Vec<Arc<T>>>;

/// The published series, which any thread can read.
#[derive(Debug, Default)]
pub struct PublishedSeries(Mutex<SeriesSnapshot>);

#[derive(Debug, Clone, Default)]
struct SeriesSnapshot {
    series: Vec<Arc<Series>>,
    latencies: Vec<Arc<Latency>>,
}

impl Traffic {
    /// Creates an empty table for at most `most` tenant label sets. The table is published in
    /// `shown`.
    pub fn new(most: usize, shown: Arc<PublishedSeries>) -> Self {
        Traffic {
            max_tenant_series: Cell::new(most),
            table: RefCell::default(),
            published: shown,
            changed: Cell::new(false),
        }
    }

    /// Returns the series of a tenant's request. `route` is the request's model and provider, once
    /// they are known. All names come from the configuration, never from a client.
    pub fn series(&self, tenant: &str, route: Option<(&str, &str)>) -> Arc<Series> {
        let (model, provider) = route.unwrap_or_default();
        let found = self
            .table
            .borrow()
            .find(self.max_tenant_series.get(), tenant, model, provider);
        found.unwrap_or_else(|| {
            self.changed.set(true);
            let table = &mut *self.table.borrow_mut();
            table.add(self.max_tenant_series.get(), tenant, model, provider)
        })
    }

    /// Applies another configuration: keeps the series whose names are still configured, and
    /// removes the others.
    pub fn reconfigure(
        &self,
        most: usize,
        has_tenant: impl Fn(&str) -> bool,
        has_model: impl Fn(&str, &str) -> bool,
    ) {
        let has_model = |model: &str, provider: &str| model.is_empty() || has_model(model, provider);
        let table = &mut *self.table.borrow_mut();
        table.tenants.retain(|tenant, models| {
            retain(models, |series| has_model(&series.model, &series.provider));
            has_tenant(tenant)
        });
        retain(&mut table.overflow, |series| {
            has_model(&series.model, &series.provider)
        });
        retain(&mut table.latencies, |latency| {
            has_model(&latency.model, &latency.provider)
        });
        let left = table.tenants.values().flat_map(HashMap::values);
        table.count = left.map(Vec::len).sum();
        self.max_tenant_series.set(most);
        self.changed.set(true);
    }

    /// Publishes new series. If a reader holds the lock, a later call publishes them.
    pub fn publish(&self) {
        if !self.changed.get() {
            return;
        }
        let mut shown = match self.published.0.try_lock() {
            Ok(shown) => shown,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        *shown = self.table.borrow().snapshot();
        self.changed.set(false);
    }
}

impl Table {
    /// Returns the series of this label set, if it exists.
    fn find(&self, most: usize, tenant: &str, model: &str, provider: &str) -> Option<Arc<Series>> {
        let in_models = |models: &ByModel<Series>| {
            let of_model = models.get(model)?;
            of_model
                .iter()
                .find(|series| *series.provider == *provider)
                .cloned()
        };
        match self.tenants.get(tenant).and_then(in_models) {
            None if self.count >= most => in_models(&self.overflow),
            found => found,
        }
    }

    fn add(&mut self, most: usize, tenant: &str, model: &str, provider: &str) -> Arc<Series> {
        let latency = (!model.is_empty()).then(|| self.latency(model, provider));
        let (tenant, models) = match self.count >= most {
            true => (OTHER, &mut self.overflow),
            false => {
                self.count += 1;
                (tenant, self.tenants.entry(tenant.into()).or_default())
            }
        };
        let series = Arc::new(Series {
            tenant: tenant.into(),
            model: model.into(),
            provider: provider.into(),
            requests: Default::default(),
            prompt_tokens: Counter::default(),
            completion_tokens: Counter::default(),
            cost: Counter::default(),
            latency,
        });
        models.entry(model.into()).or_default().push(Arc::clone(&series));
        series
    }

    fn latency(&mut self, model: &str, provider: &str) -> Arc<Latency> {
        let of_model = self.latencies.entry(model.into()).or_default();
        if let Some(latency) = of_model.iter().find(|latency| *latency.provider == *provider) {
            return Arc::clone(latency);
        }
        let latency = Arc::new(Latency {
            model: model.into(),
            provider: provider.into(),
            kinds: Default::default(),
        });
        of_model.push(Arc::clone(&latency));
        latency
    }

    fn snapshot(&self) -> SeriesSnapshot {
        let of_tenants = self.tenants.values().flat_map(HashMap::values);
        SeriesSnapshot {
            series: of_tenants
                .chain(self.overflow.values())
                .flatten()
                .cloned()
                .collect(),
            latencies: self.latencies.values().flatten().cloned().collect(),
        }
    }
}

fn retain<T>(models: &mut ByModel<T>, keep: impl Fn(&T) -> bool) {
    models.retain(|_, of_model| {
        of_model.retain(|one| keep(one));
        !of_model.is_empty()
    });
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
