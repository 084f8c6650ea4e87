//! What is to be stored of one exchange, while it is open.

use std::sync::Arc;
use std::time::Duration;

use proofgate_base::bounded_copy::{BoundedCopy, STEP};
use proofgate_evidence::payloads::Field;
use proofgate_ledger::record::{PayloadOutcome, Payloads};
use proofgate_payloads::PayloadKey;
use proofgate_wal::Ulid;
use tokio::sync::oneshot;

use super::desk::PayloadDesk;
use super::order::{Body, Of};
use crate::recorder::Unavailable;

/// How long the end of an answer waits until its bodies are stored; what is not stored then counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request's body when it is admitted.
pub enum Asked<'a> {
    Whole(&'a [u8]),
    /// More of it is still coming.
    Coming,
}

/// A body that is being stored.
enum Storing {
    /// It was not handed over yet.
    Copied(BoundedCopy),
    /// The writer tells what becomes of it.
    HandedOver(oneshot::Receiver<PayloadOutcome>),
    /// That is known.
    Known(PayloadOutcome),
}

impl Storing {
    /// Hands it over, if it is a whole copy.
    fn hand_over(mut self, of: Of, desk: &PayloadDesk) -> Self {
        if let Storing::Copied(copy) = &mut self
            && !copy.partly
        {
            // Also of an empty one: the queue has no place for what takes nothing.
            copy.take_least();
        }
        match self {
            Storing::Copied(copy) if copy.is_lost => Storing::Known(PayloadOutcome::NoRoom),
            Storing::Copied(copy) if copy.partly => Storing::Known(PayloadOutcome::TooLarge),
            Storing::Copied(copy) => {
                let (done, told) = oneshot::channel();
                desk.hand_over(Body { of, copy, done });
                Storing::HandedOver(told)
            }
            other => other,
        }
    }

    async fn wait(&mut self) {
        if let Storing::HandedOver(told) = self {
            *self = Storing::Known(told.await.unwrap_or(PayloadOutcome::Failed));
        }
    }

    /// What is known of it now, when nobody waits for it any more.
    fn kept(self, otherwise: PayloadOutcome) -> PayloadOutcome {
        match self {
            Storing::Known(kept) => kept,
            Storing::HandedOver(mut told) => told.try_recv().unwrap_or(otherwise),
            Storing::Copied(copy) if copy.is_lost => PayloadOutcome::NoRoom,
            Storing::Copied(copy) if copy.partly => PayloadOutcome::TooLarge,
            Storing::Copied(_) => otherwise,
        }
    }
}

/// What is to be stored of an exchange.
pub struct Keeping {
    request: Storing,
    response: Storing,
    /// From its admission on.
    key: Option<PayloadKey>,
    /// Whether the writer was waited for in vain.
    late: bool,
}

impl Keeping {
    /// Copies a request of a tenant that is to be admitted, and begins a copy of its answer, each of at most `most` bytes. A
    /// tenant takes at most half of all memory, or two bodies of this length, so that it leaves space to the others.
    ///
    /// # Errors
    /// [`Unavailable`] when it could not be stored: it is not to be admitted then.
    pub fn begin(
        desk: &PayloadDesk,
        tenant: &Arc<str>,
        most: usize,
        request: Asked<'_>,
    ) -> Result<Box<Self>, Unavailable> {
        let begun = Self::copy(desk, tenant, most, request);
        if begun.is_err() {
            desk.refused();
        }
        begun
    }

    fn copy(
        desk: &PayloadDesk,
        tenant: &Arc<str>,
        most: usize,
        request: Asked<'_>,
    ) -> Result<Box<Self>, Unavailable> {
        let room = desk.room_for(tenant, most.saturating_mul(2))?;
        let copy = || BoundedCopy::new(most, Arc::clone(&room));
        let request = match request {
            Asked::Coming => Err(PayloadOutcome::Streamed),
            Asked::Whole(body) if body.len() > most => Err(PayloadOutcome::TooLarge),
            Asked::Whole(body) => {
                let mut copied = copy();
                copied.take(body);
                copied.take_least();
                match copied.is_lost {
                    false => Ok(copied),
                    true => return Err(Unavailable::Payloads),
                }
            }
        };
        // Its answer needs space, too, as far as can be known.
        if !room.has(most.max(STEP)) {
            return Err(Unavailable::Payloads);
        }
        Ok(Box::new(Self::new(request, copy())))
    }

    fn new(request: Result<BoundedCopy, PayloadOutcome>, response: BoundedCopy) -> Self {
        Keeping {
            request: match request {
                Ok(copy) => Storing::Copied(copy),
                Err(kept) => Storing::Known(kept),
            },
            response: Storing::Copied(response),
            key: None,
            late: false,
        }
    }

    /// Hands its request over: it was admitted by this record, and its bodies have this key.
    pub fn admitted(&mut self, desk: &PayloadDesk, (incarnation, seq): (Ulid, u64), key: PayloadKey) {
        let of = Of {
            incarnation,
            seq,
            field: Field::Request,
            key: key.clone(),
        };
        self.key = Some(key);
        let request = std::mem::replace(&mut self.request, Storing::Known(PayloadOutcome::Failed));
        self.request = request.hand_over(of, desk);
    }

    /// Adds bytes to the answer as the client gets it.
    pub fn respond(&mut self, bytes: &[u8]) {
        if let Storing::Copied(copy) = &mut self.response {
            copy.take(bytes);
            if copy.partly {
                copy.free();
            }
        }
    }

    /// Hands its answer over, and waits until both bodies are stored or it is known why not. `place`: of its admission.
    pub async fn settle(&mut self, desk: &PayloadDesk, (incarnation, seq): (Ulid, u64)) {
        let Some(key) = self.key.take() else { return };
        let of = Of {
            incarnation,
            seq,
            field: Field::Response,
            key,
        };
        let settled = async {
            let response = std::mem::replace(&mut self.response, Storing::Known(PayloadOutcome::Failed));
            self.response = response.hand_over(of, desk);
            self.request.wait().await;
            self.response.wait().await;
        };
        self.late = tokio::time::timeout(PATIENCE, settled).await.is_err();
    }

    /// What its completion says.
    pub fn stated(self, desk: &PayloadDesk) -> Payloads {
        let otherwise = match self.late {
            true => PayloadOutcome::Failed,
            false => PayloadOutcome::Interrupted,
        };
        let stated = Payloads {
            request: self.request.kept(otherwise),
            response: self.response.kept(otherwise),
        };
        desk.ended(stated.request);
        desk.ended(stated.response);
        stated
    }
}

/// The body of a denied request, to be stored beside its record.
pub struct DeniedBody(Storing);

impl DeniedBody {
    /// Copies a body of at most `most` bytes, if there is memory: without it the request is denied all the same. A tenant takes
    /// no more of the memory than for exchanges.
    pub fn copy(desk: Option<&PayloadDesk>, tenant: &Arc<str>, most: usize, body: Asked<'_>) -> Self {
        let room = match desk.map(|desk| desk.room_for(tenant, most.saturating_mul(2))) {
            Some(Ok(room)) => room,
            Some(Err(Unavailable::Full)) => return Self(Storing::Known(PayloadOutcome::NoRoom)),
            Some(Err(_)) | None => return Self(Storing::Known(PayloadOutcome::Failed)),
        };
        Self(match body {
            Asked::Coming => Storing::Known(PayloadOutcome::Streamed),
            Asked::Whole(body) if body.len() > most => Storing::Known(PayloadOutcome::TooLarge),
            Asked::Whole(body) => {
                let mut copied = BoundedCopy::new(most, room);
                copied.take(body);
                copied.take_least();
                match copied.is_lost {
                    false => Storing::Copied(copied),
                    true => Storing::Known(PayloadOutcome::NoRoom),
                }
            }
        })
    }

    /// What its record says.
    #[must_use]
    pub fn stated(&self) -> PayloadOutcome {
        match self.0 {
            Storing::Known(kept) => kept,
            Storing::Copied(_) | Storing::HandedOver(_) => PayloadOutcome::Queued,
        }
    }

    /// Hands it over: this record is of it, and it has this key.
    pub fn denied(&mut self, desk: &PayloadDesk, (incarnation, seq): (Ulid, u64), key: PayloadKey) {
        let of = Of {
            incarnation,
            seq,
            field: Field::Request,
            key,
        };
        let body = std::mem::replace(&mut self.0, Storing::Known(PayloadOutcome::Failed));
        self.0 = body.hand_over(of, desk);
    }

    /// Waits until it is stored, or it is known why not; counts and returns that.
    pub async fn settle(&mut self, desk: &PayloadDesk) -> PayloadOutcome {
        let late = tokio::time::timeout(PATIENCE, self.0.wait()).await.is_err();
        let kept = match (late, &self.0) {
            (true, _) => PayloadOutcome::Failed,
            (false, Storing::Known(kept)) => *kept,
            (false, _) => PayloadOutcome::Interrupted,
        };
        desk.ended(kept);
        kept
    }
}
