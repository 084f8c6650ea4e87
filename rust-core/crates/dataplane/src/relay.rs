//! Carries an upstream's answer to the client as it arrives, and holds back its end until it is recorded.

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use proofgate_inspect::AnswerKind;
use proofgate_ledger::record::Outcome;
use proofgate_providers::DoneScanner;
use proofgate_stages::Stage;
use proofgate_wire::{BodyDecoder, HeadScanner, Limits, Method, ResponseFraming, encode, parse_response};
use tokio::io::AsyncReadExt;

use crate::answer::{Answer, Manner};
use crate::connection::After;
use crate::draft::Draft;
use crate::exchange::{WayBack, finish_with_answer};
use crate::failure::{CLIENT_CLOSED_REQUEST, Failure};
use crate::gateway::Gateway;
use crate::lifecycle::Phase;
use crate::open_exchange::OpenExchange;
use crate::rejection::Rejection;
use crate::request_policy::{note, owned};
use crate::response_head::{Answering, Scrutiny, write_head};
use crate::upstream::{Pool, UpstreamStream};

/// How much an upstream may send behind its end marker.
const MAX_HELD: usize = 64 * 1024;
/// Room for one read from an upstream, in bytes.
const READ: usize = 16 * 1024;
/// Room for what is read that is kept for others, in bytes.
const MAX_KEPT: usize = 64 * 1024;

/// Buffers of a connection, kept from exchange to exchange.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The head of an answer under construction, and what leaves behind it.
    pub(crate) head: Vec<u8>,
    /// What was read from upstream and is not decoded yet. While it is empty its memory serves other connections.
    upstream: Vec<u8>,
    /// A request's body after redaction.
    pub(crate) rewritten: Vec<u8>,
}

/// Everything that one answer's way needs.
pub(crate) struct Relay<'r, 'c> {
    pub(crate) gateway: &'r Rc<Gateway>,
    pub(crate) back: &'r mut WayBack<'c>,
    /// How long an upstream may be silent.
    pub(crate) silence: Duration,
}

/// Where an answer ends, as far as that is held back.
#[derive(Default)]
struct End {
    marker: DoneScanner,
    reached: bool,
    /// Whether the rules, which only observe, have failed.
    blind: bool,
}

impl End {
    /// Gives bytes to the client, or holds them back when they are the answer's end.
    fn release(&mut self, answering: &Answering, bytes: &[u8], piece: &mut Vec<u8>, held: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let released = match (self.reached, answering.events) {
            (true, _) => 0,
            (false, true) => {
                let end = self.marker.scan(bytes);
                self.reached = end.is_some();
                end.unwrap_or(bytes.len())
            }
            (false, false) => bytes.len(),
        };
        piece.extend_from_slice(&bytes[..released]);
        held.extend_from_slice(&bytes[released..]);
    }
}

/// Notes for the record what the rules saw.
fn note_judgement(open: &mut OpenExchange, draft: &mut Draft) {
    let Some((inspector, _)) = draft.inspector() else {
        return;
    };
    let judgement = inspector.judgement();
    if judgement.decision().is_some() {
        let engine = &open.catalog.terms.engine;
        open.policy = Some(owned(note(engine, judgement, inspector.is_redacted())));
    }
}

/// Moves all of `end` behind `begin`; copies nothing where there is nothing before it.
fn append(begin: &mut Vec<u8>, end: &mut Vec<u8>) {
    if begin.is_empty() {
        std::mem::swap(begin, end);
    } else {
        begin.append(end);
    }
}

/// Why an answer did not come to its end.
enum Cut {
    Upstream(Failure),
    Client,
    /// The policy denies it.
    Policy(Rejection),
}

impl Relay<'_, '_> {
    /// Relays one answer to its end, whatever that is, and records it.
    pub(crate) async fn run(
        mut self,
        mut open: Box<OpenExchange>,
        mut upstream: UpstreamStream,
        home: &Rc<Pool>,
    ) -> After {
        self.back.buffers.upstream.clear();
        let (answering, begin) = match self.response_head(&mut open, &mut upstream).await {
            Ok(head) => head,
            Err(Cut::Client) => {
                open.end(Outcome::ClientDisconnect, CLIENT_CLOSED_REQUEST, None);
                return After::Close;
            }
            Err(Cut::Upstream(failure)) => {
                let (outcome, answer) = (failure.outcome(), failure.answer());
                return Box::pin(finish_with_answer(self.back, open, outcome, answer, None)).await;
            }
            Err(Cut::Policy(rejection)) => {
                let answer = rejection.answer();
                let blocked = finish_with_answer(self.back, open, Outcome::PolicyBlocked, answer, None);
                return Box::pin(blocked).await;
            }
        };
        open.upstream_status = Some(answering.status);
        open.span.lap_now(Stage::ResponseHead);
        let mut draft = self.gateway.drafts.take();
        let relayed = pin!(self.body(&answering, begin, &mut open, &mut upstream, &mut draft)).await;
        if let Ok(true) = relayed {
            home.put_back(upstream);
        }
        let ended = match relayed {
            Ok(_) => self.last_of_inspection(&answering, &mut open, &mut draft),
            Err(cut) => Err(cut),
        };
        note_judgement(&mut open, &mut draft);
        let cut = match ended {
            Ok(()) => return pin!(self.finish(&answering, open, draft)).await,
            Err(cut) => cut,
        };
        let (outcome, answer) = match &cut {
            Cut::Client => {
                open.end(Outcome::ClientDisconnect, answering.status, draft.usage());
                return After::Close;
            }
            Cut::Upstream(failure) => (failure.outcome(), failure.answer()),
            Cut::Policy(rejection) => (Outcome::PolicyBlocked, rejection.answer()),
        };
        if self.back.buffers.head.is_empty() {
            return Box::pin(self.break_off(&answering, open, outcome, &answer, draft)).await;
        }
        // Nothing of it has left: the client gets a whole answer that says why.
        let usage = draft.usage();
        Box::pin(finish_with_answer(self.back, open, outcome, answer, usage)).await
    }

    /// Reads the upstream's head and writes ours into the head buffer; it is not sent yet. Says also where the body
    /// begins in the upstream buffer.
    async fn response_head(
        &mut self,
        open: &mut OpenExchange,
        upstream: &mut UpstreamStream,
    ) -> Result<(Answering, usize), Cut> {
        let limits = Limits {
            head_bytes: 64 * 1024,
            ..open.catalog.terms.limits
        };
        let unreachable = |_| Cut::Upstream(Failure::Unreachable);
        let mut scanner = HeadScanner::new();
        let mut begun = false;
        loop {
            if let Some(length) = scanner
                .scan(&self.back.buffers.upstream, &limits)
                .map_err(unreachable)?
            {
                let buffers = &mut *self.back.buffers;
                let parsed = parse_response(&buffers.upstream[..length], Method::Post, &limits);
                let head = parsed.as_ref().map_err(|refusal| unreachable(*refusal))?;
                let answering = (head.status >= 200).then(|| {
                    let manner = Manner {
                        close: self.back.close,
                        head_only: false,
                        extra: self.back.extra,
                    };
                    let scrutiny = Scrutiny::of(&open.catalog.terms.profiles[open.tenant]);
                    self.gateway.spare.lend(&mut buffers.head);
                    write_head(head, open.id.as_str(), manner, scrutiny, &mut buffers.head)
                });
                drop(parsed);
                if let Some(answering) = answering {
                    return Ok((answering.map_err(unreachable)?, length));
                }
                buffers.upstream.drain(..length);
                scanner.reset();
            } else {
                if !self.read(upstream).await? {
                    return Err(Cut::Upstream(Failure::Unreachable));
                }
                if !std::mem::replace(&mut begun, true) {
                    open.span.lap_now(Stage::UpstreamWait);
                }
            }
        }
    }

    /// Relays the body up to what must be held back; says whether the upstream's connection can serve again.
    async fn body(
        &mut self,
        answering: &Answering,
        begin: usize,
        open: &mut OpenExchange,
        upstream: &mut UpstreamStream,
        draft: &mut Draft,
    ) -> Result<bool, Cut> {
        let mut decoder = BodyDecoder::for_response(answering.framing);
        let mut end = End::default();
        let mut used = begin;
        loop {
            let done = loop {
                let step = decoder
                    .decode(&self.back.buffers.upstream[used..])
                    .map_err(|_| Cut::Upstream(Failure::Unreachable))?;
                let data = used + step.data.start..used + step.data.end;
                if !data.is_empty() {
                    self.take(answering, data, open, &mut end, draft)?;
                }
                used += step.consumed;
                if step.done || step.consumed == 0 {
                    break step.done;
                }
            };
            self.back.buffers.upstream.drain(..used);
            used = 0;
            if done {
                open.span.lap_now(Stage::Relay);
                let whole = self.back.buffers.upstream.is_empty();
                self.lend();
                return Ok(answering.keep_alive && whole);
            }
            if draft.held.len() > MAX_HELD {
                return Err(Cut::Upstream(Failure::Unreachable));
            }
            if !draft.piece.is_empty() || (answering.chunked && !self.back.buffers.head.is_empty()) {
                open.span.lap_now(Stage::Relay);
                open.respond(&draft.piece);
                self.send_piece(answering, draft).await?;
                open.span.lap_now(Stage::ClientWrite);
            }
            draft.passed.clear();
            for buffer in [&mut draft.piece, &mut draft.passed] {
                self.gateway.spare.take_back(buffer);
            }
            if !self.read(upstream).await? {
                return match answering.framing {
                    ResponseFraming::UntilClose => Ok(false),
                    _ => Err(Cut::Upstream(Failure::Unreachable)),
                };
            }
        }
    }

    /// Takes decoded bytes of the answer, standing in the upstream buffer, on their way to the client.
    fn take(
        &mut self,
        answering: &Answering,
        data: Range<usize>,
        open: &mut OpenExchange,
        end: &mut End,
        draft: &mut Draft,
    ) -> Result<(), Cut> {
        let data = &self.back.buffers.upstream[data];
        self.gateway.spare.lend(&mut draft.piece);
        draft.tail.push(data);
        if answering.scrutiny != Scrutiny::Enforce {
            end.release(answering, data, &mut draft.piece, &mut draft.held);
        }
        if answering.scrutiny == Scrutiny::None || end.blind {
            return Ok(());
        }
        let terms = &open.catalog.terms;
        let (engine, profile) = (&terms.engine, &terms.profiles[open.tenant]);
        let kind = match answering.events {
            true => AnswerKind::Events,
            false => AnswerKind::Unary,
        };
        draft.inspect(kind, terms.limits.body_bytes);
        let Some((inspector, passed)) = draft.inspector() else {
            return Ok(());
        };
        passed.clear();
        self.gateway.spare.lend(passed);
        open.span.lap_now(Stage::Relay);
        let pushed = inspector.push(
            engine,
            profile,
            &mut self.gateway.scratch.borrow_mut(),
            &mut self.gateway.answer_reading.borrow_mut(),
            data,
            passed,
        );
        open.span.lap_now(Stage::ResponsePolicy);
        let stopped = pushed.map_err(|stop| self.gateway.response_stopped(engine, stop));
        if answering.scrutiny == Scrutiny::Observe {
            end.blind = stopped.is_err();
            return Ok(());
        }
        let Draft {
            passed, piece, held, ..
        } = draft;
        end.release(answering, passed, piece, held);
        stopped.map_err(Cut::Policy)
    }

    /// Lets the rules see the end of the answer and releases what they held of it.
    fn last_of_inspection(
        &mut self,
        answering: &Answering,
        open: &mut OpenExchange,
        draft: &mut Draft,
    ) -> Result<(), Cut> {
        if answering.scrutiny == Scrutiny::None {
            return Ok(());
        }
        if let Some((inspector, passed)) = draft.inspector() {
            passed.clear();
            let terms = &open.catalog.terms;
            let (engine, profile) = (&terms.engine, &terms.profiles[open.tenant]);
            let finished = inspector.finish(
                engine,
                profile,
                &mut self.gateway.scratch.borrow_mut(),
                &mut self.gateway.answer_reading.borrow_mut(),
                passed,
            );
            open.span.lap_now(Stage::ResponsePolicy);
            let stopped = finished.map_err(|stop| self.gateway.response_stopped(engine, stop));
            if answering.scrutiny == Scrutiny::Observe {
                return Ok(());
            }
            stopped.map_err(Cut::Policy)?;
            append(&mut draft.held, &mut draft.passed);
        }
        if answering.open_head {
            let (head, Draft { piece, held, .. }) = (&mut self.back.buffers.head, draft);
            encode::write_content_length(head, (piece.len() + held.len()) as u64);
            head.extend_from_slice(encode::CRLF);
        }
        Ok(())
    }

    /// Gives the upstream buffer, of which everything has been used, to whoever reads next.
    fn lend(&mut self) {
        let buffer = std::mem::take(&mut self.back.buffers.upstream);
        if buffer.capacity() <= MAX_KEPT {
            self.gateway.incoming.set(buffer);
        }
    }

    /// Waits for bytes from upstream; `false` at the end of its stream.
    async fn read(&mut self, upstream: &mut UpstreamStream) -> Result<bool, Cut> {
        let (incoming, buffer) = (&self.gateway.incoming, &mut self.back.buffers.upstream);
        // What waits has no memory: of the connections that wait, one reads at a time.
        let read = poll_fn(|context| {
            if buffer.is_empty() {
                *buffer = incoming.take();
                buffer.clear();
            }
            buffer.reserve(READ);
            let polled = pin!(upstream.read_buf(buffer)).poll(context);
            if polled.is_pending() && buffer.is_empty() {
                incoming.set(std::mem::take(buffer));
            }
            polled
        });
        tokio::select! {
            biased;
            read = self.back.deadline.within(self.silence, read) => match read {
                Ok(Ok(length)) => Ok(length != 0),
                Ok(Err(_)) => Err(Cut::Upstream(Failure::Unreachable)),
                Err(_) => Err(Cut::Upstream(Failure::TimedOut)),
            },
            () = self.back.client.gone() => Err(Cut::Client),
            () = self.back.lifecycle.reached(Phase::Cancelled) => Err(Cut::Upstream(Failure::Drained)),
        }
    }

    /// Sends what is decoded, with the head before it if that has not left yet.
    async fn send_piece(&mut self, answering: &Answering, draft: &mut Draft) -> Result<(), Cut> {
        self.write_piece(answering, draft, false);
        self.send().await.map_err(|_| Cut::Client)
    }

    /// Puts what is decoded behind the head, or where that would stand: a short copy costs less than a vectored write.
    fn write_piece(&mut self, answering: &Answering, draft: &mut Draft, last: bool) {
        let (head, piece) = (&mut self.back.buffers.head, &mut draft.piece);
        self.gateway.spare.lend(head);
        if answering.chunked && !piece.is_empty() {
            encode::write_chunk_header(head, piece.len());
            head.append(piece);
            head.extend_from_slice(encode::CRLF);
        } else {
            head.append(piece);
        }
        if answering.chunked && last {
            head.extend_from_slice(encode::LAST_CHUNK);
        }
    }

    /// Sends what was written.
    async fn send(&mut self) -> io::Result<()> {
        let head = &mut self.back.buffers.head;
        let sent = self.back.client.send(head).await;
        head.clear();
        self.gateway.spare.take_back(head);
        sent
    }

    /// Records the completion, then lets the end of the answer go.
    async fn finish(
        mut self,
        answering: &Answering,
        mut open: Box<OpenExchange>,
        mut draft: Box<Draft>,
    ) -> After {
        let Draft { piece, held, .. } = &mut *draft;
        append(piece, held);
        open.respond(piece);
        let completion = open.end(Outcome::Complete, answering.status, draft.usage());
        self.write_piece(answering, &mut draft, true);
        self.gateway.drafts.put_back(draft, open.bytes);
        if !open.written(completion, Stage::CompletionRecord).await {
            return After::Close;
        }
        let sent = self.send().await;
        open.sent();
        match sent {
            Ok(()) if self.back.close => After::Linger,
            Ok(()) => After::Continue,
            Err(_) => After::Close,
        }
    }

    /// Ends an answer that its upstream left unfinished, so that no client can take it for a whole one.
    async fn break_off(
        mut self,
        answering: &Answering,
        mut open: Box<OpenExchange>,
        outcome: Outcome,
        answer: &Answer<'_>,
        mut draft: Box<Draft>,
    ) -> After {
        if answering.events {
            for part in [b"data: ", &answer.json()[..], b"\n\n"] {
                draft.piece.extend_from_slice(part);
            }
            open.respond(&draft.piece);
        }
        let completion = open.end(outcome, answering.status, draft.usage());
        if answering.events && open.written(completion, Stage::CompletionRecord).await {
            let _ = self.send_piece(answering, &mut draft).await;
            open.sent();
        }
        After::Close
    }
}
