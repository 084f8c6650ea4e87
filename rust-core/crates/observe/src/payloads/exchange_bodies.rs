//! The bodies of one exchange that are to be stored.

use std::sync::Arc;
use std::time::Duration;

use proofgate_base::bounded_copy::{BoundedCopy, MIN_GROWTH};
use proofgate_evidence::payloads::PayloadField;
use proofgate_ledger::record::{PayloadOutcome, Payloads};
use proofgate_payloads::PayloadKey;
use proofgate_wal::Ulid;
use tokio::sync::oneshot;

use super::command::{Body, BodyContext};
use super::queue::PayloadQueue;
use crate::recorder::LedgerUnavailable;

/// Maximum time for which the end of a response waits for storage. Bodies that are not stored in
/// this time count as failed.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// A request's body at the time of admission.
pub enum AdmittedBody<'a> {
    Complete(&'a [u8]),
    /// The rest of the body is still arriving.
    Partial,
}

/// A body that is to be stored.
enum PendingBody {
    /// A copy that was not submitted yet.
    Copied(BoundedCopy),
    /// The writer will send the outcome.
    Submitted(oneshot::Receiver<PayloadOutcome>),
    /// The outcome is known.
    Finished(PayloadOutcome),
}

impl PendingBody {
    /// Submits the body if the copy is complete.
    fn submit(mut self, of: BodyContext, desk: &PayloadQueue) -> Self {
        if let PendingBody::Copied(copy) = &mut self
            && !copy.is_truncated
        {
            // Reserve memory for an empty body too, because a body without a reservation has no
            // slot in the queue.
            copy.reserve_minimum();
        }
        match self {
            PendingBody::Copied(copy) if copy.is_dropped => PendingBody::Finished(PayloadOutcome::NoRoom),
            PendingBody::Copied(copy) if copy.is_truncated => PendingBody::Finished(PayloadOutcome::TooLarge),
            PendingBody::Copied(copy) => {
                let (done, told) = oneshot::channel();
                desk.submit(Body {
                    context: of,
                    copy,
                    outcome_sender: done,
                });
                PendingBody::Submitted(told)
            }
            other => other,
        }
    }

    async fn wait(&mut self) {
        if let PendingBody::Submitted(told) = self {
            *self = PendingBody::Finished(told.await.unwrap_or(PayloadOutcome::Failed));
        }
    }

    /// Returns the outcome without waiting, or `otherwise` if the outcome is not known yet.
    fn outcome_or(self, otherwise: PayloadOutcome) -> PayloadOutcome {
        match self {
            PendingBody::Finished(kept) => kept,
            PendingBody::Submitted(mut told) => told.try_recv().unwrap_or(otherwise),
            PendingBody::Copied(copy) if copy.is_dropped => PayloadOutcome::NoRoom,
            PendingBody::Copied(copy) if copy.is_truncated => PayloadOutcome::TooLarge,
            PendingBody::Copied(_) => otherwise,
        }
    }
}

/// The bodies of an exchange that are to be stored.
pub struct ExchangeBodies {
    request: PendingBody,
    response: PendingBody,
    /// The key that seals both bodies; `None` before admission.
    key: Option<PayloadKey>,
    /// Whether waiting for the writer timed out.
    timed_out: bool,
}

impl ExchangeBodies {
    /// Copies the request of an exchange that is to be admitted, and starts a copy of its response,
    /// each of at most `most` bytes. A tenant may use at most half of all memory, or two bodies of
    /// this length, so that there is memory for other tenants.
    ///
    /// # Errors
    /// [`LedgerUnavailable`] if the bodies cannot be stored. The exchange must then not be
    /// admitted.
    pub fn start(
        desk: &PayloadQueue,
        tenant: &Arc<str>,
        most: usize,
        request: AdmittedBody<'_>,
    ) -> Result<Box<Self>, LedgerUnavailable> {
        let begun = Self::copy(desk, tenant, most, request);
        if begun.is_err() {
            desk.record_refused();
        }
        begun
    }

    fn copy(
        desk: &PayloadQueue,
        tenant: &Arc<str>,
        most: usize,
        request: AdmittedBody<'_>,
    ) -> Result<Box<Self>, LedgerUnavailable> {
        let room = desk.memory_for(tenant, most.saturating_mul(2))?;
        let copy = || BoundedCopy::new(most, Arc::clone(&room));
        let request = match request {
            AdmittedBody::Partial => Err(PayloadOutcome::Streamed),
            AdmittedBody::Complete(body) if body.len() > most => Err(PayloadOutcome::TooLarge),
            AdmittedBody::Complete(body) => {
                let mut copied = copy();
                copied.append(body);
                copied.reserve_minimum();
                match copied.is_dropped {
                    false => Ok(copied),
                    true => return Err(LedgerUnavailable::Payloads),
                }
            }
        };
        // The response needs memory too. Only its maximum size is known.
        if !room.has_capacity(most.max(MIN_GROWTH)) {
            return Err(LedgerUnavailable::Payloads);
        }
        Ok(Box::new(Self::new(request, copy())))
    }

    fn new(request: Result<BoundedCopy, PayloadOutcome>, response: BoundedCopy) -> Self {
        ExchangeBodies {
            request: match request {
                Ok(copy) => PendingBody::Copied(copy),
                Err(kept) => PendingBody::Finished(kept),
            },
            response: PendingBody::Copied(response),
            key: None,
            timed_out: false,
        }
    }

    /// Submits the request after its admission by the record `seq`. `key` seals both bodies.
    pub fn submit_request(&mut self, desk: &PayloadQueue, (incarnation, seq): (Ulid, u64), key: PayloadKey) {
        let of = BodyContext {
            incarnation,
            seq,
            field: PayloadField::Request,
            key: key.clone(),
        };
        self.key = Some(key);
        let request = std::mem::replace(&mut self.request, PendingBody::Finished(PayloadOutcome::Failed));
        self.request = request.submit(of, desk);
    }

    /// Appends bytes to the response as the client receives it.
    pub fn append_response(&mut self, bytes: &[u8]) {
        if let PendingBody::Copied(copy) = &mut self.response {
            copy.append(bytes);
            if copy.is_truncated {
                copy.discard();
            }
        }
    }

    /// Submits the response, and waits until both bodies are stored or have failed. `incarnation` and `seq` identify the
    /// admission.
    pub async fn finish(&mut self, desk: &PayloadQueue, (incarnation, seq): (Ulid, u64)) {
        let Some(key) = self.key.take() else { return };
        let of = BodyContext {
            incarnation,
            seq,
            field: PayloadField::Response,
            key,
        };
        let settled = async {
            let response =
                std::mem::replace(&mut self.response, PendingBody::Finished(PayloadOutcome::Failed));
            self.response = response.submit(of, desk);
            self.request.wait().await;
            self.response.wait().await;
        };
        self.timed_out = tokio::time::timeout(STORE_TIMEOUT, settled).await.is_err();
    }

    /// Returns the outcomes for the completion record.
    pub fn into_payloads(self, desk: &PayloadQueue) -> Payloads {
        let otherwise = match self.timed_out {
            true => PayloadOutcome::Failed,
            false => PayloadOutcome::Interrupted,
        };
        let stated = Payloads {
            request: self.request.outcome_or(otherwise),
            response: self.response.outcome_or(otherwise),
        };
        desk.record_outcome(stated.request);
        desk.record_outcome(stated.response);
        stated
    }
}

/// The body of a denied request, to be stored beside its record.
pub struct DeniedBody(PendingBody);

impl DeniedBody {
    /// Copies a body of at most `most` bytes if there is memory. Without memory, the request is
    /// denied without storing its body. The memory limit of a tenant is the same as for exchanges.
    pub fn copy(desk: Option<&PayloadQueue>, tenant: &Arc<str>, most: usize, body: AdmittedBody<'_>) -> Self {
        let room = match desk.map(|desk| desk.memory_for(tenant, most.saturating_mul(2))) {
            Some(Ok(room)) => room,
            Some(Err(LedgerUnavailable::Full)) => return Self(PendingBody::Finished(PayloadOutcome::NoRoom)),
            Some(Err(_)) | None => return Self(PendingBody::Finished(PayloadOutcome::Failed)),
        };
        Self(match body {
            AdmittedBody::Partial => PendingBody::Finished(PayloadOutcome::Streamed),
            AdmittedBody::Complete(body) if body.len() > most => {
                PendingBody::Finished(PayloadOutcome::TooLarge)
            }
            AdmittedBody::Complete(body) => {
                let mut copied = BoundedCopy::new(most, room);
                copied.append(body);
                copied.reserve_minimum();
                match copied.is_dropped {
                    false => PendingBody::Copied(copied),
                    true => PendingBody::Finished(PayloadOutcome::NoRoom),
                }
            }
        })
    }

    /// Returns the outcome for the record of the request.
    #[must_use]
    pub fn outcome(&self) -> PayloadOutcome {
        match self.0 {
            PendingBody::Finished(kept) => kept,
            PendingBody::Copied(_) | PendingBody::Submitted(_) => PayloadOutcome::Queued,
        }
    }

    /// Submits the body of the record `seq`. `key` seals the body.
    pub fn submit(&mut self, desk: &PayloadQueue, (incarnation, seq): (Ulid, u64), key: PayloadKey) {
        let of = BodyContext {
            incarnation,
            seq,
            field: PayloadField::Request,
            key,
        };
        let body = std::mem::replace(&mut self.0, PendingBody::Finished(PayloadOutcome::Failed));
        self.0 = body.submit(of, desk);
    }

    /// Waits until the body is stored or has failed. Counts and returns the outcome.
    pub async fn wait_until_stored(&mut self, desk: &PayloadQueue) -> PayloadOutcome {
        let late = tokio::time::timeout(STORE_TIMEOUT, self.0.wait()).await.is_err();
        let kept = match (late, &self.0) {
            (true, _) => PayloadOutcome::Failed,
            (false, PendingBody::Finished(kept)) => *kept,
            (false, _) => PayloadOutcome::Interrupted,
        };
        desk.record_outcome(kept);
        kept
    }
}
