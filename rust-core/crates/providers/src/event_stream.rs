//! Frames of Amazon's event streams (`application/vnd.amazon.eventstream`), in which Bedrock streams its responses.
//!
//! A frame consists of its length and the length of its headers, a CRC-32 of these eight bytes, headers, a payload,
//! and a CRC-32 of everything before it; numbers are big endian. Source: "Event stream encoding" of the Amazon
//! Transcribe developer guide, and botocore.

/// Maximum size of the headers, in bytes.
pub const MAX_HEADER_BYTES: usize = 128 << 10;
/// Maximum size of a payload, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 24 << 20;
/// Maximum number of headers in a frame. Bedrock sends three.
const MAX_HEADERS: usize = 32;

/// Size of the two lengths and their checksum, in bytes.
const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;

/// The reason why the input is not a valid stream of frames. The next frame cannot be found after
/// such an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A checksum does not match.
    #[error("a frame's checksum is wrong")]
    Checksum,
    /// A frame's length is less than the sum of its parts.
    #[error("a frame's lengths contradict each other")]
    Lengths,
    /// A frame, or its headers, exceeds a limit.
    #[error("a frame is larger than the limit")]
    TooLarge,
    /// A header is truncated, of an unknown type, or repeated; or a header that is read is not text.
    #[error("a frame's headers are malformed")]
    Headers,
    /// A frame's payload does not match its type.
    #[error("a frame's payload is malformed")]
    Payload,
    /// The stream ended within a frame.
    #[error("the stream ended within a frame")]
    Truncated,
}

/// A frame, with only the headers that identify it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame<'r> {
    /// `:message-type`: `event`, `exception` or `error`.
    pub message_type: Option<&'r str>,
    /// `:event-type` of an event.
    pub event_type: Option<&'r str>,
    /// `:exception-type` of an exception.
    pub exception_type: Option<&'r str>,
    /// `:error-code` of an error.
    pub error_code: Option<&'r str>,
    /// `:error-message` of an error.
    pub error_message: Option<&'r str>,
    /// `:content-type` of the payload.
    pub content_type: Option<&'r str>,
    /// The payload.
    pub payload: &'r [u8],
}

/// Splits a stream into frames, however it is cut into pieces.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// The start of the current frame.
    start: usize,
    max_payload: usize,
    failed: Option<FrameError>,
}

impl FrameReader {
    /// Creates a reader for a new stream whose payloads have at most `most_payload` bytes, and never more than
    /// [`MAX_PAYLOAD_BYTES`].
    #[must_use]
    pub fn new(most_payload: usize) -> Self {
        FrameReader {
            buffer: Vec::new(),
            start: 0,
            max_payload: most_payload.min(MAX_PAYLOAD_BYTES),
            failed: None,
        }
    }

    /// Clears all state for the next stream; keeps the buffer.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.start = 0;
        self.failed = None;
    }

    /// Clears all state, and releases a buffer with more than `most` bytes.
    pub fn release_memory(&mut self, most: usize) {
        self.clear();
        self.buffer.shrink_to(most);
    }

    /// Returns the emptied buffer, unless it holds the beginning of a frame.
    pub fn idle_buffer(&mut self) -> Option<&mut Vec<u8>> {
        if self.pending() > 0 {
            return None;
        }
        self.buffer.clear();
        self.start = 0;
        Some(&mut self.buffer)
    }

    /// Returns the number of bytes of memory that the buffer takes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Returns how many bytes of an incomplete frame are buffered.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Appends the next piece of the stream.
    pub fn push(&mut self, piece: &[u8]) {
        if self.failed.is_none() {
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.extend_from_slice(piece);
        }
    }

    /// Returns the next complete frame.
    ///
    /// # Errors
    /// [`FrameError`] as soon as one is detected, and on every later call.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let begin = self.start;
        match self.complete_frame() {
            Ok(None) => Ok(None),
            Ok(Some((length, headers))) => {
                self.start = begin + length;
                let frame = &self.buffer[begin..begin + length];
                read(frame, headers).inspect_err(|error| self.failed = Some(*error))
            }
            Err(error) => {
                self.failed = Some(error);
                Err(error)
            }
        }
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] if a frame is incomplete, or the earlier error.
    pub fn finish(&self) -> Result<(), FrameError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.pending() > 0 => Err(FrameError::Truncated),
            None => Ok(()),
        }
    }

    /// Returns the length of the current frame and of its headers, once it is complete and its checksums match.
    fn complete_frame(&self) -> Result<Option<(usize, usize)>, FrameError> {
        let rest = &self.buffer[self.start..];
        let Some(prelude) = rest.first_chunk::<PRELUDE_BYTES>() else {
            return Ok(None);
        };
        if crc32(&prelude[..8]) != number(&prelude[8..]) {
            return Err(FrameError::Checksum);
        }
        let [length, headers] = [&prelude[..4], &prelude[4..8]].map(|bytes| number(bytes) as usize);
        if headers > MAX_HEADER_BYTES {
            return Err(FrameError::TooLarge);
        }
        let Some(payload) = length.checked_sub(PRELUDE_BYTES + headers + CHECKSUM_BYTES) else {
            return Err(FrameError::Lengths);
        };
        if payload > self.max_payload {
            return Err(FrameError::TooLarge);
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        let (checked, checksum) = frame.split_at(length - CHECKSUM_BYTES);
        if crc32(checked) != number(checksum) {
            return Err(FrameError::Checksum);
        }
        Ok(Some((length, headers)))
    }
}

/// Reads a four-byte number.
fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn read(frame: &[u8], header_bytes: usize) -> Result<Option<Frame<'_>>, FrameError> {
    let (headers, payload) = frame[PRELUDE_BYTES..frame.len() - CHECKSUM_BYTES].split_at(header_bytes);
    let mut read = Frame {
        payload,
        ..Frame::default()
    };
    let mut names: [&[u8]; MAX_HEADERS] = [&[]; MAX_HEADERS];
    let mut count = 0;
    let mut rest = ByteCursor(headers);
    while !rest.0.is_empty() {
        let (name, value) = header(&mut rest).ok_or(FrameError::Headers)?;
        if names[..count].contains(&name) {
            return Err(FrameError::Headers);
        }
        *names.get_mut(count).ok_or(FrameError::TooLarge)? = name;
        count += 1;
        let kept = match name {
            b":message-type" => &mut read.message_type,
            b":event-type" => &mut read.event_type,
            b":exception-type" => &mut read.exception_type,
            b":error-code" => &mut read.error_code,
            b":error-message" => &mut read.error_message,
            b":content-type" => &mut read.content_type,
            _ => continue,
        };
        let text = value.and_then(|text| std::str::from_utf8(text).ok());
        *kept = Some(text.ok_or(FrameError::Headers)?);
    }
    Ok(Some(read))
}

struct ByteCursor<'r>(&'r [u8]);

impl<'r> ByteCursor<'r> {
    fn take(&mut self, length: usize) -> Option<&'r [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }
}

/// Returns the name of a header, and its value if that is a string.
fn header<'r>(rest: &mut ByteCursor<'r>) -> Option<(&'r [u8], Option<&'r [u8]>)> {
    const BYTE_ARRAY: u8 = 6;
    const STRING: u8 = 7;
    let name_length = rest.byte()?;
    let name = rest.take(usize::from(name_length))?;
    let kind = rest.byte()?;
    let length = match kind {
        0 | 1 => 0, // true, false
        2 => 1,     // i8
        3 => 2,     // i16
        4 => 4,     // i32
        5 | 8 => 8, // i64, and a time in milliseconds
        9 => 16,    // a UUID
        BYTE_ARRAY | STRING => number(rest.take(2)?) as usize,
        _ => return None,
    };
    let value = rest.take(length)?;
    Some((name, (kind == STRING).then_some(value)))
}

/// Lookup tables for eight bytes at a time. Source: M. Kounavis and F. Berry, "A Systematic Approach to Building High
/// Performance Software-Based CRC Generators" (2005), slicing-by-8.
const TABLES: [[u32; 256]; 8] = {
    const IEEE_REVERSED: u32 = 0xEDB8_8320;
    let mut tables = [[0u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ IEEE_REVERSED
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
};

/// The CRC-32 of IEEE 802.3, as in zlib.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut crc = !0u32;
    for chunk in chunks {
        let mixed = u64::from_le_bytes(*chunk) ^ u64::from(crc);
        crc = mixed
            .to_le_bytes()
            .iter()
            .zip(TABLES.iter().rev())
            .fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)]);
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][usize::from(crc.to_le_bytes()[0] ^ byte)];
    }
    !crc
}
