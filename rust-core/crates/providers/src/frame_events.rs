//! Converts Bedrock's frames to server-sent events, the format that all later stages read.
//!
//! A frame of Converse becomes an event of its type with its payload. A frame of an invoked model carries an event of
//! the model's own API in base64, and becomes that event. An exception becomes an event whose name begins with
//! [`EXCEPTION_PREFIX`].

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use crate::dialect::Dialect;
use crate::event_stream::{Frame, FrameError, FrameReader};

/// Prefix of the name of an event that represents an exception; the exception's name follows. The names of other
/// events contain no colon.
pub const EXCEPTION_PREFIX: &str = "exception:";
/// Maximum length of the name of an event or an exception, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Reads frames, however the stream is cut into pieces, and writes the events that they represent.
#[derive(Debug)]
pub struct FrameDecoder {
    reader: FrameReader,
    dialect: Dialect,
}

impl FrameDecoder {
    /// Creates a decoder for a new stream in one of Bedrock's dialects, whose payloads have at most `most_payload`
    /// bytes.
    #[must_use]
    pub fn new(dialect: Dialect, most_payload: usize) -> Self {
        FrameDecoder {
            reader: FrameReader::new(most_payload),
            dialect,
        }
    }

    /// Returns an upper bound on its memory, in bytes, after the next `more` bytes have been pushed.
    #[must_use]
    pub fn max_size_after(&self, more: usize) -> usize {
        self.reader.pending().saturating_add(more)
    }

    /// Returns the buffer unless it holds the beginning of a frame: others can use the memory until the next piece
    /// arrives.
    pub fn idle_buffer(&mut self) -> Option<&mut Vec<u8>> {
        self.reader.idle_buffer()
    }

    /// Appends the next piece of the stream.
    pub fn push(&mut self, piece: &[u8]) {
        self.reader.push(piece);
    }

    /// Appends the next event to `out`; returns `false` if none is complete.
    ///
    /// # Errors
    /// [`FrameError`] when a frame is malformed. No further frame can be read then.
    pub fn next_event(&mut self, out: &mut Vec<u8>) -> Result<bool, FrameError> {
        let Some(frame) = self.reader.next_frame()? else {
            return Ok(false);
        };
        match frame.message_type {
            Some("event") => match self.dialect {
                Dialect::Invoke => write_payload_event(&frame, out)?,
                _ => write_event(out, "", checked_name(frame.event_type)?, frame.payload),
            },
            Some("exception") => write_event(
                out,
                EXCEPTION_PREFIX,
                checked_name(frame.exception_type)?,
                frame.payload,
            ),
            Some("error") => write_error(&frame, out),
            _ => return Err(FrameError::Headers),
        }
        Ok(true)
    }
}

/// Returns a name that is safe to write into an event.
fn checked_name(name: Option<&str>) -> Result<&str, FrameError> {
    let is_name = |name: &&str| {
        let mut bytes = name.bytes();
        (1..=MAX_NAME_BYTES).contains(&name.len())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    name.filter(is_name).ok_or(FrameError::Headers)
}

fn write_event(out: &mut Vec<u8>, before: &str, name: &str, data: &[u8]) {
    for part in ["event: ", before, name, "\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"data: ");
    let begin = out.len();
    out.extend_from_slice(data);
    // A line break in JSON is white space between its tokens; in an event it would end the line.
    for byte in &mut out[begin..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\n\n");
}

/// Writes a connection error. Its headers carry the information that an exception carries in its
/// payload.
fn write_error(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let name = checked_name(frame.error_code).unwrap_or("error");
    let said = serde_json::json!({ "message": frame.error_message });
    write_event(out, EXCEPTION_PREFIX, name, said.to_string().as_bytes());
}

/// Writes the event of the model's own API that a frame carries. Source: botocore 1.44.5, shape `PayloadPart`.
fn write_payload_event(frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), FrameError> {
    #[derive(Deserialize)]
    struct Payload<'p> {
        #[serde(borrow)]
        bytes: Cow<'p, str>,
    }
    #[derive(Deserialize)]
    struct Event<'e> {
        #[serde(borrow)]
        r#type: Cow<'e, str>,
    }
    if frame.event_type != Some("chunk") {
        // An unknown event has no content.
        write_event(out, "", checked_name(frame.event_type)?, b"");
        return Ok(());
    }
    let payload: Payload<'_> = serde_json::from_slice(frame.payload).map_err(|_| FrameError::Payload)?;
    let event = BASE64_STANDARD.decode(payload.bytes.as_bytes());
    let event = event.map_err(|_| FrameError::Payload)?;
    let said: Event<'_> = serde_json::from_slice(&event).map_err(|_| FrameError::Payload)?;
    let name = checked_name(Some(&said.r#type)).map_err(|_| FrameError::Payload)?;
    write_event(out, "", name, &event);
    Ok(())
}
