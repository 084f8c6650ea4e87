use std::fmt;
use std::sync::PoisonError;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use proofgate_prices::NANODOLLARS_PER_DOLLAR;

use super::{Dollars, Durations, Latency, PublishedSeries, RequestOutcome, Series, SeriesSnapshot};

/// Exposes the series. The registry adds its prefix to their names.
impl Collector for PublishedSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let SeriesSnapshot { series, latencies } = self.snapshot();
        let mut requests = encoder.encode_descriptor(
            "requests",
            "Requests of known tenants, by outcome; without a model if the model was not known",
            None,
            MetricType::Counter,
        )?;
        for one in &series {
            let [tenant, model, provider] = one.labels();
            for outcome in RequestOutcome::ALL {
                let labels = [tenant, model, provider, ("outcome", outcome.as_str())];
                let count = &one.requests[outcome as usize];
                count.encode(requests.encode_family(&labels)?)?;
            }
        }
        let with_model = || series.iter().filter(|series| series.latency.is_some());
        let mut prompt = encoder.encode_descriptor(
            "prompt_tokens",
            "Tokens of prompts, as providers counted them",
            None,
            MetricType::Counter,
        )?;
        for one in with_model() {
            one.prompt_tokens.encode(prompt.encode_family(&one.labels())?)?;
        }
        let mut completion = encoder.encode_descriptor(
            "completion_tokens",
            "Tokens of answers, as providers counted them",
            None,
            MetricType::Counter,
        )?;
        for one in with_model() {
            one.completion_tokens
                .encode(completion.encode_family(&one.labels())?)?;
        }
        let dollars = Unit::Other("dollars".into());
        let mut cost = encoder.encode_descriptor(
            "cost",
            "Cost of exchanges at the configured prices, if their usage and a price are known",
            Some(&dollars),
            MetricType::Counter,
        )?;
        for one in with_model() {
            Dollars(&one.cost).encode(cost.encode_family(&one.labels())?)?;
        }
        let mut durations = encoder.encode_descriptor(
            "request_duration",
            "Time from a request's head to the end of its answer for every admitted exchange",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (labels, kind) in latencies.iter().flat_map(|latency| latency.by_kind()) {
            kind.request.encode(durations.encode_family(&labels)?)?;
        }
        let mut first_bytes = encoder.encode_descriptor(
            "time_to_first_byte",
            "Time from a request's head to the first byte of its provider's answer that may go to the client",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (labels, kind) in latencies.iter().flat_map(|latency| latency.by_kind()) {
            kind.first_byte.encode(first_bytes.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl PublishedSeries {
    /// Returns a copy, because encoding takes long and must not block publishing.
    pub(super) fn snapshot(&self) -> SeriesSnapshot {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Series {
    fn labels(&self) -> [(&'static str, &str); 3] {
        [
            ("tenant", &self.tenant),
            ("model", &self.model),
            ("provider", &self.provider),
        ]
    }
}

impl Latency {
    fn by_kind(&self) -> [([(&'static str, &str); 3], &Durations); 2] {
        [(false, "false"), (true, "true")].map(|(stream, label)| {
            let labels = [
                ("model", &*self.model),
                ("provider", &*self.provider),
                ("stream", label),
            ];
            (labels, self.kind(stream))
        })
    }
}

impl EncodeMetric for Dollars<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        // Costs are counted as integers. Only the exposed value is a floating-point number, as in
        // Prometheus.
        let dollars = self.0.get() as f64 / NANODOLLARS_PER_DOLLAR as f64;
        encoder.encode_counter::<NoLabelSet, _, u64>(&dollars, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
