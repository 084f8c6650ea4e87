//! The client side of a connection: transport, reading and writing.

mod stream;

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use crate::deadline::Deadline;
use crate::memory::{Buffer, MemoryBudget, MemoryExhausted};

pub use self::stream::ClientStream;

/// Maximum bytes that a client may send ahead of its turn before reading stops.
const MAX_PIPELINED: usize = 4 * 1024;
/// Maximum bytes of one read of a head, or of a small body.
const READ_SIZE: usize = 16 * 1024;
/// Maximum bytes and maximum time in which a refused client may still send before its connection is
/// reset.
const LINGER_BYTES: usize = 1024 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(2);

/// The action for a connection after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionAction {
    /// The next request may follow.
    Continue,
    /// Close immediately: the client has disconnected, or the response ends with the connection.
    Close,
    /// Close without losing the response that was just sent.
    Linger,
}

/// The connection to a client, with its unprocessed bytes.
pub struct Client {
    stream: ClientStream,
    pub input: Buffer,
    /// Maximum time of one write, so that a client that does not read cannot keep an exchange open
    /// forever.
    write_timeout: Duration,
    deadline: Deadline,
}

/// The result of waiting for bytes of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillOutcome {
    /// More bytes arrived.
    More,
    /// The stream has ended, or nothing arrived in time.
    End,
    /// There is no memory for the bytes; they are lost.
    OutOfMemory,
}

impl Client {
    pub fn new(stream: ClientStream, write_timeout: Duration, budget: &Rc<MemoryBudget>) -> Self {
        Client {
            stream,
            input: Buffer::new(budget),
            write_timeout,
            deadline: Deadline::default(),
        }
    }

    /// Reads available bytes and appends them to `input`. Large bodies are read into the memory reserved for them.
    pub async fn fill(&mut self) -> FillOutcome {
        let Client { stream, input, .. } = self;
        poll_fn(|context| poll_fill(stream, input, context)).await
    }

    /// Like [`Client::fill`], but returns the end if nothing arrives within `patience`.
    pub async fn fill_with_timeout(&mut self, patience: Duration) -> FillOutcome {
        let Client {
            stream,
            input,
            deadline,
            ..
        } = self;
        let filled = poll_fn(|context| poll_fill(stream, input, context));
        deadline
            .with_timeout(patience, filled)
            .await
            .unwrap_or(FillOutcome::End)
    }

    /// Writes a message.
    ///
    /// # Errors
    /// Any I/O error, including a write timeout.
    pub async fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let written = async {
            self.stream.write_all(message).await?;
            self.stream.flush().await
        };
        self.deadline.with_timeout(self.write_timeout, written).await?
    }

    /// Waits until the client disconnects, and keeps the bytes that it pipelines meanwhile.
    ///
    /// The end of the client's stream counts as a disconnect: a client that only stops sending
    /// looks the same.
    pub async fn wait_for_disconnect(&mut self) {
        loop {
            if self.input.len() >= MAX_PIPELINED {
                return std::future::pending().await;
            }
            // This is polled in every turn of an exchange and nearly always pending, so it must not
            // allocate.
            let mut space = [MaybeUninit::uninit(); 1024];
            let mut piece = ReadBuf::uninit(&mut space);
            let read = poll_fn(|context| Pin::new(&mut self.stream).poll_read(context, &mut piece)).await;
            if read.is_err() || piece.filled().is_empty() {
                return;
            }
            if self.input.extend(piece.filled()).is_err() {
                return;
            }
        }
    }

    /// Takes the input while an exchange reads from it; [`Client::restore`] puts the rest back.
    pub fn take_input(&mut self) -> Buffer {
        self.input.take()
    }

    /// Puts back the input of [`Client::take_input`], without its first `consumed` bytes.
    ///
    /// # Errors
    /// [`MemoryExhausted`] if there is no memory for the rest together with the bytes that arrived
    /// meanwhile.
    pub fn restore(&mut self, mut input: Buffer, consumed: usize) -> Result<(), MemoryExhausted> {
        input.consume(consumed);
        if !self.input.is_empty() {
            input.extend(&self.input)?;
        }
        self.input = input;
        Ok(())
    }

    /// Discards the client's input: no more requests are served.
    pub fn discard_input(&mut self) {
        self.input.take();
    }

    /// Closes the connection after a response that the client may not have expected.
    pub async fn linger(self) {
        let Client { stream, input, .. } = self;
        drop(input);
        linger(stream).await;
    }
}

/// Reads available bytes. Idle connections have no memory for reading: small reads use the stack.
fn poll_fill(stream: &mut ClientStream, input: &mut Buffer, context: &mut Context<'_>) -> Poll<FillOutcome> {
    if input.has_reserved_memory() && input.available() > 0 {
        let read = ready!(pin!(stream.read_buf(&mut input.available_mut())).poll(context));
        return Poll::Ready(match read {
            Ok(0) | Err(_) => FillOutcome::End,
            Ok(_) => FillOutcome::More,
        });
    }
    let mut space = [MaybeUninit::uninit(); READ_SIZE];
    let mut piece = ReadBuf::uninit(&mut space);
    let read = ready!(Pin::new(stream).poll_read(context, &mut piece));
    Poll::Ready(match piece.filled() {
        [] => FillOutcome::End,
        _ if read.is_err() => FillOutcome::End,
        bytes => input
            .extend(bytes)
            .map_or(FillOutcome::OutOfMemory, |()| FillOutcome::More),
    })
}

/// Ends the gateway's side of a connection, then reads and discards for a limited time. Closing
/// with unread bytes would reset the connection, which could destroy the last response before the
/// client receives it (RFC 9112 section 9.6).
pub async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let drained = async {
        // Also within the time limit: TLS ends with a message, which the peer may not read.
        let _ = stream.shutdown().await;
        let mut left = LINGER_BYTES;
        let mut scratch = [0; 4096];
        while left > 0 {
            match stream.read(&mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(read) => left = left.saturating_sub(read),
            }
        }
    };
    let _ = timeout(LINGER_TIME, drained).await;
}
