//! What a request goes through, and its answer.

use std::cell::Cell;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::wire::Wire;

/// What carries a request to a provider and its answer back.
pub(crate) struct UpstreamStream {
    transport: Transport,
    /// Whether another request may follow on it.
    reusable: bool,
}

enum Transport {
    /// A connection of its own.
    Http1(Wire),
}

impl UpstreamStream {
    pub(super) fn http1(wire: Wire) -> Self {
        UpstreamStream {
            transport: Transport::Http1(wire),
            reusable: true,
        }
    }

    /// Keeps it from carrying another request: the last one did not leave whole.
    pub(crate) fn spend(&mut self) {
        self.reusable = false;
    }

    pub(crate) fn is_spent(&self) -> bool {
        !self.reusable
    }

    /// Whether another request may follow on it: nothing that was sent is incomplete, and there is nothing to read. Bytes
    /// or an end that nobody asked for make it unusable; over TLS also those that have been decrypted already.
    pub(crate) fn can_serve_again(&mut self) -> bool {
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        let Transport::Http1(wire) = &mut self.transport;
        self.reusable
            && Pin::new(wire)
                .poll_read(&mut context, &mut ReadBuf::new(&mut byte))
                .is_pending()
    }

    /// Bytes that the socket has taken so far, of TLS the encrypted ones.
    pub(crate) fn taken(&self) -> u64 {
        let Transport::Http1(wire) = &self.transport;
        wire.taken()
    }

    /// Reads to the end of `buffer`, in which it makes room for `room` bytes at least; 0 is the end of the stream. While it waits an empty buffer has no
    /// memory: `lent` is that of everybody, and of the connections that wait one reads at a time.
    pub(crate) fn poll_fill(
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
        let Transport::Http1(wire) = &mut self.transport;
        let polled = pin!(wire.read_buf(buffer)).poll(context);
        if polled.is_pending() && buffer.is_empty() {
            lent.set(std::mem::take(buffer));
        }
        polled
    }
}

macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().transport {
            Transport::Http1(inner) => {
                let $stream = Pin::new(inner);
                $call
            }
        }
    };
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
