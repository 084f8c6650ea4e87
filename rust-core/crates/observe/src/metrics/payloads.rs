//! Metrics of stored payloads.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use proofgate_ledger::record::PayloadOutcome;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// The counters of stored payloads.
#[derive(Clone)]
pub struct PayloadMetrics {
    stored_bytes: Counter,
    queued_bytes: Gauge,
    refusals: Counter,
    failed: Gauge,
    not_stored: [Counter; NOT_STORED.len()],
}

const NOT_STORED: [PayloadOutcome; 5] = [
    PayloadOutcome::TooLarge,
    PayloadOutcome::Streamed,
    PayloadOutcome::NoRoom,
    PayloadOutcome::Failed,
    PayloadOutcome::Interrupted,
];

impl PayloadMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let family = Family::<ReasonLabel, Counter>::default();
        let of = |kept: PayloadOutcome| {
            family.get_or_create_owned(&ReasonLabel {
                reason: kept.as_str(),
            })
        };
        let metrics = PayloadMetrics {
            stored_bytes: Counter::default(),
            queued_bytes: Gauge::default(),
            refusals: Counter::default(),
            failed: Gauge::default(),
            not_stored: NOT_STORED.map(of),
        };
        let m = &metrics;
        registry.register(
            "payload_stored_bytes",
            "Bytes of bodies that were stored",
            m.stored_bytes.clone(),
        );
        registry.register(
            "payload_queued_bytes",
            "Bytes of memory used by copies of bodies that are to be stored",
            m.queued_bytes.clone(),
        );
        registry.register(
            "payload_refusals",
            "Requests refused because their contents could not be stored",
            m.refusals.clone(),
        );
        registry.register(
            "payload_writer_failed",
            "Whether payload storage has stopped because a write failed",
            m.failed.clone(),
        );
        registry.register(
            "payloads_not_stored",
            "Bodies that should have been stored but were not, by reason",
            family,
        );
        metrics
    }

    /// Counts the bytes of a stored body.
    pub fn record_stored(&self, bytes: u64) {
        self.stored_bytes.inc_by(bytes);
    }

    /// Counts an exchange that was not admitted because it could not be stored.
    pub fn record_refused(&self) {
        self.refusals.inc();
    }

    /// Counts the outcome of a body in a completion record.
    pub fn record_outcome(&self, kept: PayloadOutcome) {
        let reason = NOT_STORED.iter().position(|reason| *reason == kept);
        if let Some(reason) = reason {
            self.not_stored[reason].inc();
        }
    }

    /// Sets the number of bytes that wait to be stored, and whether storage has failed.
    pub fn update_gauges(&self, queued: usize, failed: bool) {
        self.queued_bytes.set(i64::try_from(queued).unwrap_or(i64::MAX));
        self.failed.set(failed.into());
    }
}
