//! Carries an upstream's answer to the client as it arrives, and holds back its end until it is recorded.

mod frames;
mod inspection;
mod passage;
mod sink;
mod source;
mod translated;

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use proofgate_base::client::AfterExchange;
use proofgate_base::response_head::{AnswerHead, Scrutiny};
use proofgate_base::workspace::Workspace;
use proofgate_ledger::record::Outcome;
use proofgate_providers::BodyKind;
use proofgate_stages::Stage;
use proofgate_upstream::attempt::ResponseStarted;
use proofgate_upstream::failure::{Aborted, Failure, Timeout};
use proofgate_upstream::translation::Translation;
use proofgate_upstream::upstream::Upstream;
use proofgate_wire::{BodyDecoder, ResponseFraming};
use tokio::time::Instant;

use self::frames::frames_of;
use self::inspection::{last_of_inspection, note_judgement};
use self::passage::{Passage, Progress};
use self::sink::{break_off, end_as_reported, finish, relay_piece, send_piece};
use self::source::{END, PAUSE, Source};
use crate::gateway::Gateway;
use crate::open_exchange::OpenExchange;
use crate::own_answer::finish_with_answer;
use crate::reply::{Buffers, Reply};

/// Everything that one answer's way needs.
pub(crate) struct Relay<'r, 'c> {
    pub gateway: &'r Rc<Gateway>,
    pub reply: &'r mut Reply<'c>,
    /// How long an upstream may be silent.
    pub(crate) silence: Duration,
    /// When its answer must be over.
    pub until: Option<Instant>,
    /// Answers that the request asks for.
    pub choices: u64,
    /// Whether the gateway asked for usage and the client did not.
    pub(crate) keeps_usage: bool,
    /// The way back, where the provider does not speak what the client does.
    pub translation: Option<Box<Translation>>,
}

impl Relay<'_, '_> {
    /// Relays one answer to its end, whatever that is, and records it.
    pub async fn run(
        self,
        mut open: Box<OpenExchange>,
        begun: ResponseStarted<AnswerHead>,
        home: &Upstream,
    ) -> AfterExchange {
        let Relay {
            gateway,
            reply,
            silence,
            until,
            choices,
            keeps_usage,
            translation,
        } = self;
        let ResponseStarted {
            connection,
            head: mut answer_head,
            body: begin,
        } = begun;
        let mut source = Source {
            gateway,
            upstream: connection,
            silence,
            until,
        };
        open.span.lap_now(Stage::ResponseHead);
        let mut workspace = gateway.buffers.workspaces.take();
        let spoken = translation.as_ref().map_or(reply.dialect, |back| back.upstream());
        workspace.usage.reset(spoken);
        if open.is_kept_longer() {
            workspace.usage.expect_longer_cache();
        }
        if open.offers_tools() {
            workspace.usage.expect_tool_calls();
        }
        answer_head.dialect = reply.dialect;
        answer_head.is_translated = translation.is_some();
        if gateway.observers.tap.is_some() && answer_head.is_success() {
            open.begin_copy(reply.dialect);
        }
        let most = open.catalog.terms.limits.body_bytes;
        let head = &mut reply.buffers.head;
        let frames = frames_of(translation.as_deref(), &mut answer_head, head, most);
        let mut progress = Progress::new(spoken, choices, keeps_usage, translation, frames);
        if answer_head.is_recording() {
            answer_head.scrutiny = Scrutiny::None;
            // Also a file that says it is a stream of them.
            answer_head.events = false;
            answer_head.know(BodyKind::Other, head);
            progress.known = true;
        }
        let relayed = body(
            &mut source,
            reply,
            &mut answer_head,
            begin,
            &mut open,
            &mut progress,
            &mut workspace,
        );
        let relayed = pin!(relayed).await;
        if reply.dialect.generates() && reply.dialect.costs_tokens() {
            open.events = progress.events;
        }
        if let Ok(true) = relayed {
            home.pool.put_back(source.upstream);
        }
        let ended = relayed.and_then(|_| {
            let mut passage = Passage {
                gateway,
                answer_head: &mut answer_head,
                open: &mut open,
                progress: &mut progress,
                workspace: &mut workspace,
                head: &mut reply.buffers.head,
            };
            passage.finish()
        });
        let ended = match ended {
            // What the upstream says of its failure may be held behind what came before.
            Ok(()) | Err(Aborted::Upstream(Failure::Reported)) => {
                let head = &mut reply.buffers.head;
                let inspected = last_of_inspection(gateway, head, &answer_head, &mut open, &mut workspace);
                inspected.await.and(ended)
            }
            Err(aborted) => Err(aborted),
        };
        note_judgement(&gateway.observers, &mut open, &mut workspace);
        let aborted = match ended {
            Ok(()) => return pin!(finish(&gateway.buffers, reply, &answer_head, open, workspace)).await,
            Err(aborted) => aborted,
        };
        if !progress.ended {
            workspace.usage.interrupted();
        }
        let (outcome, answer) = match &aborted {
            Aborted::Client => {
                open.store().await;
                open.end(Outcome::ClientDisconnect, answer_head.status, workspace.usage());
                return AfterExchange::Close;
            }
            Aborted::Upstream(failure) => {
                let answer = failure.answer();
                if !matches!(failure, Failure::Drained) {
                    gateway.observers.metrics.provider_failed(&home.name, answer.code);
                }
                (failure.outcome(), answer)
            }
            Aborted::Policy(rejection) => (Outcome::PolicyBlocked, rejection.answer()),
        };
        let answer = answer.of_exchange(open.may_have_run());
        open.error = Some(answer.code);
        if let Aborted::Upstream(Failure::Reported) = aborted {
            return Box::pin(end_as_reported(
                &gateway.buffers,
                reply,
                &answer_head,
                open,
                workspace,
            ))
            .await;
        }
        if reply.buffers.head.is_empty() {
            if progress.has_left_an_event_open(&answer_head) {
                open.store().await;
                open.end(outcome, answer_head.status, workspace.usage());
                return AfterExchange::Close;
            }
            return Box::pin(break_off(
                &gateway.buffers,
                reply,
                &answer_head,
                open,
                outcome,
                &answer.event(reply.dialect, progress.events),
                workspace,
            ))
            .await;
        }
        // Nothing of it has left: the client gets a whole answer that says why.
        let usage = workspace.usage();
        gateway.buffers.workspaces.put_back(workspace);
        Box::pin(finish_with_answer(reply, open, outcome, answer, usage)).await
    }
}

/// Relays the body up to what must be held back; says whether the upstream's connection can serve again.
///
/// An answer is whole with its end marker: what its upstream does then costs the connection alone.
async fn body(
    source: &mut Source<'_>,
    reply: &mut Reply<'_>,
    answer_head: &mut AnswerHead,
    begin: usize,
    open: &mut OpenExchange,
    progress: &mut Progress,
    workspace: &mut Workspace,
) -> Result<bool, Aborted> {
    let gateway = source.gateway;
    let mut decoder = BodyDecoder::for_response(answer_head.framing);
    let mut used = begin;
    // Until when the end of the transfer is waited for, once nothing else is.
    let mut end_by = None;
    loop {
        let done = loop {
            let Buffers { head, upstream, .. } = &mut *reply.buffers;
            let step = match decoder.decode(&upstream[used..]) {
                Ok(step) => step,
                Err(_) if progress.has_ended(&workspace.partial) => return Ok(false),
                Err(_) => return Err(Aborted::Upstream(Failure::Unreachable)),
            };
            let data = used + step.data.start..used + step.data.end;
            if !data.is_empty() {
                if !progress.has_room_for(data.len()) {
                    return Ok(false);
                }
                let mut passage = Passage {
                    gateway,
                    answer_head: &mut *answer_head,
                    open: &mut *open,
                    progress: &mut *progress,
                    workspace: &mut *workspace,
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
            return Ok(answer_head.keep_alive && whole);
        }
        if !workspace.piece.is_empty() || (answer_head.chunked && !reply.buffers.head.is_empty()) {
            open.span.lap_now(Stage::Relay);
            relay_piece(reply, answer_head, open, workspace, false);
            if reply.buffers.upstream.is_empty() {
                source.lend(reply);
            }
            send_piece(&gateway.buffers, reply, answer_head, workspace).await?;
            open.span.lap_now(Stage::ClientWrite);
        }
        workspace.passed.clear();
        for buffer in [
            &mut workspace.piece,
            &mut workspace.passed,
            &mut workspace.partial,
        ] {
            gateway.buffers.spare.take_back(buffer);
        }
        let has_left = answer_head.chunked && answer_head.events && reply.buffers.head.is_empty();
        // No frame says nothing to all clients of Amazon's.
        let beats = has_left && !answer_head.to_frames && !progress.has_left_an_event_open(answer_head);
        let interval = open.catalog.terms.timeouts.heartbeat.filter(|_| beats);
        let mut waited = Duration::ZERO;
        let mut read = None;
        if answer_head.events && progress.may_have_ended(&workspace.partial) {
            let pause = interval.map_or(PAUSE, |interval| interval.min(PAUSE));
            read = Some(source.read_for(reply, pause).await);
            if let Some(Err(Aborted::Upstream(Failure::TimedOut(Timeout::Idle)))) = read {
                (waited, read) = (pause, None);
                progress.has_ended(&workspace.partial);
            }
        }
        let read = match (read, progress.ended, interval) {
            (Some(read), ..) => read,
            (None, true, _) => {
                let now = Instant::now();
                let left = end_by.get_or_insert(now + END).saturating_duration_since(now);
                if left.is_zero() {
                    return Ok(false);
                }
                source.read_end(reply, left).await
            }
            (None, false, None) => source.read(reply, waited).await,
            (None, false, Some(interval)) => {
                match source.read_for(reply, interval.saturating_sub(waited)).await {
                    Err(Aborted::Upstream(Failure::TimedOut(Timeout::Idle))) => {
                        Box::pin(source.read_beating(reply, open, interval)).await
                    }
                    read => read,
                }
            }
        };
        match read {
            Ok(true) => {}
            Ok(false) if answer_head.framing == ResponseFraming::UntilClose => return Ok(false),
            Ok(false) | Err(Aborted::Upstream(_)) if progress.has_ended(&workspace.partial) => {
                return Ok(false);
            }
            Ok(false) => return Err(Aborted::Upstream(Failure::Unreachable)),
            Err(aborted) => return Err(aborted),
        }
    }
}
