//! The transport of a request to a provider and of its response.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::task::coop::unconstrained;

use super::http2::Http2Stream;
use super::maybe_tls_stream::MaybeTlsStream;

/// A connection or HTTP/2 stream that carries a request to a provider and its response back.
pub struct UpstreamStream {
    transport: Transport,
    /// Whether another request may follow on this transport.
    reusable: bool,
}

enum Transport {
    /// A connection that is not shared.
    Http1(MaybeTlsStream),
    /// A stream of a session, for one request.
    Http2(Box<Http2Stream>),
}

impl From<Http2Stream> for UpstreamStream {
    fn from(stream: Http2Stream) -> Self {
        UpstreamStream {
            transport: Transport::Http2(Box::new(stream)),
            reusable: true,
        }
    }
}

impl UpstreamStream {
    pub(super) fn http1(wire: MaybeTlsStream) -> Self {
        UpstreamStream {
            transport: Transport::Http1(wire),
            reusable: true,
        }
    }

    /// Prevents further requests on this transport, because the last request was not sent
    /// completely.
    pub fn forbid_reuse(&mut self) {
        self.reusable = false;
    }

    pub fn is_reuse_forbidden(&self) -> bool {
        !self.reusable
    }

    /// Whether another request may follow: the last request was sent completely, and there is
    /// nothing to read. Unexpected bytes (over TLS, also already decrypted ones) or an end make the
    /// connection unusable.
    pub(crate) fn can_be_reused(&mut self) -> bool {
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        let Transport::Http1(wire) = &mut self.transport else {
            return false;
        };
        let read = poll_fn(|context| Pin::new(&mut *wire).poll_read(context, &mut ReadBuf::new(&mut byte)));
        // Without `unconstrained`, every read is pending in a task whose budget is used up, so an
        // unusable connection would seem usable.
        self.reusable && pin!(unconstrained(read)).poll(&mut context).is_pending()
    }

    /// Returns the number of bytes that the socket has accepted so far (with TLS, encrypted bytes);
    /// 0 if the socket is shared.
    pub fn bytes_written(&self) -> u64 {
        match &self.transport {
            Transport::Http1(wire) => wire.bytes_written(),
            Transport::Http2(_) => 0,
        }
    }

    /// Whether the peer has processed none of the bytes sent since [`Self::bytes_written`] returned
    /// `taken_before`.
    pub(crate) fn is_undelivered_since(&self, taken_before: u64) -> bool {
        match &self.transport {
            Transport::Http1(wire) => wire.bytes_written() == taken_before,
            Transport::Http2(stream) => stream.is_unprocessed(),
        }
    }

    /// Whether the provider has reported that it did not process the completely sent request.
    pub(crate) fn is_unprocessed(&self) -> bool {
        matches!(&self.transport, Transport::Http2(stream) if stream.is_unprocessed())
    }

    /// Sends the head of a request separately, if the protocol requires it; returns whether it does.
    ///
    /// # Errors
    /// No part of the head was sent.
    pub fn send_head(&mut self, head: &[u8]) -> io::Result<bool> {
        match &mut self.transport {
            Transport::Http1(_) => Ok(false),
            Transport::Http2(stream) => stream.send_head(head).map(|()| true),
        }
    }

    /// Whether the protocol delimits bodies, so that one without a length needs no chunks.
    pub fn delimits_bodies(&self) -> bool {
        matches!(self.transport, Transport::Http2(_))
    }

    /// Ends a body without a stated length if the protocol [delimits
    /// bodies](Self::delimits_bodies).
    pub fn finish_body(&mut self) {
        if let Transport::Http2(stream) = &mut self.transport {
            stream.finish_body();
        }
    }

    /// Returns the connection if it may carry another request. Otherwise finishes it as its
    /// protocol requires, and returns `None`.
    pub(super) fn into_reusable(self) -> Option<Self> {
        match self.transport {
            _ if !self.reusable => None,
            Transport::Http1(_) => Some(self),
            Transport::Http2(stream) => {
                stream.finish();
                None
            }
        }
    }

    /// Appends bytes to `buffer`, after reserving `room` bytes in it; returns 0 at the end of the
    /// stream. An empty buffer uses no memory while it waits: it borrows `lent`, which all waiting
    /// connections share and only one uses at a time.
    pub fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        lent: &Cell<Vec<u8>>,
        buffer: &mut Vec<u8>,
        room: usize,
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            *buffer = lent.take();
            buffer.clear();
        }
        buffer.reserve(room);
        let polled = match &mut self.transport {
            Transport::Http1(wire) => pin!(wire.read_buf(buffer)).poll(context),
            Transport::Http2(stream) => stream.poll_fill(context, buffer, room),
        };
        if polled.is_pending() && buffer.is_empty() {
            lent.set(std::mem::take(buffer));
        }
        polled
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().transport {
            Transport::Http1(wire) => Pin::new(wire).poll_write(cx, buf),
            Transport::Http2(stream) => stream.poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().transport {
            Transport::Http1(wire) => Pin::new(wire).poll_write_vectored(cx, bufs),
            Transport::Http2(stream) => {
                let first = bufs.iter().find(|piece| !piece.is_empty());
                stream.poll_write(cx, first.map_or(&[], |piece| piece))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Http1(wire) => Pin::new(wire).poll_flush(cx),
            // The session sends its data without a flush.
            Transport::Http2(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Http1(wire) => Pin::new(wire).poll_shutdown(cx),
            Transport::Http2(stream) => {
                stream.finish_body();
                Poll::Ready(Ok(()))
            }
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
