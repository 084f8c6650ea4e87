//! Writing an answer to the client, and ending it.

use std::io;

use proofgate_base::client::AfterExchange;
use proofgate_base::response_head::AnswerHead;
use proofgate_base::workspace::Workspace;
use proofgate_ledger::record::Outcome;
use proofgate_stages::Stage;
use proofgate_upstream::failure::Aborted;
use proofgate_wire::encode;

use super::inspection::append;
use crate::gateway::buffers::Buffers;
use crate::open_exchange::OpenExchange;
use crate::reply::Reply;

/// Sends what is decoded, with the head before it if that has not left yet.
pub(super) async fn send_piece(
    buffers: &Buffers,
    reply: &mut Reply<'_>,
    answer_head: &AnswerHead,
    workspace: &mut Workspace,
) -> Result<(), Aborted> {
    write_piece(buffers, reply, answer_head, workspace, false);
    // A client that does not read must not keep what others can use meanwhile.
    buffers.spare.take_back(&mut workspace.piece);
    send(buffers, reply).await.map_err(|_| Aborted::Client)
}

/// Adds what is decoded to the answer as its client gets it, where that is in frames: then it is these that are sent. `last`:
/// whether nothing follows.
pub(super) fn relay_piece(
    reply: &mut Reply<'_>,
    answer_head: &AnswerHead,
    open: &mut OpenExchange,
    workspace: &mut Workspace,
    last: bool,
) {
    match frame(reply, answer_head, &mut workspace.piece, last) {
        Some(said) => open.relay_as(&said, &workspace.piece),
        None => open.relay(&workspace.piece),
    }
}

/// Puts frames in the place of events, for a client that wants them, and returns the events.
fn frame(
    reply: &mut Reply<'_>,
    answer_head: &AnswerHead,
    piece: &mut Vec<u8>,
    last: bool,
) -> Option<Vec<u8>> {
    let frames = reply.frames.as_mut();
    let frames = frames.filter(|_| answer_head.to_frames && answer_head.events)?;
    let said = std::mem::take(piece);
    frames.push(&said, piece);
    if last {
        frames.finish(piece);
    }
    Some(said)
}

/// What a client of a stream gets while nothing else comes: a comment, and no event, for it has no empty line. With one,
/// official clients take it for an event without data (openai-go before 3.45).
const HEARTBEAT: &[u8] = b": hb\n";

/// Lets a client know that its stream, of which only whole events have left, goes on.
pub(super) async fn send_heartbeat(
    buffers: &Buffers,
    reply: &mut Reply<'_>,
    open: &mut OpenExchange,
) -> Result<(), Aborted> {
    open.respond(HEARTBEAT);
    let head = &mut reply.buffers.head;
    buffers.spare.lend(head);
    encode::write_chunk(head, HEARTBEAT);
    send(buffers, reply).await.map_err(|_| Aborted::Client)
}

/// Puts what is decoded behind the head, or where that would stand: a short copy costs less than a vectored write.
fn write_piece(
    buffers: &Buffers,
    reply: &mut Reply<'_>,
    answer_head: &AnswerHead,
    workspace: &mut Workspace,
    last: bool,
) {
    let (head, piece) = (&mut reply.buffers.head, &mut workspace.piece);
    buffers.spare.lend(head);
    if answer_head.chunked && !piece.is_empty() {
        encode::write_chunk_header(head, piece.len());
        head.append(piece);
        head.extend_from_slice(encode::CRLF);
    } else {
        head.append(piece);
    }
    if answer_head.chunked && last {
        head.extend_from_slice(encode::LAST_CHUNK);
    }
}

/// Sends what was written.
async fn send(buffers: &Buffers, reply: &mut Reply<'_>) -> io::Result<()> {
    let head = &mut reply.buffers.head;
    let sent = reply.client.send(head).await;
    head.clear();
    buffers.spare.take_back(head);
    sent
}

/// Records the completion, then lets the end of the answer go.
pub(super) async fn finish(
    buffers: &Buffers,
    reply: &mut Reply<'_>,
    answer_head: &AnswerHead,
    mut open: Box<OpenExchange>,
    mut workspace: Box<Workspace>,
) -> AfterExchange {
    let Workspace { piece, held, .. } = &mut *workspace;
    append(piece, held);
    relay_piece(reply, answer_head, &mut open, &mut workspace, true);
    let usage = workspace.usage();
    open.store().await;
    let completion = open.end(Outcome::Complete, answer_head.status, usage);
    write_piece(buffers, reply, answer_head, &mut workspace, true);
    let room = workspace.take_share();
    buffers.workspaces.put_back(workspace);
    if !open.written(completion, Stage::CompletionRecord).await {
        return AfterExchange::Close;
    }
    let sent = send(buffers, reply).await;
    drop(room);
    if sent.is_ok() {
        open.analyse(answer_head.events, usage);
    }
    open.sent();
    match sent {
        Ok(()) if reply.close => AfterExchange::Linger,
        Ok(()) => AfterExchange::Continue,
        Err(_) => AfterExchange::Close,
    }
}

/// Ends an answer whose upstream has said itself that it failed, in an event that is about to leave.
pub(super) async fn end_as_reported(
    buffers: &Buffers,
    reply: &mut Reply<'_>,
    answer_head: &AnswerHead,
    mut open: Box<OpenExchange>,
    mut workspace: Box<Workspace>,
) -> AfterExchange {
    let Workspace { piece, held, .. } = &mut *workspace;
    append(piece, held);
    relay_piece(reply, answer_head, &mut open, &mut workspace, true);
    open.store().await;
    let completion = open.end(Outcome::UpstreamError, answer_head.status, workspace.usage());
    if open.written(completion, Stage::CompletionRecord).await {
        let _ = send_piece(buffers, reply, answer_head, &mut workspace).await;
        open.sent();
    }
    AfterExchange::Close
}

/// Ends an answer that its upstream left unfinished, so that no client can take it for a whole one. `event` says so.
pub(super) async fn break_off(
    buffers: &Buffers,
    reply: &mut Reply<'_>,
    answer_head: &AnswerHead,
    mut open: Box<OpenExchange>,
    outcome: Outcome,
    event: &[u8],
    mut workspace: Box<Workspace>,
) -> AfterExchange {
    if answer_head.events {
        workspace.piece.extend_from_slice(event);
        let _ = frame(reply, answer_head, &mut workspace.piece, true);
        open.respond(&workspace.piece);
    }
    open.store().await;
    let completion = open.end(outcome, answer_head.status, workspace.usage());
    if answer_head.events && open.written(completion, Stage::CompletionRecord).await {
        let _ = send_piece(buffers, reply, answer_head, &mut workspace).await;
        open.sent();
    }
    AfterExchange::Close
}
