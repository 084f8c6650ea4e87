//! One request and its response, on a stream of a session.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::head;
use super::load::StreamSlot;

/// The maximum wait for the end of a stream whose response is complete.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream of a session. A stream that is dropped before its end is reset (CANCEL).
pub(crate) struct Http2Stream {
    session: SendRequest<Bytes>,
    over_tls: bool,
    outgoing: Option<OutgoingBody>,
    response: ResponseState,
    /// Whether the provider has reported that it has not processed the request.
    unprocessed: bool,
    #[expect(dead_code, reason = "kept alive, and never read")]
    slot: StreamSlot,
}

struct OutgoingBody {
    body: SendStream<Bytes>,
    /// Number of body bytes that are still to be sent; `None` if the length of the body is not
    /// known.
    remaining: Option<u64>,
    finished: bool,
}

enum ResponseState {
    /// No request was sent.
    NotRequested,
    /// The response head has not arrived.
    AwaitingHead(ResponseFuture),
    /// The body is arriving. The next read releases the flow-control window of the last read
    /// (`taken` bytes).
    ReceivingBody {
        body: RecvStream,
        taken: usize,
    },
    Finished,
}

impl Http2Stream {
    pub(super) fn new(session: SendRequest<Bytes>, over_tls: bool, place: StreamSlot) -> Self {
        Http2Stream {
            session,
            over_tls,
            outgoing: None,
            response: ResponseState::NotRequested,
            unprocessed: false,
            slot: place,
        }
    }

    /// Sends the head of a request; `head` is in HTTP/1.1 format.
    ///
    /// # Errors
    /// The session accepts no more streams, or the head is not from this gateway.
    pub(crate) fn send_head(&mut self, head: &[u8]) -> io::Result<()> {
        let (request, length) = head::parse_request(head, self.over_tls)?;
        let ended = length == Some(0);
        let (answer, body) = self.session.send_request(request, ended).map_err(to_io_error)?;
        self.response = ResponseState::AwaitingHead(answer);
        self.outgoing = Some(OutgoingBody {
            body,
            remaining: length,
            finished: ended,
        });
        Ok(())
    }

    /// Ends a body whose length was not known.
    pub(crate) fn finish_body(&mut self) {
        if let Some(sending) = &mut self.outgoing
            && !std::mem::replace(&mut sending.finished, true)
        {
            // If the stream no longer exists, the response gives the reason.
            let _ = sending.body.send_data(Bytes::new(), true);
        }
    }

    /// Whether the provider has reported that it will not process the request, so that the request
    /// may be sent to another target (RFC 9113 section 8.7).
    pub(crate) fn is_unprocessed(&self) -> bool {
        self.unprocessed
    }

    /// Appends about `room` available bytes of the response to `buffer`; returns 0 at the end of
    /// the response.
    pub(crate) fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        room: usize,
    ) -> Poll<io::Result<usize>> {
        let filled = self.poll_response(context, buffer, room);
        filled.map_err(|failure| {
            self.unprocessed |= was_not_processed(&failure);
            to_io_error(failure)
        })
    }

    fn poll_response(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        room: usize,
    ) -> Poll<Result<usize, h2::Error>> {
        let begin = buffer.len();
        match &mut self.response {
            ResponseState::NotRequested | ResponseState::Finished => Poll::Ready(Ok(0)),
            ResponseState::AwaitingHead(answer) => {
                let response = ready!(Pin::new(answer).poll(context))?;
                let written = head::write_response(&response, response.body().is_end_stream(), buffer);
                if written.is_err() {
                    buffer.truncate(begin);
                    return Poll::Ready(Err(Reason::PROTOCOL_ERROR.into()));
                }
                let body = response.into_body();
                self.response = ResponseState::ReceivingBody { body, taken: 0 };
                Poll::Ready(Ok(buffer.len() - begin))
            }
            ResponseState::ReceivingBody { body, taken } => {
                // The previous read has been processed and passed on to the client.
                let used = std::mem::take(taken);
                if used > 0 {
                    body.flow_control().release_capacity(used)?;
                }
                while *taken < room {
                    match body.poll_data(context) {
                        Poll::Ready(Some(Ok(piece))) => {
                            buffer.extend_from_slice(&piece);
                            *taken += piece.len();
                        }
                        // The bytes before the error or end are returned first.
                        Poll::Ready(Some(Err(_))) | Poll::Ready(None) | Poll::Pending if *taken > 0 => break,
                        Poll::Ready(Some(Err(failure))) => return Poll::Ready(Err(failure)),
                        Poll::Ready(None) => {
                            self.response = ResponseState::Finished;
                            return Poll::Ready(Ok(0));
                        }
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Poll::Ready(Ok(*taken))
            }
        }
    }

    /// Finishes a stream whose response is complete. If the end of the stream has not arrived,
    /// waits up to [`END_TIMEOUT`] for it, because a provider may count reset streams.
    pub(crate) fn finish(mut self: Box<Self>) {
        let mut rest = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        if self.poll_fill(&mut context, &mut rest, 1).is_pending() {
            spawn_local(async move {
                let ended = std::future::poll_fn(|context| self.poll_fill(context, &mut rest, 1));
                let _ = timeout(END_TIMEOUT, ended).await;
            });
        }
    }

    /// Sends as much of `piece` as the provider accepts now.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>, piece: &[u8]) -> Poll<io::Result<usize>> {
        let Some(sending) = self.outgoing.as_mut().filter(|sending| !sending.finished) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        sending.body.reserve_capacity(piece.len());
        while sending.body.capacity() == 0 {
            match ready!(sending.body.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(failure)) => {
                    self.unprocessed |= was_not_processed(&failure);
                    return Poll::Ready(Err(to_io_error(failure)));
                }
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        let length = sending.body.capacity().min(piece.len());
        if let Some(missing) = &mut sending.remaining {
            *missing = missing.saturating_sub(length as u64);
            sending.finished = *missing == 0;
        }
        let data = Bytes::copy_from_slice(&piece[..length]);
        let sent = sending.body.send_data(data, sending.finished);
        Poll::Ready(sent.map(|()| length).map_err(to_io_error))
    }
}

/// Whether a failure means that the request was not processed: the stream was refused, or came
/// after the last stream that the provider accepts. `h2` reports a GOAWAY of the peer only for such
/// streams.
fn was_not_processed(failure: &h2::Error) -> bool {
    let is_refused = failure.is_reset() && failure.reason() == Some(Reason::REFUSED_STREAM);
    failure.is_remote() && (is_refused || failure.is_go_away())
}

fn to_io_error(failure: h2::Error) -> io::Error {
    io::Error::other(failure)
}
