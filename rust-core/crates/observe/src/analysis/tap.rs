//! The data-plane thread's side of the analysis.

use std::sync::Arc;

use proofgate_analysis::ResponseDialect as Readable;
use proofgate_base::bounded_copy::{CopyPermit, TenantSharedPool};
use proofgate_base::random::Random;
use proofgate_base::request_id::RequestId;
use proofgate_config::AnalysisConfig;
use proofgate_providers::Dialect;
use rand::Rng;
use tokio::sync::mpsc::Sender;

use super::copy::ResponseCopy;
use crate::metrics::{AnalysisLoss, AnalysisMetrics};

/// The selection and submission of responses for analysis.
pub struct Tap {
    queue: Sender<CompletedResponse>,
    /// Free slots in the queue, which tenants share.
    queue_slots: TenantSharedPool,
    /// Free memory for copies in bytes, which tenants share.
    copy_memory: TenantSharedPool,
    metrics: AnalysisMetrics,
    sample_rate: f64,
    tenants: Vec<String>,
    models: Vec<String>,
    max_response_bytes: usize,
}

/// A response that was sent to its client.
pub(super) struct CompletedResponse {
    pub(super) copy: ResponseCopy,
    _slot: CopyPermit,
    /// Whether the response is a stream of events.
    pub(super) is_event_stream: bool,
    /// Number of tokens as the provider counted them; `None` if not reported.
    pub(super) tokens: Option<u64>,
    pub(super) id: RequestId,
    /// Position of the admission record.
    pub(super) admission_position: u64,
    pub(super) tenant: Arc<str>,
    pub(super) model: Arc<str>,
}

/// The exchange to which a response belongs.
pub struct AnalysisContext {
    pub id: RequestId,
    /// Position of the admission record.
    pub admission_position: u64,
    pub tenant: Arc<str>,
    pub model: Arc<str>,
}

impl Tap {
    pub(super) fn new(
        config: &AnalysisConfig,
        queue: Sender<CompletedResponse>,
        metrics: AnalysisMetrics,
    ) -> Self {
        Tap {
            queue_slots: TenantSharedPool::new(queue.max_capacity()),
            queue,
            copy_memory: TenantSharedPool::new(config.max_copy_bytes),
            metrics,
            sample_rate: config.sample,
            tenants: config.tenants.clone(),
            models: config.models.clone(),
            max_response_bytes: config.max_answer_bytes,
        }
    }

    /// Starts the copy of a response, if it is selected for analysis.
    pub fn start_copy(
        &self,
        random: &Random,
        tenant: &Arc<str>,
        model: &str,
        dialect: Dialect,
    ) -> Option<Box<ResponseCopy>> {
        let dialect = readable_dialect(dialect)?;
        let is_wanted =
            |names: &[String], name: &str| names.is_empty() || names.iter().any(|one| one == name);
        if !is_wanted(&self.tenants, tenant) || !is_wanted(&self.models, model) {
            return None;
        }
        if self.sample_rate < 1.0 && !random.with_rng(|random| random.random_bool(self.sample_rate)) {
            return None;
        }
        Some(Box::new(self.new_copy(tenant, dialect)))
    }

    /// Returns an empty [`ResponseCopy`], to be filled while the response is relayed. A tenant may
    /// use at most half of all memory, or one response of maximum size.
    pub(super) fn new_copy(&self, tenant: &Arc<str>, dialect: Readable) -> ResponseCopy {
        let room = self.copy_memory.tenant_pool(tenant, self.max_response_bytes);
        ResponseCopy::new(dialect, self.max_response_bytes, room)
    }

    /// Submits a response that was sent to its client, without waiting. Responses that do not fit
    /// are counted and dropped. A tenant may use at most half of the slots in the queue.
    pub fn submit(&self, copy: ResponseCopy, events: bool, tokens: Option<u64>, of: AnalysisContext) {
        if copy.is_dropped() {
            self.metrics.record_dropped(AnalysisLoss::Memory);
            return;
        }
        let Some(place) = CopyPermit::new(self.queue_slots.tenant_pool(&of.tenant, 1), 1) else {
            self.metrics.record_dropped(AnalysisLoss::Queue);
            return;
        };
        let answered = CompletedResponse {
            copy,
            _slot: place,
            is_event_stream: events,
            tokens,
            id: of.id,
            admission_position: of.admission_position,
            tenant: of.tenant,
            model: of.model,
        };
        if self.queue.try_send(answered).is_err() {
            self.metrics.record_dropped(AnalysisLoss::Queue);
        }
    }
}

/// Returns the dialect in which responses can be analysed; `None` if they are not text.
fn readable_dialect(dialect: Dialect) -> Option<Readable> {
    match dialect {
        Dialect::Chat => Some(Readable::Chat),
        Dialect::Completions => Some(Readable::Completions),
        Dialect::Responses => Some(Readable::Responses),
        Dialect::Messages => Some(Readable::Messages),
        Dialect::Gemini => Some(Readable::Gemini),
        _ => None,
    }
}
