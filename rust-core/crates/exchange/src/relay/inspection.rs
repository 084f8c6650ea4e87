//! What the rules see of an answer, and what they say of it.

use proofgate_base::memory::Exhausted;
use proofgate_base::rejection::Rejection;
use proofgate_base::response_head::{AnswerHead, Scrutiny};
use proofgate_base::workspace::Workspace;
use proofgate_inspect::{AnswerKind, CallGuard, Denial, ResponseInspector};
use proofgate_ledger::record::{GuardVerdict, PolicyNote};
use proofgate_policy::Step;
use proofgate_stages::Stage;
use proofgate_upstream::failure::Aborted;
use proofgate_wire::encode;

use crate::gateway::Gateway;
use crate::gateway::buffers::KEPT;
use crate::gateway::observers::Observers;
use crate::judged::{note, owned, write_counts};
use crate::open_exchange::OpenExchange;
use crate::request_policy::SLICE;

/// Lets the rules see the next bytes of an answer; what they clear stands in the workspace's `passed` then.
///
/// # Errors
/// What the client is told when it may not go on; what was cleared before may still leave.
pub(super) fn inspect(
    gateway: &Gateway,
    answer_head: &AnswerHead,
    open: &mut OpenExchange,
    workspace: &mut Workspace,
    bytes: &[u8],
) -> Result<(), Rejection> {
    let terms = &open.catalog.terms;
    let (engine, profile) = (&terms.engine, &terms.plan(&open.tenant).profile);
    let kind = match answer_head.events {
        true => AnswerKind::Events,
        false => AnswerKind::Unary,
    };
    let begins = workspace.inspect(answer_head.dialect, kind, terms.limits.body_bytes);
    if begins
        && let Some(guard) = &open.guard
        && let Some((inspector, _)) = workspace.inspector()
    {
        inspector.guard_calls(guard.watch());
    }
    if begins
        && kind == AnswerKind::Events
        && let Some(masks) = open.masks.as_ref().and_then(|masks| masks.put_back())
        && let Some((inspector, _)) = workspace.inspector()
    {
        inspector.put_back(masks);
    }
    if workspace.make_room(bytes.len()).is_err() {
        workspace.passed.clear();
        return Err(Rejection::ANSWER_OVERLOADED);
    }
    let Some((inspector, passed)) = workspace.inspector() else {
        return Ok(());
    };
    passed.clear();
    gateway.buffers.spare.lend(passed);
    open.span.lap_now(Stage::Relay);
    let pushed = inspector.push(
        engine,
        profile,
        &mut open.catalog.scratch.borrow_mut(),
        &mut gateway.buffers.answer_reading.borrow_mut(),
        bytes,
        passed,
    );
    open.span.lap_now(Stage::ResponsePolicy);
    pushed.map_err(|stop| stopped(&gateway.observers, open, inspector, stop))
}

/// What the client is told of an answer that may not go on.
fn stopped(
    observers: &Observers,
    open: &OpenExchange,
    inspector: &ResponseInspector,
    stop: Denial,
) -> Rejection {
    let called = inspector.call_guard().and_then(CallGuard::guarded_call);
    match (stop, &open.guard, called) {
        (Denial::GuardedCall, Some(guard), Some(entry)) => {
            observers.metrics.policy_blocked();
            guard.rejection(entry)
        }
        _ => observers.response_stopped(&open.catalog.terms.engine, stop),
    }
}

/// Lets the rules see the end of the answer and releases what they held of it. Of a long answer that takes slices of time,
/// between which everybody else is served.
pub(super) async fn last_of_inspection(
    gateway: &Gateway,
    head: &mut Vec<u8>,
    answer_head: &AnswerHead,
    open: &mut OpenExchange,
    workspace: &mut Workspace,
) -> Result<(), Aborted> {
    if answer_head.scrutiny != Scrutiny::None && workspace.inspector().is_some() {
        workspace.passed.clear();
        let finished = loop {
            match next_slice(gateway, open, workspace) {
                Ok(Step::Done) => break Ok(()),
                Ok(Step::Pending) => {}
                Err(rejection) => break Err(rejection),
            }
            tokio::task::yield_now().await;
        };
        open.span.lap_now(Stage::ResponsePolicy);
        if answer_head.scrutiny == Scrutiny::Enforce && finished.is_ok() {
            say_what_was_redacted(head, answer_head, open, workspace);
        }
        let room = workspace.end_inspection();
        if answer_head.scrutiny == Scrutiny::Enforce {
            finished.map_err(Aborted::Policy)?;
            room.map_err(|Exhausted| Aborted::Policy(Rejection::ANSWER_OVERLOADED))?;
            append(&mut workspace.held, &mut workspace.passed);
        }
    }
    if let Some(masks) = &open.masks
        && answer_head.open_head
        && let Some(masks) = masks.put_back()
    {
        masks.put_back(&mut workspace.held);
    }
    if answer_head.open_head {
        let Workspace { piece, held, .. } = workspace;
        encode::write_content_length(head, (piece.len() + held.len()) as u64);
        head.extend_from_slice(encode::CRLF);
    }
    Ok(())
}

/// Says what was replaced in an answer: in a header line if the head has not left, or else in a comment behind the events,
/// unless one stands before their end.
fn say_what_was_redacted(
    head: &mut Vec<u8>,
    answer_head: &AnswerHead,
    open: &OpenExchange,
    workspace: &mut Workspace,
) {
    let Some((inspector, passed)) = workspace.inspector() else {
        return;
    };
    let (counts, engine) = (inspector.redacted(), &open.catalog.terms.engine);
    if answer_head.open_head {
        write_counts(head, "x-proofgate-redacted-answer", counts, engine);
    } else if answer_head.events && !answer_head.to_frames && !counts.is_empty() && !inspector.is_told() {
        passed.extend_from_slice(&counts.comment(engine));
    }
}

/// Judges what is left of an answer for a slice of time, and takes room for what is kept of it until the next one.
fn next_slice(gateway: &Gateway, open: &OpenExchange, workspace: &mut Workspace) -> Result<Step, Rejection> {
    let Some((inspector, passed)) = workspace.inspector() else {
        return Ok(Step::Done);
    };
    let terms = &open.catalog.terms;
    let (engine, profile) = (&terms.engine, &terms.plan(&open.tenant).profile);
    let reading = &mut *gateway.buffers.answer_reading.borrow_mut();
    let scratch = &mut open.catalog.scratch.borrow_mut();
    let step = inspector.finish_step(engine, profile, scratch, reading, SLICE, passed);
    reading.give_back(KEPT);
    let step = step.map_err(|stop| stopped(&gateway.observers, open, inspector, stop))?;
    if step == Step::Pending {
        let room = workspace.make_room(0);
        room.map_err(|Exhausted| Rejection::ANSWER_OVERLOADED)?;
    }
    Ok(step)
}

/// Notes for the record what the rules saw.
pub(super) fn note_judgement(observers: &Observers, open: &mut OpenExchange, workspace: &mut Workspace) {
    let Some((inspector, _)) = workspace.inspector() else {
        return;
    };
    let judgement = inspector.judgement();
    if judgement.decision().is_some() {
        let engine = &open.catalog.terms.engine;
        open.policy = Some(owned(note(engine, judgement, None, inspector.is_redacted())));
        observers.metrics.policy_flagged(judgement);
    }
    let guarded = open.guard.as_ref().zip(inspector.call_guard());
    if let Some(call) = guarded.and_then(|(guard, calls)| guard.note(calls)) {
        observers.metrics.guarded_call(call.verdict);
        let note = open.policy.get_or_insert_with(PolicyNote::default);
        note.would_block |= call.verdict == GuardVerdict::Observed;
        note.guarded_call = Some(call);
    }
}

/// Moves all of `end` behind `begin`; copies nothing where there is nothing before it.
pub(super) fn append(begin: &mut Vec<u8>, end: &mut Vec<u8>) {
    if begin.is_empty() {
        std::mem::swap(begin, end);
    } else {
        begin.append(end);
    }
}
