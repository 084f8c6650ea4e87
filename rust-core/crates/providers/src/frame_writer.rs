//! Encodes Anthropic's events in frames of Amazon's event streams, as Bedrock's `InvokeModelWithResponseStream` sends
//! them: the inverse of [`FrameDecoder`](crate::FrameDecoder).

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::event_stream::crc32;
use crate::stream_events::{EventBoundaries, event_parts};

/// Size of the two lengths, their checksum and the final checksum, in bytes.
const FRAME_OVERHEAD: usize = 16;
/// Type code of a string header value.
const STRING: u8 = 7;

/// Writes the frames of one stream, however its events are cut into pieces.
#[derive(Debug, Default)]
pub struct FrameWriter {
    event_boundaries: EventBoundaries,
    /// The received part of an incomplete event.
    partial: Vec<u8>,
}

impl FrameWriter {
    /// Reads the next piece of an event stream, and appends the frames of complete events to `out`.
    pub fn push(&mut self, mut piece: &[u8], out: &mut Vec<u8>) {
        while let Some(end) = self.event_boundaries.next_boundary(piece) {
            let (event, rest) = piece.split_at(end);
            if self.partial.is_empty() {
                write_event_frame(event, out);
            } else {
                self.partial.extend_from_slice(event);
                write_event_frame(&self.partial, out);
                self.partial.clear();
            }
            piece = rest;
        }
        self.partial.extend_from_slice(piece);
    }

    /// Ends the stream: the last event may lack its empty line.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        write_event_frame(&std::mem::take(&mut self.partial), out);
    }

    /// Returns how many bytes of an incomplete event are buffered.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.partial.len()
    }
}

/// Appends the frame of an event. Events without data and pings are skipped: Bedrock sends none, and its clients
/// expect the first frame to start the message.
fn write_event_frame(event: &[u8], out: &mut Vec<u8>) {
    let (name, data) = event_parts(event);
    match name {
        _ if data.is_empty() => {}
        "ping" => {}
        "error" => write_exception(&data, out),
        _ => {
            let payload = [r#"{"bytes":""#, &BASE64_STANDARD.encode(&*data), r#""}"#].concat();
            write_frame(&[(":event-type", "chunk")], "event", payload.as_bytes(), out);
        }
    }
}

/// Appends one of Anthropic's errors as the exception that Bedrock's clients know. Source: botocore 1.44.8, shape
/// `ResponseStream`.
fn write_exception(data: &[u8], out: &mut Vec<u8>) {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct ErrorEvent<'d> {
        #[serde(borrow)]
        error: Error<'d>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Error<'d> {
        #[serde(borrow)]
        r#type: Cow<'d, str>,
        #[serde(borrow)]
        message: Cow<'d, str>,
    }
    #[derive(Serialize)]
    struct Exception<'e> {
        message: &'e str,
    }
    let told: ErrorEvent<'_> = serde_json::from_slice(data).unwrap_or_default();
    let name = match &*told.error.r#type {
        "rate_limit_error" | "overloaded_error" => "throttlingException",
        "invalid_request_error" | "request_too_large" | "not_found_error" => "validationException",
        "timeout_error" => "modelStreamErrorException",
        _ => "internalServerException",
    };
    let message = &*told.error.message;
    // Serializing a string cannot fail.
    let payload = serde_json::to_vec(&Exception { message }).unwrap_or_default();
    write_frame(&[(":exception-type", name)], "exception", &payload, out);
}

/// Appends a frame with a JSON payload; skips a frame whose length does not fit its length field.
fn write_frame(headers: &[(&str, &str)], message_type: &str, payload: &[u8], out: &mut Vec<u8>) {
    let mut fields = Vec::with_capacity(96);
    let common = [
        (":content-type", "application/json"),
        (":message-type", message_type),
    ];
    for (name, value) in headers.iter().chain(&common) {
        // Names and values are constants of this file, and short.
        let (Ok(name_length), Ok(length)) = (u8::try_from(name.len()), u16::try_from(value.len())) else {
            return;
        };
        fields.push(name_length);
        fields.extend_from_slice(name.as_bytes());
        fields.push(STRING);
        fields.extend_from_slice(&length.to_be_bytes());
        fields.extend_from_slice(value.as_bytes());
    }
    let all = fields
        .len()
        .saturating_add(payload.len())
        .saturating_add(FRAME_OVERHEAD);
    let (Ok(all), Ok(of_fields)) = (u32::try_from(all), u32::try_from(fields.len())) else {
        return;
    };
    let begin = out.len();
    out.extend_from_slice(&all.to_be_bytes());
    out.extend_from_slice(&of_fields.to_be_bytes());
    let checksum = crc32(&out[begin..]);
    out.extend_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&fields);
    out.extend_from_slice(payload);
    let checksum = crc32(&out[begin..]);
    out.extend_from_slice(&checksum.to_be_bytes());
}
