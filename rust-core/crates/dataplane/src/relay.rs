//! Carries an upstream's answer to the client as it arrives, and holds back its end until it is recorded.

mod inspection;
mod passage;
mod sink;
mod source;

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use proofgate_ledger::record::Outcome;
use proofgate_stages::Stage;
use proofgate_wire::{BodyDecoder, ResponseFraming};
use tokio::time::Instant;

use self::inspection::{last_of_inspection, note_judgement};
use self::passage::{Passage, Progress};
use self::sink::{break_off, finish, send_piece};
use self::source::Source;
use crate::answer_buffers::AnswerBuffers;
use crate::client::After;
use crate::failure::{CLIENT_CLOSED_REQUEST, Cut, Failure};
use crate::gateway::Gateway;
use crate::open_exchange::OpenExchange;
use crate::reply::{Buffers, Reply, finish_with_answer};
use crate::response_head::AnswerHead;
use crate::upstream::{Pool, UpstreamStream};

/// Everything that one answer's way needs.
pub(crate) struct Relay<'r, 'c> {
    pub(crate) gateway: &'r Rc<Gateway>,
    pub(crate) reply: &'r mut Reply<'c>,
    /// How long an upstream may be silent.
    pub(crate) silence: Duration,
    /// When its answer must be over.
    pub(crate) until: Option<Instant>,
    /// Whether the gateway asked for usage and the client did not.
    pub(crate) keeps_usage: bool,
}

impl Relay<'_, '_> {
    /// Relays one answer to its end, whatever that is, and records it.
    pub(crate) async fn run(
        self,
        mut open: Box<OpenExchange>,
        upstream: UpstreamStream,
        home: &Rc<Pool>,
    ) -> After {
        let Relay {
            gateway,
            reply,
            silence,
            until,
            keeps_usage,
        } = self;
        let mut source = Source {
            gateway,
            upstream,
            silence,
            until,
        };
        let (mut answering, begin) = match source.head(reply, &mut open).await {
            Ok(head) => head,
            Err(Cut::Client) => {
                open.end(Outcome::ClientDisconnect, CLIENT_CLOSED_REQUEST, None);
                return After::Close;
            }
            Err(Cut::Upstream(failure)) => {
                let (outcome, answer) = (failure.outcome(), failure.answer());
                return Box::pin(finish_with_answer(reply, open, outcome, answer, None)).await;
            }
            Err(Cut::Policy(rejection)) => {
                let answer = rejection.answer();
                let blocked = finish_with_answer(reply, open, Outcome::PolicyBlocked, answer, None);
                return Box::pin(blocked).await;
            }
        };
        open.upstream_status = Some(answering.status);
        open.span.lap_now(Stage::ResponseHead);
        let mut draft = gateway.drafts.take();
        let mut progress = Progress::new(keeps_usage);
        let relayed = body(
            &mut source,
            reply,
            &mut answering,
            begin,
            &mut open,
            &mut progress,
            &mut draft,
        );
        let relayed = pin!(relayed).await;
        if let Ok(true) = relayed {
            home.put_back(source.upstream);
        }
        let ended = relayed.and_then(|_| {
            let mut passage = Passage {
                gateway,
                answering: &mut answering,
                open: &mut open,
                progress: &mut progress,
                draft: &mut draft,
                head: &mut reply.buffers.head,
            };
            passage.finish()
        });
        let ended = match ended {
            Ok(()) => {
                let head = &mut reply.buffers.head;
                last_of_inspection(gateway, head, &answering, &mut open, &mut draft).await
            }
            Err(cut) => Err(cut),
        };
        note_judgement(&mut open, &mut draft);
        let cut = match ended {
            Ok(()) => return pin!(finish(gateway, reply, &answering, open, draft)).await,
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
        if reply.buffers.head.is_empty() {
            if progress.has_left_an_event_open(&answering) {
                open.end(outcome, answering.status, draft.usage());
                return After::Close;
            }
            return Box::pin(break_off(
                gateway, reply, &answering, open, outcome, &answer, draft,
            ))
            .await;
        }
        // Nothing of it has left: the client gets a whole answer that says why.
        let usage = draft.usage();
        gateway.drafts.put_back(draft);
        Box::pin(finish_with_answer(reply, open, outcome, answer, usage)).await
    }
}

/// Relays the body up to what must be held back; says whether the upstream's connection can serve again.
///
/// An answer is whole with its end marker: what its upstream does then costs the connection alone.
async fn body(
    source: &mut Source<'_>,
    reply: &mut Reply<'_>,
    answering: &mut AnswerHead,
    begin: usize,
    open: &mut OpenExchange,
    progress: &mut Progress,
    draft: &mut AnswerBuffers,
) -> Result<bool, Cut> {
    let gateway = source.gateway;
    let mut decoder = BodyDecoder::for_response(answering.framing);
    let mut used = begin;
    loop {
        let done = loop {
            let Buffers { head, upstream, .. } = &mut *reply.buffers;
            let step = match decoder.decode(&upstream[used..]) {
                Ok(step) => step,
                Err(_) if progress.ended => return Ok(false),
                Err(_) => return Err(Cut::Upstream(Failure::Unreachable)),
            };
            let data = used + step.data.start..used + step.data.end;
            if !data.is_empty() {
                let mut passage = Passage {
                    gateway,
                    answering: &mut *answering,
                    open: &mut *open,
                    progress: &mut *progress,
                    draft: &mut *draft,
                    head,
                };
                passage.take(&upstream[data])?;
            }
            used += step.consumed;
            if step.done || step.consumed == 0 {
                break step.done;
            }
        };
        reply.buffers.upstream.drain(..used);
        used = 0;
        if done {
            open.span.lap_now(Stage::Relay);
            let whole = reply.buffers.upstream.is_empty();
            source.lend(reply);
            return Ok(answering.keep_alive && whole);
        }
        if !draft.piece.is_empty() || (answering.chunked && !reply.buffers.head.is_empty()) {
            open.span.lap_now(Stage::Relay);
            open.respond(&draft.piece);
            if reply.buffers.upstream.is_empty() {
                source.lend(reply);
            }
            send_piece(gateway, reply, answering, draft).await?;
            open.span.lap_now(Stage::ClientWrite);
        }
        draft.passed.clear();
        for buffer in [&mut draft.piece, &mut draft.passed, &mut draft.partial] {
            gateway.spare.take_back(buffer);
        }
        let read = match progress.ended {
            true => source.read_end(reply).await,
            false => source.read(reply).await,
        };
        match read {
            Ok(true) => {}
            Ok(false) if progress.ended || answering.framing == ResponseFraming::UntilClose => {
                return Ok(false);
            }
            Ok(false) => return Err(Cut::Upstream(Failure::Unreachable)),
            Err(Cut::Upstream(_)) if progress.ended => return Ok(false),
            Err(cut) => return Err(cut),
        }
    }
}
