use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::buckets;
use crate::histogram::Histogram;
use crate::profiler::Profiler;
use crate::stage::{Interval, Stage};

/// Exposes `stage_seconds{stage="…"}`, to which the registry adds its prefix. There are no series
/// before profiling is on for the first time, and afterwards there are all series.
impl Collector for Profiler {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if !self.was_enabled() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(
            "stage",
            "Time of each stage of an exchange, and of work that crosses threads.",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        let stages = Stage::ALL.map(Stage::as_str).into_iter().zip(&self.stages);
        let sums = [("unaccounted", &self.unaccounted), ("total", &self.total)];
        let intervals = Interval::ALL
            .map(Interval::as_str)
            .into_iter()
            .zip(&self.intervals);
        for (name, histogram) in stages.chain(sums).chain(intervals) {
            histogram.encode(family.encode_family(&[("stage", name)])?)?;
        }
        Ok(())
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let snapshot = self.snapshot();
        let mut bounded = [(f64::INFINITY, 0); buckets::COUNT];
        for (index, (bound, count)) in bounded.iter_mut().enumerate() {
            *count = snapshot.counts[index];
            if let Some(microseconds) = buckets::bound_microseconds(index) {
                *bound = microseconds as f64 / 1e6;
            }
        }
        let seconds = snapshot.sum_nanoseconds as f64 / 1e9;
        let count = snapshot.counts.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(seconds, count, &bounded, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
