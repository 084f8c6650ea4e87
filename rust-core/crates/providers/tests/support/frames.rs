//! Writes frames of Amazon's event streams independently of the code that reads them.
#![allow(dead_code, reason = "each test uses only some of these helpers")]

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Computes a CRC-32 bit by bit, independently of the reader.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 * (crc & 1))
        })
    })
}

/// Returns a frame with these headers and this payload.
pub fn frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload);
    frame.extend(crc32(&frame).to_be_bytes());
    frame
}

/// Returns a header with a string value.
pub fn string(name: &str, value: &str) -> Vec<u8> {
    let mut header = vec![u8::try_from(name.len()).unwrap()];
    header.extend(name.bytes());
    header.push(7);
    header.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
    header.extend(value.bytes());
    header
}

/// Returns the frame of an event.
pub fn event(name: &str, payload: &str) -> Vec<u8> {
    typed("event", ":event-type", name, payload)
}

/// Returns the frame of an exception.
pub fn exception(name: &str, payload: &str) -> Vec<u8> {
    typed("exception", ":exception-type", name, payload)
}

fn typed(message: &str, header: &str, name: &str, payload: &str) -> Vec<u8> {
    let headers = [
        string(header, name),
        string(":content-type", "application/json"),
        string(":message-type", message),
    ];
    frame(&headers.concat(), payload.as_bytes())
}

/// Returns a frame that carries an event of a model's own API.
pub fn carried(event: &str) -> Vec<u8> {
    let payload = format!(
        r#"{{"bytes":"{}","p":"abcdefgh"}}"#,
        BASE64_STANDARD.encode(event)
    );
    self::event("chunk", &payload)
}
