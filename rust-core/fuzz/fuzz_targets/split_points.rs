//! A connection gets the same answer however its bytes are split into reads. The first byte of the input
//! seeds the splits, the rest is what the client sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{BodyDecoder, HeadScanner, Limits, ProtocolError, parse_request};
use std::cell::RefCell;

const LIMITS: Limits = Limits {
    head_bytes: 384,
    target_bytes: 128,
    headers: 12,
    body_bytes: 256,
};

thread_local! {
    static BODIES: RefCell<(Vec<u8>, Vec<u8>)> = RefCell::default();
}

/// How many bytes of the connection the request used; `None` when it is not complete.
type Verdict = Result<Option<usize>, ProtocolError>;

fn receive(bytes: &[u8], body: &mut Vec<u8>, mut next_read: impl FnMut(usize) -> usize) -> Verdict {
    body.clear();
    let mut scanner = HeadScanner::new();
    let mut received = 0;
    let length = loop {
        received = next_read(received).min(bytes.len());
        match scanner.scan(&bytes[..received], &LIMITS)? {
            Some(length) => break length,
            None if received == bytes.len() => return Ok(None),
            None => {}
        }
    };
    let head = parse_request(&bytes[..length], &LIMITS)?;
    let mut decoder = BodyDecoder::for_request(head.framing, &LIMITS);
    let mut at = length;
    loop {
        let step = decoder.decode(&bytes[at..received])?;
        body.extend_from_slice(&bytes[at..received][step.data]);
        at += step.consumed;
        if step.done {
            return Ok(Some(at));
        }
        if at == received {
            if received == bytes.len() {
                return Ok(None);
            }
            received = next_read(received).min(bytes.len());
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&seed, bytes)) = input.split_first() else {
        return;
    };
    BODIES.with_borrow_mut(|(whole_body, body)| {
        let whole = receive(bytes, whole_body, |_| bytes.len());
        assert_eq!(receive(bytes, body, |at| at + 1), whole, "byte by byte");
        assert!(body == whole_body || whole.is_err());
        let mut state = u32::from(seed) | 1 << 8;
        let random = |at: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            at + 1 + (state >> 24) as usize % 48
        };
        assert_eq!(receive(bytes, body, random), whole, "random reads");
        assert!(body == whole_body || whole.is_err());
    });
});
