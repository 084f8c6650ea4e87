//! One request and its answer, on a stream of a session.

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

/// How long the end of a stream is waited for whose answer is whole.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream of a session. Dropped before its end it is reset (CANCEL).
pub(crate) struct Http2Stream {
    session: SendRequest<Bytes>,
    over_tls: bool,
    outgoing: Option<OutgoingBody>,
    response: ResponseState,
    /// Whether the provider says that it has not looked at the request.
    unprocessed: bool,
    #[expect(dead_code, reason = "held, not read")]
    slot: StreamSlot,
}

struct OutgoingBody {
    body: SendStream<Bytes>,
    /// Bytes of the body that are missing, where its length is known.
    remaining: Option<u64>,
    finished: bool,
}

enum ResponseState {
    /// Nothing has been asked.
    NotRequested,
    /// Its head has not come.
    AwaitingHead(ResponseFuture),
    /// Its body comes. What was read last is given back to the provider's window when more is wanted.
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

    /// Sends the head of a request, in the form of HTTP/1.1.
    ///
    /// # Errors
    /// The session takes no more streams, or the head is none of ours.
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
            // Of a stream that is no more, the answer says why.
            let _ = sending.body.send_data(Bytes::new(), true);
        }
    }

    /// Whether the provider has said that it has not acted on the request, nor will: it may be sent elsewhere (RFC 9113
    /// section 8.7).
    pub(crate) fn is_unprocessed(&self) -> bool {
        self.unprocessed
    }

    /// Appends what there is of the answer to `buffer`, about `room` bytes; 0 at its end.
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
                // What was read before has been used, and its client has what it is to have of it.
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
                        // What came before it is used first.
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

    /// Leaves a stream whose answer is whole and whose end may be still on its way: for that it waits a little, because a
    /// provider may count streams that are reset.
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

    /// Hands over as much of `piece` as the provider takes now.
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

/// Whether a failure says that the request was not looked at: the stream is refused, or stands behind the last one that the
/// provider takes. Only for such streams `h2` hands a GOAWAY of the other side on.
fn was_not_processed(failure: &h2::Error) -> bool {
    let is_refused = failure.is_reset() && failure.reason() == Some(Reason::REFUSED_STREAM);
    failure.is_remote() && (is_refused || failure.is_go_away())
}

fn to_io_error(failure: h2::Error) -> io::Error {
    io::Error::other(failure)
}
