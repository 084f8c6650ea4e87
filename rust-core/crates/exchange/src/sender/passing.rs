//! Sends a request whose body is still coming: what is held of it, then the rest as it comes.
//!
//! A text behind a file is judged before a byte of it leaves. Whatever is wrong with the rest, the provider has never had a
//! whole request.

use std::cell::Cell;
use std::time::Duration;

use proofgate_base::client::Client;
use proofgate_base::deadline::Deadline;
use proofgate_base::lifecycle::{Lifecycle, Phase};
use proofgate_base::rejection::Rejection;
use proofgate_ledger::record::Outcome;
use proofgate_stages::{Span, Stage};
use proofgate_upstream::attempt::{Lent, Reached, Request, ResponseStarted, hear, send};
use proofgate_upstream::delivery::{Executed, Listened, listen, send_piece};
use proofgate_upstream::failure::{Failure, Timeout};
use proofgate_upstream::upstream::UpstreamStream;
use proofgate_wire::{Limits, ResponseHead};
use tokio::time::Instant;

use crate::batch_lines;
use crate::body::NoRequest;
use crate::incoming_call::IncomingCall;
use crate::judged::{DeniedRequest, owned};
use crate::open_exchange::OpenExchange;
use crate::request_policy;
use crate::upload::Upload;

/// Why a request has not come to an answer.
pub(super) enum Broken {
    Upstream(Failure),
    /// The client did not wait for it.
    ClientGone,
    /// The rest of its body is not taken.
    Refused(Rejection, Outcome),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Broken::Upstream(failure)
    }
}

impl From<NoRequest> for Broken {
    fn from(broken: NoRequest) -> Self {
        match broken {
            NoRequest::Gone => Broken::ClientGone,
            NoRequest::Rejected(rejection) => Broken::Refused(rejection, Outcome::ClientDisconnect),
        }
    }
}

/// What a body that passes needs of its exchange.
pub(super) struct Passing<'p, 'c> {
    pub(super) incoming: &'p IncomingCall<'c>,
    /// The model that is asked for.
    pub(super) model: &'p str,
    pub(super) client: &'p mut Client,
    pub(super) deadline: &'p mut Deadline,
    pub(super) lifecycle: &'p mut Lifecycle,
    pub(super) open: &'p mut OpenExchange,
    pub(super) upload: &'p mut Upload,
    /// When the answer must be over.
    pub(super) until: Option<Instant>,
    pub(super) limits: Limits,
    pub(super) lent: Lent<'p>,
    /// Whether anything of the rest has been taken.
    pub(super) has_passed: &'p Cell<bool>,
    /// Whether the client's connection ends with the answer.
    pub(super) closes: &'p Cell<bool>,
}

impl Passing<'_, '_> {
    /// Sends the request and the rest of its body, and reads the head of the answer.
    pub(super) async fn attempt<H>(
        mut self,
        request: Request<'_>,
        answer: &mut Vec<u8>,
        accept: impl FnMut(&ResponseHead<'_>) -> Result<H, Failure>,
    ) -> Result<ResponseStarted<H>, Broken> {
        answer.clear();
        let in_chunks = request.rest.is_some_and(|rest| rest.is_none());
        let (first_byte, idle) = (request.to.first_byte, request.to.idle);
        let (limits, lent) = (self.limits, self.lent);
        let mut reached = Reached::default();
        let mut span = std::mem::take(&mut self.open.span);
        let sending = send(request, limits, &mut reached, &mut span, lent, answer);
        let sent = tokio::select! {
            biased;
            sent = self.deadline.within_until(first_byte, self.until, sending) => {
                sent.unwrap_or_else(|_| Err(Failure::timed_out(Timeout::FirstByte, self.until))).map_err(Broken::from)
            }
            () = self.lifecycle.reached(Phase::Cancelled) => Err(Failure::Drained.into()),
        };
        self.open.span = span;
        let mut connection = sent?;
        if !connection.is_spent() {
            self.has_passed.set(true);
            let in_chunks = in_chunks && !connection.ends_bodies();
            let whole = self.pass(&mut connection, in_chunks, idle, answer).await;
            match whole {
                Ok(true) => {
                    connection.end_body();
                    self.open.reached.executed = Executed::Maybe;
                    if let Some(attending) = &mut self.open.attending {
                        attending.is_whole(Instant::now().into_std());
                    }
                }
                Ok(false) => connection.spend(),
                Err(broken) => return Err(broken),
            }
        }
        self.open.span.lap_now(Stage::UpstreamWrite);
        if !self.upload.is_over() {
            self.closes.set(true);
        }
        let (reached, span): (&mut Reached, &mut Span) = (&mut self.open.reached, &mut self.open.span);
        let hearing = hear(connection, limits, reached, span, lent, answer, accept);
        tokio::select! {
            biased;
            begun = self.deadline.within_until(first_byte, self.until, hearing) => {
                Ok(begun.unwrap_or_else(|_| Err(Failure::timed_out(Timeout::FirstByte, self.until)))?)
            }
            () = self.client.gone() => Err(Broken::ClientGone),
            () = self.lifecycle.reached(Phase::Cancelled) => Err(Failure::Drained.into()),
        }
    }

    /// Passes the rest of the body on; says whether all of it has left. If not, the provider answers, or is gone.
    async fn pass(
        &mut self,
        connection: &mut UpstreamStream,
        in_chunks: bool,
        idle: Duration,
        early: &mut Vec<u8>,
    ) -> Result<bool, Broken> {
        let limits = self.limits;
        let incoming = self.lent.incoming;
        let mut frame = Vec::new();
        // What had come before and was not held for the admission.
        self.open.receive(&self.upload.pending);
        loop {
            let before = self.upload.pending.len();
            let taken = self.upload.take(self.client);
            self.open
                .receive(self.upload.pending.get(before..).unwrap_or_default());
            taken?;
            self.judge().await?;
            let length = self.upload.may_leave();
            let is_last = self.upload.ended && length == self.upload.pending.len();
            if length > 0 || is_last {
                frame.clear();
                if in_chunks && length > 0 {
                    // Behind the piece before.
                    frame.extend_from_slice(format!("\r\n{length:x}\r\n").as_bytes());
                }
                let end: &[u8] = if in_chunks && is_last {
                    b"\r\n0\r\n\r\n"
                } else {
                    b""
                };
                let piece = self.upload.pending.get(..length).unwrap_or_default();
                let sending = send_piece(connection, [&frame[..], piece, end], &limits, incoming, early);
                let sent = tokio::select! {
                    biased;
                    sent = self.deadline.within_until(idle, self.until, sending) => {
                        sent.map_err(|_| Failure::timed_out(Timeout::Idle, self.until))?
                    }
                    () = self.lifecycle.reached(Phase::Cancelled) => return Err(Failure::Drained.into()),
                };
                if !sent {
                    return Ok(false);
                }
                self.upload.has_left(length);
            }
            if self.upload.is_over() {
                self.open.received_whole();
                return Ok(true);
            }
            let waiting = self.upload.wait(self.client);
            let listening = listen(connection, &limits, incoming, early);
            let over = async {
                match self.until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                waited = waiting => waited?,
                Listened = listening => return Ok(false),
                () = over => return Err(Failure::TimedOut(Timeout::Answer).into()),
                () = self.lifecycle.reached(Phase::Cancelled) => return Err(Failure::Drained.into()),
            }
        }
    }

    /// Has the rules look at what has come behind a file, and at the lines of a batch's input.
    async fn judge(&mut self) -> Result<(), Broken> {
        if let Some(lines) = self.upload.take_lines() {
            // Boxed: only those uploads need the room.
            let judged = Box::pin(batch_lines::judge(self.incoming, &lines)).await;
            let note = judged.map_err(|denied| self.denied(*denied))?;
            if let (None, Some(note)) = (&self.open.policy, note) {
                self.open.policy = Some(owned(note));
            }
        }
        let Some(text) = self.upload.unjudged() else {
            return Ok(());
        };
        let judged = request_policy::judge_form(self.incoming, self.model, text).await;
        judged.map_err(|denied| self.denied(*denied))?;
        self.upload.judged();
        Ok(())
    }

    fn denied(&mut self, denied: DeniedRequest<'_>) -> Broken {
        self.open.policy = denied.note.map(owned);
        let outcome = match denied.rejection.status {
            403 => Outcome::PolicyBlocked,
            _ => Outcome::ClientDisconnect,
        };
        Broken::Refused(denied.rejection, outcome)
    }
}
