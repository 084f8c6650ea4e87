//! A form in transit: the part that is buffered until its admission, and the rest that is
//! forwarded.

use proofgate_base::client::Client;
use proofgate_base::lifecycle::{Lifecycle, Phase};
use proofgate_base::memory::{Buffer, MemoryBudget, MemoryReservation, SLICE_BYTES};
use proofgate_base::rejection::Rejection;
use proofgate_ledger::record::PendingBody;
use proofgate_multipart::Boundary;
use proofgate_providers::{Dialect, StorageOperation};
use proofgate_upstream::settings::GatewaySettings;
use proofgate_wire::{BodyDecoder, Limits, RequestFraming, encode};
use tokio::time::Instant;

use crate::batch_input::{BatchLines, UploadedFile};
use crate::body::{RequestReadError, fill};
use crate::form::{Form, FormSummary};
use std::rc::Rc;
use std::time::Duration;

/// The rest of a request body, which is not buffered.
pub struct Upload {
    form: Form,
    decoder: BodyDecoder,
    /// Whether the body has arrived completely.
    pub is_body_complete: bool,
    /// Bytes that have arrived and have not been sent.
    pub pending: Buffer,
    /// Number of bytes that were sent or were buffered at admission.
    sent: u64,
    reservation: MemoryReservation,
    /// Maximum time that the client may be idle after the admission.
    idle_timeout: Duration,
}

/// The buffered part of a form.
pub struct BufferedForm {
    pub body: Buffer,
    pub summary: FormSummary,
    /// The `Content-Type` with which the form is forwarded.
    pub(crate) content_type: Vec<u8>,
    /// The state of the rest; `None` if the form is complete.
    pub pending_body: Option<PendingBody>,
}

impl Upload {
    pub fn new(
        boundary: &Boundary,
        dialect: Dialect,
        framing: RequestFraming,
        terms: &GatewaySettings,
        budget: &Rc<MemoryBudget>,
    ) -> Self {
        let limits = Limits {
            body_bytes: terms.max_upload_bytes,
            ..terms.limits
        };
        let is_stored = dialect == Dialect::Storage(StorageOperation::FileUpload);
        let most = usize::try_from(terms.limits.body_bytes).unwrap_or(usize::MAX);
        let stored = is_stored.then(|| UploadedFile::new(most));
        Upload {
            form: Form::new(boundary, stored),
            decoder: BodyDecoder::for_request(framing, &limits),
            is_body_complete: false,
            pending: Buffer::new(budget),
            sent: 0,
            reservation: MemoryReservation::new(budget),
            idle_timeout: terms.timeouts.client_body,
        }
    }

    /// Buffers the form until it can be admitted: a short form to its end, a long form up to a file
    /// that follows its model.
    ///
    /// Before the tenant's limits count the request, one deadline applies to the whole form, as for
    /// any other body.
    pub async fn buffer_form(
        &mut self,
        client: &mut Client,
        lifecycle: &mut Lifecycle,
        boundary: &Boundary,
        framing: RequestFraming,
        terms: &GatewaySettings,
        mut asks: bool,
    ) -> Result<BufferedForm, RequestReadError> {
        let deadline = Instant::now() + self.idle_timeout;
        loop {
            self.read_input(client)?;
            if self.is_body_complete {
                break;
            }
            let held = self.pending.len();
            if held > SLICE_BYTES && self.form.can_be_admitted() {
                break;
            }
            // Form fields have a separate limit.
            if held as u64 > terms.limits.body_bytes && !self.form.has_model() {
                return Err(Rejection::MODEL_AFTER_FILE.into());
            }
            if std::mem::take(&mut asks) {
                let sent = client.send(encode::CONTINUE).await;
                sent.map_err(|_| RequestReadError::ClientDisconnected)?;
            }
            tokio::select! {
                biased;
                filled = fill(client, deadline) => filled?,
                () = lifecycle.wait_for(Phase::Cancelled) => return Err(RequestReadError::ClientDisconnected),
            }
        }
        let declared = match framing {
            RequestFraming::Length(length) => Some(length),
            _ => None,
        };
        let known = declared.or_else(|| self.is_body_complete.then_some(self.pending.len() as u64));
        let said = self.form.admit(known)?;
        let mut content_type = Vec::new();
        let value = boundary.content_type();
        encode::write_header(&mut content_type, "content-type", value.as_bytes())?;
        self.form.mark_inspected();
        let mut body = self.pending.take();
        self.sent = body.len() as u64;
        if !self.is_body_complete && self.form.releasable_bytes() < self.sent {
            // The pending bytes start at an incomplete line.
            self.sent = self.form.releasable_bytes();
            let length = usize::try_from(self.sent).unwrap_or(usize::MAX);
            self.pending.extend(body.get(length..).unwrap_or_default())?;
            body.truncate(length);
        }
        Ok(BufferedForm {
            body,
            summary: said,
            content_type,
            pending_body: (!self.is_body_complete).then_some(PendingBody { declared }),
        })
    }

    /// Waits for bytes of the client.
    pub async fn wait_for_input(&self, client: &mut Client) -> Result<(), RequestReadError> {
        fill(client, Instant::now() + self.idle_timeout).await
    }

    /// Reads the bytes that have arrived from the client and adds them to the pending bytes.
    ///
    /// # Errors
    /// A [`RequestReadError`] if the form is invalid; no further byte of it may be sent then.
    pub fn read_input(&mut self, client: &mut Client) -> Result<(), RequestReadError> {
        let mut used = 0;
        while !self.is_body_complete {
            let step = self.decoder.decode(&client.input[used..])?;
            let data = &client.input[used + step.data.start..used + step.data.end];
            self.form.push(data)?;
            self.pending.extend(data)?;
            used += step.consumed;
            self.is_body_complete = step.done;
            if step.consumed == 0 {
                break;
            }
        }
        client.input.consume(used);
        self.reservation.resize(self.form.size())?;
        match self.is_body_complete {
            true => Ok(self.form.check_complete()?),
            false => Ok(()),
        }
    }

    /// Returns the text that must be judged before more bytes can be sent; `None` if there is none.
    pub(crate) fn uninspected_text(&self) -> Option<&str> {
        self.form.needs_inspection().then(|| self.form.text())
    }

    /// Marks all text so far as judged.
    pub fn mark_inspected(&mut self) {
        self.form.mark_inspected();
    }

    /// Takes the lines of a batch's input that must be judged before more bytes can be sent; `None`
    /// if there are none.
    pub(crate) fn take_lines(&mut self) -> Option<BatchLines> {
        self.form.take_lines()
    }

    /// Returns the number of pending bytes that can be sent.
    pub(crate) fn releasable_bytes(&self) -> usize {
        let most = self.form.releasable_bytes().saturating_sub(self.sent);
        usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(self.pending.len())
    }

    /// Marks `bytes` pending bytes as sent.
    pub(crate) fn mark_sent(&mut self, bytes: usize) {
        self.pending.consume(bytes);
        self.sent += bytes as u64;
    }

    /// Whether the whole form was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.is_body_complete && self.pending.is_empty()
    }
}
