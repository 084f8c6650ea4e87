//! The client's side of a connection: what its bytes come through, and reading and writing it.

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

/// How many bytes a client may send ahead of its turn before we stop reading.
const MAX_PIPELINED: usize = 4 * 1024;
/// Bytes that one read of a head, or of a small body, takes at most.
const READ_SIZE: usize = 16 * 1024;
/// What a refused client may still send, and how long, before its connection is reset.
const LINGER_BYTES: usize = 1024 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(2);

/// What becomes of a connection after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterExchange {
    /// The next request may follow.
    Continue,
    /// Close at once: there is nobody to answer, or the answer ends with the connection.
    Close,
    /// Close without destroying the answer that was just sent.
    Linger,
}

/// The connection to a client and what it sent that has not been used yet.
pub struct Client {
    stream: ClientStream,
    pub input: Buffer,
    /// How long one write may take: a client that does not read must not hold an exchange for ever.
    write_timeout: Duration,
    deadline: Deadline,
}

/// What came of waiting for a client's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillOutcome {
    /// There are more of them.
    More,
    /// The stream has ended, or nothing came in time.
    End,
    /// There is no room in memory for them; they are lost.
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

    /// Reads what there is to read behind `input`. What is large is read into the room that is reserved for it.
    pub async fn fill(&mut self) -> FillOutcome {
        let Client { stream, input, .. } = self;
        poll_fn(|context| poll_fill(stream, input, context)).await
    }

    /// As [`Client::fill`], and the end also when nothing comes within `patience`.
    pub async fn fill_within(&mut self, patience: Duration) -> FillOutcome {
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
    /// Also when the client does not take it within the write timeout.
    pub async fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let written = async {
            self.stream.write_all(message).await?;
            self.stream.flush().await
        };
        self.deadline.with_timeout(self.write_timeout, written).await?
    }

    /// Waits until the client goes away, keeping what it pipelines meanwhile.
    ///
    /// The end of its stream counts as going away: a client that only stops sending cannot be told from one that left.
    pub async fn wait_until_gone(&mut self) {
        loop {
            if self.input.len() >= MAX_PIPELINED {
                return std::future::pending().await;
            }
            // Asked in every turn of an exchange and nearly always in vain: nothing is allocated for that.
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

    /// Takes the input away while an exchange reads from it; [`Client::restore`] brings the rest back.
    pub fn take_input(&mut self) -> Buffer {
        self.input.take()
    }

    /// Brings back what [`Client::take_input`] took, less its first `consumed` bytes.
    ///
    /// # Errors
    /// [`MemoryExhausted`] when there is no room for the rest and what came meanwhile together.
    pub fn restore(&mut self, mut input: Buffer, consumed: usize) -> Result<(), MemoryExhausted> {
        input.consume(consumed);
        if !self.input.is_empty() {
            input.extend(&self.input)?;
        }
        self.input = input;
        Ok(())
    }

    /// Forgets what the client sent: nothing more of it will be served.
    pub fn discard_input(&mut self) {
        self.input.take();
    }

    /// Closes after an answer that the client may not have expected.
    pub async fn linger(self) {
        let Client { stream, input, .. } = self;
        drop(input);
        linger(stream).await;
    }
}

/// Of the connections that wait none has memory for what it waits for: small things are read to the stack.
fn poll_fill(stream: &mut ClientStream, input: &mut Buffer, context: &mut Context<'_>) -> Poll<FillOutcome> {
    if input.has_counted_memory() && input.available() > 0 {
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

/// Ends our side of a connection, then reads and forgets for a while, because closing over unread bytes would reset it
/// and could destroy what was sent last on its way (RFC 9112 section 9.6).
pub async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let drained = async {
        // Within the time limit, too: the end of TLS is a message, for which the peer may leave no room.
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
