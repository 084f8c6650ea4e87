//! Metrics of the cache of scanned texts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use proofgate_inspect::{ScanCache, ScanCacheCounts};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// The metrics of the cache.
#[derive(Clone)]
pub struct ScanCacheMetrics {
    /// Hits and misses.
    runs: [Counter; 2],
    text_bytes: [Counter; 2],
    memory_bytes: Gauge,
    evictions: Counter,
}

impl ScanCacheMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let families = [(); 2].map(|()| Family::<ResultLabel, Counter>::default());
        let [runs, text_bytes] = [0, 1].map(|family: usize| {
            ["hit", "miss"].map(|result| families[family].get_or_create_owned(&ResultLabel { result }))
        });
        let metrics = ScanCacheMetrics {
            runs,
            text_bytes,
            memory_bytes: Gauge::default(),
            evictions: Counter::default(),
        };
        let [runs, text_bytes] = families;
        registry.register(
            "prefix_verdicts",
            "Lookups of messages, or of runs of messages, among the messages already scanned, by result",
            runs,
        );
        registry.register(
            "prefix_verdict_text_bytes",
            "Bytes of text in lookups of scanned messages, by result; the text of a hit is not scanned again",
            text_bytes,
        );
        registry.register(
            "prefix_verdict_memory_bytes",
            "Bytes of limits.bufferedBytes that the findings in scanned messages use",
            metrics.memory_bytes.clone(),
        );
        registry.register(
            "prefix_verdict_evictions",
            "Scanned messages that were evicted for newer ones",
            metrics.evictions.clone(),
        );
        metrics
    }

    /// Counts the hits and misses of requests since the last call.
    pub fn count(&self, known: &mut ScanCache) {
        let counts = known.take_counts();
        if counts == ScanCacheCounts::default() {
            return;
        }
        let [hits, misses] = &self.runs;
        hits.inc_by(counts.hits);
        misses.inc_by(counts.misses);
        let [hit_bytes, miss_bytes] = &self.text_bytes;
        hit_bytes.inc_by(counts.hit_bytes);
        miss_bytes.inc_by(counts.miss_bytes);
        self.evictions.inc_by(counts.evictions);
        self.record_memory(known);
    }

    /// Sets the memory that the cache uses.
    pub fn record_memory(&self, known: &ScanCache) {
        self.memory_bytes
            .set(i64::try_from(known.memory_bytes()).unwrap_or(i64::MAX));
    }
}
