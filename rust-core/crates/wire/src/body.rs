//! Finds the bytes of a body in a stream of reads (RFC 9112 sections 6 and 7).

use crate::limits::Limits;
use crate::protocol_error::ProtocolError;
use crate::request::RequestFraming;
use crate::response::ResponseFraming;
use crate::trailers::Trailers;
use std::ops::Range;

/// Maximum number of digits of a chunk size: the number for 64 bits. More digits are refused, even
/// if they are zeros.
const CHUNK_SIZE_DIGITS: u8 = 16;

/// A decoder for the body of one message. It copies nothing: it returns the range of the input that
/// is body.
#[derive(Debug, Clone)]
pub struct BodyDecoder {
    state: State,
    /// Number of body bytes that the framing may still announce.
    allowance: u64,
    trailers: Trailers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Length { left: u64 },
    UntilClose,
    ChunkSize { size: u64, digits: u8 },
    ChunkSizeEnd { size: u64 },
    ChunkData { left: u64 },
    ChunkDataCr,
    ChunkDataLf,
    Trailers,
    Done,
    Refused(ProtocolError),
}

/// The result of one call of [`BodyDecoder::decode`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Number of processed input bytes. The next call starts after them.
    pub consumed: usize,
    /// The part of the input that is body; may be empty.
    pub data: Range<usize>,
    /// Whether the body is complete. Input after `consumed` then belongs to the next message.
    pub done: bool,
}

impl BodyDecoder {
    /// Creates a decoder for a request body of at most [`Limits::body_bytes`].
    #[must_use]
    pub fn for_request(framing: RequestFraming, limits: &Limits) -> Self {
        let state = match framing {
            RequestFraming::Length(length) if length > limits.body_bytes => {
                State::Refused(ProtocolError::BodyTooLarge)
            }
            RequestFraming::Empty | RequestFraming::Length(0) => State::Done,
            RequestFraming::Length(left) => State::Length { left },
            RequestFraming::Chunked => State::ChunkSize { size: 0, digits: 0 },
        };
        Self {
            state,
            allowance: limits.body_bytes,
            trailers: Trailers::new(limits),
        }
    }

    /// Creates a decoder for a response body of any length; its trailers have the default [`Limits`].
    #[must_use]
    pub fn for_response(framing: ResponseFraming) -> Self {
        let state = match framing {
            ResponseFraming::Empty | ResponseFraming::Length(0) => State::Done,
            ResponseFraming::Length(left) => State::Length { left },
            ResponseFraming::Chunked => State::ChunkSize { size: 0, digits: 0 },
            ResponseFraming::UntilClose => State::UntilClose,
        };
        Self {
            state,
            allowance: u64::MAX,
            trailers: Trailers::new(&Limits::default()),
        }
    }

    /// Returns whether the body is complete. A body that ends with the connection is never complete
    /// before [`BodyDecoder::end_of_input`].
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Finds the next run of body bytes in `input`, which starts where the last step ended.
    ///
    /// Call this again with the rest of the input until the body is done or the input is used up.
    /// Every call with non-empty input consumes bytes or is done.
    ///
    /// # Errors
    /// The [`ProtocolError`] of the broken framing rule; [`ProtocolError::BodyTooLarge`] as soon as
    /// a chunk size announces more bytes than are allowed. Later calls return the same error.
    pub fn decode(&mut self, input: &[u8]) -> Result<Step, ProtocolError> {
        let mut at = 0;
        loop {
            match self.state {
                State::Done => {
                    return Ok(Step {
                        consumed: at,
                        data: at..at,
                        done: true,
                    });
                }
                State::Refused(refusal) => return Err(refusal),
                _ if at == input.len() => {
                    return Ok(Step {
                        consumed: at,
                        data: at..at,
                        done: false,
                    });
                }
                State::UntilClose => {
                    return Ok(Step {
                        consumed: input.len(),
                        data: at..input.len(),
                        done: false,
                    });
                }
                State::Length { left } => {
                    let (data, left) = take_run(at, input, left);
                    self.state = if left == 0 {
                        State::Done
                    } else {
                        State::Length { left }
                    };
                    return Ok(Step {
                        consumed: data.end,
                        data,
                        done: left == 0,
                    });
                }
                State::ChunkData { left } => {
                    let (data, left) = take_run(at, input, left);
                    self.state = if left == 0 {
                        State::ChunkDataCr
                    } else {
                        State::ChunkData { left }
                    };
                    return Ok(Step {
                        consumed: data.end,
                        data,
                        done: false,
                    });
                }
                _ => {
                    let next = self.framing_byte(input[at]);
                    self.state = next.unwrap_or_else(State::Refused);
                    at += 1;
                }
            }
        }
    }

    /// Marks the end of the connection. This completes a body that ends with the connection.
    ///
    /// # Errors
    /// [`ProtocolError::TruncatedBody`] if the framing announces more bytes.
    pub fn end_of_input(&mut self) -> Result<(), ProtocolError> {
        match self.state {
            State::Done | State::UntilClose => {
                self.state = State::Done;
                Ok(())
            }
            State::Refused(refusal) => Err(refusal),
            _ => {
                self.state = State::Refused(ProtocolError::TruncatedBody);
                Err(ProtocolError::TruncatedBody)
            }
        }
    }

    /// Returns the state after a byte that is not body.
    fn framing_byte(&mut self, byte: u8) -> Result<State, ProtocolError> {
        match (self.state, byte) {
            (State::ChunkSize { size, digits }, _) if byte.is_ascii_hexdigit() => {
                if digits == CHUNK_SIZE_DIGITS {
                    return Err(ProtocolError::InvalidChunkSize);
                }
                Ok(State::ChunkSize {
                    size: size << 4 | hex_value(byte),
                    digits: digits + 1,
                })
            }
            (State::ChunkSize { size, digits: 1.. }, b'\r') => Ok(State::ChunkSizeEnd { size }),
            (State::ChunkSize { digits: 1.., .. }, b';') => Err(ProtocolError::ChunkExtension),
            (State::ChunkSize { .. }, b'\n') => Err(ProtocolError::BareLineFeed),
            (State::ChunkSize { .. }, _) => Err(ProtocolError::InvalidChunkSize),
            (State::ChunkSizeEnd { size: 0 }, b'\n') => Ok(State::Trailers),
            (State::ChunkSizeEnd { size }, b'\n') => {
                self.allowance = self
                    .allowance
                    .checked_sub(size)
                    .ok_or(ProtocolError::BodyTooLarge)?;
                Ok(State::ChunkData { left: size })
            }
            (State::ChunkSizeEnd { .. }, _) => Err(ProtocolError::BareCarriageReturn),
            (State::ChunkDataCr, b'\r') => Ok(State::ChunkDataLf),
            (State::ChunkDataLf, b'\n') => Ok(State::ChunkSize { size: 0, digits: 0 }),
            (State::ChunkDataCr | State::ChunkDataLf, _) => Err(ProtocolError::InvalidChunkEnd),
            (State::Trailers, _) => Ok(if self.trailers.push(byte)? {
                State::Done
            } else {
                State::Trailers
            }),
            (state, _) => Ok(state),
        }
    }
}

/// Returns the range of at most `left` bytes of `input` that starts at `at`, and the number of
/// bytes left after it.
fn take_run(at: usize, input: &[u8], left: u64) -> (Range<usize>, u64) {
    let available = input.len() - at;
    let taken = usize::try_from(left).map_or(available, |left| left.min(available));
    (at..at + taken, left - taken as u64)
}

fn hex_value(digit: u8) -> u64 {
    u64::from(match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    })
}
