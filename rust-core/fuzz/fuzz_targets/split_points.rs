//! A connection gets the same answer however its bytes are split into reads. The first byte of the input
//! seeds the splits, the rest is what the client sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{BodyDecoder, HeadScanner, Limits, Refusal, parse_request};

/// The body, whether it is complete, and how many bytes of the connection the request used.
type Verdict = Result<Option<(Vec<u8>, usize)>, Refusal>;

fn receive(bytes: &[u8], next_read: &mut dyn FnMut(usize) -> usize) -> Verdict {
    let limits = Limits {
        head_bytes: 1024,
        target_bytes: 256,
        headers: 16,
        body_bytes: 1024,
    };
    let mut scanner = HeadScanner::new();
    let mut received = 0;
    let length = loop {
        received = next_read(received).min(bytes.len());
        match scanner.scan(&bytes[..received], &limits)? {
            Some(length) => break length,
            None if received == bytes.len() => return Ok(None),
            None => {}
        }
    };
    let head = parse_request(&bytes[..length], &limits)?;
    let mut decoder = BodyDecoder::for_request(head.framing, &limits);
    let (mut body, mut at) = (Vec::new(), length);
    loop {
        let step = decoder.decode(&bytes[at..received])?;
        body.extend_from_slice(&bytes[at..received][step.data]);
        at += step.consumed;
        if step.done {
            return Ok(Some((body, at)));
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
    let whole = receive(bytes, &mut |_| bytes.len());
    assert_eq!(receive(bytes, &mut |at| at + 1), whole, "byte by byte");
    let mut state = u32::from(seed) | 1 << 8;
    let random = &mut |at: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        at + 1 + (state >> 24) as usize % 48
    };
    assert_eq!(receive(bytes, random), whole, "random reads");
});
