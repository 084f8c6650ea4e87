//! The series as a document, for exporters that do not scrape Prometheus' text.

use serde::Serialize;

use proofgate_base::single_writer::{FINE_BUCKETS, Histogram};

use super::{Latency, PublishedSeries, RequestOutcome, Series, SeriesSnapshot};

/// A report of all series.
#[derive(Serialize)]
pub struct TrafficReport {
    tenants: Vec<TenantTraffic>,
    models: Vec<ModelTraffic>,
}

#[derive(Serialize)]
struct TenantTraffic {
    tenant: String,
    /// Name of the model. Model and provider are empty if they were not known.
    model: String,
    provider: String,
    /// Number of requests by outcome.
    requests: Vec<(&'static str, u64)>,
    prompt_tokens: u64,
    completion_tokens: u64,
    cost_nanodollars: u64,
}

#[derive(Serialize)]
struct ModelTraffic {
    model: String,
    provider: String,
    exchange: Durations,
    first_byte: Durations,
}

#[derive(Serialize)]
struct Durations {
    /// Upper bounds of the buckets in seconds. There is one more count than bounds.
    bounds: Vec<f64>,
    counts: Vec<u64>,
    sum_seconds: f64,
}

impl PublishedSeries {
    /// Returns the current values of all series.
    pub fn report(&self) -> TrafficReport {
        let SeriesSnapshot { series, latencies } = self.snapshot();
        TrafficReport {
            tenants: series.iter().map(|series| tenant_traffic(series)).collect(),
            models: latencies.iter().map(|latency| model_traffic(latency)).collect(),
        }
    }
}

fn tenant_traffic(series: &Series) -> TenantTraffic {
    let requests =
        RequestOutcome::ALL.map(|outcome| (outcome.as_str(), series.requests[outcome as usize].get()));
    TenantTraffic {
        tenant: series.tenant.to_string(),
        model: series.model.to_string(),
        provider: series.provider.to_string(),
        requests: requests.into(),
        prompt_tokens: series.prompt_tokens.get(),
        completion_tokens: series.completion_tokens.get(),
        cost_nanodollars: series.cost.get(),
    }
}

fn model_traffic(latency: &Latency) -> ModelTraffic {
    ModelTraffic {
        model: latency.model.to_string(),
        provider: latency.provider.to_string(),
        exchange: durations(latency.kinds.each_ref().map(|kind| &kind.request)),
        first_byte: durations(latency.kinds.each_ref().map(|kind| &kind.first_byte)),
    }
}

/// Combines streams and other responses, in the buckets that OpenTelemetry's conventions for
/// generative AI recommend. Buckets below the first bound are merged.
fn durations(kinds: [&Histogram<FINE_BUCKETS>; 2]) -> Durations {
    const FIRST_BOUND: f64 = 0.01;
    let found = kinds.map(Histogram::snapshot);
    let mut bounds = Vec::new();
    let mut counts = Vec::new();
    let mut below = 0;
    for (plain, stream) in found[0].buckets.iter().zip(&found[1].buckets) {
        let count = below + plain.1 + stream.1;
        if plain.0 < FIRST_BOUND {
            below = count;
            continue;
        }
        below = 0;
        counts.push(count);
        if plain.0.is_finite() {
            bounds.push(plain.0);
        }
    }
    Durations {
        bounds,
        counts,
        sum_seconds: found.iter().map(|kind| kind.sum_seconds).sum(),
    }
}
