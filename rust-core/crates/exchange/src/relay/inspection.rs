//! The inspection of a response by the rules, and its findings.

use proofgate_base::memory::MemoryExhausted;
use proofgate_base::rejection::Rejection;
use proofgate_base::response_head::{ClientResponseHead, InspectionLevel};
use proofgate_base::workspace::ResponseWorkspace;
use proofgate_inspect::{CallGuard, Denial, ResponseInspector, ResponseKind};
use proofgate_ledger::record::{GuardVerdict, PolicyNote};
use proofgate_policy::Step;
use proofgate_stages::Stage;
use proofgate_upstream::failure::AbortReason;
use proofgate_wire::encode;

use crate::gateway::Gateway;
use crate::gateway::buffers::RETAINED_BYTES;
use crate::gateway::observers::Observers;
use crate::open_exchange::OpenExchange;
use crate::policy_decision::{into_owned_note, policy_note, write_counts};
use crate::request_policy::TIME_SLICE;

/// Passes the next bytes of a response to the rules, and puts the bytes that the rules approve into
/// the workspace's `approved_bytes`.
///
/// # Errors
/// The rejection for the client if the response must stop. Bytes that were approved earlier may
/// still be sent.
pub(super) fn inspect(
    gateway: &Gateway,
    answer_head: &ClientResponseHead,
    open: &mut OpenExchange,
    workspace: &mut ResponseWorkspace,
    bytes: &[u8],
) -> Result<(), Rejection> {
    let terms = &open.catalog.settings;
    let (engine, profile) = (&terms.engine, &terms.plan(&open.tenant).profile);
    let kind = match answer_head.is_event_stream {
        true => ResponseKind::Events,
        false => ResponseKind::Unary,
    };
    let begins = workspace.inspect(answer_head.dialect, kind, terms.limits.body_bytes);
    if begins
        && let Some(guard) = &open.guard
        && let Some((inspector, _)) = workspace.inspector()
    {
        inspector.set_call_guard(guard.call_guard());
    }
    if begins
        && kind == ResponseKind::Events
        && let Some(masks) = open.masks.as_ref().and_then(|masks| masks.unmasker())
        && let Some((inspector, _)) = workspace.inspector()
    {
        inspector.set_masks(masks);
    }
    if workspace.reserve(bytes.len()).is_err() {
        workspace.approved_bytes.clear();
        return Err(Rejection::RESPONSE_OVERLOADED);
    }
    let Some((inspector, passed)) = workspace.inspector() else {
        return Ok(());
    };
    passed.clear();
    gateway.buffers.pool.acquire(passed);
    open.span.lap_now(Stage::Relay);
    let pushed = inspector.push(
        engine,
        profile,
        &mut open.catalog.scratch.borrow_mut(),
        &mut gateway.buffers.response_read_buffers.borrow_mut(),
        bytes,
        passed,
    );
    open.span.lap_now(Stage::ResponsePolicy);
    pushed.map_err(|stop| stop_rejection(&gateway.observers, open, inspector, stop))
}

/// Returns the client's error for a response that must stop.
fn stop_rejection(
    observers: &Observers,
    open: &OpenExchange,
    inspector: &ResponseInspector,
    stop: Denial,
) -> Rejection {
    let called = inspector.call_guard().and_then(CallGuard::guarded_call);
    match (stop, &open.guard, called) {
        (Denial::GuardedCall, Some(guard), Some(entry)) => {
            observers.metrics.record_policy_block();
            guard.rejection(entry)
        }
        _ => observers.count_stopped_response(&open.catalog.settings.engine, stop),
    }
}

/// Passes the end of the response to the rules, and releases the data that they held. A long response takes several
/// time slices, between which other tasks run.
pub(super) async fn finish_inspection(
    gateway: &Gateway,
    head: &mut Vec<u8>,
    answer_head: &ClientResponseHead,
    open: &mut OpenExchange,
    workspace: &mut ResponseWorkspace,
) -> Result<(), AbortReason> {
    if answer_head.inspection != InspectionLevel::None && workspace.inspector().is_some() {
        workspace.approved_bytes.clear();
        let finished = loop {
            match next_slice(gateway, open, workspace) {
                Ok(Step::Done) => break Ok(()),
                Ok(Step::Pending) => {}
                Err(rejection) => break Err(rejection),
            }
            tokio::task::yield_now().await;
        };
        open.span.lap_now(Stage::ResponsePolicy);
        if answer_head.inspection == InspectionLevel::Enforce && finished.is_ok() {
            report_redactions(head, answer_head, open, workspace);
        }
        let room = workspace.finish_inspection();
        if answer_head.inspection == InspectionLevel::Enforce {
            finished.map_err(AbortReason::Policy)?;
            room.map_err(|MemoryExhausted| AbortReason::Policy(Rejection::RESPONSE_OVERLOADED))?;
            append(&mut workspace.held_back, &mut workspace.approved_bytes);
        }
    }
    if let Some(masks) = &open.masks
        && answer_head.is_head_incomplete
        && let Some(masks) = masks.unmasker()
    {
        masks.unmask(&mut workspace.held_back);
    }
    if answer_head.is_head_incomplete {
        let ResponseWorkspace {
            chunk: piece,
            held_back: held,
            ..
        } = workspace;
        encode::write_content_length(head, (piece.len() + held.len()) as u64);
        head.extend_from_slice(encode::CRLF);
    }
    Ok(())
}

/// Reports the redactions in a response. If the head was not sent, the report is a header line.
/// Otherwise it is a comment after the events, unless such a comment already precedes their end.
fn report_redactions(
    head: &mut Vec<u8>,
    answer_head: &ClientResponseHead,
    open: &OpenExchange,
    workspace: &mut ResponseWorkspace,
) {
    let Some((inspector, passed)) = workspace.inspector() else {
        return;
    };
    let (counts, engine) = (inspector.redaction_counts(), &open.catalog.settings.engine);
    if answer_head.is_head_incomplete {
        write_counts(head, "x-proofgate-redacted-answer", counts, engine);
    } else if answer_head.is_event_stream
        && !answer_head.writes_amazon_frames
        && !counts.is_empty()
        && !inspector.is_redaction_reported()
    {
        passed.extend_from_slice(&counts.sse_comment(engine));
    }
}

/// Judges the rest of a response for one time slice, and reserves memory for the data that is kept
/// until the next slice.
fn next_slice(
    gateway: &Gateway,
    open: &OpenExchange,
    workspace: &mut ResponseWorkspace,
) -> Result<Step, Rejection> {
    let Some((inspector, passed)) = workspace.inspector() else {
        return Ok(Step::Done);
    };
    let terms = &open.catalog.settings;
    let (engine, profile) = (&terms.engine, &terms.plan(&open.tenant).profile);
    let reading = &mut *gateway.buffers.response_read_buffers.borrow_mut();
    let scratch = &mut open.catalog.scratch.borrow_mut();
    let step = inspector.finish_step(engine, profile, scratch, reading, TIME_SLICE, passed);
    reading.release_memory(RETAINED_BYTES);
    let step = step.map_err(|stop| stop_rejection(&gateway.observers, open, inspector, stop))?;
    if step == Step::Pending {
        let room = workspace.reserve(0);
        room.map_err(|MemoryExhausted| Rejection::RESPONSE_OVERLOADED)?;
    }
    Ok(step)
}

/// Adds the findings of the rules to the record.
pub(super) fn note_judgement(
    observers: &Observers,
    open: &mut OpenExchange,
    workspace: &mut ResponseWorkspace,
) {
    let Some((inspector, _)) = workspace.inspector() else {
        return;
    };
    let judgement = inspector.judgement();
    if judgement.decision().is_some() {
        let engine = &open.catalog.settings.engine;
        open.policy = Some(into_owned_note(policy_note(
            engine,
            judgement,
            None,
            inspector.is_redacted(),
        )));
        observers.metrics.record_policy_flags(judgement);
    }
    let guarded = open.guard.as_ref().zip(inspector.call_guard());
    if let Some(call) = guarded.and_then(|(guard, calls)| guard.note(calls)) {
        observers.metrics.record_guarded_call(call.verdict);
        let note = open.policy.get_or_insert_with(PolicyNote::default);
        note.would_block |= call.verdict == GuardVerdict::Observed;
        note.guarded_call = Some(call);
    }
}

/// Moves all of `end` to the end of `begin`; copies nothing if `begin` is empty.
pub(super) fn append(begin: &mut Vec<u8>, end: &mut Vec<u8>) {
    if begin.is_empty() {
        std::mem::swap(begin, end);
    } else {
        begin.append(end);
    }
}
