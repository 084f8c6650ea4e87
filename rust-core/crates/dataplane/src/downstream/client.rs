use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use super::ClientStream;
use crate::deadline::Deadline;

/// How many bytes a client may send ahead of its turn before we stop reading.
const MAX_PIPELINED: usize = 64 * 1024;
/// What a refused client may still send, and how long, before its connection is reset.
const LINGER_BYTES: usize = 1024 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(2);

/// The connection to a client and what it sent that has not been used yet.
pub(crate) struct Client {
    stream: ClientStream,
    pub(crate) input: Vec<u8>,
    /// How long one write may take: a client that does not read must not hold an exchange for ever.
    write_timeout: Duration,
    deadline: Deadline,
}

impl Client {
    pub(crate) fn new(stream: ClientStream, write_timeout: Duration) -> Self {
        Client {
            stream,
            input: Vec::with_capacity(4096),
            write_timeout,
            deadline: Deadline::default(),
        }
    }

    /// Reads what there is to read behind `input`; `false` at the end of the stream.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.input).await? != 0)
    }

    /// Reads what there is to read behind `input`; `false` at the end of the stream.
    ///
    /// # Errors
    /// Also when nothing comes within `patience`.
    pub(crate) async fn fill_within(&mut self, patience: Duration) -> io::Result<bool> {
        let filled = self
            .deadline
            .within(patience, self.stream.read_buf(&mut self.input));
        Ok(filled.await?? != 0)
    }

    /// Writes a message.
    ///
    /// # Errors
    /// Also when the client does not take it within the write timeout.
    pub(crate) async fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let written = async {
            self.stream.write_all(message).await?;
            self.stream.flush().await
        };
        self.deadline.within(self.write_timeout, written).await?
    }

    /// Waits until the client goes away, keeping what it pipelines meanwhile.
    ///
    /// The end of its stream counts as going away: a client that only stops sending cannot be told from one that left.
    pub(crate) async fn gone(&mut self) {
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
            self.input.extend_from_slice(piece.filled());
        }
    }

    /// Drops the first `length` bytes of the input.
    pub(crate) fn consume(&mut self, length: usize) {
        self.input.drain(..length);
        if self.input.is_empty() {
            self.input.shrink_to(MAX_PIPELINED);
        }
    }

    /// Takes the input away while an exchange reads from it; [`Client::restore`] brings the rest back.
    pub(crate) fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Brings back what [`Client::take_input`] took, less its first `consumed` bytes.
    pub(crate) fn restore(&mut self, mut input: Vec<u8>, consumed: usize) {
        input.extend_from_slice(&self.input);
        self.input = input;
        self.consume(consumed);
    }

    /// Closes after an answer that the client may not have expected.
    pub(crate) async fn linger(self) {
        linger(self.stream).await;
    }
}

/// Ends our side of a connection, then reads and forgets for a while, because closing over unread bytes would reset it
/// and could destroy what was sent last on its way (RFC 9112 section 9.6).
pub(super) async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
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
