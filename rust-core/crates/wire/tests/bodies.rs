//! Tests of bodies: lengths, chunks, trailers and limits.

use proofgate_wire::{BodyDecoder, Limits, ProtocolError, RequestFraming, ResponseFraming, Step};

fn decode(decoder: &mut BodyDecoder, input: &[u8]) -> Result<(Vec<u8>, usize, bool), ProtocolError> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let step = decoder.decode(&input[at..])?;
        body.extend_from_slice(&input[at..][step.data]);
        at += step.consumed;
        if step.done || at == input.len() {
            return Ok((body, at, step.done));
        }
    }
}

fn chunked(input: &[u8]) -> Result<(Vec<u8>, usize, bool), ProtocolError> {
    decode(
        &mut BodyDecoder::for_request(RequestFraming::Chunked, &Limits::default()),
        input,
    )
}

#[test]
fn an_empty_body_is_done_without_input() {
    let mut decoder = BodyDecoder::for_request(RequestFraming::Empty, &Limits::default());
    assert!(decoder.is_done());
    assert_eq!(
        decoder.decode(b"GET"),
        Ok(Step {
            consumed: 0,
            data: 0..0,
            done: true
        })
    );
}

#[test]
fn a_length_body_ends_at_its_length() {
    let mut decoder = BodyDecoder::for_request(RequestFraming::Length(5), &Limits::default());
    assert_eq!(
        decoder.decode(b"hel"),
        Ok(Step {
            consumed: 3,
            data: 0..3,
            done: false
        })
    );
    assert_eq!(
        decoder.decode(b"loGET"),
        Ok(Step {
            consumed: 2,
            data: 0..2,
            done: true
        })
    );
    assert_eq!(
        decoder.decode(b"GET"),
        Ok(Step {
            consumed: 0,
            data: 0..0,
            done: true
        })
    );
}

#[test]
fn chunks_are_joined_and_the_next_message_is_left() {
    let input = b"5\r\nhello\r\n00A\r\n, universe\r\n0\r\n\r\nGET";
    assert_eq!(
        chunked(input),
        Ok((b"hello, universe".to_vec(), input.len() - 3, true))
    );
}

#[test]
fn trailers_are_dropped() {
    let input = b"1\r\na\r\n0\r\nX-A: 1\r\nExpires: never\r\nProxy-Authentication-Information: 1\r\n\r\n";
    assert_eq!(chunked(input), Ok((b"a".to_vec(), input.len(), true)));
}

#[test]
fn a_malformed_chunk_is_refused_by_its_rule() {
    for (input, expected) in [
        (&b"\r\n"[..], ProtocolError::InvalidChunkSize),
        (b"g", ProtocolError::InvalidChunkSize),
        (b"0x5\r\n", ProtocolError::InvalidChunkSize),
        (b"5 \r\n", ProtocolError::InvalidChunkSize),
        (b"-5\r\n", ProtocolError::InvalidChunkSize),
        (b"00000000000000001", ProtocolError::InvalidChunkSize),
        (b"ffffffffffffffff\r\n", ProtocolError::BodyTooLarge),
        (b"5;a=b\r\n", ProtocolError::ChunkExtension),
        (b"5\n", ProtocolError::BareLineFeed),
        (b"5\rX", ProtocolError::BareCarriageReturn),
        (b"1\r\naX", ProtocolError::InvalidChunkEnd),
        (b"1\r\na\rX", ProtocolError::InvalidChunkEnd),
        (b"0\r\n\n", ProtocolError::BareLineFeed),
        (b"0\r\n\rX", ProtocolError::BareCarriageReturn),
        (b"0\r\n X: 1\r\n", ProtocolError::InvalidTrailer),
        (b"0\r\nX : 1\r\n", ProtocolError::InvalidTrailer),
        (b"0\r\nX\r\n", ProtocolError::InvalidTrailer),
        (b"0\r\nX: 1\n", ProtocolError::BareLineFeed),
        (b"0\r\nX: \0", ProtocolError::InvalidTrailer),
        (b"0\r\nContent-Length: 1\r\n", ProtocolError::ForbiddenTrailer),
        (
            b"0\r\nTRANSFER_ENCODING: chunked\r\n",
            ProtocolError::ForbiddenTrailer,
        ),
        (
            b"0\r\nX-Proofgate-Tenant: acme\r\n",
            ProtocolError::ForbiddenTrailer,
        ),
        (b"0\r\nconnection: close\r\n", ProtocolError::ForbiddenTrailer),
        (
            b"0\r\nProxy.Authentication_Info: a\r\n",
            ProtocolError::ForbiddenTrailer,
        ),
    ] {
        assert_eq!(
            chunked(input),
            Err(expected),
            "{:?}",
            String::from_utf8_lossy(input)
        );
    }
}

#[test]
fn a_refusal_is_final() {
    let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked, &Limits::default());
    assert_eq!(decoder.decode(b"x"), Err(ProtocolError::InvalidChunkSize));
    assert_eq!(decoder.decode(b"0\r\n\r\n"), Err(ProtocolError::InvalidChunkSize));
    assert_eq!(decoder.end_of_input(), Err(ProtocolError::InvalidChunkSize));
}

#[test]
fn a_body_over_the_limit_is_refused_when_it_is_announced() {
    let limits = Limits {
        body_bytes: 6,
        ..Limits::default()
    };
    let mut decoder = BodyDecoder::for_request(RequestFraming::Length(7), &limits);
    assert_eq!(decoder.decode(b""), Err(ProtocolError::BodyTooLarge));
    let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked, &limits);
    assert_eq!(
        decode(&mut decoder, b"3\r\nabc\r\n3\r\ndef\r\n"),
        Ok((b"abcdef".to_vec(), 16, false))
    );
    assert_eq!(decoder.decode(b"1\r\n"), Err(ProtocolError::BodyTooLarge));
}

#[test]
fn a_trailer_section_over_the_limits_is_refused() {
    let limits = Limits {
        head_bytes: 16,
        headers: 2,
        ..Limits::default()
    };
    let decode = |input: &[u8]| {
        decode(
            &mut BodyDecoder::for_request(RequestFraming::Chunked, &limits),
            input,
        )
    };
    assert!(decode(b"0\r\na: 1\r\nb: 1\r\n\r\n").is_ok());
    assert_eq!(
        decode(b"0\r\na:\r\nb:\r\nc:\r\n\r\n"),
        Err(ProtocolError::TrailersTooLarge)
    );
    assert_eq!(
        decode(b"0\r\na: 12345678901234567890\r\n\r\n"),
        Err(ProtocolError::TrailersTooLarge)
    );
}

#[test]
fn a_body_that_ends_with_the_connection_is_done_when_the_caller_says_so() {
    let mut decoder = BodyDecoder::for_response(ResponseFraming::UntilClose);
    assert_eq!(
        decoder.decode(b"hello"),
        Ok(Step {
            consumed: 5,
            data: 0..5,
            done: false
        })
    );
    assert_eq!(decoder.end_of_input(), Ok(()));
    assert!(decoder.is_done());
}

#[test]
fn a_body_cut_short_is_refused() {
    for framing in [ResponseFraming::Length(6), ResponseFraming::Chunked] {
        let mut decoder = BodyDecoder::for_response(framing);
        assert!(!decoder.decode(b"5\r\n").unwrap().done);
        assert_eq!(decoder.end_of_input(), Err(ProtocolError::TruncatedBody));
    }
}
