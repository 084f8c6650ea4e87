//! How long exchanges take, of the worker as a whole: few series, and buckets fine enough for the gateway's own share.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use proofgate_base::single_writer::{FINE, Histogram};

use super::RequestOutcome;

/// Histograms to which the data-plane thread alone adds.
#[derive(Debug, Default)]
pub struct Latencies {
    /// By whether the answer was to be a stream.
    kinds: [Kind; 2],
}

#[derive(Debug, Default)]
struct Kind {
    /// By how the exchange ended.
    durations: [Histogram<FINE>; RequestOutcome::ALL.len()],
    first_bytes: Histogram<FINE>,
}

impl Latencies {
    /// Notes how long a provider's answer took to begin.
    pub fn began(&self, stream: bool, microseconds: u64) {
        self.kinds[usize::from(stream)].first_bytes.observe(microseconds);
    }

    /// Notes how long an exchange took.
    pub fn ended(&self, stream: bool, outcome: RequestOutcome, microseconds: u64) {
        self.kinds[usize::from(stream)].durations[outcome as usize].observe(microseconds);
    }

    fn kinds(&self) -> impl Iterator<Item = (&'static str, &Kind)> {
        ["false", "true"].into_iter().zip(&self.kinds)
    }
}

/// Exposes them; the registry adds its prefix to their names.
impl Collector for Latencies {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut durations = encoder.encode_descriptor(
            "request_duration",
            "Time from a request's head to the end of its answer for every admitted exchange, by streaming and outcome",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (stream, kind) in self.kinds() {
            for outcome in RequestOutcome::ALL {
                // An exchange that was admitted is not refused.
                if outcome != RequestOutcome::Refused {
                    let labels = [("stream", stream), ("outcome", outcome.as_str())];
                    kind.durations[outcome as usize].encode(durations.encode_family(&labels)?)?;
                }
            }
        }
        let mut first_bytes = encoder.encode_descriptor(
            "time_to_first_byte",
            "Time from a request's head to the first byte of its provider's answer that may go to the client, by \
             streaming",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for (stream, kind) in self.kinds() {
            kind.first_bytes
                .encode(first_bytes.encode_family(&[("stream", stream)])?)?;
        }
        Ok(())
    }
}
