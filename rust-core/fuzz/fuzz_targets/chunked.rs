//! A chunked body, accepted, decodes to the same bytes after it is encoded anew; a refused one stays refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{BodyDecoder, Limits, Refusal, RequestFraming, encode};

fn decode(mut input: &[u8], limits: &Limits) -> Result<(Vec<u8>, bool, usize), Refusal> {
    let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked, limits);
    let mut body = Vec::new();
    loop {
        let step = match decoder.decode(input) {
            Ok(step) => step,
            Err(refusal) => {
                assert_eq!(decoder.decode(b"0\r\n\r\n"), Err(refusal), "a refusal is final");
                return Err(refusal);
            }
        };
        assert!(step.consumed > 0 || step.done || input.is_empty());
        body.extend_from_slice(&input[step.data]);
        input = &input[step.consumed..];
        if step.done || input.is_empty() {
            return Ok((body, step.done, input.len()));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        body_bytes: 4096,
        ..Limits::default()
    };
    let Ok((body, done, _)) = decode(bytes, &limits) else {
        return;
    };
    assert!(body.len() as u64 <= limits.body_bytes);
    if done {
        let mut again = Vec::new();
        encode::write_chunk(&mut again, &body);
        again.extend_from_slice(encode::LAST_CHUNK);
        assert_eq!(decode(&again, &limits), Ok((body, true, 0)));
    }
});
