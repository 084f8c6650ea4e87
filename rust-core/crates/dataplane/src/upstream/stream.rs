//! A connection to a provider, plain or over TLS.

use std::cell::Cell;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a provider.
pub(crate) struct UpstreamStream {
    transport: Transport,
    /// Whether another request may follow on it.
    reusable: bool,
}

enum Transport {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

impl UpstreamStream {
    pub(super) fn plain(socket: Socket) -> Self {
        UpstreamStream {
            transport: Transport::Plain(socket),
            reusable: true,
        }
    }

    pub(super) fn tls(stream: TlsStream<Socket>) -> Self {
        UpstreamStream {
            transport: Transport::Tls(Box::new(stream)),
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
        self.reusable
            && Pin::new(self)
                .poll_read(&mut context, &mut ReadBuf::new(&mut byte))
                .is_pending()
    }

    /// Bytes that the socket has taken so far, of TLS the encrypted ones.
    pub(crate) fn taken(&self) -> u64 {
        match &self.transport {
            Transport::Plain(socket) => socket.taken,
            Transport::Tls(tls) => tls.get_ref().0.taken,
        }
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
        let polled = pin!(self.read_buf(buffer)).poll(context);
        if polled.is_pending() && buffer.is_empty() {
            lent.set(std::mem::take(buffer));
        }
        polled
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().transport {
            Transport::Plain(inner) => {
                let $stream = Pin::new(inner);
                $call
            }
            Transport::Tls(inner) => {
                let $stream = Pin::new(inner.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for UpstreamStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(cx))
    }
}

/// A TCP connection that counts what it took: whether anything of a request can have reached the other side, TLS does not
/// tell.
pub(super) struct Socket {
    tcp: TcpStream,
    taken: u64,
}

impl Socket {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Socket { tcp, taken: 0 }
    }

    fn count(&mut self, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        if let Ok(length) = written {
            self.taken = self.taken.saturating_add(length as u64);
        }
        Poll::Ready(written)
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.tcp).poll_write(cx, buf));
        this.count(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.tcp).poll_write_vectored(cx, bufs));
        this.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
