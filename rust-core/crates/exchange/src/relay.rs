//! Relays an upstream's response to the client as it arrives, and holds back the end of the
//! response until the completion is recorded.

mod frames;
mod inspection;
mod pipeline;
mod sink;
mod source;
mod translated;

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use proofgate_base::client::ConnectionAction;
use proofgate_base::response_head::{ClientResponseHead, InspectionLevel};
use proofgate_base::workspace::ResponseWorkspace;
use proofgate_ledger::record::Outcome;
use proofgate_providers::BodyKind;
use proofgate_stages::Stage;
use proofgate_upstream::attempt::ResponseStarted;
use proofgate_upstream::failure::{AbortReason, Failure, Timeout};
use proofgate_upstream::translation::ResponseTranslator;
use proofgate_upstream::upstream::Upstream;
use proofgate_wire::{BodyDecoder, ResponseFraming};
use tokio::time::Instant;

use self::frames::frame_reader;
use self::inspection::{finish_inspection, note_judgement};
use self::pipeline::{Progress, ResponsePipeline};
use self::sink::{abort_response, finish, finish_with_reported_failure, relay_chunk, send_chunk};
use self::source::{END_TIMEOUT, PARTIAL_EVENT_WAIT, Source};
use crate::gateway::Gateway;
use crate::gateway_response::finish_with_response;
use crate::open_exchange::OpenExchange;
use crate::reply::{ConnectionBuffers, Reply};

/// The state that relaying one response needs.
pub(crate) struct Relay<'r, 'c> {
    pub gateway: &'r Rc<Gateway>,
    /// The client's connection, to which the response is written.
    pub reply: &'r mut Reply<'c>,
    /// The maximum time between two reads from the upstream.
    pub(crate) silence_timeout: Duration,
    /// Deadline of the complete response.
    pub response_deadline: Option<Instant>,
    /// Number of choices that the request asks for.
    pub choices: u64,
    /// Whether usage is withheld, because the gateway requested it and the client did not.
    pub(crate) withholds_usage: bool,
    /// The translator of the response; `None` if the provider's dialect is the client's dialect.
    pub translation: Option<Box<ResponseTranslator>>,
}

impl Relay<'_, '_> {
    /// Relays one response to its end, successful or not, and records it.
    pub async fn run(
        self,
        mut open: Box<OpenExchange>,
        begun: ResponseStarted<ClientResponseHead>,
        home: &Upstream,
    ) -> ConnectionAction {
        let Relay {
            gateway,
            reply,
            silence_timeout: silence,
            response_deadline: until,
            choices,
            withholds_usage: keeps_usage,
            translation,
        } = self;
        let ResponseStarted {
            connection,
            head: mut answer_head,
            body_start: begin,
        } = begun;
        let mut source = Source {
            gateway,
            upstream: connection,
            silence_timeout: silence,
            response_deadline: until,
        };
        open.span.lap_now(Stage::ResponseHead);
        let mut workspace = gateway.buffers.workspaces.acquire();
        let spoken = translation
            .as_ref()
            .map_or(reply.dialect, |back| back.upstream_dialect());
        workspace.usage.reset(spoken);
        if open.has_extended_cache() {
            workspace.usage.expect_long_cache();
        }
        if open.sends_hosted_tools() {
            workspace.usage.expect_tool_calls();
        }
        answer_head.dialect = reply.dialect;
        answer_head.is_translated = translation.is_some();
        if gateway.observers.tap.is_some() && answer_head.is_success() {
            open.start_copy(reply.dialect);
        }
        let most = open.catalog.settings.limits.body_bytes;
        let head = &mut reply.buffers.head;
        let frames = frame_reader(translation.as_deref(), &mut answer_head, head, most);
        let mut progress = Progress::new(spoken, choices, keeps_usage, translation, frames);
        if answer_head.is_passthrough() {
            answer_head.inspection = InspectionLevel::None;
            // A file is not an event stream, even if its type says so.
            answer_head.is_event_stream = false;
            answer_head.set_body_kind(BodyKind::Other, head);
            progress.is_kind_known = true;
        }
        let relayed = relay_body(
            &mut source,
            reply,
            &mut answer_head,
            begin,
            &mut open,
            &mut progress,
            &mut workspace,
        );
        let relayed = pin!(relayed).await;
        if reply.dialect.generates_output() && reply.dialect.consumes_tokens() {
            open.event_count = progress.event_count;
        }
        if let Ok(true) = relayed {
            home.pool.put_back(source.upstream);
        }
        let ended = relayed.and_then(|_| {
            let mut passage = ResponsePipeline {
                gateway,
                response_head: &mut answer_head,
                open_exchange: &mut open,
                progress: &mut progress,
                workspace: &mut workspace,
                head: &mut reply.buffers.head,
            };
            passage.finish()
        });
        let ended = match ended {
            // The upstream's report of its failure may be held back together with earlier events.
            Ok(()) | Err(AbortReason::Upstream(Failure::ReportedInStream)) => {
                let head = &mut reply.buffers.head;
                let inspected = finish_inspection(gateway, head, &answer_head, &mut open, &mut workspace);
                inspected.await.and(ended)
            }
            Err(aborted) => Err(aborted),
        };
        note_judgement(&gateway.observers, &mut open, &mut workspace);
        let aborted = match ended {
            Ok(()) => return pin!(finish(&gateway.buffers, reply, &answer_head, open, workspace)).await,
            Err(aborted) => aborted,
        };
        if !progress.has_end_marker {
            workspace.usage.mark_interrupted();
        }
        let (outcome, answer) = match &aborted {
            AbortReason::Client => {
                open.wait_until_stored().await;
                open.finish(Outcome::ClientDisconnect, answer_head.status, workspace.usage());
                return ConnectionAction::Close;
            }
            AbortReason::Upstream(failure) => {
                let answer = failure.response();
                if !matches!(failure, Failure::Draining) {
                    gateway
                        .observers
                        .metrics
                        .record_provider_failure(&home.name, answer.code);
                }
                (failure.outcome(), answer)
            }
            AbortReason::Policy(rejection) => (Outcome::PolicyBlocked, rejection.to_response()),
        };
        let answer = answer.without_retry_if(open.may_have_run());
        open.error = Some(answer.code);
        if let AbortReason::Upstream(Failure::ReportedInStream) = aborted {
            return Box::pin(finish_with_reported_failure(
                &gateway.buffers,
                reply,
                &answer_head,
                open,
                workspace,
            ))
            .await;
        }
        if reply.buffers.head.is_empty() {
            if progress.has_open_event(&answer_head) {
                open.wait_until_stored().await;
                open.finish(outcome, answer_head.status, workspace.usage());
                return ConnectionAction::Close;
            }
            return Box::pin(abort_response(
                &gateway.buffers,
                reply,
                &answer_head,
                open,
                outcome,
                &answer.to_event(reply.dialect, progress.event_count),
                workspace,
            ))
            .await;
        }
        // Nothing was sent yet, so the client gets a complete error response.
        let usage = workspace.usage();
        gateway.buffers.workspaces.release(workspace);
        Box::pin(finish_with_response(reply, open, outcome, answer, usage)).await
    }
}

/// Relays the body, except the part that must be held back. Returns whether the upstream connection
/// can be reused.
///
/// A response is complete with its end marker. After a later failure of the upstream, only the
/// connection is lost.
async fn relay_body(
    source: &mut Source<'_>,
    reply: &mut Reply<'_>,
    answer_head: &mut ClientResponseHead,
    begin: usize,
    open: &mut OpenExchange,
    progress: &mut Progress,
    workspace: &mut ResponseWorkspace,
) -> Result<bool, AbortReason> {
    let gateway = source.gateway;
    let mut decoder = BodyDecoder::for_response(answer_head.framing);
    let mut used = begin;
    // The deadline for the end of the transfer, set when only that end is missing.
    let mut end_by = None;
    loop {
        let done = loop {
            let ConnectionBuffers { head, upstream, .. } = &mut *reply.buffers;
            let step = match decoder.decode(&upstream[used..]) {
                Ok(step) => step,
                Err(_) if progress.has_ended(&workspace.partial) => return Ok(false),
                Err(_) => return Err(AbortReason::Upstream(Failure::Unreachable)),
            };
            let data = used + step.data.start..used + step.data.end;
            if !data.is_empty() {
                if !progress.accept_bytes(data.len()) {
                    return Ok(false);
                }
                let mut passage = ResponsePipeline {
                    gateway,
                    response_head: &mut *answer_head,
                    open_exchange: &mut *open,
                    progress: &mut *progress,
                    workspace: &mut *workspace,
                    head,
                };
                passage.push(&upstream[data])?;
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
            source.release_buffer(reply);
            return Ok(answer_head.keep_alive && whole);
        }
        if !workspace.chunk.is_empty() || (answer_head.chunked && !reply.buffers.head.is_empty()) {
            open.span.lap_now(Stage::Relay);
            relay_chunk(reply, answer_head, open, workspace, false);
            if reply.buffers.upstream.is_empty() {
                source.release_buffer(reply);
            }
            send_chunk(&gateway.buffers, reply, answer_head, workspace).await?;
            open.span.lap_now(Stage::ClientWrite);
        }
        workspace.approved_bytes.clear();
        for buffer in [
            &mut workspace.chunk,
            &mut workspace.approved_bytes,
            &mut workspace.partial,
        ] {
            gateway.buffers.pool.release(buffer);
        }
        let has_left = answer_head.chunked && answer_head.is_event_stream && reply.buffers.head.is_empty();
        // Clients of Amazon's frames get no heartbeats, because not all of them ignore unknown
        // frames.
        let beats = has_left && !answer_head.writes_amazon_frames && !progress.has_open_event(answer_head);
        let interval = open.catalog.settings.timeouts.heartbeat.filter(|_| beats);
        let mut waited = Duration::ZERO;
        let mut read = None;
        if answer_head.is_event_stream && progress.may_have_ended(&workspace.partial) {
            let pause = interval.map_or(PARTIAL_EVENT_WAIT, |interval| interval.min(PARTIAL_EVENT_WAIT));
            read = Some(source.read_at_most(reply, pause).await);
            if let Some(Err(AbortReason::Upstream(Failure::TimedOut(Timeout::Idle)))) = read {
                (waited, read) = (pause, None);
                progress.has_ended(&workspace.partial);
            }
        }
        let read = match (read, progress.has_end_marker, interval) {
            (Some(read), ..) => read,
            (None, true, _) => {
                let now = Instant::now();
                let left = end_by
                    .get_or_insert(now + END_TIMEOUT)
                    .saturating_duration_since(now);
                if left.is_zero() {
                    return Ok(false);
                }
                source.read_end(reply, left).await
            }
            (None, false, None) => source.read(reply, waited).await,
            (None, false, Some(interval)) => {
                match source.read_at_most(reply, interval.saturating_sub(waited)).await {
                    Err(AbortReason::Upstream(Failure::TimedOut(Timeout::Idle))) => {
                        Box::pin(source.read_with_heartbeats(reply, open, interval)).await
                    }
                    read => read,
                }
            }
        };
        match read {
            Ok(true) => {}
            Ok(false) if answer_head.framing == ResponseFraming::UntilClose => return Ok(false),
            Ok(false) | Err(AbortReason::Upstream(_)) if progress.has_ended(&workspace.partial) => {
                return Ok(false);
            }
            Ok(false) => return Err(AbortReason::Upstream(Failure::Unreachable)),
            Err(aborted) => return Err(aborted),
        }
    }
}
