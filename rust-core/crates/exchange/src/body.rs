//! Reads the complete body of a request before it is processed.

use std::ops::Range;

use proofgate_base::client::{Client, FillOutcome};
use proofgate_base::memory::{MemoryExhausted, SLICE_BYTES};
use proofgate_base::rejection::Rejection;
use proofgate_upstream::settings::GatewaySettings;
use proofgate_wire::{BodyDecoder, Limits, ProtocolError, RequestFraming, encode};
use tokio::time::{Instant, timeout_at};

/// The reason why a request could not be read.
pub enum RequestReadError {
    /// The client disconnected or was idle too long.
    ClientDisconnected,
    /// The request is rejected.
    Rejected(Rejection),
}

impl From<ProtocolError> for RequestReadError {
    fn from(refusal: ProtocolError) -> Self {
        RequestReadError::Rejected(Rejection::from(refusal))
    }
}

impl From<Rejection> for RequestReadError {
    fn from(rejection: Rejection) -> Self {
        RequestReadError::Rejected(rejection)
    }
}

impl From<MemoryExhausted> for RequestReadError {
    fn from(_: MemoryExhausted) -> Self {
        RequestReadError::Rejected(Rejection::OVERLOADED)
    }
}

/// Converts the result of a read to an error of the request that is being read.
pub fn check_fill(filled: FillOutcome) -> Result<(), RequestReadError> {
    match filled {
        FillOutcome::More => Ok(()),
        FillOutcome::End => Err(RequestReadError::ClientDisconnected),
        FillOutcome::OutOfMemory => Err(MemoryExhausted.into()),
    }
}

/// Waits for bytes from a client, which must arrive before `deadline`.
pub async fn fill(client: &mut Client, deadline: Instant) -> Result<(), RequestReadError> {
    match timeout_at(deadline, client.fill()).await {
        Err(_) => Err(RequestReadError::Rejected(Rejection::SLOW_REQUEST)),
        Ok(filled) => check_fill(filled),
    }
}

/// A complete body.
pub struct RequestBody {
    /// Range of the body in the input.
    pub range: Range<usize>,
    /// Number of input bytes that the request consumed.
    pub consumed: usize,
    /// Whether the gateway had to wait for the body.
    pub was_awaited: bool,
}

/// Reads request bodies.
pub struct BodyReader<'c> {
    pub settings: &'c GatewaySettings,
    pub client: &'c mut Client,
    /// Whether the client waits for `100 Continue`.
    pub expect_continue: bool,
}

/// Size of one read of a chunked body that is already large, in bytes.
const READ_SIZE: usize = 16 * 1024;

impl BodyReader<'_> {
    /// Waits for the complete body after a head of `head_length` bytes; a chunked body is decoded in place.
    pub async fn read(
        mut self,
        framing: RequestFraming,
        head_length: usize,
    ) -> Result<RequestBody, RequestReadError> {
        match framing {
            RequestFraming::Empty => Ok(RequestBody {
                range: head_length..head_length,
                consumed: head_length,
                was_awaited: false,
            }),
            RequestFraming::Length(length) => self.read_sized(length, head_length).await,
            RequestFraming::Chunked => self.read_chunked(head_length).await,
        }
    }

    async fn read_sized(&mut self, length: u64, head_length: usize) -> Result<RequestBody, RequestReadError> {
        let fits = usize::try_from(length)
            .ok()
            .filter(|_| length <= self.limits().body_bytes);
        let end = fits.and_then(|length| head_length.checked_add(length));
        let end = end.ok_or(ProtocolError::BodyTooLarge)?;
        let came_later = self.client.input.len() < end;
        if came_later {
            let missing = end - self.client.input.len();
            self.client.input.reserve_exact(missing)?;
            self.send_continue().await?;
            let deadline = self.deadline();
            while self.client.input.len() < end {
                let before = self.client.input.len();
                fill(self.client, deadline).await?;
                if self.client.input.len() - before >= SLICE_BYTES {
                    tokio::task::yield_now().await;
                }
            }
        }
        Ok(RequestBody {
            range: head_length..end,
            consumed: end,
            was_awaited: came_later,
        })
    }

    async fn read_chunked(&mut self, head_length: usize) -> Result<RequestBody, RequestReadError> {
        let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked, self.limits());
        let mut came_later = false;
        let deadline = self.deadline();
        let mut end = head_length;
        loop {
            let input = &mut self.client.input;
            let mut used = end;
            let done = loop {
                let step = decoder.decode(&input[used..])?;
                let data = used + step.data.start..used + step.data.end;
                let length = data.len();
                input.move_range(data, end);
                end += length;
                used += step.consumed;
                if step.done || step.consumed == 0 {
                    break step.done;
                }
            };
            let rest = input.len() - used;
            input.move_range(used..used + rest, end);
            input.truncate(end + rest);
            if done {
                return Ok(RequestBody {
                    range: head_length..end,
                    consumed: end,
                    was_awaited: came_later,
                });
            }
            if input.has_reserved_memory() {
                input.reserve(READ_SIZE)?;
            }
            if !came_later {
                came_later = true;
                self.send_continue().await?;
            }
            fill(self.client, deadline).await?;
        }
    }

    fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.settings.timeouts.client_body
    }

    async fn send_continue(&mut self) -> Result<(), RequestReadError> {
        if self.expect_continue {
            let sent = self.client.send(encode::CONTINUE).await;
            sent.map_err(|_| RequestReadError::ClientDisconnected)?;
        }
        Ok(())
    }
}
