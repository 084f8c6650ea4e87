//! A connection to a provider, with or without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use proofgate_base::descriptors::DescriptorPermit;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// The transport of a connection.
pub(super) enum MaybeTlsStream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

impl MaybeTlsStream {
    /// Returns the number of bytes that the socket has accepted so far; with TLS, encrypted bytes.
    pub(super) fn bytes_written(&self) -> u64 {
        match self {
            MaybeTlsStream::Plain(socket) => socket.bytes_written,
            MaybeTlsStream::Tls(tls) => tls.get_ref().0.bytes_written,
        }
    }

    /// Whether the peer negotiated `protocol` in TLS; `None` without TLS.
    pub(super) fn has_negotiated(&self, protocol: &[u8]) -> Option<bool> {
        match self {
            MaybeTlsStream::Plain(_) => None,
            MaybeTlsStream::Tls(tls) => Some(tls.get_ref().1.alpn_protocol() == Some(protocol)),
        }
    }

    #[cfg(test)]
    pub(super) fn tcp(&self) -> &TcpStream {
        match self {
            MaybeTlsStream::Plain(socket) => &socket.tcp,
            MaybeTlsStream::Tls(tls) => &tls.get_ref().0.tcp,
        }
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            MaybeTlsStream::Plain(inner) => {
                let $stream = Pin::new(inner);
                $call
            }
            MaybeTlsStream::Tls(inner) => {
                let $stream = Pin::new(inner.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for MaybeTlsStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for MaybeTlsStream {
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

/// A TCP connection that counts accepted bytes, because TLS does not report whether any part of a
/// request can have reached the peer.
pub(super) struct Socket {
    tcp: TcpStream,
    bytes_written: u64,
    /// The descriptor's permit, released after the connection is dropped.
    _descriptor: DescriptorPermit,
}

impl Socket {
    pub(super) fn new(tcp: TcpStream, descriptor: DescriptorPermit) -> Self {
        Socket {
            tcp,
            bytes_written: 0,
            _descriptor: descriptor,
        }
    }

    fn count_written(&mut self, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        if let Ok(length) = written {
            self.bytes_written = self.bytes_written.saturating_add(length as u64);
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
        this.count_written(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.tcp).poll_write_vectored(cx, bufs));
        this.count_written(written)
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
