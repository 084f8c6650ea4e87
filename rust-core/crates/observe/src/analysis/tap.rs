//! The data-plane thread's end.

use std::sync::Arc;

use proofgate_analysis::Dialect as Readable;
use proofgate_base::bounded_copy::{CopyPermit, SharedRoom};
use proofgate_base::random::Random;
use proofgate_base::request_id::RequestId;
use proofgate_config::AnalysisConfig;
use proofgate_providers::Dialect;
use rand::Rng;
use tokio::sync::mpsc::Sender;

use super::copy::AnswerCopy;
use crate::metrics::{AnalysisLoss, AnalysisMetrics};

/// Chooses which answers are analysed, and hands them over.
pub struct Tap {
    queue: Sender<Answered>,
    /// Places in the queue.
    places: SharedRoom,
    /// Bytes of copies.
    room: SharedRoom,
    metrics: AnalysisMetrics,
    sample: f64,
    tenants: Vec<String>,
    models: Vec<String>,
    answer_bytes: usize,
}

/// An answer that its client has.
pub(super) struct Answered {
    pub(super) copy: AnswerCopy,
    _place: CopyPermit,
    /// Whether it is a stream of events.
    pub(super) events: bool,
    /// Tokens of it, as the provider counted them.
    pub(super) tokens: Option<u64>,
    pub(super) id: RequestId,
    /// Position of the admission record.
    pub(super) admission: u64,
    pub(super) tenant: Arc<str>,
    pub(super) model: Arc<str>,
}

/// Whose answer it is.
pub struct Of {
    pub id: RequestId,
    /// Position of the admission record.
    pub admission: u64,
    pub tenant: Arc<str>,
    pub model: Arc<str>,
}

impl Tap {
    pub(super) fn new(config: &AnalysisConfig, queue: Sender<Answered>, metrics: AnalysisMetrics) -> Self {
        Tap {
            places: SharedRoom::new(queue.max_capacity()),
            queue,
            room: SharedRoom::new(config.copy_bytes),
            metrics,
            sample: config.sample,
            tenants: config.tenants.clone(),
            models: config.models.clone(),
            answer_bytes: config.answer_bytes,
        }
    }

    /// Begins the copy of an answer, if it is one to be analysed.
    pub fn begin(
        &self,
        random: &Random,
        tenant: &Arc<str>,
        model: &str,
        dialect: Dialect,
    ) -> Option<Box<AnswerCopy>> {
        let dialect = readable(dialect)?;
        let is_wanted =
            |names: &[String], name: &str| names.is_empty() || names.iter().any(|one| one == name);
        if !is_wanted(&self.tenants, tenant) || !is_wanted(&self.models, model) {
            return None;
        }
        if self.sample < 1.0 && !random.draw(|random| random.random_bool(self.sample)) {
            return None;
        }
        Some(Box::new(self.copy(tenant, dialect)))
    }

    /// An empty copy. A tenant takes at most half of all memory, or one answer of the largest.
    pub(super) fn copy(&self, tenant: &Arc<str>, dialect: Readable) -> AnswerCopy {
        let room = self.room.part(tenant, self.answer_bytes);
        AnswerCopy::new(dialect, self.answer_bytes, room)
    }

    /// Hands an answer over that its client has. Waits for nothing: what finds no room is counted. A tenant takes at most half
    /// of the places in the queue.
    pub fn hand_over(&self, copy: AnswerCopy, events: bool, tokens: Option<u64>, of: Of) {
        if copy.is_lost() {
            self.metrics.lost(AnalysisLoss::Memory);
            return;
        }
        let Some(place) = CopyPermit::new(self.places.part(&of.tenant, 1), 1) else {
            self.metrics.lost(AnalysisLoss::Queue);
            return;
        };
        let answered = Answered {
            copy,
            _place: place,
            events,
            tokens,
            id: of.id,
            admission: of.admission,
            tenant: of.tenant,
            model: of.model,
        };
        if self.queue.try_send(answered).is_err() {
            self.metrics.lost(AnalysisLoss::Queue);
        }
    }
}

/// The dialects whose answers are text.
fn readable(dialect: Dialect) -> Option<Readable> {
    match dialect {
        Dialect::Chat => Some(Readable::Chat),
        Dialect::Completions => Some(Readable::Completions),
        Dialect::Responses => Some(Readable::Responses),
        Dialect::Messages => Some(Readable::Messages),
        Dialect::Gemini => Some(Readable::Gemini),
        _ => None,
    }
}
