//! What is to be stored of one exchange, while it is open.

use std::sync::Arc;
use std::time::Duration;

use proofgate_base::bounded_copy::{BoundedCopy, MIN_GROWTH};
use proofgate_evidence::payloads::PayloadField;
use proofgate_ledger::record::{PayloadOutcome, Payloads};
use proofgate_payloads::PayloadKey;
use proofgate_wal::Ulid;
use tokio::sync::oneshot;

use super::desk::PayloadQueue;
use super::order::{Body, BodyContext};
use crate::recorder::LedgerUnavailable;

/// How long the end of an answer waits until its bodies are stored; what is not stored then counts as failed.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// A request's body when it is admitted.
pub enum AdmittedBody<'a> {
    Complete(&'a [u8]),
    /// More of it is still coming.
    Partial,
}

/// A body that is being stored.
enum PendingBody {
    /// It was not handed over yet.
    Copied(BoundedCopy),
    /// The writer tells what becomes of it.
    Submitted(oneshot::Receiver<PayloadOutcome>),
    /// That is known.
    Finished(PayloadOutcome),
}

impl PendingBody {
    /// Hands it over, if it is a whole copy.
    fn submit(mut self, of: BodyContext, desk: &PayloadQueue) -> Self {
        if let PendingBody::Copied(copy) = &mut self
            && !copy.is_truncated
        {
            // Also of an empty one: the queue has no place for what takes nothing.
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
                    done,
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

    /// What is known of it now, when nobody waits for it any more.
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

/// What is to be stored of an exchange.
pub struct ExchangeBodies {
    request: PendingBody,
    response: PendingBody,
    /// From its admission on.
    key: Option<PayloadKey>,
    /// Whether the writer was waited for in vain.
    timed_out: bool,
}

impl ExchangeBodies {
    /// Copies a request of a tenant that is to be admitted, and begins a copy of its answer, each of at most `most` bytes. A
    /// tenant takes at most half of all memory, or two bodies of this length, so that it leaves space to the others.
    ///
    /// # Errors
    /// [`LedgerUnavailable`] when it could not be stored: it is not to be admitted then.
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
        // Its answer needs space, too, as far as can be known.
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

    /// Hands its request over: it was admitted by this record, and its bodies have this key.
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

    /// Adds bytes to the answer as the client gets it.
    pub fn append_response(&mut self, bytes: &[u8]) {
        if let PendingBody::Copied(copy) = &mut self.response {
            copy.append(bytes);
            if copy.is_truncated {
                copy.discard();
            }
        }
    }

    /// Hands its answer over, and waits until both bodies are stored or it is known why not. `place`: of its admission.
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

    /// What its completion says.
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
    /// Copies a body of at most `most` bytes, if there is memory: without it the request is denied all the same. A tenant takes
    /// no more of the memory than for exchanges.
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

    /// What its record says.
    #[must_use]
    pub fn outcome(&self) -> PayloadOutcome {
        match self.0 {
            PendingBody::Finished(kept) => kept,
            PendingBody::Copied(_) | PendingBody::Submitted(_) => PayloadOutcome::Queued,
        }
    }

    /// Hands it over: this record is of it, and it has this key.
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

    /// Waits until it is stored, or it is known why not; counts and returns that.
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
