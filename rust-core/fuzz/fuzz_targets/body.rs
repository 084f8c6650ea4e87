//! A body of known length is exactly its bytes, whatever the reads are: no byte less, none of the next message,
//! and its end is known at once. The first four bytes of the input are the length, the limit, the size of a
//! read and whether it is a response; the rest is the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{BodyDecoder, Limits, ProtocolError, RequestFraming, ResponseFraming};

fuzz_target!(|input: &[u8]| {
    let Some((&[length, limit, read, response], stream)) = input.split_first_chunk() else {
        return;
    };
    let length = u64::from(length);
    let limits = Limits {
        body_bytes: u64::from(limit),
        ..Limits::default()
    };
    let mut decoder = match response % 3 {
        0 => BodyDecoder::for_request(RequestFraming::Length(length), &limits),
        1 => BodyDecoder::for_response(ResponseFraming::Length(length)),
        _ => BodyDecoder::for_response(ResponseFraming::UntilClose),
    };
    let until_close = response % 3 == 2;
    if response % 3 == 0 && length > limits.body_bytes {
        assert_eq!(decoder.decode(stream), Err(ProtocolError::BodyTooLarge));
        assert_eq!(decoder.end_of_input(), Err(ProtocolError::BodyTooLarge));
        return;
    }
    let expected = if until_close {
        stream.len()
    } else {
        stream.len().min(usize::try_from(length).expect("it is one byte"))
    };
    let (mut at, mut received) = (0, 0);
    while at < expected {
        received = (received + 1 + usize::from(read)).min(stream.len());
        let step = decoder
            .decode(&stream[at..received])
            .expect("nothing can be wrong with it");
        assert_eq!((step.data.start, step.data.end), (0, step.consumed));
        assert_eq!(step.consumed, received.min(expected) - at);
        at += step.consumed;
        assert_eq!(step.done, !until_close && at as u64 == length);
    }
    let complete = !until_close && expected as u64 == length;
    assert_eq!(decoder.is_done(), complete);
    if complete {
        let after = decoder.decode(&stream[at..]).expect("it is done");
        assert_eq!((after.consumed, after.data, after.done), (0, 0..0, true));
    }
    let ended = decoder.end_of_input();
    assert_eq!(
        ended,
        if complete || until_close {
            Ok(())
        } else {
            Err(ProtocolError::TruncatedBody)
        }
    );
});
