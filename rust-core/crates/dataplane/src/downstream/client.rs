use std::io;
use std::time::Duration;

use bytes::Buf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How many bytes a client may send ahead of its turn before we stop reading.
const MAX_PIPELINED: usize = 64 * 1024;
/// What a refused client may still send, and how long, before its connection is reset.
const LINGER_BYTES: usize = 1024 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(2);

/// The connection to a client and what it sent that has not been used yet.
pub(crate) struct Client {
    stream: TcpStream,
    pub(crate) input: Vec<u8>,
    /// How long one write may take: a client that does not read must not hold an exchange for ever.
    write_timeout: Duration,
}

impl Client {
    pub(crate) fn new(stream: TcpStream, write_timeout: Duration) -> Self {
        Client {
            stream,
            input: Vec::with_capacity(4096),
            write_timeout,
        }
    }

    /// Reads what there is to read behind `input`; `false` at the end of the stream.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.input).await? != 0)
    }

    /// Writes all parts, one behind the other, with as few system calls as the socket allows.
    ///
    /// # Errors
    /// Also when the client does not take them within the write timeout.
    pub(crate) async fn send(&mut self, [first, second, third]: [&[u8]; 3]) -> io::Result<()> {
        let mut bytes = Buf::chain(Buf::chain(first, second), third);
        timeout(self.write_timeout, self.stream.write_all_buf(&mut bytes)).await?
    }

    /// Waits until the client goes away, keeping what it pipelines meanwhile.
    ///
    /// The end of its stream counts as going away: a client that only stops sending cannot be told from one that left.
    pub(crate) async fn gone(&mut self) {
        loop {
            if self.input.len() >= MAX_PIPELINED {
                return std::future::pending().await;
            }
            if self.stream.readable().await.is_err() {
                return;
            }
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
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

    /// Closes after an answer that the client may not have expected: ends our side, then reads and forgets for a
    /// while, because closing over unread bytes would reset the connection and could destroy the answer on its way
    /// (RFC 9112 section 9.6).
    pub(crate) async fn linger(mut self) {
        let _ = self.stream.shutdown().await;
        let mut left = LINGER_BYTES;
        let mut scratch = [0; 4096];
        let drained = async {
            while left > 0 {
                match self.stream.read(&mut scratch).await {
                    Ok(0) | Err(_) => return,
                    Ok(read) => left = left.saturating_sub(read),
                }
            }
        };
        let _ = timeout(LINGER_TIME, drained).await;
    }
}
