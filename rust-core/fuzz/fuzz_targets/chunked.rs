//! A chunked body reads the same to a second decoder that is written from the grammar alone, and decodes to
//! the same bytes after it is encoded anew; a refused one stays refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{BodyDecoder, Limits, ProtocolError, RequestFraming, encode};
use std::cell::RefCell;

const LIMITS: Limits = Limits {
    head_bytes: 128,
    target_bytes: 64,
    headers: 4,
    body_bytes: 512,
};

#[derive(Default)]
struct Buffers {
    body: Vec<u8>,
    encoded: Vec<u8>,
    again: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Whether the body is complete, and the bytes it took.
fn decode(input: &[u8], body: &mut Vec<u8>) -> Result<(bool, usize), ProtocolError> {
    let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked, &LIMITS);
    let mut at = 0;
    body.clear();
    loop {
        let rest = &input[at..];
        let step = match decoder.decode(rest) {
            Ok(step) => step,
            Err(refusal) => {
                assert_eq!(
                    decoder.decode(encode::LAST_CHUNK),
                    Err(refusal),
                    "a refusal is final"
                );
                return Err(refusal);
            }
        };
        assert!(step.consumed > 0 || step.done || rest.is_empty());
        body.extend_from_slice(&rest[step.data]);
        at += step.consumed;
        if step.done || at == input.len() {
            return Ok((step.done, at));
        }
    }
}

/// The bytes that a whole chunked body takes, by the grammar of RFC 9112 section 7.1 without extensions; `None`
/// when `input` does not start with one. Knows no limits.
fn whole_body(input: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = line(&input[at..])?;
        let digits = std::str::from_utf8(line).ok()?;
        if !(1..=16).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        at += line.len() + 2;
        let size = usize::try_from(u64::from_str_radix(digits, 16).ok()?).ok()?;
        if size == 0 {
            break;
        }
        let end = at.checked_add(size)?;
        if input.get(end..end.checked_add(2)?)? != b"\r\n" {
            return None;
        }
        at = end + 2;
    }
    loop {
        let line = line(&input[at..])?;
        at += line.len() + 2;
        if line.is_empty() {
            return Some(at);
        }
        let name = line
            .split(|&byte| byte == b':')
            .next()
            .filter(|name| name.len() < line.len())?;
        let token = |byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
        if name.is_empty() || !name.iter().all(token) {
            return None;
        }
    }
}

/// The bytes before the first CRLF, when no control byte but HTAB stands before it.
fn line(input: &[u8]) -> Option<&[u8]> {
    let end = input
        .iter()
        .position(|&byte| byte != b'\t' && byte.is_ascii_control())?;
    input[end..].starts_with(b"\r\n").then_some(&input[..end])
}

fuzz_target!(|bytes: &[u8]| {
    BUFFERS.with_borrow_mut(|Buffers { body, encoded, again }| {
        let decoded = decode(bytes, body);
        assert!(body.len() as u64 <= LIMITS.body_bytes);
        match decoded {
            Ok((true, taken)) => assert_eq!(whole_body(bytes), Some(taken)),
            Ok((false, _)) => assert_eq!(whole_body(bytes), None),
            Err(
                ProtocolError::BodyTooLarge
                | ProtocolError::TrailersTooLarge
                | ProtocolError::ForbiddenTrailer,
            ) => {}
            Err(refusal) => assert_eq!(whole_body(bytes), None, "{refusal:?}"),
        }
        if matches!(decoded, Ok((true, _))) {
            encoded.clear();
            encode::write_chunk(encoded, body);
            encoded.extend_from_slice(encode::LAST_CHUNK);
            assert_eq!(decode(encoded, again), Ok((true, encoded.len())));
            assert!(again == body);
        }
    });
});
