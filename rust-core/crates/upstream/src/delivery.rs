//! Sends a request to an upstream, and reads its response at the same time.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use proofgate_base::memory::SLICE_BYTES;
use proofgate_stages::{Span, Stage};
use proofgate_wire::{HeadScanner, Limits, Method, parse_response};
use tokio::io::AsyncWrite;

use crate::failure::{Failure, Timeout};
use crate::upstream::{ConnectError, Upstream, UpstreamStream};

/// Maximum bytes of a response that are read before the request is fully sent.
const MAX_EARLY_BYTES: usize = 16 * 1024;

/// Whether the upstream may have acted on a request that it has not answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExecutionState {
    /// The request was not sent completely. An upstream must not act on an incomplete body that has
    /// a length (RFC 9112 section 8).
    #[default]
    NotExecuted,
    /// The request was sent completely.
    MaybeExecuted,
}

/// The result of sending a request.
#[derive(Debug, PartialEq, Eq)]
enum SendProgress {
    /// The whole request was sent.
    Complete,
    /// The upstream responded or closed the connection before the request was complete: sending stops, and its response is
    /// read.
    Interrupted,
    /// The connection accepted no byte of the request, because it was already closed when it was
    /// chosen.
    NotStarted,
}

/// The lengths in bytes of the sections before the body in a message's first part.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrefixLengths {
    pub head: usize,
    /// The length of the HTTP/1.1 chunk framing between the head and the body.
    pub framing: usize,
}

/// Sends a message, in parts, on a connection to an upstream, and records whether the upstream may
/// act on it. Returns the connection from which to read the response. Response bytes that arrive
/// before the message is fully sent are appended to `early_bytes`; `buffer` is the shared read
/// buffer.
///
/// The upstream may be about to close a reused connection. If that connection accepts no byte, a
/// new one replaces it, once. Nothing is sent twice in any other case.
pub(crate) async fn deliver<const N: usize>(
    provider: &Upstream,
    (parts, leading): ([&[u8]; N], PrefixLengths),
    limits: Limits,
    execution: &mut ExecutionState,
    span: &mut Span,
    buffer: &Cell<Vec<u8>>,
    early_bytes: &mut Vec<u8>,
) -> Result<UpstreamStream, Failure> {
    let message = Message { parts };
    let limits = &Limits {
        head_bytes: MAX_EARLY_BYTES,
        ..limits
    };
    let idle = provider.pool.take_idle();
    let mut again = idle.is_some();
    let mut connection = match idle {
        Some(idle) => idle,
        None => connect(provider).await?,
    };
    span.lap_now(Stage::Connect);
    let sending = loop {
        let sending = match message.start(leading, &mut connection) {
            Ok(message) => send(&mut connection, message, limits, execution, buffer, early_bytes).await,
            Err(_) => SendProgress::NotStarted,
        };
        if sending != SendProgress::NotStarted || !std::mem::take(&mut again) {
            break sending;
        }
        early_bytes.clear();
        connection = connect(provider).await?;
    };
    span.lap_now(Stage::UpstreamWrite);
    match sending {
        SendProgress::Complete => {}
        SendProgress::Interrupted => connection.forbid_reuse(),
        SendProgress::NotStarted => return Err(Failure::ConnectFailed),
    }
    Ok(connection)
}

async fn connect(to: &Upstream) -> Result<UpstreamStream, Failure> {
    to.pool.connect(&to.name).await.map_err(|error| match error {
        ConnectError::Failed => Failure::ConnectFailed,
        ConnectError::TimedOut => Failure::TimedOut(Timeout::Connect),
        ConnectError::OutOfResources(shortage) => Failure::OutOfResources(shortage),
    })
}

/// Sends the next piece of a message; returns false if the upstream responded or closed the
/// connection before the piece was sent.
pub async fn send_chunk<const N: usize>(
    upstream: &mut UpstreamStream,
    parts: [&[u8]; N],
    limits: &Limits,
    buffer: &Cell<Vec<u8>>,
    early_bytes: &mut Vec<u8>,
) -> bool {
    let limits = &Limits {
        head_bytes: MAX_EARLY_BYTES,
        ..*limits
    };
    let sent = send(
        upstream,
        Message { parts },
        limits,
        &mut ExecutionState::NotExecuted,
        buffer,
        early_bytes,
    )
    .await;
    sent == SendProgress::Complete
}

/// The event that an upstream responded or closed the connection before the request was complete.
pub struct EarlyResponse;

/// Waits until the upstream responds early or closes the connection; the bytes that it sends are
/// appended to `early_bytes`.
pub async fn wait_for_early_response(
    upstream: &mut UpstreamStream,
    limits: &Limits,
    buffer: &Cell<Vec<u8>>,
    early_bytes: &mut Vec<u8>,
) -> EarlyResponse {
    let limits = &Limits {
        head_bytes: MAX_EARLY_BYTES,
        ..*limits
    };
    let mut answer = EarlyResponseDetector::default();
    poll_fn(|context| {
        while early_bytes.len() < MAX_EARLY_BYTES {
            let read = ready!(upstream.poll_fill(context, buffer, early_bytes, MAX_EARLY_BYTES));
            if read.unwrap_or(0) == 0 || answer.is_final(early_bytes, limits) {
                return Poll::Ready(EarlyResponse);
            }
        }
        Poll::Pending
    })
    .await
}

/// Sends a message, and reads while the socket accepts no more bytes.
async fn send<const N: usize>(
    upstream: &mut UpstreamStream,
    mut message: Message<'_, N>,
    limits: &Limits,
    execution: &mut ExecutionState,
    buffer: &Cell<Vec<u8>>,
    early_bytes: &mut Vec<u8>,
) -> SendProgress {
    let taken_before = upstream.bytes_written();
    let mut answer = EarlyResponseDetector::default();
    let sent = poll_fn(|context| {
        let sent = message.poll_send(upstream, context)?;
        // The last byte may have arrived although TLS has not yet confirmed it.
        if !message.has_remaining() {
            *execution = ExecutionState::MaybeExecuted;
        }
        if sent.is_ready() {
            return Poll::Ready(Ok(SendProgress::Complete));
        }
        while early_bytes.len() < MAX_EARLY_BYTES {
            let read = ready!(upstream.poll_fill(context, buffer, early_bytes, MAX_EARLY_BYTES))?;
            if read == 0 && upstream.is_undelivered_since(taken_before) {
                return Poll::Ready(Ok(SendProgress::NotStarted));
            }
            if read == 0 || answer.is_final(early_bytes, limits) {
                return Poll::Ready(Ok(SendProgress::Interrupted));
            }
        }
        Poll::Pending
    });
    let sent: io::Result<SendProgress> = sent.await;
    let sending = match sent {
        Ok(sending) => sending,
        Err(_) if upstream.is_undelivered_since(taken_before) => SendProgress::NotStarted,
        // An upstream that closes the connection before it has read everything may have sent a
        // response with the reason.
        Err(_) => SendProgress::Interrupted,
    };
    if sending == SendProgress::NotStarted {
        // TLS may have accepted the bytes without passing them on.
        *execution = ExecutionState::NotExecuted;
    }
    sending
}

/// The unsent rest of a message.
#[derive(Clone, Copy)]
struct Message<'m, const N: usize> {
    parts: [&'m [u8]; N],
}

impl<'m, const N: usize> Message<'m, N> {
    /// Starts the request on a connection; returns the parts that are still to be sent.
    fn start(mut self, leading: PrefixLengths, upstream: &mut UpstreamStream) -> io::Result<Self> {
        if let Some(first) = self.parts.first_mut() {
            let (head, _) = first.split_at_checked(leading.head).unwrap_or((first, b""));
            if upstream.send_head(head)? {
                *first = first.get(leading.head + leading.framing..).unwrap_or_default();
            }
        }
        Ok(self)
    }

    fn has_remaining(&self) -> bool {
        self.parts.iter().any(|part| !part.is_empty())
    }

    /// Whether a part is longer than what is sent in one turn.
    fn is_long(&self) -> bool {
        self.parts.iter().any(|part| part.len() > SLICE_BYTES)
    }

    /// Writes the message to the connection and flushes it to the network.
    fn poll_send(
        &mut self,
        upstream: &mut UpstreamStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut sent = 0;
        while self.has_remaining() {
            if sent >= SLICE_BYTES {
                // Yield to other tasks first.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let stream = Pin::new(&mut *upstream);
            let mut left = self.parts.iter().filter(|part| !part.is_empty());
            let written = match (left.next(), left.next()) {
                (Some(part), other) if other.is_none() || self.is_long() => {
                    stream.poll_write(context, &part[..part.len().min(SLICE_BYTES)])
                }
                _ => stream.poll_write_vectored(context, &self.parts.map(IoSlice::new)),
            };
            let mut written = ready!(written)?;
            sent += written;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            for part in &mut self.parts {
                let taken = written.min(part.len());
                part.advance(taken);
                written -= taken;
            }
        }
        Pin::new(upstream).poll_flush(context)
    }
}

/// Detects a response that ends the sending: any response except an interim one and a success.
/// After a success, an upstream may still need the rest of the request (RFC 9112 section 9.5).
#[derive(Default)]
struct EarlyResponseDetector {
    scanner: HeadScanner,
    /// Offset of the head that is being read.
    head_start: usize,
    /// Whether a success status was received.
    accepted: bool,
}

impl EarlyResponseDetector {
    fn is_final(&mut self, early: &[u8], limits: &Limits) -> bool {
        while !self.accepted {
            let rest = &early[self.head_start..];
            let length = match self.scanner.scan(rest, limits) {
                Ok(Some(length)) => length,
                Ok(None) => return false,
                // The code that reads the response reports the error.
                Err(_) => return true,
            };
            match parse_response(&rest[..length], Method::Post, limits) {
                Ok(head) if head.status < 200 => {
                    self.head_start += length;
                    self.scanner.reset();
                }
                Ok(head) if head.status < 300 => self.accepted = true,
                _ => return true,
            }
        }
        false
    }
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
