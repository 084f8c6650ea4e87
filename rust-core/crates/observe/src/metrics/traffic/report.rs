//! The series as a document, for exporters that are no scrapers of Prometheus' text.

use serde::Serialize;

use super::{Histogram, Latency, Listed, PublishedSeries, RequestOutcome, Series};

/// All series.
#[derive(Serialize)]
pub struct Report {
    tenants: Vec<OfTenant>,
    models: Vec<OfModel>,
}

#[derive(Serialize)]
struct OfTenant {
    tenant: String,
    /// Empty, as the provider, where it was not known.
    model: String,
    provider: String,
    /// By how they ended.
    requests: Vec<(&'static str, u64)>,
    prompt_tokens: u64,
    completion_tokens: u64,
    cost_nanodollars: u64,
}

#[derive(Serialize)]
struct OfModel {
    model: String,
    provider: String,
    exchange: Durations,
    first_byte: Durations,
}

#[derive(Serialize)]
struct Durations {
    /// Upper bounds in seconds; there is one more count than bounds.
    bounds: Vec<f64>,
    counts: Vec<u64>,
    sum_seconds: f64,
}

impl PublishedSeries {
    /// All series as they are now.
    pub fn report(&self) -> Report {
        let Listed { series, latencies } = self.list();
        Report {
            tenants: series.iter().map(|series| of_tenant(series)).collect(),
            models: latencies.iter().map(|latency| of_model(latency)).collect(),
        }
    }
}

fn of_tenant(series: &Series) -> OfTenant {
    let requests =
        RequestOutcome::ALL.map(|outcome| (outcome.as_str(), series.requests[outcome as usize].get()));
    OfTenant {
        tenant: series.tenant.to_string(),
        model: series.model.to_string(),
        provider: series.provider.to_string(),
        requests: requests.into(),
        prompt_tokens: series.prompt_tokens.get(),
        completion_tokens: series.completion_tokens.get(),
        cost_nanodollars: series.cost.get(),
    }
}

fn of_model(latency: &Latency) -> OfModel {
    OfModel {
        model: latency.model.to_string(),
        provider: latency.provider.to_string(),
        exchange: durations(&latency.exchange),
        first_byte: durations(&latency.first_byte),
    }
}

fn durations(histogram: &Histogram) -> Durations {
    let found = histogram.get();
    let bounds = found.buckets.iter().map(|(bound, _)| *bound);
    Durations {
        bounds: bounds.filter(|bound| bound.is_finite()).collect(),
        counts: found.buckets.iter().map(|(_, count)| *count).collect(),
        sum_seconds: found.sum_seconds,
    }
}
