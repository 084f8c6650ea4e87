//! Carries an upstream's answer to the client as it arrives, and holds back its end until it is recorded.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use proofgate_inspect::{AnswerKind, ResponseInspector};
use proofgate_ledger::record::{Outcome, Usage};
use proofgate_providers::{DoneScanner, UsageTail};
use proofgate_stages::Stage;
use proofgate_wire::{BodyDecoder, HeadScanner, Limits, Method, ResponseFraming, encode, parse_response};
use tokio::io::AsyncReadExt;

use crate::answer::{Answer, Manner};
use crate::connection::After;
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
/// Room for what leaves in one piece that is kept from answer to answer, in bytes.
const MAX_KEPT: usize = 64 * 1024;

/// Buffers of a connection, kept from exchange to exchange.
#[derive(Default)]
pub(crate) struct Buffers {
    /// A head under construction: of the request upstream, then of the answer.
    pub(crate) head: Vec<u8>,
    /// What was read from upstream and is not decoded yet.
    upstream: Vec<u8>,
    /// Decoded bytes on their way to the client.
    piece: Vec<u8>,
    /// The end of the answer, held back until its completion is written.
    held: Vec<u8>,
    usage: UsageTail,
    /// A request's body after redaction.
    pub(crate) rewritten: Vec<u8>,
    /// What looks at answers, once there were rules for them.
    inspector: Option<ResponseInspector>,
    /// What it has let pass.
    passed: Vec<u8>,
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
    /// Whether the inspector has been prepared for this answer.
    begun: bool,
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

/// The connection's inspector, ready for this answer.
fn inspector_for<'i>(
    kept: &'i mut Option<ResponseInspector>,
    answering: &Answering,
    limit: u64,
    begun: &mut bool,
) -> &'i mut ResponseInspector {
    let kind = match answering.events {
        true => AnswerKind::Events,
        false => AnswerKind::Unary,
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let inspector = kept.get_or_insert_with(|| ResponseInspector::new(kind, limit));
    if !std::mem::replace(begun, true) {
        inspector.reset(kind);
    }
    inspector
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
        self.back.buffers.piece.clear();
        self.back.buffers.held.clear();
        self.back.buffers.usage.clear();
        let answering = match self.response_head(&mut open, &mut upstream).await {
            Ok(answering) => answering,
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
        let relayed = self.body(&answering, &mut open, &mut upstream).await;
        if let Ok(true) = relayed {
            home.put_back(upstream);
        }
        let ended = match relayed {
            Ok(_) => self.last_of_inspection(&answering, &mut open),
            Err(cut) => Err(cut),
        };
        self.note(&answering, &mut open);
        let cut = match ended {
            Ok(()) => return self.finish(&answering, open).await,
            Err(cut) => cut,
        };
        let (outcome, answer) = match &cut {
            Cut::Client => {
                open.end(Outcome::ClientDisconnect, answering.status, self.usage());
                return After::Close;
            }
            Cut::Upstream(failure) => (failure.outcome(), failure.answer()),
            Cut::Policy(rejection) => (Outcome::PolicyBlocked, rejection.answer()),
        };
        if self.back.buffers.head.is_empty() {
            return Box::pin(self.break_off(&answering, open, outcome, &answer)).await;
        }
        // Nothing of it has left: the client gets a whole answer that says why.
        let usage = self.usage();
        Box::pin(finish_with_answer(self.back, open, outcome, answer, usage)).await
    }

    /// Reads the upstream's head and writes ours into the head buffer; it is not sent yet.
    async fn response_head(
        &mut self,
        open: &mut OpenExchange,
        upstream: &mut UpstreamStream,
    ) -> Result<Answering, Cut> {
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
                let head = parse_response(&buffers.upstream[..length], Method::Post, &limits);
                let head = head.map_err(unreachable)?;
                let answering = (head.status >= 200).then(|| {
                    let manner = Manner {
                        close: self.back.close,
                        head_only: false,
                        extra: self.back.extra,
                    };
                    let scrutiny = Scrutiny::of(&open.catalog.terms.profiles[open.tenant]);
                    write_head(&head, open.id.as_str(), manner, scrutiny, &mut buffers.head)
                });
                drop(head);
                buffers.upstream.drain(..length);
                if let Some(answering) = answering {
                    return answering.map_err(unreachable);
                }
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
        open: &mut OpenExchange,
        upstream: &mut UpstreamStream,
    ) -> Result<bool, Cut> {
        let mut decoder = BodyDecoder::for_response(answering.framing);
        let mut end = End::default();
        loop {
            let mut used = 0;
            let done = loop {
                let step = decoder
                    .decode(&self.back.buffers.upstream[used..])
                    .map_err(|_| Cut::Upstream(Failure::Unreachable))?;
                let data = used + step.data.start..used + step.data.end;
                if !data.is_empty() {
                    self.take(answering, data, open, &mut end)?;
                }
                used += step.consumed;
                if step.done || step.consumed == 0 {
                    break step.done;
                }
            };
            self.back.buffers.upstream.drain(..used);
            if done {
                open.span.lap_now(Stage::Relay);
                return Ok(answering.keep_alive && self.back.buffers.upstream.is_empty());
            }
            if self.back.buffers.held.len() > MAX_HELD {
                return Err(Cut::Upstream(Failure::Unreachable));
            }
            if !self.back.buffers.piece.is_empty()
                || (answering.chunked && !self.back.buffers.head.is_empty())
            {
                open.span.lap_now(Stage::Relay);
                open.respond(&self.back.buffers.piece);
                self.send_piece(answering).await?;
                open.span.lap_now(Stage::ClientWrite);
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
    ) -> Result<(), Cut> {
        let Buffers {
            upstream,
            usage,
            inspector,
            passed,
            piece,
            held,
            ..
        } = &mut *self.back.buffers;
        let data = &upstream[data];
        usage.push(data);
        if answering.scrutiny != Scrutiny::Enforce {
            end.release(answering, data, piece, held);
        }
        if answering.scrutiny == Scrutiny::None || end.blind {
            return Ok(());
        }
        let terms = &open.catalog.terms;
        let (engine, profile) = (&terms.engine, &terms.profiles[open.tenant]);
        let inspector = inspector_for(inspector, answering, terms.limits.body_bytes, &mut end.begun);
        passed.clear();
        open.span.lap_now(Stage::Relay);
        let pushed = inspector.push(
            engine,
            profile,
            &mut self.gateway.scratch.borrow_mut(),
            data,
            passed,
        );
        open.span.lap_now(Stage::ResponsePolicy);
        let stopped = pushed.map_err(|stop| self.gateway.response_stopped(engine, stop));
        if answering.scrutiny == Scrutiny::Observe {
            end.blind = stopped.is_err();
            return Ok(());
        }
        end.release(answering, passed, piece, held);
        stopped.map_err(Cut::Policy)
    }

    /// Lets the rules see the end of the answer and releases what they held of it.
    fn last_of_inspection(&mut self, answering: &Answering, open: &mut OpenExchange) -> Result<(), Cut> {
        if answering.scrutiny == Scrutiny::None {
            return Ok(());
        }
        let Buffers {
            head,
            inspector,
            passed,
            piece,
            held,
            ..
        } = &mut *self.back.buffers;
        passed.clear();
        if let Some(inspector) = inspector {
            let terms = &open.catalog.terms;
            let (engine, profile) = (&terms.engine, &terms.profiles[open.tenant]);
            let finished = inspector.finish(engine, profile, &mut self.gateway.scratch.borrow_mut(), passed);
            open.span.lap_now(Stage::ResponsePolicy);
            let stopped = finished.map_err(|stop| self.gateway.response_stopped(engine, stop));
            if answering.scrutiny == Scrutiny::Observe {
                return Ok(());
            }
            stopped.map_err(Cut::Policy)?;
        }
        held.extend_from_slice(passed);
        if answering.open_head {
            encode::write_content_length(head, (piece.len() + held.len()) as u64);
            head.extend_from_slice(encode::CRLF);
        }
        Ok(())
    }

    /// Notes for the record what the rules saw.
    fn note(&self, answering: &Answering, open: &mut OpenExchange) {
        let inspector = self.back.buffers.inspector.as_ref();
        let Some(inspector) = inspector.filter(|_| answering.scrutiny != Scrutiny::None) else {
            return;
        };
        let judgement = inspector.judgement();
        if judgement.decision().is_some() {
            let engine = &open.catalog.terms.engine;
            open.policy = Some(owned(note(engine, judgement, inspector.is_redacted())));
        }
    }

    /// Waits for bytes from upstream; `false` at the end of its stream.
    async fn read(&mut self, upstream: &mut UpstreamStream) -> Result<bool, Cut> {
        self.back.buffers.upstream.reserve(READ);
        tokio::select! {
            biased;
            read = self.back.deadline.within(self.silence, upstream.read_buf(&mut self.back.buffers.upstream)) => match read {
                Ok(Ok(length)) => Ok(length != 0),
                Ok(Err(_)) => Err(Cut::Upstream(Failure::Unreachable)),
                Err(_) => Err(Cut::Upstream(Failure::TimedOut)),
            },
            () = self.back.client.gone() => Err(Cut::Client),
            () = self.back.lifecycle.reached(Phase::Cancelled) => Err(Cut::Upstream(Failure::Drained)),
        }
    }

    /// Sends what is decoded, with the head before it if that has not left yet.
    async fn send_piece(&mut self, answering: &Answering) -> Result<(), Cut> {
        let end = if answering.chunked && !self.back.buffers.piece.is_empty() {
            encode::write_chunk_header(&mut self.back.buffers.head, self.back.buffers.piece.len());
            encode::CRLF
        } else {
            b""
        };
        self.send(end).await.map_err(|_| Cut::Client)
    }

    /// Sends head, piece and `end` in one: a short copy costs less than a vectored write.
    async fn send(&mut self, end: &[u8]) -> io::Result<()> {
        let Buffers { head, piece, .. } = &mut *self.back.buffers;
        head.append(piece);
        head.extend_from_slice(end);
        let sent = self.back.client.send(head).await;
        head.clear();
        head.shrink_to(MAX_KEPT);
        sent
    }

    /// Records the completion, then lets the end of the answer go.
    async fn finish(mut self, answering: &Answering, mut open: Box<OpenExchange>) -> After {
        let usage = self.usage();
        let Buffers {
            head, piece, held, ..
        } = &mut *self.back.buffers;
        piece.append(held);
        open.respond(piece);
        let completion = open.end(Outcome::Complete, answering.status, usage);
        if !open.written(completion, Stage::CompletionRecord).await {
            return After::Close;
        }
        let end: &[u8] = match (answering.chunked, piece.is_empty()) {
            (false, _) => b"",
            (true, true) => encode::LAST_CHUNK,
            (true, false) => {
                encode::write_chunk_header(head, piece.len());
                b"\r\n0\r\n\r\n"
            }
        };
        let sent = self.send(end).await;
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
    ) -> After {
        if answering.events {
            let piece = &mut self.back.buffers.piece;
            for part in [b"data: ", &answer.json()[..], b"\n\n"] {
                piece.extend_from_slice(part);
            }
            open.respond(piece);
        }
        let completion = open.end(outcome, answering.status, self.usage());
        if answering.events && open.written(completion, Stage::CompletionRecord).await {
            let _ = self.send_piece(answering).await;
            open.sent();
        }
        After::Close
    }

    fn usage(&self) -> Option<Usage> {
        let usage = self.back.buffers.usage.usage()?;
        Some(Usage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
        })
    }
}
