//! A form on its way: what of it is held until it is admitted, and how the rest passes.

use proofgate_base::client::Client;
use proofgate_base::lifecycle::{Lifecycle, Phase};
use proofgate_base::memory::{AT_ONCE, Budget, Buffer, MemoryReservation};
use proofgate_base::rejection::Rejection;
use proofgate_ledger::record::Coming;
use proofgate_multipart::Boundary;
use proofgate_providers::{Dialect, Stored};
use proofgate_upstream::terms::Terms;
use proofgate_wire::{BodyDecoder, Limits, RequestFraming, encode};
use tokio::time::Instant;

use crate::batch_input::{BatchLines, StoredFile};
use crate::body::{NoRequest, fill};
use crate::form::{Form, Said};
use std::rc::Rc;
use std::time::Duration;

/// The rest of a request body that is not held.
pub struct Upload {
    form: Form,
    decoder: BodyDecoder,
    /// Whether the body has come to its end.
    pub ended: bool,
    /// What has come and has not left.
    pub pending: Buffer,
    /// How many bytes have left, or were held when it was admitted.
    left: u64,
    room: MemoryReservation,
    /// How long its client may send nothing, once it is admitted.
    patience: Duration,
}

/// A form, as far as it is held.
pub struct Held {
    pub body: Buffer,
    pub said: Said,
    /// The `Content-Type` by which it goes on.
    pub(crate) content_type: Vec<u8>,
    /// What is said of the rest of it; `None` when it is whole.
    pub coming: Option<Coming>,
}

impl Upload {
    pub fn new(
        boundary: &Boundary,
        dialect: Dialect,
        framing: RequestFraming,
        terms: &Terms,
        budget: &Rc<Budget>,
    ) -> Self {
        let limits = Limits {
            body_bytes: terms.upload_bytes,
            ..terms.limits
        };
        let is_stored = dialect == Dialect::Stored(Stored::FileUpload);
        let most = usize::try_from(terms.limits.body_bytes).unwrap_or(usize::MAX);
        let stored = is_stored.then(|| StoredFile::new(most));
        Upload {
            form: Form::new(boundary, stored),
            decoder: BodyDecoder::for_request(framing, &limits),
            ended: false,
            pending: Buffer::new(budget),
            left: 0,
            room: MemoryReservation::new(budget),
            patience: terms.timeouts.client_body,
        }
    }

    /// Reads the form until it can be admitted: a short one to its end, of a long one as far as a file behind its model.
    ///
    /// What no limit of a tenant counts yet has, as a body that is no form, one deadline for all of it.
    pub async fn hold(
        &mut self,
        client: &mut Client,
        lifecycle: &mut Lifecycle,
        boundary: &Boundary,
        framing: RequestFraming,
        terms: &Terms,
        mut asks: bool,
    ) -> Result<Held, NoRequest> {
        let deadline = Instant::now() + self.patience;
        loop {
            self.take(client)?;
            if self.ended {
                break;
            }
            let held = self.pending.len();
            if held > AT_ONCE && self.form.may_be_admitted() {
                break;
            }
            // Its fields have a bound of their own.
            if held as u64 > terms.limits.body_bytes && !self.form.has_model() {
                return Err(Rejection::MODEL_BEHIND_FILE.into());
            }
            if std::mem::take(&mut asks) {
                let sent = client.send(encode::CONTINUE).await;
                sent.map_err(|_| NoRequest::Gone)?;
            }
            tokio::select! {
                biased;
                filled = fill(client, deadline) => filled?,
                () = lifecycle.reached(Phase::Cancelled) => return Err(NoRequest::Gone),
            }
        }
        let declared = match framing {
            RequestFraming::Length(length) => Some(length),
            _ => None,
        };
        let known = declared.or_else(|| self.ended.then_some(self.pending.len() as u64));
        let said = self.form.said(known)?;
        let mut content_type = Vec::new();
        let value = boundary.content_type();
        encode::write_header(&mut content_type, "content-type", value.as_bytes())?;
        self.form.judged();
        let mut body = self.pending.take();
        self.left = body.len() as u64;
        if !self.ended && self.form.may_leave() < self.left {
            // A line that is not whole yet, and what follows.
            self.left = self.form.may_leave();
            let length = usize::try_from(self.left).unwrap_or(usize::MAX);
            self.pending.extend(body.get(length..).unwrap_or_default())?;
            body.truncate(length);
        }
        Ok(Held {
            body,
            said,
            content_type,
            coming: (!self.ended).then_some(Coming { declared }),
        })
    }

    /// Waits for bytes of the client.
    pub async fn wait(&self, client: &mut Client) -> Result<(), NoRequest> {
        fill(client, Instant::now() + self.patience).await
    }

    /// Reads what has come of the client; it is pending then.
    ///
    /// # Errors
    /// What is wrong with it: nothing more of it may leave.
    pub fn take(&mut self, client: &mut Client) -> Result<(), NoRequest> {
        let mut used = 0;
        while !self.ended {
            let step = self.decoder.decode(&client.input[used..])?;
            let data = &client.input[used + step.data.start..used + step.data.end];
            self.form.push(data)?;
            self.pending.extend(data)?;
            used += step.consumed;
            self.ended = step.done;
            if step.consumed == 0 {
                break;
            }
        }
        client.input.consume(used);
        self.room.resize(self.form.size())?;
        match self.ended {
            true => Ok(self.form.end()?),
            false => Ok(()),
        }
    }

    /// The text that has to be judged before more may leave, if there is such.
    pub(crate) fn unjudged(&self) -> Option<&str> {
        self.form.is_to_be_judged().then(|| self.form.text())
    }

    pub fn judged(&mut self) {
        self.form.judged();
    }

    /// Lines of a batch's input that have to be judged before more may leave, if there are such.
    pub(crate) fn take_lines(&mut self) -> Option<BatchLines> {
        self.form.take_lines()
    }

    /// How many of the pending bytes may leave.
    pub(crate) fn may_leave(&self) -> usize {
        let most = self.form.may_leave().saturating_sub(self.left);
        usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(self.pending.len())
    }

    /// So many of the pending bytes have left.
    pub(crate) fn has_left(&mut self, bytes: usize) {
        self.pending.consume(bytes);
        self.left += bytes as u64;
    }

    /// Whether all of it has left.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.pending.is_empty()
    }
}
