//! Sends a request upstream, and listens while it does.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use proofgate_base::memory::AT_ONCE;
use proofgate_stages::{Span, Stage};
use proofgate_wire::{HeadScanner, Limits, Method, parse_response};
use tokio::io::AsyncWrite;

use crate::failure::{Failure, Timeout};
use crate::upstream::{ConnectError, Upstream, UpstreamStream};

/// How much of an answer is read before the request has left, in bytes.
const EARLY: usize = 16 * 1024;

/// Whether the upstream can have acted on a request of which it has said nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Executed {
    /// Not all of it has left: of a body with a length, no upstream may act on a part (RFC 9112 section 8).
    #[default]
    No,
    /// All of it has left.
    Maybe,
}

/// What came of sending a request.
#[derive(Debug, PartialEq, Eq)]
enum Sending {
    /// All of it has left.
    Whole,
    /// The upstream answers, or went away, before it had all: no more is sent, and what it said is read.
    CutShort,
    /// The connection took nothing of it: it had been closed when it was chosen.
    NotBegun,
}

/// How much of the first part of a message is not its body, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leading {
    pub head: usize,
    /// What stands between the head and the body, where HTTP/1.1 frames that.
    pub framing: usize,
}

/// Sends a message, in parts, on a connection to an upstream, and notes whether it may be acted on; returns the connection on which the answer is to be read.
/// What came of that before the message had left is in `early`; `lent` is the memory of those who wait to read.
///
/// Of a connection on which others were answered before, the upstream may be about to take leave. One that takes not a
/// byte is replaced by a new one, once; nothing else is sent twice.
pub(crate) async fn deliver<const N: usize>(
    to: &Upstream,
    (parts, leading): ([&[u8]; N], Leading),
    limits: Limits,
    executed: &mut Executed,
    span: &mut Span,
    lent: &Cell<Vec<u8>>,
    early: &mut Vec<u8>,
) -> Result<UpstreamStream, Failure> {
    let message = Message { parts };
    let limits = &Limits {
        head_bytes: EARLY,
        ..limits
    };
    let idle = to.pool.idle();
    let mut again = idle.is_some();
    let mut connection = match idle {
        Some(idle) => idle,
        None => connect(to).await?,
    };
    span.lap_now(Stage::Connect);
    let sending = loop {
        let sending = match message.begin(leading, &mut connection) {
            Ok(message) => send(&mut connection, message, limits, executed, lent, early).await,
            Err(_) => Sending::NotBegun,
        };
        if sending != Sending::NotBegun || !std::mem::take(&mut again) {
            break sending;
        }
        early.clear();
        connection = connect(to).await?;
    };
    span.lap_now(Stage::UpstreamWrite);
    match sending {
        Sending::Whole => {}
        Sending::CutShort => connection.spend(),
        Sending::NotBegun => return Err(Failure::Unconnected),
    }
    Ok(connection)
}

async fn connect(to: &Upstream) -> Result<UpstreamStream, Failure> {
    to.pool.connect(&to.name).await.map_err(|error| match error {
        ConnectError::Failed => Failure::Unconnected,
        ConnectError::TimedOut => Failure::TimedOut(Timeout::Connect),
        ConnectError::Short(shortage) => Failure::Short(shortage),
    })
}

/// Sends a piece of a message whose beginning has left; says whether it has left, too. If not, the upstream answers, or went
/// away.
pub async fn send_piece<const N: usize>(
    upstream: &mut UpstreamStream,
    parts: [&[u8]; N],
    limits: &Limits,
    lent: &Cell<Vec<u8>>,
    early: &mut Vec<u8>,
) -> bool {
    let limits = &Limits {
        head_bytes: EARLY,
        ..*limits
    };
    let sent = send(
        upstream,
        Message { parts },
        limits,
        &mut Executed::No,
        lent,
        early,
    )
    .await;
    sent == Sending::Whole
}

/// The upstream answers, or went away.
pub struct Listened;

/// Waits until the upstream answers before it has all, or goes away; what it says is in `early`.
pub async fn listen(
    upstream: &mut UpstreamStream,
    limits: &Limits,
    lent: &Cell<Vec<u8>>,
    early: &mut Vec<u8>,
) -> Listened {
    let limits = &Limits {
        head_bytes: EARLY,
        ..*limits
    };
    let mut answer = EarlyAnswer::default();
    poll_fn(|context| {
        while early.len() < EARLY {
            let read = ready!(upstream.poll_fill(context, lent, early, EARLY));
            if read.unwrap_or(0) == 0 || answer.is_final(early, limits) {
                return Poll::Ready(Listened);
            }
        }
        Poll::Pending
    })
    .await
}

/// Sends a message, and reads what comes while it waits for room.
async fn send<const N: usize>(
    upstream: &mut UpstreamStream,
    mut message: Message<'_, N>,
    limits: &Limits,
    executed: &mut Executed,
    lent: &Cell<Vec<u8>>,
    early: &mut Vec<u8>,
) -> Sending {
    let taken_before = upstream.taken();
    let mut answer = EarlyAnswer::default();
    let sent = poll_fn(|context| {
        let sent = message.poll_send(upstream, context)?;
        // The last byte may have arrived although TLS still waits to say that it has left.
        if !message.has_remaining() {
            *executed = Executed::Maybe;
        }
        if sent.is_ready() {
            return Poll::Ready(Ok(Sending::Whole));
        }
        while early.len() < EARLY {
            let read = ready!(upstream.poll_fill(context, lent, early, EARLY))?;
            if read == 0 && upstream.has_reached_nobody(taken_before) {
                return Poll::Ready(Ok(Sending::NotBegun));
            }
            if read == 0 || answer.is_final(early, limits) {
                return Poll::Ready(Ok(Sending::CutShort));
            }
        }
        Poll::Pending
    });
    let sent: io::Result<Sending> = sent.await;
    let sending = match sent {
        Ok(sending) => sending,
        Err(_) if upstream.has_reached_nobody(taken_before) => Sending::NotBegun,
        // An upstream that closes before it has read everything may have said why.
        Err(_) => Sending::CutShort,
    };
    if sending == Sending::NotBegun {
        // TLS may have taken it, and nobody from there.
        *executed = Executed::No;
    }
    sending
}

/// What is left of a message.
#[derive(Clone, Copy)]
struct Message<'m, const N: usize> {
    parts: [&'m [u8]; N],
}

impl<'m, const N: usize> Message<'m, N> {
    /// Begins the request on a connection; returns what is to be sent there then.
    fn begin(mut self, leading: Leading, upstream: &mut UpstreamStream) -> io::Result<Self> {
        if let Some(first) = self.parts.first_mut() {
            let (head, _) = first.split_at_checked(leading.head).unwrap_or((first, b""));
            if upstream.begin(head)? {
                *first = first.get(leading.head + leading.framing..).unwrap_or_default();
            }
        }
        Ok(self)
    }

    fn has_remaining(&self) -> bool {
        self.parts.iter().any(|part| !part.is_empty())
    }

    /// Whether more is left than is sent together.
    fn is_long(&self) -> bool {
        self.parts.iter().any(|part| part.len() > AT_ONCE)
    }

    /// Hands it to the connection, and that to the network.
    fn poll_send(
        &mut self,
        upstream: &mut UpstreamStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut sent = 0;
        while self.has_remaining() {
            if sent >= AT_ONCE {
                // Everybody else first.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let stream = Pin::new(&mut *upstream);
            let mut left = self.parts.iter().filter(|part| !part.is_empty());
            let written = match (left.next(), left.next()) {
                (Some(part), other) if other.is_none() || self.is_long() => {
                    stream.poll_write(context, &part[..part.len().min(AT_ONCE)])
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

/// Looks for an answer that ends the sending: any but an interim one and one that says that all is well, for which an
/// upstream may still need the rest (RFC 9112 section 9.5).
#[derive(Default)]
struct EarlyAnswer {
    scanner: HeadScanner,
    /// Where the head begins that is being read.
    begin: usize,
    /// Whether all is well.
    accepted: bool,
}

impl EarlyAnswer {
    fn is_final(&mut self, early: &[u8], limits: &Limits) -> bool {
        while !self.accepted {
            let rest = &early[self.begin..];
            let length = match self.scanner.scan(rest, limits) {
                Ok(Some(length)) => length,
                Ok(None) => return false,
                // Whoever reads it says what is wrong with it.
                Err(_) => return true,
            };
            match parse_response(&rest[..length], Method::Post, limits) {
                Ok(head) if head.status < 200 => {
                    self.begin += length;
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
