//! Writes a response to the client, and ends the response.

use std::io;

use proofgate_base::client::ConnectionAction;
use proofgate_base::response_head::ClientResponseHead;
use proofgate_base::workspace::ResponseWorkspace;
use proofgate_ledger::record::Outcome;
use proofgate_stages::Stage;
use proofgate_upstream::failure::AbortReason;
use proofgate_wire::encode;

use super::inspection::append;
use crate::gateway::buffers::ThreadBuffers;
use crate::open_exchange::OpenExchange;
use crate::reply::Reply;

/// Sends the decoded bytes. Sends the head first if it was not sent yet.
pub(super) async fn send_chunk(
    buffers: &ThreadBuffers,
    reply: &mut Reply<'_>,
    answer_head: &ClientResponseHead,
    workspace: &mut ResponseWorkspace,
) -> Result<(), AbortReason> {
    append_chunk(buffers, reply, answer_head, workspace, false);
    // A client that does not read must not occupy memory that other connections can use.
    buffers.pool.release(&mut workspace.chunk);
    send(buffers, reply).await.map_err(|_| AbortReason::Client)
}

/// Adds the decoded bytes to the client's response. For a client that wants frames, encodes them as
/// frames first. `last`: whether no bytes follow.
pub(super) fn relay_chunk(
    reply: &mut Reply<'_>,
    answer_head: &ClientResponseHead,
    open: &mut OpenExchange,
    workspace: &mut ResponseWorkspace,
    last: bool,
) {
    match frame_events(reply, answer_head, &mut workspace.chunk, last) {
        Some(said) => open.relay_translated(&said, &workspace.chunk),
        None => open.relay(&workspace.chunk),
    }
}

/// Replaces events by frames for a client that wants frames, and returns the events.
fn frame_events(
    reply: &mut Reply<'_>,
    answer_head: &ClientResponseHead,
    piece: &mut Vec<u8>,
    last: bool,
) -> Option<Vec<u8>> {
    let frames = reply.frame_writer.as_mut();
    let frames = frames.filter(|_| answer_head.writes_amazon_frames && answer_head.is_event_stream)?;
    let said = std::mem::take(piece);
    frames.push(&said, piece);
    if last {
        frames.finish(piece);
    }
    Some(said)
}

/// The heartbeat for the client of an idle stream. It is a comment without an empty line, and so
/// not an event. With an empty line, some official clients treat it as an event without data
/// (openai-go before 3.45).
const HEARTBEAT: &[u8] = b": hb\n";

/// Sends a heartbeat on a stream. All events sent before must be complete.
pub(super) async fn send_heartbeat(
    buffers: &ThreadBuffers,
    reply: &mut Reply<'_>,
    open: &mut OpenExchange,
) -> Result<(), AbortReason> {
    open.respond(HEARTBEAT);
    let head = &mut reply.buffers.head;
    buffers.pool.acquire(head);
    encode::write_chunk(head, HEARTBEAT);
    send(buffers, reply).await.map_err(|_| AbortReason::Client)
}

/// Appends the decoded bytes to the head's buffer, because a short copy is cheaper than a vectored
/// write.
fn append_chunk(
    buffers: &ThreadBuffers,
    reply: &mut Reply<'_>,
    answer_head: &ClientResponseHead,
    workspace: &mut ResponseWorkspace,
    last: bool,
) {
    let (head, piece) = (&mut reply.buffers.head, &mut workspace.chunk);
    buffers.pool.acquire(head);
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

/// Sends the buffered bytes.
async fn send(buffers: &ThreadBuffers, reply: &mut Reply<'_>) -> io::Result<()> {
    let head = &mut reply.buffers.head;
    let sent = reply.client.send(head).await;
    head.clear();
    buffers.pool.release(head);
    sent
}

/// Records the completion, then sends the end of the response.
pub(super) async fn finish(
    buffers: &ThreadBuffers,
    reply: &mut Reply<'_>,
    answer_head: &ClientResponseHead,
    mut open: Box<OpenExchange>,
    mut workspace: Box<ResponseWorkspace>,
) -> ConnectionAction {
    let ResponseWorkspace {
        chunk: piece,
        held_back: held,
        ..
    } = &mut *workspace;
    append(piece, held);
    relay_chunk(reply, answer_head, &mut open, &mut workspace, true);
    let usage = workspace.usage();
    open.wait_until_stored().await;
    let completion = open.finish(Outcome::Complete, answer_head.status, usage);
    append_chunk(buffers, reply, answer_head, &mut workspace, true);
    let room = workspace.take_reservation();
    buffers.workspaces.release(workspace);
    if !open.wait_until_written(completion, Stage::CompletionRecord).await {
        return ConnectionAction::Close;
    }
    let sent = send(buffers, reply).await;
    drop(room);
    if sent.is_ok() {
        open.analyse(answer_head.is_event_stream, usage);
    }
    open.mark_sent();
    match sent {
        Ok(()) if reply.close => ConnectionAction::Linger,
        Ok(()) => ConnectionAction::Continue,
        Err(_) => ConnectionAction::Close,
    }
}

/// Ends a response whose upstream reported its failure in an event that is about to be sent.
pub(super) async fn finish_with_reported_failure(
    buffers: &ThreadBuffers,
    reply: &mut Reply<'_>,
    answer_head: &ClientResponseHead,
    mut open: Box<OpenExchange>,
    mut workspace: Box<ResponseWorkspace>,
) -> ConnectionAction {
    let ResponseWorkspace {
        chunk: piece,
        held_back: held,
        ..
    } = &mut *workspace;
    append(piece, held);
    relay_chunk(reply, answer_head, &mut open, &mut workspace, true);
    open.wait_until_stored().await;
    let completion = open.finish(Outcome::UpstreamError, answer_head.status, workspace.usage());
    if open.wait_until_written(completion, Stage::CompletionRecord).await {
        let _ = send_chunk(buffers, reply, answer_head, &mut workspace).await;
        open.mark_sent();
    }
    ConnectionAction::Close
}

/// Ends a response that its upstream left incomplete, so that no client can mistake it for a
/// complete one. `event` reports the failure.
pub(super) async fn abort_response(
    buffers: &ThreadBuffers,
    reply: &mut Reply<'_>,
    answer_head: &ClientResponseHead,
    mut open: Box<OpenExchange>,
    outcome: Outcome,
    event: &[u8],
    mut workspace: Box<ResponseWorkspace>,
) -> ConnectionAction {
    if answer_head.is_event_stream {
        workspace.chunk.extend_from_slice(event);
        let _ = frame_events(reply, answer_head, &mut workspace.chunk, true);
        open.respond(&workspace.chunk);
    }
    open.wait_until_stored().await;
    let completion = open.finish(outcome, answer_head.status, workspace.usage());
    if answer_head.is_event_stream && open.wait_until_written(completion, Stage::CompletionRecord).await {
        let _ = send_chunk(buffers, reply, answer_head, &mut workspace).await;
        open.mark_sent();
    }
    ConnectionAction::Close
}
