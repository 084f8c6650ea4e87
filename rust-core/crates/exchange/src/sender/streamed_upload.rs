//! Sends a request whose body is still arriving: first the buffered part, then the rest as it arrives.
//!
//! Text after a file is judged before any byte of the text is sent. If the rest of the body is
//! invalid, the provider never receives a complete request.

use std::cell::Cell;
use std::time::Duration;

use proofgate_base::client::Client;
use proofgate_base::deadline::Deadline;
use proofgate_base::lifecycle::{Lifecycle, Phase};
use proofgate_base::rejection::Rejection;
use proofgate_ledger::record::Outcome;
use proofgate_stages::{Span, Stage};
use proofgate_upstream::attempt::{
    AttemptProgress, Request, ResponseStarted, SharedBuffers, read_response_head, send,
};
use proofgate_upstream::delivery::{EarlyResponse, ExecutionState, send_chunk, wait_for_early_response};
use proofgate_upstream::failure::{Failure, Timeout};
use proofgate_upstream::upstream::UpstreamStream;
use proofgate_wire::{Limits, ResponseHead};
use tokio::time::Instant;

use crate::batch_lines;
use crate::body::RequestReadError;
use crate::incoming_call::IncomingCall;
use crate::open_exchange::OpenExchange;
use crate::policy_decision::{DeniedRequest, into_owned_note};
use crate::request_policy;
use crate::upload::Upload;

/// The reason why an upload got no response.
pub(super) enum UploadError {
    Upstream(Failure),
    /// The client disconnected.
    ClientDisconnected,
    /// The rest of the body is rejected.
    Refused(Rejection, Outcome),
}

impl From<Failure> for UploadError {
    fn from(failure: Failure) -> Self {
        UploadError::Upstream(failure)
    }
}

impl From<RequestReadError> for UploadError {
    fn from(broken: RequestReadError) -> Self {
        match broken {
            RequestReadError::ClientDisconnected => UploadError::ClientDisconnected,
            RequestReadError::Rejected(rejection) => {
                UploadError::Refused(rejection, Outcome::ClientDisconnect)
            }
        }
    }
}

/// The parts of an exchange that a streamed body needs.
pub(super) struct StreamedUpload<'p, 'c> {
    pub(super) incoming: &'p IncomingCall<'c>,
    /// The requested model.
    pub(super) model: &'p str,
    pub(super) client: &'p mut Client,
    pub(super) deadline: &'p mut Deadline,
    pub(super) lifecycle: &'p mut Lifecycle,
    pub(super) open_exchange: &'p mut OpenExchange,
    pub(super) upload: &'p mut Upload,
    /// Deadline of the complete response.
    pub(super) response_deadline: Option<Instant>,
    pub(super) limits: Limits,
    pub(super) shared_buffers: SharedBuffers<'p>,
    /// Whether any part of the rest was consumed.
    pub(super) has_consumed_body: &'p Cell<bool>,
    /// Whether the client's connection closes after the response.
    pub(super) should_close: &'p Cell<bool>,
}

impl StreamedUpload<'_, '_> {
    /// Sends the request and the rest of its body, and reads the head of the response.
    pub(super) async fn attempt<H>(
        mut self,
        request: Request<'_>,
        answer: &mut Vec<u8>,
        accept: impl FnMut(&ResponseHead<'_>) -> Result<H, Failure>,
    ) -> Result<ResponseStarted<H>, UploadError> {
        answer.clear();
        let in_chunks = request.incoming_length.is_some_and(|rest| rest.is_none());
        let (first_byte, idle) = (request.upstream.first_byte_timeout, request.upstream.idle_timeout);
        let (limits, lent) = (self.limits, self.shared_buffers);
        let mut reached = AttemptProgress::default();
        let mut span = std::mem::take(&mut self.open_exchange.span);
        let sending = send(request, limits, &mut reached, &mut span, lent, answer);
        let sent = tokio::select! {
            biased;
            sent = self.deadline.with_timeout_and_deadline(first_byte, self.response_deadline, sending) => {
                sent.unwrap_or_else(|_| Err(Failure::timed_out(Timeout::FirstByte, self.response_deadline))).map_err(UploadError::from)
            }
            () = self.lifecycle.wait_for(Phase::Cancelled) => Err(Failure::Draining.into()),
        };
        self.open_exchange.span = span;
        let mut connection = sent?;
        if !connection.is_reuse_forbidden() {
            self.has_consumed_body.set(true);
            let in_chunks = in_chunks && !connection.delimits_bodies();
            let whole = self.send_rest(&mut connection, in_chunks, idle, answer).await;
            match whole {
                Ok(true) => {
                    connection.finish_body();
                    self.open_exchange.attempt_progress.execution = ExecutionState::MaybeExecuted;
                    if let Some(attending) = &mut self.open_exchange.in_flight {
                        attending.mark_complete(Instant::now().into_std());
                    }
                }
                Ok(false) => connection.forbid_reuse(),
                Err(broken) => return Err(broken),
            }
        }
        self.open_exchange.span.lap_now(Stage::UpstreamWrite);
        if !self.upload.is_sent() {
            self.should_close.set(true);
        }
        let (reached, span): (&mut AttemptProgress, &mut Span) = (
            &mut self.open_exchange.attempt_progress,
            &mut self.open_exchange.span,
        );
        let hearing = read_response_head(connection, limits, reached, span, lent, answer, accept);
        tokio::select! {
            biased;
            begun = self.deadline.with_timeout_and_deadline(first_byte, self.response_deadline, hearing) => {
                Ok(begun.unwrap_or_else(|_| Err(Failure::timed_out(Timeout::FirstByte, self.response_deadline)))?)
            }
            () = self.client.wait_for_disconnect() => Err(UploadError::ClientDisconnected),
            () = self.lifecycle.wait_for(Phase::Cancelled) => Err(Failure::Draining.into()),
        }
    }

    /// Forwards the rest of the body. Returns whether all of it was sent; if not, the provider has
    /// responded or disconnected.
    async fn send_rest(
        &mut self,
        connection: &mut UpstreamStream,
        in_chunks: bool,
        idle: Duration,
        early: &mut Vec<u8>,
    ) -> Result<bool, UploadError> {
        let limits = self.limits;
        let incoming = self.shared_buffers.incoming;
        let mut frame = Vec::new();
        // These bytes had arrived, but were not buffered for the admission.
        self.open_exchange.receive(&self.upload.pending);
        loop {
            let before = self.upload.pending.len();
            let taken = self.upload.read_input(self.client);
            self.open_exchange
                .receive(self.upload.pending.get(before..).unwrap_or_default());
            taken?;
            self.judge_pending().await?;
            let length = self.upload.releasable_bytes();
            let is_last = self.upload.is_body_complete && length == self.upload.pending.len();
            if length > 0 || is_last {
                frame.clear();
                if in_chunks && length > 0 {
                    // The chunk header follows the line end of the previous chunk.
                    frame.extend_from_slice(format!("\r\n{length:x}\r\n").as_bytes());
                }
                let end: &[u8] = if in_chunks && is_last {
                    b"\r\n0\r\n\r\n"
                } else {
                    b""
                };
                let piece = self.upload.pending.get(..length).unwrap_or_default();
                let sending = send_chunk(connection, [&frame[..], piece, end], &limits, incoming, early);
                let sent = tokio::select! {
                    biased;
                    sent = self.deadline.with_timeout_and_deadline(idle, self.response_deadline, sending) => {
                        sent.map_err(|_| Failure::timed_out(Timeout::Idle, self.response_deadline))?
                    }
                    () = self.lifecycle.wait_for(Phase::Cancelled) => return Err(Failure::Draining.into()),
                };
                if !sent {
                    return Ok(false);
                }
                self.upload.mark_sent(length);
            }
            if self.upload.is_sent() {
                self.open_exchange.finish_receiving();
                return Ok(true);
            }
            let waiting = self.upload.wait_for_input(self.client);
            let listening = wait_for_early_response(connection, &limits, incoming, early);
            let over = async {
                match self.response_deadline {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                waited = waiting => waited?,
                EarlyResponse = listening => return Ok(false),
                () = over => return Err(Failure::TimedOut(Timeout::Exchange).into()),
                () = self.lifecycle.wait_for(Phase::Cancelled) => return Err(Failure::Draining.into()),
            }
        }
    }

    /// Judges the text that arrived after a file, and the lines of a batch's input.
    async fn judge_pending(&mut self) -> Result<(), UploadError> {
        if let Some(lines) = self.upload.take_lines() {
            // Boxed, because only such uploads need the memory.
            let judged = Box::pin(batch_lines::judge_lines(self.incoming, &lines)).await;
            let note = judged.map_err(|denied| self.deny(*denied))?;
            if let (None, Some(note)) = (&self.open_exchange.policy, note) {
                self.open_exchange.policy = Some(into_owned_note(note));
            }
        }
        let Some(text) = self.upload.uninspected_text() else {
            return Ok(());
        };
        let judged = request_policy::judge_form(self.incoming, self.model, text).await;
        judged.map_err(|denied| self.deny(*denied))?;
        self.upload.mark_inspected();
        Ok(())
    }

    fn deny(&mut self, denied: DeniedRequest<'_>) -> UploadError {
        self.open_exchange.policy = denied.note.map(into_owned_note);
        let outcome = match denied.rejection.status {
            403 => Outcome::PolicyBlocked,
            _ => Outcome::ClientDisconnect,
        };
        UploadError::Refused(denied.rejection, outcome)
    }
}
