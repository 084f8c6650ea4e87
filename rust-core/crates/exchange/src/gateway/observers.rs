//! Recording, counting and telemetry of exchanges.

use std::rc::Rc;
use std::sync::Arc;

use proofgate_base::rejection::Rejection;
use proofgate_base::request_id::RequestId;
use proofgate_inspect::Denial;
use proofgate_limits::Limiter;
use proofgate_observe::analysis::Tap;
use proofgate_observe::metrics::{Metrics, Traffic};
use proofgate_observe::payloads::PayloadQueue;
use proofgate_observe::recorder::Recorder;
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_observe::telemetry::TelemetrySender;
use proofgate_policy::Engine;
use proofgate_stages::Profiler;
use proofgate_upstream::catalog::Catalog;

/// The ledger's recorder, the metrics, and the queues to threads that receive copies of exchanges.
pub struct Observers {
    pub recorder: Rc<Recorder>,
    pub metrics: Metrics,
    /// The counters of traffic by tenant, model and provider.
    pub traffic: Traffic,
    /// The queue of exchanges for telemetry.
    pub telemetry: TelemetrySender,
    /// The queue of responses for analysis; `None` if responses are not analysed.
    pub tap: Option<Tap>,
    /// The queue of bodies to store; `None` if bodies are not stored.
    pub payloads: Option<PayloadQueue>,
    pub profiler: Arc<Profiler>,
}

impl Observers {
    /// Removes the counters of tenants and models that no longer exist.
    pub(crate) fn apply_catalog(&self, catalog: &Catalog, limiter: &Limiter) {
        self.traffic.reconfigure(
            catalog.settings.max_label_sets,
            |tenant| limiter.find(tenant).is_some(),
            |model, provider| catalog.has_model(model, provider),
        );
    }

    /// Records and counts the rejection `id` at `now` (Unix microseconds), and waits until the
    /// record is written.
    pub(crate) async fn record_rejection(
        &self,
        now: u64,
        id: RequestId,
        rejection: &Rejection,
        mut refused: RejectedRequest<'_>,
    ) {
        self.count_rejection(now, id, rejection, &mut refused);
        if let Some(seq) = self.recorder.reject(now, id.as_str(), rejection, refused) {
            let _ = self.recorder.wait_written(seq).await;
        }
    }

    /// Counts a rejection and reports it to telemetry.
    pub(crate) fn count_rejection(
        &self,
        now: u64,
        id: RequestId,
        rejection: &Rejection,
        refused: &mut RejectedRequest<'_>,
    ) {
        self.metrics.record_rejection(rejection.status, rejection.code);
        if let Some(tenant) = refused.tenant {
            let series = refused.series.take();
            let series = series.unwrap_or_else(|| self.traffic.series(tenant, None));
            series.record_rejection(refused.outcome);
        }
        if let Some(observed) = refused.observed_exchange.take() {
            observed.report_refused(
                &self.telemetry,
                id,
                now,
                refused.bytes,
                rejection,
                refused.outcome,
            );
        }
    }

    /// Counts a response that the rules stop, and returns the error for the client.
    pub(crate) fn count_stopped_response(&self, engine: &Engine, stop: Denial) -> Rejection {
        match stop {
            Denial::Blocked { rule, .. } => {
                self.metrics.record_policy_block();
                Rejection::blocked(&engine.rule(rule).id, &engine.rule(rule).reason, None)
            }
            Denial::Fault(fault) => {
                self.metrics.record_policy_fault();
                Rejection::from(fault)
            }
            Denial::TooLarge | Denial::Malformed | Denial::GuardedCall => {
                self.metrics.record_policy_fault();
                Rejection::unreadable_response(stop.code(), stop.to_string())
            }
        }
    }
}
