//! One HTTP/2 stream: a request, the pipe through which it is served, and its response.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Method, Request};
use proofgate_base::client::ClientStream;
use proofgate_base::error_response::ResponseOptions;
use proofgate_base::lifecycle::Lifecycle;
use proofgate_base::memory::MemoryExhausted;
use proofgate_base::rejection::Rejection;
use proofgate_base::routing::Peer;
use proofgate_exchange::gateway::Gateway;
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_providers::Family;
use tokio::io::{AsyncRead, duplex, split};
use tokio::sync::OwnedSemaphorePermit;

use super::request::{self, IncompleteRequest, MALFORMED, write_head};
use super::response::{IncompleteResponse, relay};
use crate::connection;

/// Capacity of the pipe in bytes in each direction: a piece of a response with its chunk framing,
/// and a reserve.
const PIPE_BYTES: usize = 16 * 1024 + 256;
/// Bytes of memory that a stream takes besides its exchange: the pipe in both directions, a piece that is read from
/// it, and data that waits for the client.
const STREAM_MEMORY_BYTES: usize = 64 * 1024;

const NO_CAPACITY: Rejection = Rejection::new(
    503,
    "overloaded",
    "The gateway has reached its limit of concurrent requests. Try again later.",
);

/// A stream's permit to be served.
pub(super) enum StreamPermit {
    /// No permit is needed: the stream is the only one of its connection, which is counted itself.
    Exclusive,
    /// A permit from the pool that all connections share. It is released at the end of the stream.
    Shared(#[expect(dead_code, reason = "kept alive, and never read")] OwnedSemaphorePermit),
    /// No permit is available.
    None,
}

/// How a stream ended.
pub(super) enum StreamEnd {
    /// At least the start of its response was sent.
    Responded,
    /// The client abandoned the stream before any part of its response was sent.
    Abandoned,
}

/// A stream and its context.
pub(super) struct Stream {
    pub(super) gateway: Rc<Gateway>,
    pub(super) lifecycle: Lifecycle,
    pub(super) peer: Peer,
    pub(super) respond: SendResponse<Bytes>,
    /// How long a client may block a piece of a response.
    pub(super) write_timeout: Duration,
}

impl Stream {
    /// Serves the stream's single request.
    pub(super) async fn serve(mut self, request: Request<RecvStream>, room: StreamPermit) -> StreamEnd {
        let (parts, body) = request.into_parts();
        let head_only = parts.method == Method::HEAD;
        let mut head = Vec::with_capacity(1024);
        let memory = self.gateway.buffers.budget.reserve(STREAM_MEMORY_BYTES);
        let written = match (&room, &memory) {
            (StreamPermit::None, _) | (_, Err(MemoryExhausted)) => Err(NO_CAPACITY),
            _ => write_head(parts, body.is_end_stream(), &mut head),
        };
        let chunked = match written {
            Ok(chunked) => chunked,
            Err(rejection) => return self.refuse(&rejection, head_only).await,
        };
        let limits = self.gateway.catalog().settings.limits;
        let (near, far) = duplex(PIPE_BYTES);
        let served = connection::serve(
            Rc::clone(&self.gateway),
            ClientStream::Http2(far),
            self.lifecycle.clone(),
            self.peer.clone(),
        );
        let carried = async {
            let (mut answer, mut sink) = split(near);
            let sent = async {
                match request::send(head, body, chunked, &limits, &mut sink).await {
                    // Closing the pipe would mean that the client disconnected.
                    Ok(()) => std::future::pending().await,
                    Err(stopped) => stopped,
                }
            };
            tokio::select! {
                biased;
                stopped = sent => Err(stopped),
                end = self.send_response(&mut answer, head_only) => Ok(end),
            }
        };
        // The request is written first, because a drain closes a pipe that does not contain a
        // request yet.
        let (ended, ()) = tokio::join!(biased; carried, served);
        match ended {
            Ok(end) => end,
            Err(IncompleteRequest::ClientAborted) => StreamEnd::Abandoned,
            Err(IncompleteRequest::Malformed) => {
                self.gateway
                    .reject(&MALFORMED, RejectedRequest::from_peer(&self.peer))
                    .await;
                StreamEnd::Abandoned
            }
            Err(IncompleteRequest::Rejected(refusal)) => self.refuse(&refusal.into(), head_only).await,
        }
    }

    /// Rejects a request that cannot be served through the pipe.
    async fn refuse(mut self, rejection: &Rejection, head_only: bool) -> StreamEnd {
        let id = self
            .gateway
            .reject(rejection, RejectedRequest::from_peer(&self.peer))
            .await;
        let options = ResponseOptions {
            close: false,
            head_only,
            extra_headers: b"",
            family: Family::default(),
        };
        let mut answer = Vec::new();
        rejection.to_response().write(id.as_str(), options, &mut answer);
        self.send_response(&mut &answer[..], head_only).await
    }

    /// Sends a response. An incomplete response ends with a reset, so that it never looks complete.
    async fn send_response(&mut self, source: &mut (impl AsyncRead + Unpin), head_only: bool) -> StreamEnd {
        let reason = match relay(source, &mut self.respond, head_only, self.write_timeout).await {
            Ok(()) | Err(IncompleteResponse::ClientAborted) => return StreamEnd::Responded,
            Err(IncompleteResponse::NotStarted) => return StreamEnd::Abandoned,
            Err(IncompleteResponse::WindowTimeout) => Reason::CANCEL,
            Err(IncompleteResponse::BrokenResponse) => {
                // A reset discards unsent data, so let the connection send it first.
                tokio::task::yield_now().await;
                Reason::INTERNAL_ERROR
            }
        };
        self.respond.send_reset(reason);
        StreamEnd::Responded
    }
}
