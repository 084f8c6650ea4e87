//! The time that the gateway adds to a request before a provider is called.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use proofgate_base::single_writer::{FINE_BUCKETS, Histogram};

/// A histogram of the time from the end of a request's body to its written admission. Only the
/// data-plane thread adds values.
#[derive(Debug, Default)]
pub struct AdmissionTimes(Histogram<FINE_BUCKETS>);

impl AdmissionTimes {
    /// Records the duration of a request's admission.
    pub fn record(&self, microseconds: u64) {
        self.0.observe(microseconds);
    }
}

/// Exposes the histogram. The registry adds its prefix to the name.
impl Collector for AdmissionTimes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let admission = encoder.encode_descriptor(
            "admission_duration",
            "Time from the end of a request's body until its admission record is written, including checks of limits, waits for limits, rules, policies and the write of the record",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        self.0.encode(admission)
    }
}
