//! Reading a request's body, as a whole, before anything is done with it.

use std::ops::Range;
use std::rc::Rc;

use proofgate_wire::{BodyDecoder, Limits, Refusal, RequestFraming, encode};
use tokio::time::{Instant, timeout_at};

use crate::catalog::Terms;
use crate::connection::Unserved;
use crate::downstream::Client;
use crate::gateway::{Buffered, Gateway};
use crate::rejection::Rejection;

/// Where a complete body stands.
pub(crate) enum Place {
    /// In the input, behind the head.
    InPlace(Range<usize>),
    /// In the connection's body buffer.
    Decoded,
}

/// A complete body.
pub(crate) struct Body {
    pub(crate) place: Place,
    /// Bytes of the input that the request took.
    pub(crate) consumed: usize,
    /// Its share of the memory for bodies.
    pub(crate) _room: Vec<Buffered>,
}

/// Reads bodies.
pub(crate) struct Reader<'c> {
    pub(crate) gateway: &'c Rc<Gateway>,
    pub(crate) terms: &'c Terms,
    pub(crate) client: &'c mut Client,
    /// Whether the client waits to be asked for the body.
    pub(crate) expect_continue: bool,
}

/// A chunked body takes its share of memory in steps of so many bytes.
const STEP: u64 = 64 * 1024;

impl Reader<'_> {
    /// Waits for the whole body behind a head of `head_length` bytes; what is chunked is decoded into `decoded`.
    pub(crate) async fn read(
        mut self,
        framing: RequestFraming,
        head_length: usize,
        decoded: &mut Vec<u8>,
    ) -> Result<Body, Unserved> {
        match framing {
            RequestFraming::Empty => Ok(Body {
                place: Place::InPlace(head_length..head_length),
                consumed: head_length,
                _room: Vec::new(),
            }),
            RequestFraming::Length(length) => self.length(length, head_length).await,
            RequestFraming::Chunked => {
                self.client.consume(head_length);
                self.chunked(decoded).await
            }
        }
    }

    async fn length(&mut self, length: u64, head_length: usize) -> Result<Body, Unserved> {
        let fits = usize::try_from(length)
            .ok()
            .filter(|_| length <= self.limits().body_bytes);
        let end = fits.and_then(|length| head_length.checked_add(length));
        let end = end.ok_or(Refusal::BodyTooLarge)?;
        let mut room = Vec::new();
        if self.client.input.len() < end {
            room.push(self.room(length)?);
            self.send_continue().await?;
            self.client.input.reserve(end - self.client.input.len());
            let deadline = self.deadline();
            while self.client.input.len() < end {
                self.fill(deadline).await?;
            }
        }
        Ok(Body {
            place: Place::InPlace(head_length..end),
            consumed: end,
            _room: room,
        })
    }

    async fn chunked(&mut self, decoded: &mut Vec<u8>) -> Result<Body, Unserved> {
        decoded.clear();
        let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked, self.limits());
        let mut asked = false;
        let mut room = vec![self.room(STEP)?];
        let deadline = self.deadline();
        loop {
            let mut used = 0;
            let done = loop {
                let step = decoder.decode(&self.client.input[used..])?;
                let data = used + step.data.start..used + step.data.end;
                decoded.extend_from_slice(&self.client.input[data]);
                used += step.consumed;
                if step.done || step.consumed == 0 {
                    break step.done;
                }
            };
            self.client.consume(used);
            while (room.len() as u64).saturating_mul(STEP) < decoded.len() as u64 {
                room.push(self.room(STEP)?);
            }
            if done {
                return Ok(Body {
                    place: Place::Decoded,
                    consumed: 0,
                    _room: room,
                });
            }
            if !asked {
                asked = true;
                self.send_continue().await?;
            }
            self.fill(deadline).await?;
        }
    }

    fn limits(&self) -> &Limits {
        &self.terms.limits
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.terms.timeouts.client_body
    }

    fn room(&self, bytes: u64) -> Result<Buffered, Unserved> {
        let room = self.gateway.buffer(bytes, self.terms.buffered_bytes);
        room.ok_or(Unserved::Refused(Rejection::OVERLOADED))
    }

    async fn fill(&mut self, deadline: Instant) -> Result<(), Unserved> {
        match timeout_at(deadline, self.client.fill()).await {
            Err(_) => Err(Unserved::Refused(Rejection::SLOW_REQUEST)),
            Ok(Ok(true)) => Ok(()),
            Ok(_) => Err(Unserved::Gone),
        }
    }

    async fn send_continue(&mut self) -> Result<(), Unserved> {
        if self.expect_continue {
            let sent = self.client.send(encode::CONTINUE).await;
            sent.map_err(|_| Unserved::Gone)?;
        }
        Ok(())
    }
}
